"""The end of every inspection: what was found becomes properties, ports, whatever hooks and rules make of it.

Hooks are a table of functions, of which the option [inspector] hooks chooses some.
"""

import base64
import ipaddress
import re
from collections.abc import Callable, Mapping

from oslo_log import log

from ingot.common import errors
from ingot.common.json_types import Json
from ingot.conductor.inspection import rules
from ingot.conductor.inspection.draft import Draft
from ingot.conductor.task import agent_logs
from ingot.conductor.task.task_manager import Task
from ingot.db import inventory
from ingot.drivers.interfaces import boot

LOG = log.getLogger(__name__)

_MAC = re.compile(r"([0-9a-f]{2}:){5}[0-9a-f]{2}", re.ASCII)

_LONGEST_FACT = 255  # characters of a fact that becomes a property

Hook = Callable[[Draft], None]


def apply(task: Task) -> None:
    """Make of the inventory what hooks and rules say; all of it is written with the end of the step, or nothing.

    The ramdisk's logs leave the inventory either way.

    Nothing is done where the inspect interface has found no inventory, and has set the properties itself.

    :raises StepFailed: a hook or rule refuses the machine, or fails.
    """
    found = task.inventory()
    if found is None:
        return
    logs = found.plugin_data.pop("logs", None)
    draft = Draft(task, found)
    try:
        for name in task.conf.inspector.hooks:
            HOOKS[name](draft)
        rules.run(draft)
    except errors.IngotError:
        _keep(task, logs, failed=True)
        task.add_extra_write(inventory.write_plugin_data(task.node.id, found.plugin_data))
        raise
    draft.hand_over()
    _keep(task, logs, failed=False)


def _keep(task: Task, logs: object, failed: bool) -> None:
    """Keep the ramdisk's logs, base64 of a tar.gz, as those of any agent."""
    if not isinstance(logs, str):
        return
    try:
        content = base64.b64decode(logs, validate=True)
    except ValueError:
        return
    agent_logs.keep(task, "inspect", str(task.node.run_id), content, failed)


# Hooks


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


def _list_cards(draft: Draft) -> dict[str, Json]:
    """Return the network cards of the machine by their names, with MAC addresses in lower case and ``pxe_enabled``."""
    booted = _find_boot_mac(draft)
    listed = draft.inventory.get("interfaces")
    found: dict[str, Json] = {}
    for card in listed if isinstance(listed, list) else []:
        facts = card if isinstance(card, Mapping) else {}
        mac = str(facts.get("mac_address") or "").lower()
        name = str(facts.get("name") or mac)
        if name != "lo" and _MAC.fullmatch(mac):
            found[name] = {**facts, "mac_address": mac, "pxe_enabled": booted in (None, mac)}
    return found


def _find_boot_mac(draft: Draft) -> str | None:
    """Return the MAC address of the card that the machine has booted from, where the agent knows it."""
    found = _read_fact(draft, "boot", "pxe_interface") or draft.plugin_data.get("boot_interface")
    mac = str(found or "").lower().replace("-", ":")
    mac = mac.partition(":")[2] if mac.count(":") == 6 else mac  # BOOTIF begins with the type of hardware
    return mac if _MAC.fullmatch(mac) else None


def _read_fact(draft: Draft, part: str, name: str) -> object:
    facts = draft.inventory.get(part)
    return facts.get(name) if isinstance(facts, Mapping) else None


def _is_active(card: Mapping[str, object]) -> bool:
    """Return whether a network card has an address; where a BMC reports it, which knows none: whether it has a link."""
    if "ipv4_address" not in card and "ipv6_address" not in card:
        return bool(card.get("has_carrier"))
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
    "active": lambda card, _booted_is_known: _is_active(card),
    "pxe": lambda card, booted_is_known: card["pxe_enabled"] if booted_is_known else _is_active(card),
    "disabled": lambda _card, _booted_is_known: False,
}
"""By [inspector] add_ports: whether a network card gets a port; whether it is known from which the machine booted."""


def _ports(draft: Draft) -> None:
    options, booted = draft.task.conf.inspector, _find_boot_mac(draft)
    cards = {card["mac_address"]: card for card in _list_cards(draft).values()}
    known = {port["address"] for port in draft.ports}
    chosen = [mac for mac, card in cards.items() if _GETS_PORT[options.add_ports](card, booted is not None)]
    new = [mac for mac in chosen if mac not in known]
    if len(new) > options.max_ports:
        raise errors.StepFailed(
            f"the inventory has {len(new)} network cards that would get ports; [inspector] max_ports is "
            f"{options.max_ports}. Is [inspector] add_ports = {options.add_ports} meant?"
        )
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


def _build_property_hook(**places: tuple[str, str]) -> Hook:
    """Return a hook that makes properties of facts of the inventory, where they are there.

    :param places: part of the inventory and name of the fact, by property.
    """

    def hook(draft: Draft) -> None:
        for name, place in places.items():
            value = _read_fact(draft, *place)
            if isinstance(value, dict | list) or len(str(value)) > _LONGEST_FACT:
                raise errors.StepFailed(
                    f"the inventory's {'.'.join(place)} cannot be the property {name}: it must be a number, or a text "
                    f"of {_LONGEST_FACT} characters at most"
                )
            if value is not None:
                draft.node["properties"][name] = value

    return hook


def _boot_mode(draft: Draft) -> None:
    mode = _read_fact(draft, "boot", "current_boot_mode")
    if mode not in (None, *boot.BOOT_MODES):
        raise errors.StepFailed(
            f"the inventory's boot.current_boot_mode is {str(mode)[:_LONGEST_FACT]!r}: it must be one of "
            f"{', '.join(boot.BOOT_MODES)}"
        )
    if mode is not None:
        draft.set_capability("boot_mode", str(mode))


HOOKS: dict[str, Hook] = {
    "ramdisk-error": _ramdisk_error,
    "validate-interfaces": _validate_interfaces,
    "ports": _ports,
    "architecture": _build_property_hook(cpu_arch=("cpu", "architecture"), cpus=("cpu", "count")),
    "memory": _build_property_hook(memory_mb=("memory", "physical_mb")),
    "boot-mode": _boot_mode,
}
