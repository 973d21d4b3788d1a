"""The BMC of a QEMU machine as the machine itself sees it, with a LAN channel, which the one in QEMU has not.

QEMU's device ``ipmi-bmc-extern`` hands over each message that the machine's KCS interface gets. A message is a sequence
number, function and LUN, command, data and a checksum; a byte ends it, and such bytes inside are escaped.
"""

import ipaddress
import pathlib
import socketserver
import threading
from collections.abc import Callable

import fixtures

_END, _END_OF_COMMAND, _ESCAPE = 0xA0, 0xA1, 0xAA
_ESCAPED = 0x10
"""The bit that makes another byte of one that would end a message."""

_CHANNEL = 1
_OK, _INVALID_COMMAND, _NO_SUCH_PARAMETER, _NO_SUCH_CHANNEL = 0x00, 0xC1, 0x80, 0xCC
_REVISION = 0x11


class InnerBMC(fixtures.Fixture):
    """A BMC that knows its address.

    :ivar path: of the socket to which QEMU connects.
    """

    def __init__(self, directory: pathlib.Path, address: str, mac: str) -> None:
        super().__init__()
        self.path = directory / "bmc.sock"
        self._parameters = {
            0: b"\0",  # nothing is being set
            3: ipaddress.IPv4Address(address).packed,
            4: b"\1",  # a static address
            5: bytes.fromhex(mac.replace(":", "")),
            6: b"\xff\xff\xff\0",
        }

    def _setUp(self) -> None:
        bmc = self

        class Connection(socketserver.BaseRequestHandler):
            def handle(self) -> None:
                bmc.serve(self.request.recv, self.request.sendall)

        server = socketserver.ThreadingUnixStreamServer(str(self.path), Connection)
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)

    def serve(self, receive: Callable[[int], bytes], send: Callable[[bytes], object]) -> None:
        """Answer what comes until the machine is off."""
        message, escaped = bytearray(), False
        while part := receive(4096):
            for byte in part:
                if byte == _ESCAPE:
                    escaped = True
                elif byte in (_END, _END_OF_COMMAND):
                    if byte == _END:
                        send(self._answer(bytes(message)))
                    message.clear()
                else:
                    message.append(byte & ~_ESCAPED if escaped else byte)
                    escaped = False

    def _answer(self, message: bytes) -> bytes:
        sequence, function, command, data = message[0], message[1], message[2], message[3:-1]
        reply = bytes([sequence, function | 0x04, command]) + self._run(function >> 2, command, data)
        reply += bytes([-sum(reply) & 0xFF])
        special = (_END, _END_OF_COMMAND, _ESCAPE)
        escaped = (bytes([_ESCAPE, byte | _ESCAPED]) if byte in special else bytes([byte]) for byte in reply)
        return b"".join(escaped) + bytes([_END])

    def _run(self, function: int, command: int, data: bytes) -> bytes:
        """Return the completion code of a command with what it answers."""
        match function, command:
            case 0x06, 0x01:  # Get Device ID: firmware 1.0, IPMI 2.0
                return bytes([_OK, 0x20, 0x01, 0x01, 0x00, 0x02, 0x80]) + bytes(8)
            case 0x06, 0x2E | 0x30:  # Set Global Enables, Clear Message Flags
                return bytes([_OK])
            case 0x06, 0x2F | 0x31:  # Get Global Enables, Get Message Flags
                return bytes([_OK, 0x00])
            case 0x06, 0x42:  # Get Channel Info: a LAN, with sessions
                known = data and data[0] & 0x0F == _CHANNEL
                return bytes([_OK, _CHANNEL, 0x04, 0x01, 0x80]) + bytes(5) if known else bytes([_NO_SUCH_CHANNEL])
            case 0x0C, 0x02:  # Get LAN Configuration Parameters
                value = self._parameters.get(data[1]) if len(data) > 1 and data[0] & 0x0F == _CHANNEL else None
                return bytes([_OK, _REVISION]) + value if value else bytes([_NO_SUCH_PARAMETER])
        return bytes([_INVALID_COMMAND])
