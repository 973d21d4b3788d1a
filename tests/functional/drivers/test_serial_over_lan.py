"""Serial consoles over IPMI: our stream and ipmitool's against the rack's BMCs, with losses, break and take-over."""

import asyncio
import contextlib
import os
import pty
import select
import signal
import subprocess
import time
import tty
from collections.abc import Awaitable, Iterator
from typing import Any, ClassVar, TypeVar

from ingot.common import errors
from ingot.drivers.interfaces import bmc_loop, serial_stream
from ingot.drivers.ipmi import base, serial_over_lan
from tests import patience
from tests.functional.drivers.base import DriverRackTest
from tests.functional.drivers.test_ipmi import LossyRelay

Answer = TypeVar("Answer")

LIMIT = patience.seconds(30)


def ask(call: Awaitable[Answer], limit: float = LIMIT) -> Answer:
    """Return what a coroutine of a stream returns."""

    async def wait() -> Answer:
        return await call

    return bmc_loop.submit(asyncio.wait_for(wait(), limit)).result()


def read_until(stream: serial_stream.SerialStream, text: bytes) -> bytes:
    """Return what is said until ``text`` was."""
    said, deadline = b"", time.monotonic() + LIMIT
    while text not in said:
        said += ask(stream.read(), max(0.1, deadline - time.monotonic()))
    return said


