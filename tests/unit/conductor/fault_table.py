"""The table of faults: what becomes of a node in each flow, by the way in which a step runs, for each fault.

A cell is (flow, way, fault). What the flow contributes stands in ``CASES``, what way and fault contribute in
``EXPECTED``; a cell that cannot occur has a reason in ``CANNOT``.
"""

import dataclasses
import itertools
from typing import Any

from ingot.api.nodes.verbs import VERBS
from ingot.common import states
from ingot.conductor.flows import FLOWS

OFF, ON = states.POWER_OFF, states.POWER_ON


@dataclasses.dataclass(frozen=True, kw_only=True)
class Case:
    """What a flow does to a node, whatever the fault.

    :param verb: what is asked for at the API, in ``start`` and again after a failure; it leads to ``accepted``.
    :param kind: of its steps.
    :param asks: the key of the request that has its steps; None: they run by themselves.
    :param request: what else is in its request.
    :param entry: the method before the steps. ``boot``: the step that boots the agent.
    :param failed: (provision state, target) after a failure.
    :param fault: the node's fault then, with maintenance.
    :param power: (at the start, after a failure once the agent runs, at a good end).
    :param idempotent: whether the scripted steps are.
    :param after: the flow that has failed before, while the agent ran.
    """

    verb: str | None
    start: str
    accepted: str
    failed: tuple[str, str | None]
    done: str
    power: tuple[str, str, str]
    kind: str | None = None
    asks: str | None = None
    request: dict[str, Any] = dataclasses.field(default_factory=dict)
    entry: str | None = None
    boot: str | None = None
    fault: str | None = None
    idempotent: bool = True
    after: str | None = None

    def find_reached(self, state: str) -> str | None:
        """Return where the verb leads a node; an abort of what has failed goes there by way of a flow."""
        reached = states.requested_state(state, VERBS[str(self.verb)].event)
        return self.accepted if (self.verb, reached) == ("abort", self.done) else reached


_CLEANING: dict[str, Any] = {
    "start": states.MANAGEABLE,
    "accepted": states.CLEANING,
    "kind": "clean",
    "entry": "prepare_cleaning",
    "boot": "prepare_cleaning",
    "fault": "clean failure",
    "power": (OFF, ON, OFF),
}

CASES: dict[str, Case] = {
    "verify": Case(
        verb="manage",
        start=states.ENROLL,
        accepted=states.VERIFYING,
        failed=(states.ENROLL, None),
        done=states.MANAGEABLE,
        power=(OFF, OFF, OFF),
        kind="verify",
        entry="verify_power",
    ),
    "automated_clean": Case(
        verb="provide", failed=(states.CLEANFAIL, states.AVAILABLE), done=states.AVAILABLE, **_CLEANING
    ),
    "manual_clean": Case(
        verb="clean",
        failed=(states.CLEANFAIL, states.MANAGEABLE),
        done=states.MANAGEABLE,
        asks="clean_steps",
        **_CLEANING,
    ),
    "deploy": Case(
        verb="deploy",
        start=states.AVAILABLE,
        accepted=states.DEPLOYING,
        failed=(states.DEPLOYFAIL, states.ACTIVE),
        done=states.ACTIVE,
        power=(OFF, OFF, ON),
        kind="deploy",
        asks="deploy_steps",
        entry="prepare",
        boot="deploy",
        idempotent=False,
    ),
    "adopt": Case(
        verb="adopt",
        start=states.MANAGEABLE,
        accepted=states.ADOPTING,
        failed=(states.ADOPTFAIL, states.ACTIVE),
        done=states.ACTIVE,
        power=(ON, ON, ON),
        entry="adopt",
    ),
    "inspect": Case(
        verb="inspect",
        start=states.MANAGEABLE,
        accepted=states.INSPECTING,
        failed=(states.INSPECTFAIL, states.MANAGEABLE),
        done=states.MANAGEABLE,
        power=(OFF, OFF, OFF),
        entry="inspect_hardware",
        boot="inspect_hardware",
    ),
    "rescue": Case(
        verb=states.RESCUE,
        start=states.ACTIVE,
        accepted=states.RESCUING,
        failed=(states.RESCUEFAIL, states.RESCUE),
        done=states.RESCUE,
        power=(ON, OFF, ON),
        entry="rescue",
        boot="rescue",
        request={"rescue_password": "$6$salt$hash"},
    ),
    "unrescue": Case(
        verb="unrescue",
        start=states.RESCUE,
        accepted=states.UNRESCUING,
        failed=(states.UNRESCUEFAIL, states.ACTIVE),
        done=states.ACTIVE,
        power=(ON, ON, ON),
        entry="unrescue",
    ),
    "delete": Case(
        verb="deleted",
        start=states.ACTIVE,
        accepted=states.DELETING,
        failed=(states.ERROR, states.AVAILABLE),
        done=states.AVAILABLE,
        power=(ON, ON, OFF),
        entry="tear_down",
    ),
    "service": Case(
        verb="service",
        start=states.ACTIVE,
        accepted=states.SERVICING,
        failed=(states.SERVICEFAIL, states.ACTIVE),
        done=states.ACTIVE,
        power=(ON, ON, ON),
        kind="service",
        asks="service_steps",
        entry="prepare_service",
        boot="prepare_service",
        fault="service failure",
        idempotent=False,
    ),
    "leave_service": Case(
        verb="abort",
        start=states.SERVICEFAIL,
        accepted=states.SERVICING,
        failed=(states.SERVICEFAIL, states.ACTIVE),
        done=states.ACTIVE,
        power=(ON, ON, ON),
        entry="tear_down_service",
        fault="service failure",
        after="service",
    ),
    "for_parent": Case(
        verb=None,  # a step of the parent's asks for it
        start=states.MANAGEABLE,
        accepted=states.MANAGEABLE,
        failed=(states.MANAGEABLE, None),
        done=states.MANAGEABLE,
        power=(OFF, OFF, OFF),
        kind="service",
        asks="steps",
        idempotent=False,
    ),
}

