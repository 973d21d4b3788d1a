"""The provision and power states of a node and the one table of legal transitions (used by api, conductor, drivers).

Nothing but ``TRANSITIONS`` decides where a node may go. The target that a node shows on its way is a property of the
state it is in (``TARGETS``). The documentation's diagram is generated from them (``python doc/states_diagram.py``).
Source of names and transitions: the measured wire contract of the Bare Metal API; specification 002 where it is named.
"""

import enum

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


TRANSITIONS: dict[str, dict[str, str]] = {
    ACTIVE: {"delete": DELETING, "rebuild": DEPLOYING, "rescue": RESCUING, "service": SERVICING},
    ADOPTFAIL: {"adopt": ADOPTING, "manage": MANAGEABLE},
    ADOPTING: {"done": ACTIVE, "fail": ADOPTFAIL},
    AVAILABLE: {"deploy": DEPLOYING, "manage": MANAGEABLE},
    # Specification 002: an operator may retry, by clean and by provide.
    CLEANFAIL: {"clean": CLEANING, "manage": MANAGEABLE, "provide": CLEANING},
    CLEANHOLD: {"abort": CLEANFAIL, "unhold": CLEANWAIT},
    CLEANWAIT: {"abort": CLEANFAIL, "fail": CLEANFAIL, "hold": CLEANHOLD, "resume": CLEANING},
    # The conductor's "manage": a manual cleaning is done.
    CLEANING: {"done": AVAILABLE, "fail": CLEANFAIL, "hold": CLEANHOLD, "manage": MANAGEABLE, "wait": CLEANWAIT},
    DELETING: {"clean": CLEANING, "fail": ERROR},
    DEPLOYFAIL: {"delete": DELETING, "deploy": DEPLOYING, "rebuild": DEPLOYING},
    DEPLOYHOLD: {"abort": DEPLOYFAIL, "unhold": DEPLOYWAIT},
    DEPLOYING: {"done": ACTIVE, "fail": DEPLOYFAIL, "hold": DEPLOYHOLD, "wait": DEPLOYWAIT},
    ENROLL: {"manage": VERIFYING},
    ERROR: {"delete": DELETING, "rebuild": DEPLOYING},
    INSPECTFAIL: {"inspect": INSPECTING, "manage": MANAGEABLE},
    INSPECTWAIT: {"abort": INSPECTFAIL, "done": MANAGEABLE, "fail": INSPECTFAIL, "resume": INSPECTING},
    INSPECTING: {"done": MANAGEABLE, "fail": INSPECTFAIL, "wait": INSPECTWAIT},
    MANAGEABLE: {"adopt": ADOPTING, "clean": CLEANING, "inspect": INSPECTING, "provide": CLEANING},
    RESCUE: {"delete": DELETING, "rescue": RESCUING, "unrescue": UNRESCUING},
    RESCUEFAIL: {"delete": DELETING, "rescue": RESCUING, "unrescue": UNRESCUING},
    RESCUEWAIT: {"abort": RESCUEFAIL, "delete": DELETING, "fail": RESCUEFAIL, "resume": RESCUING},
    RESCUING: {"done": RESCUE, "fail": RESCUEFAIL, "wait": RESCUEWAIT},
    SERVICEFAIL: {
        "abort": ACTIVE,
        "delete": DELETING,
        "hold": SERVICEHOLD,
        "rescue": RESCUING,
        "service": SERVICING,
        "wait": SERVICEWAIT,
    },
    SERVICEHOLD: {"abort": SERVICEFAIL, "fail": SERVICEFAIL, "service": SERVICING, "unhold": SERVICEWAIT},
    SERVICEWAIT: {
        "abort": SERVICEFAIL,
        "delete": DELETING,
        "fail": SERVICEFAIL,
        "hold": SERVICEHOLD,
        "resume": SERVICING,
    },
    SERVICING: {"done": ACTIVE, "fail": SERVICEFAIL, "hold": SERVICEHOLD, "wait": SERVICEWAIT},
    UNRESCUEFAIL: {"delete": DELETING, "rescue": RESCUING, "unrescue": UNRESCUING},
    UNRESCUING: {"done": ACTIVE, "fail": UNRESCUEFAIL},
    VERIFYING: {"done": MANAGEABLE, "fail": ENROLL},
    DEPLOYWAIT: {"abort": DEPLOYFAIL, "delete": DELETING, "fail": DEPLOYFAIL, "hold": DEPLOYHOLD, "resume": DEPLOYING},
}
"""State -> event -> next state."""

# Where a node in a state is heading, shown as target_provision_state. States that are not here head nowhere.
TARGETS: dict[str, str] = {
    **dict.fromkeys((ADOPTFAIL, ADOPTING, DEPLOYFAIL, DEPLOYHOLD, DEPLOYING, DEPLOYWAIT), ACTIVE),
    **dict.fromkeys((SERVICEFAIL, SERVICEHOLD, SERVICEWAIT, SERVICING, UNRESCUEFAIL, UNRESCUING), ACTIVE),
    **dict.fromkeys((CLEANFAIL, CLEANHOLD, CLEANWAIT, CLEANING, DELETING, ERROR), AVAILABLE),
    **dict.fromkeys((INSPECTFAIL, INSPECTWAIT, INSPECTING, VERIFYING), MANAGEABLE),
    **dict.fromkeys((RESCUEFAIL, RESCUEWAIT, RESCUING), RESCUE),
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

FAULTS: dict[str, str] = {CLEANFAIL: "clean failure", SERVICEFAIL: "service failure"}
"""The fault, with maintenance, that a conductor notes of a node as it enters one of these states."""

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


def next_state(state: str, event: str) -> str | None:
    """Return where an event leads a node in a state; None when it is not legal there."""
    return TRANSITIONS.get(state, {}).get(event)


def requested_state(state: str, event: str) -> str | None:
    """Return where a client's event leads a node in a state; None when a client may not ask for it there."""
    return None if state in WORKING else next_state(state, event)  # events of those states are the conductor's own
