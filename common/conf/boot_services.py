"""Options of [boot_services], [auto_discovery], [dhcp] and [dnsmasq]: who answers machines that boot."""

from oslo_config import cfg

BOOT_SERVICES: list[cfg.Opt] = [
    cfg.ListOpt(
        "interfaces",
        default=[],
        help="Network interfaces of this host on which ingot-boot answers DHCP and TFTP, such as eth1 or br-rack. It "
        "answers nowhere else, and does not start without any.",
    ),
    cfg.ListOpt(
        "dhcp_ranges",
        default=[],
        help="Networks that machines boot in, each as [NAME=]FIRST-LAST/PREFIX, of which addresses are given away "
        "(rack1=10.1.0.50-10.1.0.250/24), or as [NAME=]NETWORK/PREFIX, where another DHCP server gives addresses and "
        "ingot-boot adds only what to boot (proxy DHCP; 10.2.0.0/24). NAME, letters and digits, stands for the network "
        "in routers and dns_servers; without one it is net1, net2 and so on.",
    ),
    cfg.DictOpt(
        "routers",
        default={},
        help="The router of networks, by the names of dhcp_ranges: rack1:10.1.0.1. A network without one gets none.",
    ),
    cfg.DictOpt(
        "dns_servers",
        default={},
        help="The name server of networks, by the names of dhcp_ranges: rack1:10.1.0.2. ingot-boot itself serves no "
        "names.",
    ),
    cfg.StrOpt("domain", default="", help="Domain name that machines get by DHCP. Empty: none."),
    cfg.IntOpt("lease_seconds", default=3600, min=120, help="Seconds for which a machine gets an address."),
    cfg.IntOpt(
        "max_leases",
        default=1000,
        min=1,
        help="Most addresses that are given away at a time: a hostile machine that asks under many MAC addresses gets "
        "no more.",
    ),
    cfg.StrOpt(
        "unknown_machines",
        default="auto",
        choices=[
            ("auto", "answered where [auto_discovery] enabled is set"),
            ("answer", "always answered: they boot from their disk"),
            ("ignore", "never answered"),
        ],
        help="What becomes of machines whose MAC address is that of no port with pxe_enabled.",
    ),
    cfg.StrOpt(
        "loader",
        default="ipxe",
        choices=[
            ("ipxe", "iPXE, which is not signed: secure boot has to be off while it boots"),
            ("grub", "the signed shim and GRUB, which start with secure boot on"),
        ],
        help="What UEFI starts on machines that are not enrolled, and on nodes whose boot interface is ipxe. Nodes "
        "with the boot interface pxe always get the signed shim and GRUB. A BIOS always gets iPXE.",
    ),
    cfg.StrOpt(
        "ipxe_path",
        default="/usr/lib/ipxe",
        help="Directory with undionly.kpxe, snponly.efi and ipxe.efi, those of Debian's package ipxe, on the hosts of "
        "ingot-boot and of the API. snponly-arm64.efi and snponly-i386.efi may be there too, for machines of these "
        "architectures. The signed loaders are looked for in [deploy] signed_loader_path.",
    ),
    cfg.StrOpt(
        "directory",
        default="$state_path/boot",
        help="Directory of ingot-boot: the files of its dnsmasq, leases, and what TFTP serves.",
    ),
    cfg.StrOpt(
        "user",
        default="dnsmasq",
        help="User that dnsmasq runs as where ingot-boot was started by root. Otherwise it runs as the user of "
        "ingot-boot.",
    ),
    cfg.IntOpt(
        "refresh_interval",
        default=5,
        min=1,
        help="Seconds between two looks at which MAC addresses are enrolled. One costs one small query.",
    ),
]

AUTO_DISCOVERY: list[cfg.Opt] = [
    cfg.BoolOpt(
        "enabled",
        default=False,
        help="Have machines that are not enrolled boot the agent, and keep what it finds in the inbox, "
        "/ingot/v1/inbox, where an operator accepts it as a node or deletes it. What is there comes from machines "
        "without credentials.",
    ),
    cfg.StrOpt("driver", help="Hardware type of nodes that are accepted without one."),
    cfg.IntOpt("max_entries", default=500, min=1, help="Most machines in the inbox. Further ones are refused."),
    cfg.IntOpt(
        "max_entry_size",
        default=512,
        min=16,
        help="Largest entry of the inbox, in KiB of JSON. Logs of the ramdisk are not kept.",
    ),
    cfg.IntOpt(
        "retention_days",
        default=14,
        min=1,
        help="Days after which a machine that has not called again leaves the inbox.",
    ),
]

DHCP: list[cfg.Opt] = [
    cfg.StrOpt(
        "dhcp_provider",
        default="none",
        choices=[
            ("none", "ingot-boot, or a DHCP server that needs to know nothing of single nodes"),
            ("neutron", "Neutron, for nodes with the network interface flat or neutron"),
            ("dnsmasq", "a dnsmasq of yours on the conductor's host, which reads the directories of [dnsmasq]"),
        ],
        help="What learns which machine is about to boot from the network.",
    ),
]

DNSMASQ: list[cfg.Opt] = [
    cfg.StrOpt(
        "dhcp_optsdir",
        default="/etc/dnsmasq.d/optsdir.d",
        help="With dhcp_provider = dnsmasq: directory of its dhcp-optsdir. It gets a file for each port of a node that "
        "boots from the network, with what the machine is to boot.",
    ),
    cfg.StrOpt(
        "dhcp_hostsdir",
        default="/etc/dnsmasq.d/hostsdir.d",
        help="With dhcp_provider = dnsmasq: directory of its dhcp-hostsdir. It gets a file for each such port, which "
        "admits the MAC address, and after the boot bars it.",
    ),
]
