"""Options of [inspector]: how machines are inspected, and what is made of what is found."""

from oslo_config import cfg, types

INSPECTOR: list[cfg.Opt] = [
    cfg.StrOpt(
        "default_hooks",
        default="ramdisk-error,validate-interfaces,ports,architecture,memory",
        help="What $default_hooks stands for in hooks, so that hooks can be added before and after these.",
    ),
    cfg.Opt(
        "hooks",
        type=types.List(),
        default="$default_hooks",
        help="What is made of the inventory of a machine, in this order, before the rules: names of entry points "
        "ingot.inspection.hooks. ramdisk-error fails where the agent reports an error, validate-interfaces where no "
        "network card can be used, ports creates, updates and removes ports, architecture sets the properties cpu_arch "
        "and cpus, memory sets memory_mb, boot-mode the capability boot_mode. There are also accelerators, "
        "cpu-capabilities, cpus, extra-hardware, local-link-connection, parse-lldp, pci-devices, physical-network, "
        "raid-device and root-device.",
    ),
    cfg.StrOpt(
        "add_ports",
        default="pxe",
        choices=[
            ("all", "for every network card"),
            ("active", "for the cards that have an address"),
            ("pxe", "for the card that the machine has booted from; as active where that is not known"),
            ("disabled", "for none"),
        ],
        help="For which network cards found by an inspection ports are created.",
    ),
    cfg.StrOpt(
        "keep_ports",
        default="all",
        choices=[
            ("all", "all of them"),
            ("present", "those of network cards that were found"),
            ("added", "those of network cards that add_ports chooses"),
        ],
        help="Which ports of a node stay when its machine was inspected. One to which a network is attached stays in "
        "any case.",
    ),
    cfg.IntOpt(
        "max_ports",
        default=128,
        min=1,
        help="Most ports that an inspection may create; it fails where an inventory has more network cards that would "
        "get one. Inventories come without credentials.",
    ),
    cfg.BoolOpt(
        "update_pxe_enabled",
        default=True,
        help="Set pxe_enabled of the node's ports by the network card that the machine has booted from, where that is "
        "known.",
    ),
    cfg.ListOpt(
        "collectors",
        default=["default", "logs"],
        help="What the agent collects (kernel parameter ipa-inspection-collectors).",
    ),
    cfg.StrOpt(
        "extra_kernel_params",
        default="",
        regex=r"""^\s*([^\s='"\\]+=[^\s'"\\]*(\s+|$))*$""",
        help="Further kernel parameters of the agent that inspects, where Ingot boots it: name=value, separated by "
        "spaces.",
    ),
    cfg.BoolOpt(
        "force_dhcp",
        default=False,
        help="Have the agent that inspects ask for addresses, and listen for LLDP, on all network cards, and leave a "
        "node's network_data out of its boot medium.",
    ),
    cfg.BoolOpt(
        "power_off",
        default=True,
        help="Switch a machine off when it was inspected. Otherwise its agent goes on running, which is of use with "
        "[deploy] fast_track. A machine whose inspection failed is switched off in any case.",
    ),
    cfg.BoolOpt(
        "require_managed_boot",
        sample_default="True for the inspect interface agent, False for inspector",
        help="Refuse nodes whose boot interface cannot boot the agent. Otherwise, with agent, Ingot has their machines "
        "boot from the network, where a boot environment of yours starts an agent that knows "
        "ipa-inspection-callback-url; with inspector, the service boots them.",
    ),
    cfg.IntOpt(
        "status_check_period",
        default=10,
        min=1,
        help="With the inspect interface inspector: seconds between two questions to the service whether it is done.",
    ),
    cfg.URIOpt(
        "callback_endpoint_override",
        schemes=["http", "https"],
        help="With the inspect interface inspector: address of the service as machines reach it, where that is not its "
        "endpoint. Agents send what they find to /v1/continue there.",
    ),
    cfg.DictOpt(
        "cpu_capabilities",
        default={
            "vmx": "cpu_vt",
            "svm": "cpu_vt",
            "aes": "cpu_aes",
            "pse": "cpu_hugepages",
            "pdpe1gb": "cpu_hugepages_1g",
            "smx": "cpu_txt",
        },
        help="Of the hook cpu-capabilities: the capability that a node gets, as true, for a flag of its processor.",
    ),
    cfg.BoolOpt(
        "disk_partitioning_spacing",
        default=True,
        help="Of the hook root-device: leave 1 GiB of the disk out of local_gb, for partition tables.",
    ),
    cfg.BoolOpt(
        "extra_hardware_strict",
        default=False,
        help="Of the hook extra-hardware: where one record is malformed, use none and drop them all.",
    ),
    cfg.StrOpt(
        "known_accelerators",
        help="Of the hook accelerators: file in YAML with a list pci_devices, of which each has vendor_id and "
        "device_id, and what else is to be in the property accelerators. Unset: common accelerators of AMD, Habana, "
        "Intel and NVIDIA.",
    ),
    cfg.MultiStrOpt(
        "pci_device_alias",
        default=[],
        help="Of the hook pci-devices: a capability that says how many devices of one kind a machine has, as "
        '{"vendor_id": "10de", "product_id": "1eb8", "name": "t4"}. May be given several times.',
    ),
    cfg.ListOpt(
        "physical_network_cidr_map",
        default=[],
        sample_default="10.10.10.0/24:physnet_a,2001:db8::/64:physnet_b",
        help="Of the hook physical-network: the physical network of ports whose cards have an address in a network.",
    ),
]
