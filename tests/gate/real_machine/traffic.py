"""What a machine has sent through its network card, read from the files that the rack keeps (pcap)."""

import collections
import pathlib
import struct
from collections.abc import Iterator

DHCP = {67, 68, 546, 547}
"""Ports of UDP at which servers and clients of DHCP listen, for IPv4 and IPv6."""

TFTP = 69

_HEADER, _RECORD, _ETHERNET = 24, struct.Struct("<IIII"), 14
_IPV4, _IPV6, _IPV6_HEADER = 0x0800, 0x86DD, 40
_PROTOCOLS = {6: "tcp", 17: "udp"}


def count_sent(directory: pathlib.Path, mac: str) -> collections.Counter[tuple[str, int]]:
    """Return how many packets a network card has sent to each port, in all boots: ``("udp", 53)``.

    :param directory: has the records.
    """
    sender = bytes.fromhex(mac.replace(":", ""))
    packets = (packet for path in directory.glob("traffic-*.pcap") for packet in _read(path))
    found = (_find_target(packet) for packet in packets if packet[6:12] == sender)
    return collections.Counter(target for target in found if target is not None)


def _read(path: pathlib.Path) -> Iterator[bytes]:
    content = path.read_bytes()
    at = _HEADER
    while at + _RECORD.size <= len(content):
        kept = _RECORD.unpack_from(content, at)[2]
        yield content[at + _RECORD.size : at + _RECORD.size + kept]
        at += _RECORD.size + kept


def _find_target(packet: bytes) -> tuple[str, int] | None:
    kind = int.from_bytes(packet[12:14])
    body = packet[_ETHERNET:]
    if kind == _IPV4:
        protocol, start = body[9], (body[0] & 0xF) * 4
    elif kind == _IPV6:
        protocol, start = body[6], _IPV6_HEADER
    else:
        return None
    return (_PROTOCOLS[protocol], int.from_bytes(body[start + 2 : start + 4])) if protocol in _PROTOCOLS else None
