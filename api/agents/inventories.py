"""What is made of an inventory that a machine without a node has sent: nothing in it can be relied on."""

from collections.abc import Iterable, Mapping

from ingot.common.json_types import Json

_LONGEST = 255
_MOST_DISKS = 64


def read_facts(inventory: Json, booted: str | None, addresses: Iterable[str]) -> Json:
    """Return what lists show of a machine: texts and numbers of limited length.

    :param booted: MAC address of the card that it has booted from, if it says so.
    """
    cpu, memory, vendor = (_read_part(inventory, name) for name in ("cpu", "memory", "system_vendor"))
    disks = inventory.get("disks")
    known = (
        [_read(disk, "size") for disk in disks[:_MOST_DISKS] if isinstance(disk, Mapping)]
        if isinstance(disks, list)
        else []
    )
    return {
        "addresses": sorted(set(addresses)),
        "boot_address": booted,
        "boot_mode": _read(_read_part(inventory, "boot"), "current_boot_mode"),
        "bmc_address": _read(inventory, "bmc_address"),
        "cpu_arch": _read(cpu, "architecture"),
        "cpus": _read(cpu, "count"),
        "memory_mb": _read(memory, "physical_mb"),
        "disk_sizes": known,
        "manufacturer": _read(vendor, "manufacturer"),
        "product_name": _read(vendor, "product_name"),
        "serial_number": _read(vendor, "serial_number"),
    }


def find_boot_address(inventory: Json, addresses: Iterable[str]) -> str | None:
    """Return the MAC address of the card that a machine has booted from, if it is one of its own."""
    found = str(_read(_read_part(inventory, "boot"), "pxe_interface") or "").lower().replace("-", ":")
    found = found.partition(":")[2] if found.count(":") == 6 else found  # BOOTIF begins with the type of hardware
    return found if found in addresses else None


def _read_part(inventory: Json, name: str) -> Mapping[str, object]:
    part = inventory.get(name)
    return part if isinstance(part, Mapping) else {}


def _read(part: Mapping[str, object], name: str) -> object:
    value = part.get(name)
    if isinstance(value, str):
        return value[:_LONGEST]
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**63 else None
