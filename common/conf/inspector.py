"""Options of the [inspector] group: what an inspection asks of the agent, and what it makes of the answer."""

from oslo_config import cfg, types

HOOKS = ("ramdisk-error", "validate-interfaces", "ports", "architecture", "memory", "boot-mode")
"""What can be made of an inventory, each by a function of ``conductor/inspection/hooks.py``."""

OPTIONS: dict[str, list[cfg.Opt]] = {
    "inspector": [
        cfg.Opt(
            "hooks",
            type=types.List(types.String(choices=HOOKS)),
            default=["ramdisk-error", "validate-interfaces", "ports", "architecture", "memory"],
            help="What is made of the inventory of a machine, in this order, before the rules: ramdisk-error "
            "fails where the agent reports an error, validate-interfaces where no network card can be used, ports "
            "creates and updates the ports of the node, architecture sets the properties cpu_arch and cpus, memory "
            "sets memory_mb, boot-mode the capability boot_mode.",
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
        cfg.BoolOpt(
            "update_pxe_enabled",
            default=True,
            help="Set pxe_enabled of the node's ports by the network card that the machine has booted from, where that "
            "is known.",
        ),
        cfg.ListOpt(
            "collectors",
            default=["default", "logs"],
            help="What the agent collects (kernel parameter ipa-inspection-collectors).",
        ),
    ],
}