WAYS = ("entry", "boot", "at once", "polling", "waiting", "agent", "reserved", "children")
"""Who runs the step, and how: a method of the flow, the one that boots the agent, the driver (at once, at a second
look, at the agent's call), the agent, the conductor itself, the child nodes."""

_AGENTS = frozenset(("agent dies", "agent starts anew", "upgraded", "replaced", "heartbeat lost", "token wrong"))
FAULTS = ("raises", "is a bug", "hangs", *sorted(_AGENTS), "killed", "aborted", "aborted late", "raises after abort")


@dataclasses.dataclass(frozen=True)
class Expected:
    """What becomes of a step.

    :param attempts: the states of its attempts in the step runs.
    :param cause: what last_error says of it, a regular expression; None: the flow ends well.
    :param did: how often a scripted step has begun to do what it does.
    :param leaves: whether the flow goes on to give the machine back and then ends well, with the cause still shown.
    """

    attempts: tuple[str, ...]
    cause: str | None
    did: int = 1
    leaves: bool = False


_DONE = Expected(("done",), None)
_AGAIN = Expected(("interrupted", "done"), None, did=2)
_ABORTED = Expected(("aborted",), "aborted by request")
_TIMED_OUT = r"timed out after waiting \d+ s for the agent; it was last heard (never|20\d\d-\S+)$"


def _fails(cause: str) -> Expected:
    return Expected(("failed",), cause)


def _everywhere(ways: tuple[str, ...], expected: Expected, **others: Expected) -> dict[str, Expected]:
    return {**dict.fromkeys(ways, expected), **others}


EXPECTED: dict[str, dict[str, Expected]] = {
    "raises": _everywhere(
        WAYS,
        _fails(r"out of luck$"),
        agent=_fails(r"agent command \w+\.execute_\w+_step failed: ScriptedError: out of luck$"),
        children=_fails(r"on child node \S+: out of luck$"),
    ),
    "is a bug": _everywhere(
        WAYS,
        _fails(r"unexpected RuntimeError: out of mind$"),
        agent=_fails(r"its answer has None as commands\[\d+\]\.command_status; it must be a text"),
        children=_fails(r"on child node \S+: unexpected RuntimeError: out of mind$"),
    ),
    "hangs": _everywhere(
        ("entry", "boot", "polling", "waiting", "agent"),
        _fails(r"it has not ended after \d+ s \(\[conductor\] step_timeout\)$"),
        reserved=_fails(r"the machine is still in state 'power o\w+' \d+ s after the command .*power_state_change_"),
        children=_fails(r"on child node \S+: it has not ended after \d+ s \(\[conductor\] step_timeout\)$"),
    ),
    "agent dies": _everywhere(("boot", "waiting", "agent", "reserved"), _fails(_TIMED_OUT)),
    "agent starts anew": {"agent": _fails(r"the agent does not know command .* anymore: it was restarted$")},
    "upgraded": {"agent": _fails(r"not the one that the steps were planned with: it ended as \w+_VERSION_MISMATCH$")},
    "replaced": {"agent": _fails(r"after the reboot .* agent 14\.0\.0 answers; the steps were planned with 13\.0\.0$")},
    "heartbeat lost": _everywhere(("boot", "waiting", "agent", "reserved"), _DONE),
    "token wrong": _everywhere(("boot", "agent"), _fails(r"HTTP 401: 401 Unauthorized: Token invalid$")),
    "killed": _everywhere(WAYS, _AGAIN, agent=dataclasses.replace(_AGAIN, did=1)),  # its command is adopted
    "aborted": _everywhere(("boot", "polling", "waiting", "agent", "reserved", "children"), _ABORTED),
    # An abort that a step had to survive does not make its failure harmless.
    "raises after abort": _everywhere(("waiting", "agent"), _fails(r"out of luck$")),
    "aborted late": _everywhere(("waiting", "agent"), dataclasses.replace(_ABORTED, attempts=("done",))),
}

