"""Reads what switches say of themselves: the TLVs of LLDP (IEEE 802.1AB), with those of IEEE 802.1Q and 802.3.

Whatever is malformed, too long or unknown is left out: TLVs come from switches, and by way of a machine. The names of
facts are those that Ironic has.
"""

import ipaddress
import itertools
import string
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping

from ingot.common.json_types import Json
from ingot.conductor.inspection import mau

Fact = tuple[str, object]
Reader = Callable[[bytes], Iterator[Fact]]

CHASSIS_ID, PORT_ID, SYSTEM_NAME = 1, 2, 5
"""Types of TLVs."""

_ORGANIZATION = 127
_IEEE_802_1, _IEEE_802_3 = b"\x00\x80\xc2", b"\x00\x12\x0f"

_LONGEST_VALUE = 511  # its length has nine bits
_MOST_TLVS = 512
"""Of one card: a frame of 1,500 bytes has fewer that say something."""

_CHASSIS_MAC = 4
_TEXTS_OF_CHASSIS, _TEXTS_OF_PORT = (1, 2, 3, 6, 7), (1, 2, 5, 7)
_ADDRESS_OF_CHASSIS, _ADDRESS_OF_PORT, _PORT_MAC = 5, 4, 3

_CAPABILITIES = (
    *(None, "Repeater", "Bridge", "WLAN", "Router", "Telephone", "DOCSIS cable device", "Station only"),
    *("C-Vlan", "S-Vlan", "TPMR"),
)
"""By bit, the least first."""


class Malformed(ValueError):
    """A TLV does not have the form that its type has."""


def list_tlvs(given: object) -> Iterator[tuple[int, bytes]]:
    """Yield types and values of the TLVs that an agent sends of a card: pairs of a number and hexadecimal digits."""
    for one in itertools.islice(given, _MOST_TLVS) if isinstance(given, list) else ():
        if not isinstance(one, list) or len(one) != 2 or type(one[0]) is not int:
            continue
        text = one[1]
        if isinstance(text, str) and len(text) <= 2 * _LONGEST_VALUE and not set(text) - set(string.hexdigits):
            if len(text) % 2 == 0:
                yield one[0], bytes.fromhex(text)


def parse(tlvs: Iterable[tuple[int, bytes]]) -> Json:
    """Return the facts in TLVs, by name. Of a fact that may be there once the first one counts."""
    found: Json = {}
    for kind, value in tlvs:
        try:
            for name, fact in list(_read(kind, value)):
                if name in _LISTS:
                    found.setdefault(name, []).append(fact)
                else:
                    found.setdefault(name, fact)
        except Malformed:
            continue
    return found


def read_identity(kind: int, value: bytes) -> tuple[bool, str | None]:
    """Return a chassis id or port id, and whether it is a MAC address; None where it cannot be read.

    :param kind: ``CHASSIS_ID`` or ``PORT_ID``.
    """
    texts, address, mac = (
        (_TEXTS_OF_CHASSIS, _ADDRESS_OF_CHASSIS, _CHASSIS_MAC)
        if kind == CHASSIS_ID
        else (_TEXTS_OF_PORT, _ADDRESS_OF_PORT, _PORT_MAC)
    )
    try:
        if not value:
            return False, None
        if value[0] in texts:
            return False, read_text(value[1:])
        if value[0] == mac:
            return True, _read_mac(value[1:])
        return False, _read_address(value[1:]) if value[0] == address else None
    except Malformed:
        return False, None


def read_text(value: bytes) -> str:
    """Return a text without control characters, such as the NUL at the end that some switches send.

    :raises Malformed: it is not UTF-8, or empty.
    """
    try:
        text = "".join(char for char in value.decode() if char.isprintable() or char in "\t\r\n")
    except UnicodeDecodeError as exc:
        raise Malformed from exc
    if not text:
        raise Malformed
    return text


def _read_mac(value: bytes) -> str:
    if len(value) != 6:
        raise Malformed
    return value.hex(":")


def _read_address(value: bytes) -> str | None:
    """Return an address that begins with its family, by the numbers of IANA; None for other families."""
    family, rest = value[:1], value[1:]
    try:
        if family == b"\1":
            return str(ipaddress.IPv4Address(rest))
        if family == b"\2":
            return str(ipaddress.IPv6Address(rest))
    except ValueError as exc:
        raise Malformed from exc
    return _read_mac(rest) if family == b"\6" else None


def _unpack(form: str, value: bytes, exact: bool = True) -> tuple[int, ...]:
    size = struct.calcsize(form)
    if len(value) < size or (exact and len(value) != size):
        raise Malformed
    return struct.unpack_from(form, value)


