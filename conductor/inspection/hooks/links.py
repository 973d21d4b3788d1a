"""The hooks for what switches say of themselves by LLDP, of which agents send the raw TLVs."""

import itertools
from collections.abc import Iterator, Mapping
from typing import ClassVar

from ingot.common.json_types import Json
from ingot.conductor.inspection import facts, lldp
from ingot.conductor.inspection.draft import Draft
from ingot.conductor.inspection.hooks.base import InspectionHook

_MOST_CARDS = 64
"""A switch is at the other end of a cable, so virtual functions of cards do not count."""

_Tlvs = list[tuple[int, bytes]]


def _list_heard(draft: Draft) -> Iterator[tuple[str, Json, _Tlvs]]:
    """Yield the cards that have heard something: name, what is known of it, and the TLVs."""
    given = draft.plugin_data.get("lldp_raw")
    raw = given if isinstance(given, Mapping) else {}
    heard = ((card, raw.get(card.get("name")) or card.get("lldp")) for card in _list_named(draft))
    for card, tlvs in itertools.islice(((card, tlvs) for card, tlvs in heard if tlvs), _MOST_CARDS):
        yield card["name"], card, list(lldp.list_tlvs(tlvs))


def _list_named(draft: Draft) -> Iterator[Json]:
    return (card for card in facts.read_objects(draft.inventory.get("interfaces")) if facts.read_text(card, "name"))


class ParseLLDP(InspectionHook):
    """The hook ``parse-lldp``: notes what switches say, by network card, as ``plugin_data`` ``parsed_lldp``."""

    def run(self, draft: Draft) -> None:
        found = {name: said for name, _card, tlvs in _list_heard(draft) if (said := lldp.parse(tlvs))}
        known = draft.plugin_data.get("parsed_lldp")
        if found:
            draft.plugin_data["parsed_lldp"] = {**(known if isinstance(known, Mapping) else {}), **found}


class LocalLinkConnection(InspectionHook):
    """The hook ``local-link-connection``: completes local_link_connection of ports by what switches say.

    What a port has already stays as it is.
    """

    dependencies: ClassVar = ("validate-interfaces",)

    def run(self, draft: Draft) -> None:
        ports = {port["address"]: port for port in draft.ports}
        for _name, card, tlvs in _list_heard(draft):
            port = ports.get(str(card.get("mac_address")).lower())
            if port is not None:
                port["local_link_connection"] = {**_read_link(tlvs), **port["local_link_connection"]}


def _read_link(tlvs: _Tlvs) -> Json:
    """Return the other end of a cable; a switch is known by its MAC address only."""
    found: Json = {}
    for kind, value in tlvs:
        if kind in (lldp.CHASSIS_ID, lldp.PORT_ID):
            is_mac, identity = lldp.read_identity(kind, value)
            name = "port_id" if kind == lldp.PORT_ID else "switch_id"
            if identity is not None and (is_mac or name == "port_id"):
                found.setdefault(name, identity)
        elif kind == lldp.SYSTEM_NAME and (said := lldp.parse([(kind, value)])):
            found.setdefault("switch_info", said["switch_system_name"])
    return found
