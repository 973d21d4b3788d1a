"""A network of a test's own, and DHCP clients on it that say what firmware says."""

import ctypes
import os
import secrets
import socket
import struct
import subprocess
import time
from collections.abc import Mapping
from typing import NamedTuple

import fixtures

from tests import patience

ADDRESS, CARD = "10.78.0.1", "rack"
"""Of the server; the other end of its cable is the clients'."""

_CABLE = "clients"
_CLONE_NEWNET = 0x40000000  # <linux/sched.h>
_LIBC = ctypes.CDLL(None, use_errno=True)

DISCOVER, OFFER, REQUEST, ACK = 1, 2, 3, 5
"""Types of messages (RFC 2132, option 53)."""

_MAGIC = b"\x63\x82\x53\x63"
_COMMANDS = (
    f"link add {CARD} type veth peer name {_CABLE}",
    f"addr add {ADDRESS}/24 dev {CARD}",
    f"link set {CARD} up",
    f"link set {_CABLE} up",
    "link set lo up",
)


class Network(fixtures.Fixture):
    """A network namespace for this thread and what it starts, with a cable between server and clients."""

    def _setUp(self) -> None:
        before = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
        self.addCleanup(os.close, before)
        _check(_LIBC.unshare(_CLONE_NEWNET))
        self.addCleanup(lambda: _check(_LIBC.setns(before, _CLONE_NEWNET)))
        for command in _COMMANDS:
            subprocess.run(["ip", *command.split()], check=True)


def _check(status: int) -> None:
    if status:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


class Reply(NamedTuple):
    """An answer of a DHCP server.

    :param file: what to boot, from the header or option 67.
    """

    kind: int
    address: str
    file: str
    options: Mapping[int, bytes]


class Client:
    """A machine's firmware.

    :param architecture: code of option 93; None: it does not say.
    """

    def __init__(
        self, mac: str, architecture: int | None = None, vendor_class: str = "PXEClient", user_class: str = ""
    ) -> None:
        self._mac = bytes.fromhex(mac.replace(":", ""))
        self._options = {55: bytes((1, 3, 6, 43, 54, 60, 66, 67))}
        if architecture is not None:
            self._options |= {93: struct.pack("!H", architecture), 60: f"{vendor_class}:Arch".encode()}
            self._options |= {94: bytes((1, 3, 16)), 97: bytes(17)}
        if user_class:
            self._options[77] = user_class.encode()

    def ask(self, seconds: float = 20.0) -> Reply | None:
        """Return the server's acknowledgement; None: there was no answer within some seconds."""
        offer = self.send(DISCOVER, seconds)
        if offer is None:
            return None
        chosen = {50: socket.inet_aton(offer.address), 54: offer.options[54]}
        return self.send(REQUEST, seconds, chosen)

    def send(self, kind: int, seconds: float, more: Mapping[int, bytes] | None = None) -> Reply | None:
        """Send a message, again and again as firmware does, until there is an answer."""
        number = secrets.token_bytes(4)
        options = {53: bytes([kind]), **self._options, **(more or {})}
        frame = _wrap(self._mac, _write(self._mac, number, options))
        until = time.monotonic() + patience.seconds(seconds)
        with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x0800)) as card:
            card.bind((_CABLE, 0x0800))
            while time.monotonic() < until:
                card.send(frame)
                if reply := _wait(card, number):
                    return reply
        return None


def send_raw(payload: bytes) -> None:
    """Send any bytes to the port of DHCP servers."""
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x0800)) as card:
        card.bind((_CABLE, 0x0800))
        card.send(_wrap(secrets.token_bytes(6), payload))


def _wait(card: socket.socket, number: bytes) -> Reply | None:
    """Return the answer to a message within a second."""
    until = time.monotonic() + 1.0
    while (left := until - time.monotonic()) > 0:
        card.settimeout(left)
        try:
            frame = card.recv(4096)
        except TimeoutError:
            return None
        payload = frame[42:]
        if frame[23] == socket.IPPROTO_UDP and frame[36:38] == struct.pack("!H", 68) and payload[4:8] == number:
            return _read(payload)
    return None


def _write(mac: bytes, number: bytes, options: Mapping[int, bytes]) -> bytes:
    # BOOTREQUEST of Ethernet, with the flag by which answers come as broadcasts
    header = struct.pack("!4B4s2H16x16s192x", 1, 1, 6, 0, number, 0, 0x8000, mac)
    said = b"".join(bytes((code, len(value))) + value for code, value in options.items())
    return header + _MAGIC + said + b"\xff"


def _wrap(mac: bytes, payload: bytes) -> bytes:
    """Return a frame with a UDP packet from port 68 to port 67, for all on the network."""
    udp = struct.pack("!4H", 68, 67, 8 + len(payload), 0) + payload
    head = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 20 + len(udp), 0, 0, 64, 17, 0, bytes(4), b"\xff" * 4)
    total = sum(struct.unpack("!10H", head))
    checksum = ~((total & 0xFFFF) + (total >> 16)) & 0xFFFF
    return b"\xff" * 6 + mac + b"\x08\x00" + head[:10] + struct.pack("!H", checksum) + head[12:] + udp


def _read(payload: bytes) -> Reply:
    options, place = {}, 240
    while place < len(payload) and payload[place] != 255:
        code = payload[place]
        if code == 0:
            place += 1
            continue
        length = payload[place + 1]
        options[code] = payload[place + 2 : place + 2 + length]
        place += 2 + length
    file = payload[108:236].partition(b"\0")[0] or options.get(67, b"").rstrip(b"\0")
    return Reply(options[53][0], socket.inet_ntoa(payload[16:20]), file.decode(), options)
