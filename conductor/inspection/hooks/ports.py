"""The hooks for network cards and the ports that are made of them."""

import ipaddress
from collections.abc import Callable, Iterable
from typing import ClassVar

from oslo_config import cfg
from oslo_log import log

from ingot.common import errors
from ingot.common.json_types import Json
from ingot.conductor.inspection import facts
from ingot.conductor.inspection.draft import Draft
from ingot.conductor.inspection.hooks.base import InspectionHook
from ingot.db import inventory

LOG = log.getLogger(__name__)

_GETS_PORT: dict[str, Callable[[Json, bool], bool]] = {
    "all": lambda _card, _booted_is_known: True,
    "active": lambda card, _booted_is_known: facts.is_active(card),
    "pxe": lambda card, booted_is_known: card["pxe_enabled"] if booted_is_known else facts.is_active(card),
    "disabled": lambda _card, _booted_is_known: False,
}
"""By [inspector] add_ports: whether a network card gets a port; whether it is known from which the machine booted."""


def _choose_cards(draft: Draft, option: str) -> dict[str, Json]:
    """Return the cards that get ports, by name."""
    is_known, gets_port = facts.find_boot_mac(draft) is not None, _GETS_PORT[option]
    return {name: card for name, card in facts.list_cards(draft).items() if gets_port(card, is_known)}


class ValidateInterfaces(InspectionHook):
    """The hook ``validate-interfaces``: fails where no network card can be used.

    It notes the cards as data for rules: ``all_interfaces``, ``valid_interfaces``, those that get ports, and ``macs``.
    """

    def run(self, draft: Draft) -> None:
        cards = facts.list_cards(draft)
        if not cards:
            raise errors.StepFailed("the inventory has no network card with a MAC address that could be used")
        chosen = _choose_cards(draft, self.conf.inspector.add_ports)
        draft.plugin_data |= {
            "all_interfaces": cards,
            "valid_interfaces": chosen,
            "macs": [card["mac_address"] for card in chosen.values()],
        }


class Ports(InspectionHook):
    """The hook ``ports``: creates and updates ports, and removes those that ``[inspector] keep_ports`` excludes."""

    def run(self, draft: Draft) -> None:
        options, booted = self.conf.inspector, facts.find_boot_mac(draft)
        cards = {card["mac_address"]: card for card in facts.list_cards(draft).values()}
        chosen = [card["mac_address"] for card in _choose_cards(draft, options.add_ports).values()]
        self._remove(draft, {"all": None, "present": cards, "added": chosen}[options.keep_ports])
        if options.update_pxe_enabled and booted is not None:
            for port in draft.ports:
                port["pxe_enabled"] = port["address"] == booted
        draft.ports += self._build_new(draft, [cards[mac] for mac in dict.fromkeys(chosen)])
        if not chosen and not draft.ports and options.add_ports != "disabled":
            LOG.warning(
                "Node %s: it has no port, and none of the %d network cards that were found fits [inspector] "
                "add_ports = %s",
                *(draft.node["uuid"], len(cards), options.add_ports),
            )
        for port in draft.ports:
            client = facts.read_text(cards.get(port["address"], {}), "client_id")
            if client is not None:  # by which DHCP servers know InfiniBand
                port["extra"]["client-id"] = client

    def _build_new(self, draft: Draft, cards: list[Json]) -> list[Json]:
        options, known = self.conf.inspector, {port["address"] for port in draft.ports}
        new = {card["mac_address"]: card for card in cards if card["mac_address"] not in known}
        if len(new) > options.max_ports:
            raise errors.StepFailed(
                f"the inventory has {len(new)} network cards that would get ports; [inspector] max_ports is "
                f"{options.max_ports}. Is [inspector] add_ports = {options.add_ports} meant?"
            )
        taken = inventory.find_foreign_addresses(draft.task.db, draft.task.node.id, new) if new else set()
        for mac in taken:
            LOG.warning("Node %s: a port of another node has its MAC address %s", draft.node["uuid"], mac)
        return [
            {"address": mac, "pxe_enabled": card["pxe_enabled"], "extra": {}, "local_link_connection": {}}
            for mac, card in new.items()
            if mac not in taken
        ]

    @staticmethod
    def _remove(draft: Draft, kept: Iterable[str] | None) -> None:
        """Remove ports of cards that are not kept; an inventory without any card removes none."""
        expected = set(kept or ())
        for port in [one for one in draft.ports if expected and one["address"] not in expected]:
            if port["internal_info"].get("tenant_vif_port_id") or port["extra"].get("vif_port_id"):
                LOG.warning(
                    "Node %s: port %s stays though its card %s was not found: a network is attached to it",
                    *(draft.node["uuid"], port["uuid"], port["address"]),
                )
                continue
            LOG.info(
                "Node %s: port %s is removed, as its card %s was not found",
                *(draft.node["uuid"], port["uuid"], port["address"]),
            )
            draft.remove_port(port)


_NETWORKS = "[inspector] physical_network_cidr_map"


class PhysicalNetwork(InspectionHook):
    """The hook ``physical-network``: sets physical_network of ports by the addresses that their cards have."""

    dependencies: ClassVar = ("validate-interfaces",)

    def __init__(self, conf: cfg.ConfigOpts) -> None:
        super().__init__(conf)
        self._networks = [_parse_network(entry) for entry in conf.inspector.physical_network_cidr_map]

    def run(self, draft: Draft) -> None:
        ports = {port["address"]: port for port in draft.ports}
        for card in facts.list_cards(draft).values():
            name = self._find(card)
            if name is not None and card["mac_address"] in ports:
                ports[card["mac_address"]]["physical_network"] = name

    def _find(self, card: Json) -> str | None:
        """Return the network of the first address that is in one."""
        found = (
            name for address in facts.list_addresses(card) for network, name in self._networks if address in network
        )
        return next(found, None)


def _parse_network(entry: str) -> tuple[ipaddress.IPv4Network | ipaddress.IPv6Network, str]:
    cidr, _, name = entry.rpartition(":")
    try:
        network = ipaddress.ip_network(cidr)
    except ValueError as exc:
        allowed = f"Pairs of network and name, as 10.10.10.0/24:physnet_a: {exc}."
        raise errors.ConfigurationError(option=_NETWORKS, value=entry, allowed=allowed) from exc
    if not name or len(name) > 64:
        allowed = "A name of 1 to 64 characters after the last colon."
        raise errors.ConfigurationError(option=_NETWORKS, value=entry, allowed=allowed)
    return network, name