_LOST = _fails(r"the conductor that ran it was lost, and the step is not safe to repeat\. Check the machine$")
SCRIPTED = ("at once", "polling", "waiting", "agent")


def expected(flow: str, way: str, fault: str) -> Expected:
    """Return the expectation for a cell, with what depends on the flow."""
    if fault == "killed" and way in SCRIPTED and way != "agent" and not CASES[flow].idempotent:
        return _LOST
    if fault in ("upgraded", "replaced") and FLOWS[flow].starts_again:
        return _AGAIN
    if fault in ("aborted", "aborted late") and FLOWS[flow].abort_leaves:
        return dataclasses.replace(EXPECTED[fault][way], leaves=True)
    return EXPECTED[fault][way]


ALL = frozenset((*CASES, *WAYS, *FAULTS))
_LATE = frozenset(("aborted late", "raises after abort"))
_ABORTS = frozenset(("aborted", *_LATE))
_ENTRY_ONLY = frozenset(("adopt", "inspect", "rescue", "unrescue", "delete", "leave_service"))
_NO_AGENT = frozenset(("verify", "for_parent", *_ENTRY_ONLY)) - {"inspect", "rescue"}

CANNOT: tuple[tuple[Any, Any, Any, str], ...] = (
    (_NO_AGENT, {"boot", "waiting", "agent"}, ALL, "the flow never waits for an agent"),
    (_NO_AGENT, {"reserved"}, {"agent dies", "heartbeat lost"}, "the flow never waits for an agent"),
    ({"for_parent"}, {"entry"}, ALL, "the flow has no entries"),
    ({"for_parent"}, {"reserved"}, {"aborted"}, "the flow can neither be held nor aborted"),
    (
        _ENTRY_ONLY,
        {"at once", "polling", "waiting", "agent", "reserved", "children"},
        ALL,
        "the flow has no steps, only its entry",
    ),
    ({"inspect"}, {"boot"}, {"token wrong"}, "the agent reports what it finds on its own and gets no command"),
    ({"verify", "automated_clean"}, {"reserved", "children"}, ALL, "no request has steps of this flow"),
    ({"deploy", "for_parent"}, {"children"}, ALL, "steps of this flow are for the node itself"),
    (ALL, {"entry", "at once", "polling", "children"}, _AGENTS, "the step sends nothing to an agent"),
    (ALL, {"boot"}, {"agent starts anew"}, "no command runs yet that a new agent could not know"),
    (ALL, {"boot"}, {"upgraded", "replaced"}, "no steps were planned with another agent yet"),
    (ALL, {"waiting", "reserved"}, {"agent starts anew", "upgraded", "replaced", "token wrong"}, "gives no command"),
    (ALL, {"at once"}, {"hangs"}, "a call that does not return has the deadline of its driver, not of the engine"),
    ({"verify"}, {"entry"}, {"hangs"}, "validating is one call, as above"),
    (ALL, {"entry", "at once"}, _ABORTS, "accepted while a step waits or polls, and in hold"),
    ({*_NO_AGENT, "deploy"}, {"polling"}, {"aborted"}, "steps that poll are not declared abortable in this flow"),
    (ALL, {"boot", "reserved", "children"}, _LATE, "such steps may always be cut off"),
    (ALL, {"polling"}, _LATE, "a poll that may not be cut off takes no abort"),
    ({"deploy"}, ALL, _LATE, "an abort cuts off any waiting step of a deployment"),
)


def reasons(flow: str, way: str, fault: str) -> list[str]:
    """Return why a cell cannot occur."""
    return [why for flows, ways, faults, why in CANNOT if flow in flows and way in ways and fault in faults]


def cells() -> list[tuple[str, str, str]]:
    """Return all cells that can occur."""
    return [cell for cell in itertools.product(CASES, WAYS, FAULTS) if not reasons(*cell)]
