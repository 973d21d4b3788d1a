"""Work that an interface does at intervals: a decorator for methods, and what they are given (specification 004)."""

import contextlib
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, TypeVar

from oslo_config import cfg

from ingot.common import context, errors
from ingot.db import records
from ingot.drivers.interfaces.base import BaseInterface
from ingot.drivers.task import Task

Spacing = float | Callable[[cfg.ConfigOpts], float | None]
Function = TypeVar("Function", bound=Callable[..., None])


class Fleet(Protocol):
    """What a periodic method is given: the nodes that use its interface, as far as this conductor owns them."""

    conf: cfg.ConfigOpts
    context: context.RequestContext

    def nodes(self) -> list[records.Record]:
        """The nodes now, without those that a maintenance hold says to leave alone; of each uuid, name, driver,
        conductor_group, power_state, provision_state, maintenance and reservation."""

    def look(self, node: records.Record) -> contextlib.AbstractContextManager[Task]:
        """``with fleet.look(node) as task``: a task without a lock, which must not write.

        :raises NotFound: the node was deleted since.
        """

    def change(self, node: records.Record, purpose: str, work: Callable[[Task], None]) -> None:
        """Has ``work(task)`` done under the node's lock, after what stands in the node's queue. Returns at once; what
        ``work`` raises is logged, and what it has set by then is not written.

        :param purpose: what for, in an operator's words; stands in the lock.
        """


class Declared(NamedTuple):
    """A periodic method of an enabled interface.

    :param spacing: seconds from the end of a round to the beginning of the next.
    """

    interface: BaseInterface
    method: str
    spacing: float

    @property
    def name(self) -> str:
        """For logs: ``power interface ipmitool: method``."""
        return f"{self.interface.kind} interface {self.interface.name}: {self.method}"

    def run(self, fleet: Fleet) -> None:
        """One round."""
        getattr(self.interface, self.method)(fleet)


def periodic(spacing: Spacing) -> Callable[[Function], Function]:
    """Declares a method ``method(self, fleet)`` of an interface as work that each conductor does at intervals::

        @periodic(spacing=steps.from_option("example", "watch_interval"))
        def watch(self, fleet: Fleet) -> None: ...

    It runs once a round on each conductor that has the interface enabled, however many hardware types and classic
    drivers use it, in a pool of its own; rounds of one method never overlap. What it raises is logged, and the next
    round comes all the same.

    :param spacing: seconds between two rounds, or a function of the configuration that gives them; 0 or None: never.
    """

    def mark(function: Function) -> Function:
        function.__dict__["ingot_periodic"] = spacing
        return function

    return mark


def declared(interface: BaseInterface, conf: cfg.ConfigOpts) -> list[Declared]:
    """The periodic methods of an interface that are to run.

    :raises ConfigurationError: a spacing is not a number of seconds.
    """
    found = []
    for method in dir(type(interface)):
        given = getattr(getattr(type(interface), method), "ingot_periodic", None)
        spacing: Any = given(conf) if callable(given) else given
        if isinstance(spacing, bool) or not isinstance(spacing, int | float | None) or (spacing or 0) < 0:
            raise errors.ConfigurationError(
                option=f"spacing of {method} of {interface.kind} interface {interface.name}",
                value=spacing,
                allowed="A number of seconds; 0 for never.",
            )
        if spacing:
            found.append(Declared(interface, method, float(spacing)))
    return found
