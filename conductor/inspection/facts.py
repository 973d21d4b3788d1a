"""Reads inventories, which come from machines and may have any form, for hooks."""

import ipaddress
import re
from collections.abc import Iterator, Mapping

from ingot.common.json_types import Json
from ingot.conductor.inspection.draft import Draft

LONGEST_FACT = 255
"""Characters of a text that a machine sends and that becomes a property."""

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

_MAC = re.compile(r"([0-9a-f]{2}:){5}[0-9a-f]{2}", re.ASCII)


def read_fact(draft: Draft, part: str, name: str) -> object:
    """Return a fact of a part of the inventory; None if there is none."""
    facts = draft.inventory.get(part)
    return facts.get(name) if isinstance(facts, Mapping) else None


def read_objects(listed: object) -> list[Json]:
    """Return the objects of a list; what is none is left out."""
    return [one for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []


def read_text(facts: Mapping[str, object], name: str) -> str | None:
    """Return a text that is printable and of a sensible length; None for anything else."""
    found = facts.get(name)
    return found if isinstance(found, str) and found.isprintable() and 0 < len(found) <= LONGEST_FACT else None


def list_serials(inventory: Mapping[str, object]) -> list[str]:
    """Return the serial numbers of the disks in an inventory."""
    return list(filter(None, (read_text(disk, "serial") for disk in read_objects(inventory.get("disks")))))


def list_cards(draft: Draft) -> dict[str, Json]:
    """Return the network cards of the machine by their names, with MAC addresses in lower case and ``pxe_enabled``."""
    booted = find_boot_mac(draft)
    found: dict[str, Json] = {}
    for facts in read_objects(draft.inventory.get("interfaces")):
        mac = str(facts.get("mac_address") or "").lower()
        name = str(facts.get("name") or mac)
        if name != "lo" and _MAC.fullmatch(mac):
            found[name] = {**facts, "mac_address": mac, "pxe_enabled": booted in (None, mac)}
    return found


def find_boot_mac(draft: Draft) -> str | None:
    """Return the MAC address of the card that the machine has booted from, where the agent knows it."""
    found = read_fact(draft, "boot", "pxe_interface") or draft.plugin_data.get("boot_interface")
    mac = str(found or "").lower().replace("-", ":")
    mac = mac.partition(":")[2] if mac.count(":") == 6 else mac  # BOOTIF begins with the type of hardware
    return mac if _MAC.fullmatch(mac) else None


def list_addresses(card: Mapping[str, object]) -> Iterator[Address]:
    """Yield the network addresses of a card, that of IPv4 first."""
    for name in ("ipv4_address", "ipv6_address"):
        try:
            yield ipaddress.ip_address(str(card.get(name)).partition("%")[0])
        except ValueError:
            continue


def is_active(card: Mapping[str, object]) -> bool:
    """Return whether a network card has an address; where a BMC reports it, which knows none: whether it has a link."""
    if "ipv4_address" not in card and "ipv6_address" not in card:
        return bool(card.get("has_carrier"))
    return any(not address.is_link_local and not address.is_loopback for address in list_addresses(card))
