"""The types of hardware interface a node is composed of, and how ties between their steps are broken (all layers)."""

TYPES: tuple[str, ...] = (
    *("bios", "boot", "console", "deploy", "firmware", "inspect", "management"),
    *("network", "power", "raid", "rescue", "storage", "vendor"),
)

STEP_KINDS: tuple[str, ...] = ("vendor", "power", "management", "firmware", "deploy", "bios", "raid")
"""Interfaces that users, templates and runbooks may name in a step (contract: steps.md)."""

_ORDER = (
    *("power", "management", "deploy", "firmware", "bios", "raid", "boot"),
    *("network", "storage", "inspect", "console", "rescue", "vendor"),
)
TIE_ORDER: dict[str, int] = {interface_type: rank for rank, interface_type in enumerate(_ORDER)}
"""Which interface goes first when priorities are equal: specification 002 names power, management, deploy; the rest is
a fixed order of ours."""

RESTART_ONLY: frozenset[str] = frozenset(("agent",))
"""Power interfaces that switch no machine on or off: requests for that are refused at once."""

_REPLACED = {
    "ibmc": "redfish",
    "ilo5": "ilo or redfish",
    "irmc": "redfish",
    "xclarity": "redfish",
    "intel-ipmi": "ipmi",
}
"""Hardware types that Ironic has or had, and what has their machines here."""


def advise(driver: str) -> str:
    """Return what to use instead of a hardware type that is not here; nothing where that is not known."""
    other = _REPLACED.get(driver)
    return f" Machines of type {driver} have the hardware type {other} here." if other else ""


FIELD: dict[str, str] = {interface_type: f"{interface_type}_interface" for interface_type in TYPES}
"""The node's field that names its interface of a type."""

FIELDS: tuple[str, ...] = tuple(FIELD.values())
