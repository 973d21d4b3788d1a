"""What the API and conductors say to the world, at which moments; what is off costs nothing."""

import contextlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from oslo_config import cfg

from ingot.common import context, errors, states
from ingot.common.json_types import Json
from ingot.notifications import bus, payloads

Row = Any
"""A row with columns as attributes, or a mapping of them."""

LEVELS = ("debug", "info", "warning", "error", "critical")

API, CONDUCTOR = "ironic-api", "ironic-conductor"
"""What the ids of publishers begin with: consumers tell the services apart by these names."""

_UNSTABLE = states.WORKING | states.WAITING
"""A node that enters one of these states begins something (``start``), one that leaves them ends it (``end``)."""

_POWER_RESULTS: Mapping[str, str] = {
    states.REBOOT: states.POWER_ON,
    states.SOFT_REBOOT: states.POWER_ON,
    states.SOFT_POWER_OFF: states.POWER_OFF,
}


class Notice(NamedTuple):
    """A notification before it is built.

    :param action: such as ``provision_set``.
    :param status: ``start``, ``end``, ``success`` or ``error``.
    :param also: fields of the payload that are no columns.
    """

    payload: payloads.Payload
    action: str
    status: str
    also: Mapping[str, object] = {}

    @property
    def priority(self) -> str:
        return "error" if self.status == "error" else "info"


class Notifier:
    """Says what happens in this process, if notifications are on.

    :param service: :data:`API` or :data:`CONDUCTOR`.
    :ivar is_on: whether anything is sent; what is only needed for that need not be read otherwise.
    """

    def __init__(self, conf: cfg.ConfigOpts, service: str) -> None:
        """:raises ConfigurationError: notifications are on, and an address of brokers cannot be used."""
        level = conf.notification_level
        self._least = len(LEVELS) if level is None else LEVELS.index(level)
        self._publisher = f"{service}.{conf.host}"
        self._sends_meters = conf.sensor_data.send_sensor_data and service == CONDUCTOR
        send = bus.connect(conf) if level is not None or self._sends_meters else None
        self.outbound = None if send is None else bus.Outbound(send)
        self.is_on = level is not None and self.outbound is not None

    @property
    def node_columns(self) -> tuple[str, ...]:
        """The columns that a request which changes a node has to read besides its own."""
        return payloads.NODE_COLUMNS if self.is_on else ()

    def close(self, patience: float = bus.PATIENCE_S) -> None:
        """Send what waits for so many seconds at most; what is left is lost, and logged."""
        if self.outbound:
            self.outbound.close(patience)

    def tell(self, ctx: context.RequestContext, noun: str, notice: Notice, row: Row) -> None:
        """Send a notification, if it is important enough.

        :param noun: the object in the event type, such as ``node``.
        :param row: as it is now.
        """
        if self.outbound is None or LEVELS.index(notice.priority) < self._least:
            return
        body = notice.payload.build({**_as_mapping(row), **notice.also})
        event_type = f"baremetal.{noun}.{notice.action}.{notice.status}"
        self.outbound.add(bus.Message(ctx, self._publisher, event_type, notice.priority, body))

    def tell_meters(self, ctx: context.RequestContext, event_type: str, payload: Json) -> None:
        """Send sensor data to the topics of ``[oslo_messaging_notifications] topics``, whatever notification_level."""
        if self.outbound is not None and self._sends_meters:
            self.outbound.add(bus.Message(ctx, self._publisher, event_type, "info", payload, is_sensor_data=True))

    @contextlib.contextmanager
    def change(
        self, ctx: context.RequestContext, noun: str | None, action: str, before: Row
    ) -> Iterator[Callable[[Row], None]]:
        """Tell that an object is created, updated or deleted: that it begins, and how it has ended.

        :param noun: that of the object, of :data:`payloads.CRUD`; None: there are no notifications of such objects.
        :param before: the row as it is meant to be.
        :returns: what the block gives the row as it is then to; without, it ends as ``before``.
        """
        if not self.is_on or noun is None:
            yield lambda _row: None
            return
        payload = payloads.NODE if action == "maintenance_set" else payloads.CRUD[noun]
        after = [before]
        self.tell(ctx, noun, Notice(payload, action, "start"), before)
        try:
            yield after.append
        except errors.ChangedMeanwhile:
            raise  # the request begins again, and tells so
        except BaseException:
            self.tell(ctx, noun, Notice(payload, action, "error"), before)
            raise
        self.tell(ctx, noun, Notice(payload, action, "end"), after[-1])

    @contextlib.contextmanager
    def action(self, ctx: context.RequestContext, action: str, describe: Callable[[], Row]) -> Iterator[None]:
        """Tell of an action of a conductor on a node, such as ``console_set``.

        :param describe: returns the node as it is now.
        """
        if not self.is_on:
            yield
            return
        node = describe()
        self.tell(ctx, "node", Notice(payloads.NODE, action, "start"), node)
        try:
            yield
        except BaseException:
            self.tell(ctx, "node", Notice(payloads.NODE, action, "error"), node)
            raise
        self.tell(ctx, "node", Notice(payloads.NODE, action, "end"), describe())

    def tell_transitions(
        self,
        ctx: context.RequestContext,
        before: Mapping[str, object],
        changes: Mapping[str, object],
        read_more: Callable[[], Mapping[str, object]] = dict,
        is_aborted: bool = False,
    ) -> None:
        """Tell what a write to a node means: another provision state, a power change that begins or has ended.

        :param before: the columns of the node before the write.
        :param changes: those that were written.
        :param read_more: returns what of the payload is in other tables, where there is something to tell.
        :param is_aborted: whether a user has requested the end that is written.
        """
        if self.is_on:
            after = {**before, **changes}
            for notice in find_transitions(before, after, is_aborted):
                self.tell(ctx, "node", notice, {**after, **read_more()})


