"""Which nodes need attention, and what is done about each: the one table of causes and next actions (db, api).

A node is in one group: the first of :class:`Cause` that is its own.
"""

import enum
from collections.abc import Mapping
from typing import NamedTuple

from ingot.common import states


class Cause(enum.StrEnum):
    """Why a node is in the list, in the order of the list."""

    UNRESPONSIVE = "unresponsive"
    FAILED = "failed"
    HELD = "held"
    MAINTENANCE = "maintenance"
    OVERDUE = "overdue"
    WAITING = "waiting"


TITLES: Mapping[Cause, str] = {
    Cause.FAILED: "Failed",
    Cause.UNRESPONSIVE: "BMC does not answer",
    Cause.OVERDUE: "Stuck beyond the usual time",
    Cause.HELD: "Held until an operator goes on",
    Cause.WAITING: "Waiting for an agent",
    Cause.MAINTENANCE: "In maintenance",
}
"""What each group is called, in the order in which groups are shown: what is most urgent first."""


class Action(NamedTuple):
    """A request that does it.

    :param kind: ``provision``, ``power`` or ``clear_maintenance``.
    :param target: of the request, if it has one.
    """

    kind: str
    target: str | None = None


class Next(NamedTuple):
    """The one next thing to do about a node.

    :param action: the request that follows, if it is one.
    """

    text: str
    action: Action | None = None


def _provision(text: str, target: str) -> Next:
    return Next(text, Action("provision", target))


_AFTER_FAILURE: Mapping[str, Next] = {
    states.ADOPTFAIL: _provision("Correct the node and adopt it again.", "adopt"),
    states.CLEANFAIL: _provision("Fix the cause, then provide again: the cleaning starts anew.", "provide"),
    states.DEPLOYFAIL: _provision("Fix the cause and deploy again.", states.ACTIVE),
    states.ENROLL: _provision("Correct driver_info and manage again: the BMC is asked anew.", "manage"),
    states.ERROR: _provision("Fix the cause and undeploy again.", "deleted"),
    states.INSPECTFAIL: _provision("Fix the cause and inspect again.", "inspect"),
    states.RESCUEFAIL: _provision("Fix the cause and rescue again.", states.RESCUE),
    states.SERVICEFAIL: _provision("Fix the cause, then service again, or abort to give the machine back.", "abort"),
    states.UNRESCUEFAIL: _provision("Fix the cause and unrescue again.", "unrescue"),
}
_AFTER_MANUAL_CLEANING = _provision("Fix the cause and clean again, or manage to leave it at that.", "manage")

FAILURES = (states.FAILED | {states.ERROR}) & _AFTER_FAILURE.keys()
"""States in which nodes have failed. In enroll they have only if there is an error."""

_HELD = _provision("Look at what it is held for, then unhold to go on with the next step.", "unhold")
_BMC = Next("Check the BMC: its power, network, address and password. The hold ends as soon as it answers.")
_OF_USER = Next("When the reason is gone, end the maintenance.", Action("clear_maintenance"))
_RESTORED = Next("Confirm the node against its machine, as the guide of restoring a database says.")


def after_failure(state: str, target: str | None) -> Next:
    """Return what comes after a failure.

    :param state: one of :data:`FAILURES`, or enroll.
    :param target: where the node was heading: manual cleanings go back to where they came from.
    """
    if state == states.CLEANFAIL and target == states.MANAGEABLE:
        return _AFTER_MANUAL_CLEANING
    return _AFTER_FAILURE[state]


def of_held() -> Next:
    """Return what comes after a hold step."""
    return _HELD


def of_silent_bmc() -> Next:
    """Return what to do about a BMC that does not answer."""
    return _BMC


def of_maintenance(unconfirmed: bool) -> Next:
    """Return what ends a maintenance.

    :param unconfirmed: the node is one of a restored database.
    """
    return _RESTORED if unconfirmed else _OF_USER


def of_stuck(state: str, advice: str) -> Next:
    """Return what to do about work that takes longer than it usually does.

    :param advice: that for what it waits for, of :mod:`ingot.common.waits`.
    """
    if states.requested_state(state, "abort") is None:
        return Next(advice)
    return _provision(f"{advice} Abort ends the flow.", "abort")


def of_waiting(advice: str) -> Next:
    """Return what to do about a node that waits for its agent."""
    return Next(f"Nothing yet. If it lasts: {advice[0].lower()}{advice[1:]}")
