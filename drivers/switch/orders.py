"""What is ordered of switches: each in a process of its own, one at a time for each switch, and all of it in time."""

import contextlib
import pathlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from oslo_config import cfg
from oslo_log import log

from ingot.common import errors, metrics
from ingot.drivers.interfaces import children
from ingot.drivers.interfaces.task import Task
from ingot.drivers.switch import settings
from ingot.drivers.switch.settings import Switch

LOG = log.getLogger(__name__)

_WORKER = str(pathlib.Path(__file__).with_name("worker.py"))
_PAUSE = 0.1
_DONE, _REFUSED, _FAILED = map(metrics.SWITCH_CHANGES.labels, ("done", "refused", "failed"))


class Connection(NamedTuple):
    """A port of a switch on a VLAN, as it stands in a node's notes.

    :param is_bond: it is a bond of the switch, not a port.
    :param port: uuid of the node's port or portgroup. :param purpose: what for.
    """

    switch: str
    port_id: str
    vlan: int
    is_bond: bool
    port: str
    purpose: str

    def __str__(self) -> str:
        return f"{'bond' if self.is_bond else 'port'} {self.port_id} on switch {self.switch}, VLAN {self.vlan}"


class Order(NamedTuple):
    """:param plugs: whether the port is put on the VLAN, or taken off it."""

    connection: Connection
    plugs: bool


class SwitchBusy(errors.SwitchUnavailable):
    """Others have been changing the switch all the time; nothing was changed."""


class Place(Protocol):
    """Where changes are made from: a task, or the fleet."""

    conf: cfg.ConfigOpts

    def alone(self, what: str, patience: float) -> contextlib.AbstractContextManager[None]: ...


def carry_out(task: Task, orders: Sequence[Order], patience: float) -> None:
    """Do what is ordered of a node's switches; see :func:`carry_out_of`."""

    def confirm(asked: Sequence[Order]) -> Sequence[Order]:
        task.confirm_lock()
        return asked

    carry_out_of(task, task.node.uuid, orders, patience, confirm)


def carry_out_of(
    place: Place,
    uuid: str,
    orders: Sequence[Order],
    patience: float,
    confirm: Callable[[Sequence[Order]], Sequence[Order]],
) -> None:
    """Do what is ordered, switch by switch, in this order.

    :param uuid: of the node, for messages.
    :param patience: seconds for which others are waited for that change a switch.
    :param confirm: returns which of the orders of a switch are still to be done, when it is its turn.
    :raises SwitchBusy: they do it all the time.
    :raises SwitchUnavailable: a switch does not answer in time.
    :raises SwitchError: it refuses, or is not known.
    """
    switches = settings.read(place.conf)
    for name in dict.fromkeys(order.connection.switch for order in orders):
        ours = [order for order in orders if order.connection.switch == name]
        switch = switches.get(name)
        if switch is None:
            reason = f"no section [genericswitch:{name}] describes it; there are: {settings.describe(switches)}"
            raise errors.SwitchError(what=f"The change of {ours[0].connection}", reason=reason)
        with _wait_for_turn(place, ours[0].connection, patience):
            if left := confirm(ours):
                _change(place.conf, uuid, switch, left)


@contextlib.contextmanager
def _wait_for_turn(place: Place, connection: Connection, patience: float) -> Iterator[None]:
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(place.alone(f"switch {connection.switch}", patience))
        except TimeoutError as exc:
            reason = f"others change it all the time ([switch] turn_timeout: {place.conf.switch.turn_timeout} s)"
            raise SwitchBusy(what=f"The change of {connection}", reason=reason) from exc
        yield


def _change(conf: cfg.ConfigOpts, uuid: str, switch: Switch, orders: Sequence[Order]) -> None:
    limits = children.Limits(conf.switch.timeout, conf.switch.memory_limit)
    job = {
        "name": switch.name,
        "settings": dict(switch.settings),
        "config_files": settings.list_files(conf),
        "orders": [{"plugs": order.plugs, **order.connection._asdict()} for order in orders],
    }
    command = (settings.find_python(conf), "-P", _WORKER)
    child = children.Child(command, pathlib.Path(conf.switch.work_path, conf.host), job, limits)
    try:
        while (code := child.poll()) is None:
            time.sleep(_PAUSE)
        said = child.said()
        done = sum("done" in line for line in said)
        for order in orders[:done]:
            _DONE.inc()
            LOG.info("Node %s: %s: %s", uuid, "connected" if order.plugs else "disconnected", order.connection)
        if done < len(orders):
            raise _build_error(orders[done], child.explain_failure(code), _find_verdict(said))
    finally:
        child.close()


def _find_verdict(said: Sequence[Mapping[str, Any]]) -> bool:
    """Return whether an order may be repeated; it may, where its process has not said so."""
    return next((bool(line["may_repeat"]) for line in said if "may_repeat" in line), True)


def _build_error(order: Order, reason: str, may_repeat: bool) -> errors.IngotError:
    (_FAILED if may_repeat else _REFUSED).inc()
    what = f"{'Connecting' if order.plugs else 'Disconnecting'} {order.connection}"
    return (errors.SwitchUnavailable if may_repeat else errors.SwitchError)(what=what, reason=reason)
