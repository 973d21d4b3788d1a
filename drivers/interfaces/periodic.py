"""Work that an interface does at intervals: a decorator for methods, and what they are given (specification 004)."""

import contextlib
from collections.abc import Callable, Collection
from typing import NamedTuple, Protocol, TypeVar

from oslo_config import cfg

from ingot.common import context, errors
from ingot.common.json_types import Json
from ingot.db import models
from ingot.drivers.interfaces.base import BaseInterface
from ingot.drivers.interfaces.task import Task

Spacing = float | Callable[[cfg.ConfigOpts], float | None]
Function = TypeVar("Function", bound=Callable[..., None])


class Fleet(Protocol):
    """What a periodic method is given: the nodes that use its interface, as far as this conductor owns them."""

    conf: cfg.ConfigOpts
    context: context.RequestContext

    def nodes(self, *more: str) -> list[models.Node]:
        """Return the nodes now, without those that a maintenance hold tells to leave alone: in one statement.

        Of each: uuid, name, driver, conductor_group, power_state, provision_state, maintenance and reservation.

        :param more: names of other columns that are needed. A task for each node would be a statement for each.
        """

    def list_unknown(self, uuids: Collection[str]) -> set[str]:
        """Return those of the uuids that no node has, whichever conductor owns it."""

    def list_left(self, kind: str) -> list[models.LeftBehind]:
        """Return what deleted nodes have left outside of themselves, whichever conductor owned them.

        :param kind: one of ``ingot.common.leftovers``.
        """

    def forget_left(self, left: models.LeftBehind) -> None:
        """Forget what is taken back."""

    def list_notes(self, kind: str) -> list[Json]:
        """Return what all nodes that there are have noted of a kind, whichever conductor owns them."""

    def alone(self, what: str, patience: float) -> contextlib.AbstractContextManager[None]:
        """Wait until no other conductor does the same thing, as :meth:`Task.alone`."""

    def acquire_shared(self, node: models.Node) -> contextlib.AbstractContextManager[Task]:
        """Return a task without a lock, which must not write: ``with fleet.acquire_shared(node) as task``.

        :raises NotFound: the node was deleted since.
        """

    def change(self, node: models.Node, purpose: str, work: Callable[[Task], None]) -> None:
        """Have ``work(task)`` done under the node's lock, after what is in the node's queue; return at once.

        What ``work`` raises is logged, and what it has set by then is not written.

        :param purpose: what for, in an operator's words; stands in the lock.
        """


class PeriodicMethod(NamedTuple):
    """A periodic method of an enabled interface.

    :param spacing: seconds from the end of a round to the beginning of the next.
    """

    interface: BaseInterface
    method: str
    spacing: float

    @property
    def name(self) -> str:
        """For logs: ``power interface ipmitool: method``."""
        return f"{self.interface.interface_type} interface {self.interface.name}: {self.method}"

    def run(self, fleet: Fleet) -> None:
        """Run one round."""
        getattr(self.interface, self.method)(fleet)


def periodic(spacing: Spacing) -> Callable[[Function], Function]:
    """Declare a method ``method(self, fleet)`` of an interface as work that each conductor does at intervals::

        @periodic(spacing=base.from_option("example", "watch_interval"))
        def watch(self, fleet: Fleet) -> None: ...

    It runs once a round on each conductor that has the interface enabled, however many drivers use it, in a pool of its
    own. Rounds of one method never overlap. What it raises is logged, and the next round comes all the same.

    :param spacing: seconds between two rounds, or a function of the configuration that returns them; 0 or None: never.
    """

    def mark(function: Function) -> Function:
        function.__dict__["ingot_periodic"] = spacing
        return function

    return mark


def list_periodic_methods(interface: BaseInterface, conf: cfg.ConfigOpts) -> list[PeriodicMethod]:
    """Return the periodic methods of an interface that are to run.

    :raises ConfigurationError: a spacing is not a number of seconds.
    """
    methods = []
    for method in dir(type(interface)):
        declared = getattr(getattr(type(interface), method), "ingot_periodic", None)
        spacing: object = declared(conf) if callable(declared) else declared
        if isinstance(spacing, bool) or not isinstance(spacing, int | float | None) or (spacing or 0) < 0:
            option = f"spacing of {method} of {interface.interface_type} interface {interface.name}"
            raise errors.ConfigurationError(option=option, value=spacing, allowed="A number of seconds; 0 for never.")
        if spacing:
            methods.append(PeriodicMethod(interface, method, float(spacing)))
    return methods
