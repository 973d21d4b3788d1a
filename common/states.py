"""The provision and power states of a node and the one table of legal transitions (used by api, conductor, drivers).

A transition is a row ``(state, event, next state)``. Nothing else in Ingot decides where a node may go. The target that
a node shows on its way is a property of the state it is in (``TARGETS``). The diagram of the documentation is generated
from these tables (``python doc/states_diagram.py``). Source of names and transitions: the measured wire contract of
the Bare Metal API; the rows marked *specification 002* are ours because the specification asks for them.
"""

import enum
from typing import NamedTuple

ENROLL = "enroll"
VERIFYING = "verifying"
MANAGEABLE = "manageable"
AVAILABLE = "available"
ACTIVE = "active"
ERROR = "error"
DEPLOYING = "deploying"
DEPLOYWAIT = "wait call-back"
DEPLOYFAIL = "deploy failed"
DEPLOYHOLD = "deploy hold"
CLEANING = "cleaning"
CLEANWAIT = "clean wait"
CLEANFAIL = "clean failed"
CLEANHOLD = "clean hold"
DELETING = "deleting"
INSPECTING = "inspecting"
INSPECTWAIT = "inspect wait"
INSPECTFAIL = "inspect failed"
ADOPTING = "adopting"
ADOPTFAIL = "adopt failed"
RESCUE = "rescue"
RESCUING = "rescuing"
RESCUEWAIT = "rescue wait"
RESCUEFAIL = "rescue failed"
UNRESCUING = "unrescuing"
UNRESCUEFAIL = "unrescue failed"
SERVICING = "servicing"
SERVICEWAIT = "service wait"
SERVICEFAIL = "service failed"
SERVICEHOLD = "service hold"

POWER_ON = "power on"
POWER_OFF = "power off"
REBOOT = "rebooting"
SOFT_REBOOT = "soft rebooting"
SOFT_POWER_OFF = "soft power off"


class StepState(enum.StrEnum):
    """How the current step of a node's flow stands (``step_state``)."""

    NEXT = "next"  # the step has not begun: it was handed over
    RUNNING = "running"  # a conductor is in the step
    WAITING = "waiting"  # for a heartbeat of the agent; then the step is called again
    WATCHING = "watching"  # the same, and it is called again at next_check_at, to see whether its agent is still there
    ENDING = "ending"  # for a heartbeat of the agent, which ends the step
    POLLING = "polling"  # the step is called again at next_check_at
    HOLDING = "holding"  # until an operator says unhold, which ends the step


class Transition(NamedTuple):
    state: str
    event: str
    next: str


