"""Where Ingot shows a fleet differently from the Ironic that it came from, and why: the rest must be equal."""

from ingot.common import states
from tests.gate.moving.views import Difference, Found

_MOVED = states.WORKING | states.WAITING | states.HELD
"""States in which something was under way."""


def _was_under_way(found: Found) -> bool:
    return found.row["provision_state"] in _MOVED


DIFFERENCES: tuple[Difference, ...] = ()
