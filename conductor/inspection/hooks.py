"""What is made of every inventory: a table of functions, of which the option [inspector] hooks chooses some."""

import ipaddress
import re
from collections.abc import Callable, Mapping

from oslo_log import log

from ingot.common import errors
from ingot.common.json_types import Json
from ingot.conductor.inspection.draft import Draft, capabilities, set_capabilities
from ingot.db import inventory

LOG = log.getLogger(__name__)

_MAC = re.compile(r"([0-9a-f]{2}:){5}[0-9a-f]{2}", re.ASCII)

Cards = dict[str, Json]


def run(draft: Draft) -> None:
    """Call the hooks that are configured.

    :raises StepFailed: the machine cannot be used as it is.
    """
    for name in draft.task.conf.inspector.hooks:
        HOOKS[name](draft)


def _ramdisk_error(draft: Draft) -> None:
    error = draft.plugin_data.get("error")
    if error:
        raise errors.StepFailed(f"the agent reported an error: {str(error)[:2000]}")


def _validate_interfaces(draft: Draft) -> None:
    """Note the network cards that can be used, as data for rules: ``plugin_data[valid_interfaces]``."""
    cards = _list_cards(draft)
    if not cards:
        raise errors.StepFailed("the inventory has no network card with a MAC address that could be used")
    draft.plugin_data["valid_interfaces"] = cards


def _list_cards(draft: Draft) -> Cards:
    """Return the network cards of the machine by their names, with MAC addresses in lower case and ``pxe_enabled``."""
    booted = _find_boot_mac(draft)
    listed = draft.inventory.get("interfaces")
    found: Cards = {}
    for card in listed if isinstance(listed, list) else []:
        facts = card if isinstance(card, Mapping) else {}
        mac = str(facts.get("mac_address") or "").lower()
        name = str(facts.get("name") or mac)
        if name != "lo" and _MAC.fullmatch(mac):
            found[name] = {**facts, "mac_address": mac, "pxe_enabled": booted in (None, mac)}
    return found


def _find_boot_mac(draft: Draft) -> str | None:
    """Return the MAC address of the card that the machine has booted from, where the agent knows it."""
    boot = draft.inventory.get("boot")
    found = (boot.get("pxe_interface") if isinstance(boot, Mapping) else None) or draft.plugin_data.get(
        "boot_interface"
    )
    mac = str(found or "").lower().replace("-", ":")
    mac = mac.partition(":")[2] if mac.count(":") == 6 else mac  # BOOTIF begins with the type of hardware
    return mac if _MAC.fullmatch(mac) else None


def _has_address(card: Mapping[str, object]) -> bool:
    for name in ("ipv4_address", "ipv6_address"):
        try:
            address = ipaddress.ip_address(str(card.get(name)))
        except ValueError:
            continue
        if not address.is_link_local and not address.is_loopback:
            return True
    return False


_GETS_PORT: dict[str, Callable[[Json, bool], bool]] = {
    "all": lambda _card, _booted_is_known: True,
    "active": lambda card, _booted_is_known: _has_address(card),
    "pxe": lambda card, booted_is_known: card["pxe_enabled"] if booted_is_known else _has_address(card),
    "disabled": lambda _card, _booted_is_known: False,
}
"""By [inspector] add_ports: whether a network card gets a port; whether it is known from which the machine booted."""


def _ports(draft: Draft) -> None:
    options, booted = draft.task.conf.inspector, _find_boot_mac(draft)
    cards = {card["mac_address"]: card for card in _list_cards(draft).values()}
    known = {port["address"] for port in draft.ports}
    chosen = [mac for mac, card in cards.items() if _GETS_PORT[options.add_ports](card, booted is not None)]
    new = [mac for mac in chosen if mac not in known]
    taken = inventory.find_foreign_addresses(draft.task.db, draft.task.node.id, new) if new else set()
    for mac in taken:
        LOG.warning("Node %s: a port of another node has its MAC address %s", draft.task.node.uuid, mac)
    if options.update_pxe_enabled and booted is not None:
        for port in draft.ports:
            port["pxe_enabled"] = port["address"] == booted
    draft.ports += [
        {"address": mac, "pxe_enabled": cards[mac]["pxe_enabled"], "extra": {}, "local_link_connection": {}}
        for mac in new
        if mac not in taken
    ]


def _read_fact(draft: Draft, part: str, name: str) -> object:
    facts = draft.inventory.get(part)
    return facts.get(name) if isinstance(facts, Mapping) else None


def _build_property_hook(name: str, part: str, fact: str) -> Callable[[Draft], None]:
    """Return a hook that makes a property of something in the inventory, where it is there."""

    def hook(draft: Draft) -> None:
        value = _read_fact(draft, part, fact)
        if value is not None:
            draft.node["properties"][name] = value

    return hook


def _chain_hooks(*hooks: Callable[[Draft], None]) -> Callable[[Draft], None]:
    def hook(draft: Draft) -> None:
        for one in hooks:
            one(draft)

    return hook


def _boot_mode(draft: Draft) -> None:
    mode = _read_fact(draft, "boot", "current_boot_mode")
    if mode is not None:
        set_capabilities(draft.node, {**capabilities(draft.node), "boot_mode": str(mode)})


HOOKS: dict[str, Callable[[Draft], None]] = {
    "ramdisk-error": _ramdisk_error,
    "validate-interfaces": _validate_interfaces,
    "ports": _ports,
    "architecture": _chain_hooks(
        _build_property_hook("cpu_arch", "cpu", "architecture"), _build_property_hook("cpus", "cpu", "count")
    ),
    "memory": _build_property_hook("memory_mb", "memory", "physical_mb"),
    "boot-mode": _boot_mode,
}
