"""Options of the group [neutron]: where networks are asked for, as whom, and on which networks conductors boot agents.

They come from a large library, so that a process has them only if some are set, or what needs them is enabled.
"""

from keystoneauth1 import loading
from oslo_config import cfg

from ingot.common.networks import PURPOSES

_NETWORK = (
    "Network, by uuid or by a name that only it has, on which {what}, for nodes without driver_info.{purpose}_network. "
    "The network interfaces that use it need it: see the guide, Networks."
)
_GROUPS = (
    "Uuids of the security groups that Ingot's ports on that network get. Without: the default one of its project."
)


def _list_networks() -> list[cfg.Opt]:
    return [
        opt
        for purpose, what in PURPOSES.items()
        for opt in (
            cfg.StrOpt(
                f"{purpose}_network",
                deprecated_name=f"{purpose}_network_uuid",
                help=_NETWORK.format(what=what, purpose=purpose),
            ),
            cfg.ListOpt(f"{purpose}_network_security_groups", default=[], help=_GROUPS),
        )
    ]


OPTIONS: list[cfg.Opt] = [
    *loading.get_auth_common_conf_options(),
    *loading.get_session_conf_options(),
    *loading.get_adapter_conf_options(include_deprecated=False),
    *_list_networks(),
    cfg.IntOpt(
        "request_timeout",
        default=45,
        min=1,
        help="Seconds within which Neutron has to answer, with Keystone's answer and all retries, for each thing that "
        "is asked for.",
    ),
    cfg.IntOpt(
        "port_setup_delay",
        default=0,
        min=0,
        help="Seconds that pass between the creation of ports and the boot of the machine, for DHCP agents of Neutron "
        "that are slow to learn of ports. No thread of the conductor waits meanwhile.",
    ),
    cfg.IntOpt(
        "port_active_timeout",
        default=30,
        min=0,
        help="Seconds within which Neutron has to make the ports of a machine ACTIVE, before the machine boots. No "
        "thread of the conductor waits meanwhile. 0: they need not be; for mechanism drivers that leave them DOWN.",
    ),
    cfg.BoolOpt(
        "fail_on_inactive_port",
        default=False,
        help="Whether a step fails when a port is not ACTIVE in time. Otherwise it goes on with a warning. Ports of "
        "smart NICs have to be ACTIVE in any case.",
    ),
    cfg.BoolOpt(
        "fail_on_port_binding_failure",
        default=True,
        help="Whether the network interface neutron fails when no mechanism driver of Neutron binds a port. For single "
        "nodes: driver_info.fail_on_binding_failure, which the interface flat heeds, too.",
    ),
    cfg.BoolOpt(
        "add_all_ports",
        default=False,
        help="Whether ports without pxe_enabled get a port in Neutron, too, without an IP address: some bonds need it.",
    ),
    cfg.IntOpt(
        "dhcpv6_stateful_address_count",
        default=4,
        min=1,
        help="Addresses of a port on a network with stateful DHCPv6: firmware, loader and agent of one boot each ask "
        "for one of their own.",
    ),
    cfg.BoolOpt(
        "allow_disabling_power_off",
        default=False,
        help="Whether nodes with disable_power_off may have the network interface neutron. Their instance goes on "
        "running while they are moved to another network.",
    ),
    cfg.IntOpt(
        "port_sweep_interval",
        default=300,
        min=0,
        help="Seconds between two looks for ports in Neutron that Ingot has created and that no node needs anymore: "
        "the node was deleted, or its flow was given up. 0: none.",
    ),
]

cfg.set_defaults(OPTIONS, service_type="network", valid_interfaces=["internal", "public"])
