"""Options of [switch]: VLANs of the network interface ``switch``, and how switches are spoken to."""

from oslo_config import cfg

from ingot.common.networks import PURPOSES

FIRST_VLAN, LAST_VLAN = 1, 4094

_NEEDED = ("provisioning", "cleaning")
_VLAN = "VLAN on which {what}, for nodes without driver_info.{purpose}_vlan. {without}"


def _list_vlans() -> list[cfg.Opt]:
    return [
        cfg.IntOpt(
            f"{purpose}_vlan",
            min=FIRST_VLAN,
            max=LAST_VLAN,
            help=_VLAN.format(
                what=what,
                purpose=purpose,
                without="The network interface switch needs it."
                if purpose in _NEEDED
                else "Without: the one for cleaning.",
            ),
        )
        for purpose, what in PURPOSES.items()
    ]


SWITCH: list[cfg.Opt] = [
    cfg.ListOpt(
        "config_files",
        default=[],
        help="Files with a section [genericswitch:NAME] for each switch, as networking-generic-switch has them; of "
        "sections of one name the last holds. Without: the configuration files of the conductor itself.",
    ),
    cfg.StrOpt(
        "python",
        help="Interpreter of the Python environment in which networking-generic-switch is installed. Without: the "
        "conductor's. The library brings Neutron and eventlet, which an environment of its own keeps out of that.",
    ),
    *_list_vlans(),
    cfg.IntOpt(
        "tenant_vlan",
        min=FIRST_VLAN,
        max=LAST_VLAN,
        help="VLAN of instances whose node has no VIF, for nodes without driver_info.tenant_vlan. Without: an instance "
        "needs a VIF.",
    ),
    cfg.DictOpt(
        "tenant_networks",
        default={},
        help="Networks that users may attach to their nodes as VIFs, by name, with their VLANs: web:120,storage:130.",
    ),
    cfg.ListOpt(
        "tenant_vlans",
        default=[],
        help="VLANs, or ranges of them, that users may attach by number, as VIF vlan-120: 120,200-299.",
    ),
    cfg.IntOpt(
        "timeout",
        default=180,
        min=1,
        help="Seconds within which a switch has to have done what one change of a node needs, with all retries of the "
        "connection. What takes longer is cut off and tried again.",
    ),
    cfg.IntOpt(
        "turn_timeout",
        default=300,
        min=0,
        help="Seconds for which a change waits while other conductors and threads change the same switch.",
    ),
    cfg.IntOpt(
        "memory_limit",
        default=2048,
        min=256,
        help="MiB of address space of a process that speaks to a switch.",
    ),
    cfg.StrOpt(
        "work_path",
        default="$state_path/switches",
        help="Directory on a conductor's host for processes that speak to switches. Each conductor has a directory of "
        "its own in it, which it empties before its first change.",
    ),
    cfg.IntOpt(
        "sweep_interval",
        default=300,
        min=0,
        help="Seconds between two looks for nodes at rest whose ports of switches are still on a VLAN of the "
        "operator's, or whose last change was cut off, and for ports of nodes that were deleted. 0: none.",
    ),
]