class SerialOverLanTest(DriverRackTest):
    settings: ClassVar[dict[str, Any]] = {"machines": 1}
    options: ClassVar[dict[str, Any]] = {"ipmi__serial_reconnect_timeout": 20}

    def make(self, port: int = 0, take_over: bool = False) -> serial_over_lan.SerialOverLan:
        address = base.read_address(self.task.node.driver_info)
        address = address._replace(port=port or address.port)
        stream = serial_over_lan.SerialOverLan(address, self.task.conf, take_over)
        self.addCleanup(lambda: ask(stream.close()))
        return stream

    def open(self, port: int = 0, take_over: bool = False) -> serial_over_lan.SerialOverLan:
        stream = self.make(port, take_over)
        ask(stream.open())
        return stream

    def power_on(self) -> None:
        """Have the machine run something that reads its console."""
        self.rack.control.set_boot_device(self.name, "pxe")
        self.boot_agent()

    @contextlib.contextmanager
    def ipmitool_console(self) -> Iterator[int]:
        """Open the console with ipmitool; yield the terminal that it runs in."""
        ours, theirs = pty.openpty()
        tty.setraw(theirs)  # which ipmitool does only after it has said that the session works
        port = str(self.rack.machines[0]["bmc_port"])
        command = ["ipmitool", "-I", "lanplus", "-H", "127.0.0.1", "-p", port, "-U", "admin", "-P", "password"]
        with subprocess.Popen([*command, "sol", "activate"], stdin=theirs, stdout=theirs, stderr=theirs) as process:
            os.close(theirs)
            try:
                yield ours
            finally:
                process.send_signal(signal.SIGTERM)
                process.wait(LIMIT)
                os.close(ours)

    def read_terminal(self, terminal: int, text: bytes) -> bytes:
        said, deadline = b"", time.monotonic() + LIMIT
        while text not in said:
            ready, _, _ = select.select([terminal], [], [], max(0.0, deadline - time.monotonic()))
            self.assertTrue(ready, said)
            try:
                said += os.read(terminal, 1000)
            except OSError as exc:  # ipmitool has ended
                raise AssertionError(said) from exc
        return said

    def test_what_is_said_and_what_is_typed_goes_through(self) -> None:
        self.power_on()
        stream = self.open()
        ask(stream.write(b"root\r", 5))
        read_until(stream, f"root\r\n{self.name} login: ".encode())
        long = bytes(range(32, 127)) * 40
        ask(stream.write(long, 5))
        self.assertIn(long, read_until(stream, long))
        ask(stream.send_break(5))
        ask(stream.write(b"!", 5))
        read_until(stream, b"!")
        self.assertIn("break on the serial console", " ".join(self.rack.control.log(self.name)))
        self.rack.control.power(self.name, "reset")
        read_until(stream, b"firmware")

    def test_it_shows_a_whole_boot_and_other_calls_go_on_beside(self) -> None:
        stream = self.open()
        self.power_on()
        read_until(stream, b": agent")
        self.assertEqual("power on", self.task.driver.power.get_power_state(self.task))

    def test_what_is_typed_while_the_machine_is_off_waits(self) -> None:
        stream = self.open()
        ask(stream.write(b"early\r", 5))
        time.sleep(1.5)
        self.assertIsNone(stream.trouble)
        self.rack.control.power(self.name, "on")
        read_until(stream, b"firmware")

    def test_lost_packets_are_sent_again_and_nothing_comes_twice(self) -> None:
        self.power_on()
        port = self.rack.machines[0]["bmc_port"]
        with LossyRelay(port, lambda number, _packet: number > 20 and number % 4 == 0) as relay:
            stream = self.open(relay.port)
            expected = b""
            for number in range(8):
                word = f"<{number}>".encode()
                ask(stream.write(word, 5))
                expected += word
            said = read_until(stream, b"<7>")
            self.assertEqual(expected, said[said.index(b"<0>") :])
            ask(stream.close())

    def test_a_console_that_is_in_use_is_refused_or_taken_over(self) -> None:
        self.power_on()
        with self.ipmitool_console() as terminal:
            self.read_terminal(terminal, b"SOL Session operational")
            os.write(terminal, b"hello\r")
            self.read_terminal(terminal, f"hello\r\n{self.name} login: ".encode())
            refused = self.assertRaises(serial_stream.StreamTaken, self.open)
            self.assertIn("another client", refused.message)
            stream = self.open(take_over=True)
            ask(stream.write(b"mine\r", 5))
            read_until(stream, f"mine\r\n{self.name} login: ".encode())

    def test_who_loses_it_to_another_client_learns_so(self) -> None:
        self.power_on()
        stream = self.open()
        self.assertEqual(0, self.ipmitool("sol", "deactivate").returncode)
        lost = self.assertRaises(serial_stream.StreamTaken, read_until, stream, b"never")
        self.assertIn("taken it over", lost.message)

    def test_one_process_opens_it_once(self) -> None:
        first = self.open()
        again = self.assertRaises(serial_stream.StreamTaken, self.open)
        self.assertIn("already", again.message)
        ask(first.close())
        self.assertEqual(b"", ask(first.read()))
        self.open()

    def test_a_lost_connection_is_opened_again(self) -> None:
        self.power_on()
        stream = self.open()
        self.rack.control.order_fault(self.name, "bmc_silent")
        ask(stream.write(b"x", 5))
        deadline = time.monotonic() + LIMIT
        while stream.trouble is None and time.monotonic() < deadline:
            time.sleep(0.1)
        self.assertIn("did not answer", str(stream.trouble))
        self.rack.control.clear_faults(self.name)
        ask(stream.write(b"after", 5))
        read_until(stream, b"after")
        self.assertIsNone(stream.trouble)

    def test_one_that_never_answers_ends_in_time(self) -> None:
        self.rack.control.order_fault(self.name, "bmc_silent")
        began = time.monotonic()
        self.assertRaises(errors.HardwareUnreachable, self.open)
        self.assertLess(time.monotonic() - began, LIMIT)

    def test_what_is_not_read_takes_no_more_memory(self) -> None:
        self.power_on()
        stream = self.open()
        stream.hear(b"x" * 300_000)
        self.assertGreater(stream.dropped, 0)
        self.assertLess(len(ask(stream.read())), 300_000)

    def test_ipmitool_sees_that_it_is_in_use_and_when_it_is_not(self) -> None:
        self.power_on()
        stream = self.open()
        self.assertIn("Info: SOL payload already active", self.activate_briefly())
        ask(stream.close())
        with self.ipmitool_console() as terminal:
            self.read_terminal(terminal, b"SOL Session operational")

    def activate_briefly(self) -> str:
        with self.ipmitool_console() as terminal:
            return self.read_terminal(terminal, b"another session").decode()