def _read(kind: int, value: bytes) -> Iterator[Fact]:
    if kind == _ORGANIZATION and len(value) >= 4:
        reader = _OF_ORGANIZATIONS.get((value[:3], value[3]))
        return reader(value[4:]) if reader else iter(())
    reader = _BASIC.get(kind)
    return reader(value) if reader else iter(())


def _build_text_reader(name: str) -> Reader:
    def read(value: bytes) -> Iterator[Fact]:
        yield name, read_text(value)

    return read


def _build_number_reader(name: str) -> Reader:
    def read(value: bytes) -> Iterator[Fact]:
        yield name, _unpack(">H", value, exact=False)[0]

    return read


def _build_identity_reader(kind: int, name: str) -> Reader:
    def read(value: bytes) -> Iterator[Fact]:
        _is_mac, identity = read_identity(kind, value)
        if identity is not None:
            yield name, identity

    return read


def _read_capabilities(value: bytes) -> Iterator[Fact]:
    for name, bits in zip(("support", "enabled"), _unpack(">HH", value), strict=True):
        listed = [what for bit, what in enumerate(_CAPABILITIES) if what and bits >> bit & 1]
        yield f"switch_capabilities_{name}", listed


def _read_management_address(value: bytes) -> Iterator[Fact]:
    length = _unpack(">B", value, exact=False)[0]
    if len(value) <= length:
        raise Malformed
    address = _read_address(value[1 : 1 + length])
    if address is not None:
        yield "switch_mgmt_addresses", address


def _read_protocol_vlan(value: bytes) -> Iterator[Fact]:
    flags, vlan = _unpack(">BH", value)
    yield "switch_port_protocol_vlan_support", bool(flags & 2)
    yield "switch_port_protocol_vlan_enabled", bool(flags & 4)
    yield "switch_port_protocol_vlan_ids", vlan


def _read_vlan(value: bytes) -> Iterator[Fact]:
    vlan, length = _unpack(">HB", value, exact=False)
    name = value[3 : 3 + length]
    if len(name) != length:
        raise Malformed
    yield "switch_port_vlans", {"name": read_text(name) if name else "", "id": vlan}


def _read_protocol(value: bytes) -> Iterator[Fact]:
    length = _unpack(">B", value, exact=False)[0]
    if len(value) <= length:
        raise Malformed
    yield "switch_protocol_identities", value[1 : 1 + length].hex()


def _read_aggregation(value: bytes) -> Iterator[Fact]:
    status, port = _unpack(">BI", value)
    yield "switch_port_link_aggregation_support", bool(status & 1)
    yield "switch_port_link_aggregation_enabled", bool(status & 2)
    yield "switch_port_link_aggregation_id", port


def _read_physical(value: bytes) -> Iterator[Fact]:
    status, modes, kind = _unpack(">BHH", value)
    yield "switch_port_autonegotiation_support", bool(status & 1)
    yield "switch_port_autonegotiation_enabled", bool(status & 2)
    listed = [name for bit, name in enumerate(mau.MODES) if name and modes >> (15 - bit) & 1]
    yield "switch_port_physical_capabilities", sorted(listed)
    if kind in mau.TYPES:
        yield "switch_port_mau_type", mau.TYPES[kind]


_LISTS = frozenset(
    (
        *("switch_mgmt_addresses", "switch_port_protocol_vlan_ids", "switch_port_vlans"),
        "switch_protocol_identities",
    )
)
"""Facts of which there may be several."""

_BASIC: Mapping[int, Reader] = {
    CHASSIS_ID: _build_identity_reader(CHASSIS_ID, "switch_chassis_id"),
    PORT_ID: _build_identity_reader(PORT_ID, "switch_port_id"),
    4: _build_text_reader("switch_port_description"),
    SYSTEM_NAME: _build_text_reader("switch_system_name"),
    6: _build_text_reader("switch_system_description"),
    7: _read_capabilities,
    8: _read_management_address,
}

_OF_ORGANIZATIONS: Mapping[tuple[bytes, int], Reader] = {
    (_IEEE_802_1, 1): _build_number_reader("switch_port_untagged_vlan_id"),
    (_IEEE_802_1, 2): _read_protocol_vlan,
    (_IEEE_802_1, 3): _read_vlan,
    (_IEEE_802_1, 4): _read_protocol,
    (_IEEE_802_1, 6): _build_number_reader("switch_port_management_vlan_id"),
    (_IEEE_802_1, 7): _read_aggregation,
    (_IEEE_802_3, 1): _read_physical,
    (_IEEE_802_3, 3): _read_aggregation,
    (_IEEE_802_3, 4): _build_number_reader("switch_port_mtu"),
}
"""By organization and subtype."""
