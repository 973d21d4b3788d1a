"""What an agent finds in its machine, as ironic-python-agent reports it at an inspection."""

from typing import TYPE_CHECKING, Any

from ingot.rack import logs

if TYPE_CHECKING:
    from ingot.rack.disks import Disk
    from ingot.rack.simulated import SimulatedMachine

_COLLECTOR = "logs"
"""The one optional collector that a simulated machine has something for."""


def collect(machine: "SimulatedMachine", arguments: dict[str, str]) -> dict[str, Any]:
    """Return the body of a report.

    :param arguments: the kernel's arguments.
    """
    collectors = arguments.get("ipa-inspection-collectors", "default,logs").split(",")
    found: dict[str, Any] = {
        "inventory": _inventory(machine, arguments.get("BOOTIF", ""), arguments.get("ipa-collect-lldp") == "1"),
        "root_disk": _disk(0, machine.disks[0]) if machine.disks else None,
        "boot_interface": arguments.get("BOOTIF"),
        "configuration": {
            "collectors": collectors,
            "managers": [{"name": "generic_hardware_manager", "version": "1.2"}],
        },
        "error": None,
    }
    if _COLLECTOR in collectors:
        found["logs"] = logs.pack(machine.log_lines)
    return found


def _inventory(machine: "SimulatedMachine", booted: str, listens: bool) -> dict[str, Any]:
    """
    :param listens: whether the agent collects what switches say (LLDP).
    """
    spec = machine.spec
    return {
        "interfaces": [_card(number, mac, listens) for number, mac in enumerate(spec.macs)],
        "cpu": {
            "model_name": "Simulated",
            "frequency": "2000.0000",
            "count": spec.cpus,
            "architecture": "x86_64",
            "flags": ["fpu", "lm", "sse2"],
            "socket_count": 1,
        },
        "disks": [_disk(number, disk) for number, disk in enumerate(machine.disks)],
        "memory": {"total": spec.memory * 2**20, "physical_mb": spec.memory},
        "bmc_address": machine.site.config.address,
        "bmc_v6address": "::/0",
        "system_vendor": {
            "product_name": "rack",
            "serial_number": spec.name,
            "manufacturer": "Ingot",
            "firmware": {"vendor": "", "version": "", "build_date": ""},
        },
        "boot": {
            "current_boot_mode": "uefi" if machine.boot_setting_efi() else "bios",
            "pxe_interface": booted.partition("-")[2].replace("-", ":") or None,
        },
        "hostname": spec.name,
    }


def _hear(mac: str) -> list[list[Any]]:
    """Return what the switch says at a card's port, as types and values (IEEE 802.1AB)."""
    said = (
        (1, b"\x04" + bytes.fromhex("020000000001")),
        (2, b"\x05swp-" + mac[-2:].encode()),
        (3, b"\x00\x78"),
        (5, b"rack-switch"),
        (127, bytes.fromhex("0080c2010078")),
        (127, bytes.fromhex("0080c20300780a") + b"deployment"),
        (0, b""),
    )
    return [[kind, value.hex()] for kind, value in said]


def _card(number: int, mac: str, listens: bool) -> dict[str, Any]:
    return {
        "name": f"eth{number}",
        "mac_address": mac,
        "ipv4_address": "192.0.2.10" if number == 0 else None,
        "ipv6_address": "2001:db8::10" if number == 0 else None,
        "has_carrier": number == 0,
        "lldp": _hear(mac) if listens and number == 0 else None,
        "vendor": "0x1af4",
        "product": "0x0001",
        "client_id": None,
        "biosdevname": None,
        "speed_mbps": None,
        "pci_address": f"0000:00:{3 + number:02x}.0",
        "driver": "virtio_net",
    }


def _disk(number: int, disk: "Disk") -> dict[str, Any]:
    return {
        "name": disk.name,
        "model": "Simulated",
        "size": disk.size,
        "rotational": False,
        "wwn": disk.spec.wwn,
        "serial": disk.spec.serial,
        "vendor": "Ingot",
        "wwn_with_extension": disk.spec.wwn,
        "wwn_vendor_extension": None,
        "hctl": f"0:0:{number}:0",
        "by_path": f"/dev/disk/by-path/pci-0000:00:02.0-scsi-0:0:{number}:0",
        "logical_sectors": 512,
        "physical_sectors": 512,
        "tran": None,
    }