def find_transitions(before: Mapping[str, Any], after: Mapping[str, Any], is_aborted: bool = False) -> list[Notice]:
    """Return the notices of a write to a node, as :meth:`Notifier.tell_transitions` sends them."""
    found = []
    old, new = before["provision_state"], after["provision_state"]
    if old != new:
        event = "abort" if is_aborted else _find_event(old, new, after)
        also = {
            "event": event,
            "previous_provision_state": old,
            "previous_target_provision_state": before["target_provision_state"],
        }
        found.append(Notice(payloads.PROVISION_SET, "provision_set", _provision_status(old, new, event), also))
    was_changing, is_changing = before["target_power_state"], after["target_power_state"]
    if is_changing and not was_changing:
        found.append(_power_notice(after, "start", is_changing))
    elif was_changing and not is_changing:
        expected = _POWER_RESULTS.get(was_changing, was_changing)
        found.append(_power_notice(before, "end" if after["power_state"] == expected else "error", was_changing))
    elif not is_changing and after["power_state"] not in (None, before["power_state"]):
        found.append(_power_notice({}, "end", after["power_state"]))  # what a flow has done
    return found


def _find_event(old: str, new: str, after: Mapping[str, Any]) -> str | None:
    """Return the event that has led from one state to another; of several, the one that the written row tells of."""
    found = {event for event, state in states.TRANSITIONS.get(old, {}).items() if state == new}
    if found == {"clean", "provide"}:
        return "clean" if after["target_provision_state"] == states.MANAGEABLE else "provide"
    if found == {"deploy", "rebuild"}:
        return "rebuild" if after["request"].get("rebuild") else "deploy"
    if found == {"abort", "fail"}:
        return "fail"
    return next(iter(found), None)


def _provision_status(old: str, new: str, event: str | None) -> str:
    if event == "fail":
        return "error"
    began, begins = old in _UNSTABLE, new in _UNSTABLE
    return "success" if began == begins else "end" if began else "start"


def _power_notice(node: Mapping[str, Any], status: str, target: str) -> Notice:
    """Return the notice of a power change; what a user requested may be more than the state that it leads to."""
    requested = (node.get("power_request") or {}).get("target", target)
    return Notice(payloads.POWER_SET, "power_set", status, {"to_power": requested})


def find_correction(before: str | None) -> Notice:
    """Return the notice that a machine was found in another power state than its node had."""
    return Notice(payloads.POWER_CORRECTED, "power_state_corrected", "success", {"from_power": before})


def _as_mapping(row: Row) -> Mapping[str, object]:
    return row if isinstance(row, Mapping) else vars(row)
