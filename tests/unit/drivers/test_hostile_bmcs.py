"""What is no BMC, or behaves like none, is reported in time and holds up no other."""

import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import fixtures
import testtools

from ingot.common import errors
from ingot.drivers.ipmi import boot_flags, management, power, pyghmi_session, session
from tests import patience

STATUS = session.Request(0x00, 0x01)

Reply = Callable[[bytes], Iterator[bytes]]


def ask_for_more(packet: bytes) -> Iterator[bytes]:
    """Answer each request with *invalid data*, upon which clients try the older form, for ever."""
    netfn, sequence, command = packet[15] >> 2, packet[18], packet[19]
    body = bytes([0x81, (netfn + 1) << 2, 0, 0x20, sequence, command, 0xCC, 0])
    yield packet[:13] + struct.pack("B", len(body)) + body


class HostileBMC:
    """Answers each packet with others.

    :param reply: yields those for one.
    """

    def __init__(self, reply: Reply) -> None:
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind(("127.0.0.1", 0))
        self._socket.settimeout(0.05)
        self._reply = reply
        self._ended = threading.Event()
        self.address = session.Address("127.0.0.1", self._socket.getsockname()[1], "admin", "password")
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        while not self._ended.is_set():
            try:
                packet, sender = self._socket.recvfrom(4096)
            except TimeoutError:
                continue
            for answer in self._reply(packet):
                self._socket.sendto(answer, sender)
                if self._ended.is_set():
                    return

    def stop(self) -> None:
        self._ended.set()
        self._thread.join()
        self._socket.close()


def echo(packet: bytes) -> Iterator[bytes]:
    yield packet


def flood(packet: bytes) -> Iterator[bytes]:
    while True:
        yield packet[:20] + bytes(900)


class Terse(pyghmi_session.Session):  # type: ignore[misc]
    """A session with a BMC whose answers are too short."""

    def __init__(self, *_login: object) -> None:
        self.socket = None

    def request(self, *_request: object) -> dict[str, Any]:
        return {"code": 0, "data": bytes(2)}

    def logout(self) -> None:
        pass


class HostileTest(testtools.TestCase):
    def call(self, reply: Reply, timeout: float = 3) -> errors.IngotError:
        bmc = HostileBMC(reply)
        self.addCleanup(bmc.stop)
        error: errors.IngotError = self.assertRaises(errors.HardwareError, session.call, bmc.address, timeout, STATUS)
        self.assertIn(bmc.address.where, error.message)
        return error

    def test_what_cannot_become_better_is_not_tried_again(self) -> None:
        """A step is tried again, after minutes in all, where a BMC is unreachable."""
        for reply in (echo, flood, ask_for_more):
            error = self.call(reply)
            self.assertNotIsInstance(error, errors.HardwareUnreachable, reply)
            self.assertIn("is a BMC there?", error.message)

    def test_a_name_that_is_none_has_no_address(self) -> None:
        for name in ("bmc..example", f"{'b' * 64}.example"):
            address = session.Address(name, 623, "admin", "password")
            error = self.assertRaises(errors.HardwareUnreachable, session.call, address, 3, STATUS)
            self.assertIn("has no address", error.message)

    def test_an_answer_may_be_too_short(self) -> None:
        self.useFixture(fixtures.MonkeyPatch("ingot.drivers.ipmi.session._open", Terse))
        address = session.Address("127.0.0.1", 623, "admin", "password")
        for request in (boot_flags._GET_BOOT_FLAGS, management._STATUS, power._CHASSIS_STATUS):
            error = self.assertRaises(errors.HardwareError, session.call, address, 3, request)
            self.assertIn("BMC 127.0.0.1:623", error.message)
            self.assertIn("2 bytes", error.message)

    def test_it_holds_up_no_other(self) -> None:
        loud, silent = HostileBMC(flood), HostileBMC(lambda _packet: iter(()))
        for bmc in (loud, silent):
            self.addCleanup(bmc.stop)
        calls = [threading.Thread(target=self._try, args=(loud,), daemon=True) for _ in range(3)]
        for call in calls:
            call.start()
        began = time.monotonic()
        self.assertRaises(errors.HardwareUnreachable, session.call, silent.address, 1, STATUS)
        self.assertTrue(time.monotonic() - began < patience.seconds(30))
        for call in calls:
            call.join()

    @staticmethod
    def _try(bmc: HostileBMC) -> None:
        try:
            session.call(bmc.address, 2, STATUS)
        except errors.HardwareError:
            return
