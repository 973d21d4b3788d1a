"""Options of the [DEFAULT] group: identity of the host, authentication, enabled hardware."""

import socket

from oslo_config import cfg, types

from ingot.common import interfaces

# What a laptop needs out of the box; an operator names what the racks have.
_ENABLED: dict[str, list[str]] = {
    "bios": ["no-bios", "redfish", "idrac-redfish", "fake"],
    "boot": ["ipxe", "pxe", "redfish-virtual-media", "redfish-https", "idrac-redfish-virtual-media", "fake"],
    "console": ["ipmitool-sol", "no-console", "fake"],
    "deploy": ["direct", "ramdisk", "custom-agent", "fake"],
    "firmware": ["no-firmware", "redfish", "idrac-redfish", "fake"],
    "inspect": ["agent", "redfish", "no-inspect", "idrac-redfish", "fake"],
    "management": ["ipmitool", "redfish", "noop", "idrac-redfish", "ilo", "fake"],
    "network": ["noop"],
    "power": ["ipmitool", "redfish", "idrac-redfish", "fake"],
    "raid": ["agent", "no-raid", "redfish", "idrac-redfish", "fake"],
    "rescue": ["agent", "no-rescue", "fake"],
    "storage": ["noop"],
    "vendor": ["no-vendor", "ipmitool", "redfish", "idrac-redfish", "fake"],
}

_GENERAL: list[cfg.Opt] = [
    cfg.StrOpt(
        "auth_strategy",
        choices=[
            ("noauth", "no authentication: for a closed provisioning network only"),
            ("http_basic", "HTTP basic authentication against http_basic_auth_user_file; all users are administrators"),
            ("keystone", "tokens of Keystone, validated as [keystone_authtoken] says; what they allow is a policy"),
        ],
        help="How clients of the API prove who they are. Unset, the API is served to this host only ([api] host_ip = "
        "127.0.0.1), or not at all. Lookup and heartbeat of agents need no authentication.",
    ),
    cfg.StrOpt(
        "http_basic_auth_user_file",
        default="/etc/ingot/htpasswd",
        help="Users of http_basic: an Apache-style file of lines user:bcrypt-hash. Read again when it changes.",
    ),
    cfg.BoolOpt(
        "rbac_service_role_elevated_access",
        default=False,
        help="With keystone: whether the role service in the project rbac_service_project_name may do what members of "
        "the system may. For clouds whose services have no system-scoped tokens.",
    ),
    cfg.StrOpt(
        "rbac_service_project_name",
        default="service",
        help="Name of the project that the services of the cloud are in.",
    ),
    cfg.Opt(
        "host",
        type=types.String(max_length=200, regex=r"^\S+$"),
        default=socket.gethostname(),
        sample_default="the host's name",
        help="Name of this conductor in the database, in locks and in RPC: any text without spaces. Unique among "
        "conductors, and the same after a restart, so that the conductor finds what it left behind. It does not start "
        "while another process works under its name.",
    ),
    cfg.StrOpt(
        "my_ip",
        sample_default="the address of the default route",
        help="Address of this host that machines on the provisioning network reach; part of the default API address "
        "given to agents and boot scripts. That of this host itself, 127.0.0.1, is refused unless fake-hardware is all "
        "that is enabled, or [service_catalog] endpoint_override is set.",
    ),
    cfg.StrOpt(
        "rpc_transport",
        default="oslo",
        choices=[
            ("oslo", "oslo.messaging, RabbitMQ by transport_url"),
            ("none", "API and conductor share one process, which is the command ingot"),
            ("json-rpc", "as none: for files of Ironic; Ingot has no JSON RPC"),
        ],
        help="How the API reaches conductors. The command ingot does not read it.",
    ),
    cfg.StrOpt(
        "state_path",
        default="/var/lib/ingot",
        help="Directory for what Ingot keeps on disk: the SQLite database of the all-in-one.",
    ),
    cfg.StrOpt(
        "webserver_verify_ca",
        default="True",
        help="How web servers are verified from which a conductor fetches what users name by URL (config drives, files "
        "of checksums): True, by the well-known authorities; a file of authorities; or False, not at all.",
    ),
    cfg.IntOpt(
        "webserver_connection_timeout",
        default=60,
        min=1,
        help="Seconds that a conductor takes at most to fetch what a user names by URL, from the first connection to "
        "the last byte.",
    ),
    cfg.IntOpt(
        "hash_partition_exponent",
        default=5,
        min=1,
        max=12,
        help="Each conductor has 2 to this power points on the hash ring. More points share nodes more evenly.",
    ),
    cfg.IntOpt(
        "hash_ring_reset_interval",
        default=5,
        min=0,
        help="Seconds for which the list of online conductors is remembered before it is read again.",
    ),
    cfg.StrOpt(
        "pin_release_version",
        help="During a rolling upgrade: the release whose RPC versions and features are used, even where newer ones "
        "are installed. Unset: the lowest version among the online conductors.",
    ),
    cfg.ListOpt(
        "enabled_hardware_types",
        default=["ipmi", "redfish"],
        help="Hardware types that a conductor loads (entry points ingot.hardware.types), without classic drivers. One "
        "that cannot be loaded stops the conductor from starting. All conductors should have the same interfaces for "
        "the same hardware type; one that finds another that differs logs a warning.",
    ),
    cfg.ListOpt(
        "autodetect_deploy_interfaces",
        default=["ramdisk", "direct"],
        help="What the deploy interface autodetect chooses from: the first one that can deploy what instance_info "
        "names, else the last. ramdisk fits instances with boot_iso, or kernel and ramdisk, that say "
        "ironic_ramdisk_deploy or have no image_source; bootc those with an oci:// image_source and bootc for "
        "image_type or image_disk_format; all others fit any. All must be enabled.",
    ),
    cfg.ListOpt(
        "enabled_drivers",
        default=[],
        help="Classic drivers that a conductor loads (entry points ingot.drivers): fixed compositions, whose "
        "interfaces need not be in enabled_<type>_interfaces. One that cannot be loaded, or that has the name of an "
        "enabled hardware type, stops the conductor from starting.",
    ),
]


def _interface_options(interface_type: str) -> list[cfg.Opt]:
    field = interfaces.FIELD[interface_type]
    return [
        cfg.ListOpt(
            f"enabled_{field}s",
            default=_ENABLED[interface_type],
            help=f"{interface_type} interfaces that may be used (entry points ingot.hardware.interfaces."
            f"{interface_type}). One that no enabled hardware type supports is not loaded; each hardware type needs at "
            "least one.",
        ),
        cfg.StrOpt(
            f"default_{field}",
            help=f"{interface_type} interface of nodes created without one; must be enabled and supported by every "
            "enabled hardware type, or the conductor does not start. Unset: the first of the hardware type's list that "
            "is enabled.",
        ),
    ]


DEFAULT: list[cfg.Opt] = [*_GENERAL, *(option for name in interfaces.TYPES for option in _interface_options(name))]
