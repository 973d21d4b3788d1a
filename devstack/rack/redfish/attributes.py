"""The BIOS of a machine: the attributes that it has, their registry, and how settings are checked and applied."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from ingot.rack.redfish.messages import RedfishError, build_message

if TYPE_CHECKING:
    from ingot.rack.redfish.board import Board

REGISTRY = "BiosAttributeRegistry.v1_0_0"


@dataclass(frozen=True)
class Attribute:
    """``kind`` is a type of the registry; ``values`` are those of an enumeration, ``bounds`` of a number or a text."""

    kind: str
    default: Any
    text: str
    values: tuple[str, ...] = ()
    bounds: tuple[int, int] | None = None
    read_only: bool = False
    reset_required: bool = True


ATTRIBUTES = {
    "BootMode": Attribute("Enumeration", "Uefi", "Boot Mode", ("Uefi", "LegacyBios")),
    "ProcTurboMode": Attribute("Enumeration", "Enabled", "Turbo Mode", ("Enabled", "Disabled")),
    "ProcVirtualization": Attribute("Enumeration", "Enabled", "Virtualization", ("Enabled", "Disabled")),
    "ProcHyperthreading": Attribute("Boolean", True, "Simultaneous Multithreading"),
    "Sriov": Attribute("Boolean", False, "SR-IOV"),
    "NumaGroupSizeOpt": Attribute("Enumeration", "Flat", "NUMA Group Size", ("Flat", "Clustered")),
    "BootRetryCount": Attribute("Integer", 3, "Boot Attempts", bounds=(0, 10)),
    "AssetText": Attribute("String", "", "Asset Text", bounds=(0, 32)),
    "AdminPhone": Attribute("String", "", "Administrator Phone", bounds=(0, 32)),
    "SerialNumber": Attribute("String", "RACK", "Serial Number", read_only=True),
}
DEFAULTS = {name: attribute.default for name, attribute in ATTRIBUTES.items()}

_TYPES: dict[str, type | tuple[type, ...]] = {"Enumeration": str, "Boolean": bool, "Integer": int, "String": str}


def check(settings: dict[str, Any]) -> None:
    """Check settings as a BMC does before it takes them.

    :raises RedfishError: an attribute is unknown or read-only, or cannot have the value.
    """
    for name, value in settings.items():
        attribute = ATTRIBUTES.get(name)
        related = (f"#/Attributes/{name}",)
        if attribute is None:
            raise RedfishError("PropertyUnknown", name, related=related)
        if attribute.read_only:
            raise RedfishError("PropertyNotWritable", name, related=related)
        mistyped = attribute.kind == "Integer" and isinstance(value, bool)
        if mistyped or not isinstance(value, _TYPES[attribute.kind]):
            raise RedfishError("PropertyValueTypeError", value, name, related=related)
        if attribute.values and value not in attribute.values:
            raise RedfishError("PropertyValueNotInList", value, name, related=related)
        if attribute.bounds and not attribute.bounds[0] <= _measure(value) <= attribute.bounds[1]:
            raise RedfishError("PropertyValueOutOfRange", value, name, related=related)


def _measure(value: Any) -> int:
    return len(value) if isinstance(value, str) else int(value)


def apply(board: "Board") -> None:
    """Make pending settings the ones in force, unless they wait for something else than a boot."""
    state = board.state
    if not state["bios_pending"] or state["bios_waits"]:
        return
    board.machine.log(f"BIOS settings applied: {', '.join(state['bios_pending'])}")
    state["bios"].update(state["bios_pending"])
    if "BootMode" in state["bios_pending"]:
        target, frequency, _ = board.boot_override()
        board.override_boot(target, frequency, state["bios"]["BootMode"] == "Uefi")
    state["bios_pending"] = {}
    state["bios_applied"] = {"time": datetime.now(UTC).isoformat(), "messages": [build_message("Success")]}


def registry() -> dict[str, Any]:
    """Return the registry that describes the attributes."""
    return {
        "@odata.type": "#AttributeRegistry.v1_3_6.AttributeRegistry",
        "Id": REGISTRY,
        "Name": "BIOS attributes of the virtual rack",
        "Language": "en",
        "OwningEntity": "Ingot",
        "RegistryVersion": "1.0.0",
        "RegistryEntries": {"Attributes": [_entry(name, attribute) for name, attribute in ATTRIBUTES.items()]},
    }


_BOUNDS = {"Integer": ("LowerBound", "UpperBound"), "String": ("MinLength", "MaxLength")}


def _entry(name: str, attribute: Attribute) -> dict[str, Any]:
    bounds = dict(zip(_BOUNDS[attribute.kind], attribute.bounds, strict=True)) if attribute.bounds else {}
    values = [{"ValueName": value, "ValueDisplayName": value} for value in attribute.values]
    return {
        "AttributeName": name,
        "DisplayName": attribute.text,
        "Type": attribute.kind,
        "DefaultValue": attribute.default,
        "ReadOnly": attribute.read_only,
        "Immutable": False,
        "IsSystemUniqueProperty": attribute.read_only,
        "ResetRequired": attribute.reset_required,
        **({"Value": values} if values else {}),
        **bounds,
    }