TRANSITIONS: tuple[Transition, ...] = tuple(
    Transition(*row)
    for row in (
        (ACTIVE, "delete", DELETING),
        (ACTIVE, "rebuild", DEPLOYING),
        (ACTIVE, "rescue", RESCUING),
        (ACTIVE, "service", SERVICING),
        (ADOPTFAIL, "adopt", ADOPTING),
        (ADOPTFAIL, "manage", MANAGEABLE),
        (ADOPTING, "done", ACTIVE),
        (ADOPTING, "fail", ADOPTFAIL),
        (AVAILABLE, "deploy", DEPLOYING),
        (AVAILABLE, "manage", MANAGEABLE),
        (CLEANFAIL, "clean", CLEANING),  # specification 002: retry by the operator
        (CLEANFAIL, "manage", MANAGEABLE),
        (CLEANFAIL, "provide", CLEANING),  # specification 002: retry by the operator
        (CLEANHOLD, "abort", CLEANFAIL),
        (CLEANHOLD, "unhold", CLEANWAIT),
        (CLEANWAIT, "abort", CLEANFAIL),
        (CLEANWAIT, "fail", CLEANFAIL),
        (CLEANWAIT, "hold", CLEANHOLD),
        (CLEANWAIT, "resume", CLEANING),
        (CLEANING, "done", AVAILABLE),
        (CLEANING, "fail", CLEANFAIL),
        (CLEANING, "hold", CLEANHOLD),
        (CLEANING, "manage", MANAGEABLE),  # the conductor's: a manual cleaning is done
        (CLEANING, "wait", CLEANWAIT),
        (DELETING, "clean", CLEANING),
        (DELETING, "fail", ERROR),
        (DEPLOYFAIL, "delete", DELETING),
        (DEPLOYFAIL, "deploy", DEPLOYING),
        (DEPLOYFAIL, "rebuild", DEPLOYING),
        (DEPLOYHOLD, "abort", DEPLOYFAIL),
        (DEPLOYHOLD, "unhold", DEPLOYWAIT),
        (DEPLOYING, "done", ACTIVE),
        (DEPLOYING, "fail", DEPLOYFAIL),
        (DEPLOYING, "hold", DEPLOYHOLD),
        (DEPLOYING, "wait", DEPLOYWAIT),
        (ENROLL, "manage", VERIFYING),
        (ERROR, "delete", DELETING),
        (ERROR, "rebuild", DEPLOYING),
        (INSPECTFAIL, "inspect", INSPECTING),
        (INSPECTFAIL, "manage", MANAGEABLE),
        (INSPECTWAIT, "abort", INSPECTFAIL),
        (INSPECTWAIT, "done", MANAGEABLE),
        (INSPECTWAIT, "fail", INSPECTFAIL),
        (INSPECTWAIT, "resume", INSPECTING),
        (INSPECTING, "done", MANAGEABLE),
        (INSPECTING, "fail", INSPECTFAIL),
        (INSPECTING, "wait", INSPECTWAIT),
        (MANAGEABLE, "adopt", ADOPTING),
        (MANAGEABLE, "clean", CLEANING),
        (MANAGEABLE, "inspect", INSPECTING),
        (MANAGEABLE, "provide", CLEANING),
        (RESCUE, "delete", DELETING),
        (RESCUE, "rescue", RESCUING),
        (RESCUE, "unrescue", UNRESCUING),
        (RESCUEFAIL, "delete", DELETING),
        (RESCUEFAIL, "rescue", RESCUING),
        (RESCUEFAIL, "unrescue", UNRESCUING),
        (RESCUEWAIT, "abort", RESCUEFAIL),
        (RESCUEWAIT, "delete", DELETING),
        (RESCUEWAIT, "fail", RESCUEFAIL),
        (RESCUEWAIT, "resume", RESCUING),
        (RESCUING, "done", RESCUE),
        (RESCUING, "fail", RESCUEFAIL),
        (RESCUING, "wait", RESCUEWAIT),
        (SERVICEFAIL, "abort", ACTIVE),
        (SERVICEFAIL, "delete", DELETING),
        (SERVICEFAIL, "hold", SERVICEHOLD),
        (SERVICEFAIL, "rescue", RESCUING),
        (SERVICEFAIL, "service", SERVICING),
        (SERVICEFAIL, "wait", SERVICEWAIT),
        (SERVICEHOLD, "abort", SERVICEFAIL),
        (SERVICEHOLD, "fail", SERVICEFAIL),
        (SERVICEHOLD, "service", SERVICING),
        (SERVICEHOLD, "unhold", SERVICEWAIT),
        (SERVICEWAIT, "abort", SERVICEFAIL),
        (SERVICEWAIT, "delete", DELETING),
        (SERVICEWAIT, "fail", SERVICEFAIL),
        (SERVICEWAIT, "hold", SERVICEHOLD),
        (SERVICEWAIT, "resume", SERVICING),
        (SERVICING, "done", ACTIVE),
        (SERVICING, "fail", SERVICEFAIL),
        (SERVICING, "hold", SERVICEHOLD),
        (SERVICING, "wait", SERVICEWAIT),
        (UNRESCUEFAIL, "delete", DELETING),
        (UNRESCUEFAIL, "rescue", RESCUING),
        (UNRESCUEFAIL, "unrescue", UNRESCUING),
        (UNRESCUING, "done", ACTIVE),
        (UNRESCUING, "fail", UNRESCUEFAIL),
        (VERIFYING, "done", MANAGEABLE),
        (VERIFYING, "fail", ENROLL),
        (DEPLOYWAIT, "abort", DEPLOYFAIL),
        (DEPLOYWAIT, "delete", DELETING),
        (DEPLOYWAIT, "fail", DEPLOYFAIL),
        (DEPLOYWAIT, "hold", DEPLOYHOLD),
        (DEPLOYWAIT, "resume", DEPLOYING),
    )
)

