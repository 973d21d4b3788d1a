"""Where a fleet looks different after it has moved, and why: all else must be equal.

A row that no difference needs any more fails the test, too.
"""

import re
from collections.abc import Callable

from ingot.common import states
from ingot.db.moving import nodes
from tests.gate.moving.views import Difference, Found

_MOVED = states.WORKING | states.WAITING | states.HELD
"""States in which something was under way."""

_AGENT = {"agent_secret_token", "agent_url", "agent_version", "agent_last_heartbeat"}


def _was_under_way(found: Found) -> bool:
    return found.row["provision_state"] in _MOVED


def _has_settled(found: Found) -> bool:
    return _was_under_way(found) and bool(found.after == nodes.settle(found.before))


def _has_no_step(found: Found) -> bool:
    return _was_under_way(found) and found.after == {}


def _has_fault(found: Found) -> bool:
    return _was_under_way(found) and nodes.settle(found.row["provision_state"]) in states.FAULTS


def _is_gone(found: Found) -> bool:
    return found.after is None


def _keeps_agent(found: Found) -> bool:
    """Return whether what is left is what was there of the agent; Ingot's times name their zone."""
    return set(found.after) <= _AGENT and all(
        str(found.after[name]).removesuffix("+00:00") == found.before[name] for name in found.after
    )


def _keeps_agent_or_hears_it(found: Found) -> bool:
    """Return whether the agent has called meanwhile, if it is not as it was."""
    same = found.after.get("agent_url") == found.before.get("agent_url")
    return _keeps_agent(found) or (same and found.after["agent_last_heartbeat"] > found.before["agent_last_heartbeat"])


def _lacks_drive(found: Found) -> bool:
    return bool(found.after == {name: value for name, value in found.before.items() if name != "configdrive"})


def _has_other_path(found: Found) -> bool:
    return str(found.before).replace("/inspection/", "/inspection_rules/") == str(found.after)


def _is_refusal(found: Found) -> bool:
    return found.row["status"] == 404


def _is_replaced(found: Found) -> bool:
    return (found.before, found.after) == ("flat", "noop")


def _was_unknown(found: Found) -> bool:
    return found.before is None


def _cut(moment: str) -> str:
    """Return a time without the fraction of its second."""
    return re.sub(r"\.\d+", "", moment)


def _is_whole_second(found: Found) -> bool:
    return bool(_cut(found.before) == found.after)


def _are_whole_seconds(found: Found) -> bool:
    return bool([entry | {"created_at": _cut(entry["created_at"])} for entry in found.before] == found.after)


def _mirror(meets: Callable[[Found], bool]) -> Callable[[Found], bool]:
    """Return what says the same of a difference the other way round."""
    return lambda found: meets(found._replace(before=found.after, after=found.before))


_OF_API = (
    Difference("inspection_rules", ("links",), _has_other_path, "Ironic's link leads to no route."),
    Difference("inventory", ("error_message",), _is_refusal, "Words of a message."),
)
"""What is no matter of moving."""

THERE: tuple[Difference, ...] = (
    Difference(
        "nodes", ("power_state",), _is_gone, "The conductor's first reading says what it is: nothing is forced."
    ),
    Difference("nodes", ("provision_state",), _has_settled, "Steps of Ironic are not continued."),
    Difference("nodes", ("clean_step",), _has_no_step, "Steps of Ironic are not continued."),
    Difference("nodes", ("target_provision_state",), _was_under_way, "It is that of the new state."),
    Difference("nodes", ("last_error",), _was_under_way, "It says in which state the node was moved."),
    Difference(
        "nodes",
        ("fault", "is_maintenance", "maintenance_reason"),
        _has_fault,
        "Cleaning or service that has failed leaves a node in maintenance, as in Ironic.",
    ),
    Difference("nodes", ("target_power_state",), _is_gone, "Changes of power under way are dropped."),
    Difference("nodes", ("reservation",), _is_gone, "Locks of conductors that are stopped are dropped."),
    Difference(
        "nodes", ("driver_internal_info",), _keeps_agent_or_hears_it, "What only Ironic's code understands stays there."
    ),
    Difference("nodes", ("instance_info",), _lacks_drive, "Ingot keeps config drives elsewhere, and never shows them."),
    Difference("nodes", ("network_interface",), _is_replaced, "It was replaced as the page says."),
    *_OF_API,
)
"""What Ingot shows differently than the Ironic that the fleet comes from."""

BACK: tuple[Difference, ...] = (
    Difference("nodes", ("power_state",), _was_unknown, "What Ingot has not read is as Ironic knew it."),
    Difference("nodes", ("driver_internal_info",), _mirror(_keeps_agent), "What only Ironic understands was there."),
    Difference("nodes", ("instance_info",), _mirror(_lacks_drive), "Ironic shows that there is a config drive."),
    Difference("nodes", ("network_interface",), _mirror(_is_replaced), "What was replaced is as it was."),
    Difference("nodes", ("updated_at", "provision_updated_at"), _is_whole_second, "Ironic keeps whole seconds."),
    Difference("history?detail=true", ("history",), _are_whole_seconds, "Ironic keeps whole seconds."),
    *(row._replace(meets=_mirror(row.meets)) for row in _OF_API),
)
"""What Ironic shows differently than the Ingot that the fleet comes back from."""
