"""What nodes may have outside of themselves, as they note it: it is taken back also when they are deleted."""

from collections.abc import Sequence
from typing import Final

SWITCH_PORTS: Final = "switch_ports"
"""Key of ``driver_internal_info``: ports of switches that may be on a VLAN for the node."""

KINDS: Sequence[str] = (SWITCH_PORTS,)
"""Keys of ``driver_internal_info`` whose notes are kept when the node is deleted."""