# Where a node in a state is heading, shown as target_provision_state. States that are not here head nowhere.
TARGETS: dict[str, str] = {
    ADOPTFAIL: ACTIVE,
    ADOPTING: ACTIVE,
    CLEANFAIL: AVAILABLE,
    CLEANHOLD: AVAILABLE,
    CLEANWAIT: AVAILABLE,
    CLEANING: AVAILABLE,
    DELETING: AVAILABLE,
    DEPLOYFAIL: ACTIVE,
    DEPLOYHOLD: ACTIVE,
    DEPLOYING: ACTIVE,
    ERROR: AVAILABLE,
    INSPECTFAIL: MANAGEABLE,
    INSPECTWAIT: MANAGEABLE,
    INSPECTING: MANAGEABLE,
    RESCUEFAIL: RESCUE,
    RESCUEWAIT: RESCUE,
    RESCUING: RESCUE,
    SERVICEFAIL: ACTIVE,
    SERVICEHOLD: ACTIVE,
    SERVICEWAIT: ACTIVE,
    SERVICING: ACTIVE,
    UNRESCUEFAIL: ACTIVE,
    UNRESCUING: ACTIVE,
    VERIFYING: MANAGEABLE,
    DEPLOYWAIT: ACTIVE,
}

STABLE = frozenset((ACTIVE, AVAILABLE, ENROLL, ERROR, MANAGEABLE, RESCUE))
"""Nothing happens in these states until it is requested."""

WORKING = frozenset((ADOPTING, CLEANING, DELETING, DEPLOYING, INSPECTING, RESCUING, SERVICING, UNRESCUING, VERIFYING))
"""A conductor has work to do for the node now."""

WAITING = frozenset((CLEANWAIT, DEPLOYWAIT, INSPECTWAIT, RESCUEWAIT, SERVICEWAIT))
"""The conductor waits for the agent (a heartbeat) or for hardware (a poll)."""

HELD = frozenset((CLEANHOLD, DEPLOYHOLD, SERVICEHOLD))
"""A reserved step put the node on hold until an operator says ``unhold``."""

FAILED = frozenset((ADOPTFAIL, CLEANFAIL, DEPLOYFAIL, INSPECTFAIL, RESCUEFAIL, SERVICEFAIL, UNRESCUEFAIL))
"""A flow ended in an error that an operator or user must answer."""

ALL = STABLE | WORKING | WAITING | HELD | FAILED

LOOKUP_ALLOWED = (WORKING | WAITING) - {ADOPTING, DELETING, UNRESCUING, VERIFYING, SERVICING}
"""An agent may look its node up in these states (contract: agent.md)."""

FAST_TRACK_LOOKUP_ALLOWED = LOOKUP_ALLOWED | {ENROLL, MANAGEABLE, AVAILABLE, SERVICING, SERVICEHOLD}

DELETE_ALLOWED = frozenset((ADOPTFAIL, AVAILABLE, ENROLL, MANAGEABLE))
"""A node in these states may be deleted; in maintenance any node may."""

UPDATE_ALLOWED = STABLE | FAILED | {INSPECTWAIT, SERVICEHOLD, VERIFYING}
"""PATCH of a node is allowed in these states (contract: states.json, other_requests_by_state)."""

POWER_CHANGE_REFUSED = frozenset((CLEANING, CLEANWAIT))
"""Specification 002: neither power nor provision state may be changed while a node is cleaned."""


CONDUCTOR_EVENTS = frozenset(("done", "fail", "hold", "resume", "wait"))
"""Events that only a conductor causes. All others are what clients ask for, see ``api/nodes/verbs.py``."""

_NEXT: dict[tuple[str, str], str] = {(row.state, row.event): row.next for row in TRANSITIONS}


def next_state(state: str, event: str) -> str | None:
    """Return where an event leads a node in a state; None when it is not legal there."""
    return _NEXT.get((state, event))


def requested_state(state: str, event: str) -> str | None:
    """Return where a client's event leads a node in a state; None when a client may not ask for it there."""
    if state in WORKING:  # the table's rows of these states are the conductor's own events
        return None
    return next_state(state, event)


def is_requested(row: Transition) -> bool:
    """Tell whether a client causes a transition; the others are the conductor's."""
    return row.state not in WORKING and row.event not in CONDUCTOR_EVENTS
