"""One console for many readers: what they learn when the BMC refuses, loses it, or takes its time."""

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine
from typing import Any

import fixtures
import testtools

from ingot.common import console_frames as frames
from ingot.common import errors
from ingot.drivers.interfaces import bmc_loop, console_logs, consoles, serial_stream, shared_console
from tests import conductor_case, patience
from tests.unit.drivers import fakes

LIMIT = patience.seconds(30)
NODE = "node"


class Line(serial_stream.SerialStream):
    """Does what a test has set.

    :ivar fault: what connecting raises, if anything.
    :ivar gate: open when it may connect.
    :ivar is_deaf: whether it goes on with connecting although it is to be closed.
    :ivar made: all of them; begun: those that have begun to connect.
    """

    fault: errors.IngotError | None = None
    gate = True
    is_deaf = False
    made: "list[Line]"
    begun: "list[Line]"

    def __init__(self, take_over: bool) -> None:
        super().__init__("BMC", patience=5)
        self.take_over = take_over
        self.made.append(self)

    async def attend(self) -> None:
        self.begun.append(self)
        while type(self).is_deaf:
            await asyncio.sleep(0.01)
        while not type(self).gate and not self.is_closing:
            await asyncio.sleep(0.01)
        if self.is_closing:
            return
        fault = type(self).fault
        if fault is not None:
            raise fault
        self.note_connection()
        while not self.is_closing and type(self).fault is None:
            while (typed := self.take_typed(100)) is not None:
                self.hear(typed or b"<break>")
            await asyncio.sleep(0.01)
        if type(self).fault is not None:
            raise type(self).fault or errors.HardwareError("never")


class Reader(shared_console.Reader):
    def __init__(self, user: str = "ada", types: bool = False) -> None:
        super().__init__(user, types)
        self.said = b""
        self.statuses: list[frames.Status] = []
        self.ends: list[tuple[int, str]] = []

    def hear(self, said: bytes) -> None:
        self.said += said

    def tell(self, status: frames.Status) -> None:
        self.statuses.append(status)

    def end(self, code: frames.End, reason: str) -> None:
        self.ends.append((code, reason))

    @property
    def states(self) -> list[str]:
        """The states that it has learned, each once in a row."""
        states = [status["state"] for status in self.statuses]
        return [state for at, state in enumerate(states) if states[at - 1 : at] != [state]]


class SharedConsoleTest(testtools.TestCase):
    def setUp(self) -> None:
        super().setUp()
        self.line = type("Line", (Line,), {"made": [], "begun": []})
        self.consoles = consoles.Consoles(fakes.configuration(console__linger_time=0))
        self.addCleanup(self.consoles.stop_all, "the test ends")

    def run_there(self, work: Callable[[], Any]) -> Any:
        async def run() -> Any:
            found = work()
            return await found if isinstance(found, Coroutine) else found

        return bmc_loop.submit(run()).result(LIMIT)

    def attend(self, reader: Reader, take_over: bool = False) -> shared_console.SharedConsole:
        found: shared_console.SharedConsole = self.run_there(
            lambda: self.consoles.attend(NODE, self.line, reader, take_over)
        )
        return found

    def wait(self, check: Callable[[], Any], what: str) -> None:
        conductor_case.eventually(check, what)

    def test_what_is_typed_before_it_is_open_waits(self) -> None:
        self.line.gate = False
        reader = Reader(types=True)
        console = self.attend(reader)
        self.run_there(lambda: console.type(reader, b"early"))
        self.assertEqual(["connecting"], reader.states)
        self.line.gate = True
        self.wait(lambda: reader.said == b"early", "it is typed")
        self.assertEqual(["connecting", "open"], reader.states)

    def test_one_that_another_client_has_is_only_taken_by_request(self) -> None:
        self.line.fault = serial_stream.StreamTaken(what="BMC", reason="another client has it")
        self.assertRaises(errors.ConsoleTaken, self.consoles.start, NODE, self.line)
        reader = Reader()
        self.attend(reader)
        self.wait(lambda: reader.ends, "it ends")
        self.assertEqual(frames.End.TAKEN, reader.ends[0][0])
        self.assertEqual("taken", reader.states[-1])
        self.line.fault = None
        second = Reader(types=True)
        self.attend(second, take_over=True)
        self.wait(lambda: second.states[-1:] == ["open"], "it is open")
        self.assertEqual([False, False, True], [line.take_over for line in self.line.made])

    def test_one_that_is_lost_for_a_moment_stays(self) -> None:
        reader = Reader()
        self.attend(reader)
        self.wait(lambda: reader.states == ["connecting", "open"], "it is open")
        self.line.fault = errors.HardwareUnreachable(what="BMC", reason="no answer")
        self.wait(lambda: reader.states[-1] == "lost", "it is lost")
        self.assertIn("no answer", str(reader.statuses[-1]["reason"]))
        self.line.fault = None
        self.wait(lambda: reader.states[-1] == "open", "it is open again")
        self.assertEqual(([], 1), (reader.ends, len(self.line.made)))

    def test_one_that_is_kept_is_tried_again_not_too_soon(self) -> None:
        self.line.fault = errors.HardwareError(what="BMC", reason="no")
        self.consoles.keep(NODE, self.line)
        self.wait(lambda: not self.consoles.is_running(NODE), "it has failed")
        self.line.fault = None
        self.consoles.keep(NODE, self.line)
        self.assertFalse(self.consoles.is_running(NODE))
        reader = Reader()
        self.attend(reader)  # a user does not wait for that
        self.wait(lambda: reader.states[-1:] == ["open"], "it is open")
        self.assertEqual((1, 2), (self.consoles.count()[0]["open"], len(self.line.made)))

    def test_a_reader_that_comes_while_it_is_closed_gets_a_new_one(self) -> None:
        first = Reader()
        console = self.attend(first)
        self.wait(lambda: first.states[-1:] == ["open"], "it is open")
        second = Reader(types=True)

        async def close_and_attend() -> None:
            closing = asyncio.ensure_future(console.close(frames.End.RELEASED, "switched off"))
            await asyncio.sleep(0)
            again = self.consoles.attend(NODE, self.line, second, take_over=False)
            await again.type(second, b"hello")
            await closing

        self.run_there(close_and_attend)
        self.wait(lambda: second.said == b"hello", "the second one is served")
        self.assertEqual([frames.End.RELEASED], [code for code, _reason in first.ends])
        self.assertEqual([], second.ends)
        self.assertTrue(self.consoles.is_running(NODE))

    def test_the_last_reader_closes_it_unless_it_is_enabled(self) -> None:
        reader = Reader()
        console = self.attend(reader)
        self.run_there(lambda: console.leave(reader))
        self.wait(lambda: not self.consoles.list_nodes(), "it is closed")
        self.consoles.start(NODE, self.line)
        console = self.attend(reader)
        self.run_there(lambda: console.leave(reader))
        time.sleep(0.2)
        self.assertEqual([NODE], self.consoles.list_nodes())
        self.consoles.release(NODE)
        self.wait(lambda: not self.consoles.list_nodes(), "it is closed")

    def test_what_was_said_before_a_boot_is_forgotten(self) -> None:
        reader = Reader(types=True)
        console = self.attend(reader)
        self.run_there(lambda: console.type(reader, b"before"))
        self.wait(lambda: self.consoles.read(NODE) == b"before", "it is kept")
        self.consoles.note_boot(NODE)
        self.assertEqual(b"", self.consoles.read(NODE))
        self.assertIsNone(self.consoles.read("other"))
        self.consoles.note_boot("other")

    def test_one_that_waits_for_its_turn_is_closed_at_once(self) -> None:
        self.consoles._options.turns = asyncio.Semaphore(1)
        self.line.is_deaf = True
        reader = Reader()
        self.consoles.keep("other", self.line)
        self.attend(reader)
        began = time.monotonic()
        self.consoles.stop(NODE, "switched off")
        self.assertLess(time.monotonic() - began, 4)  # connecting is given up after 5 s
        self.assertEqual([(frames.End.RELEASED, "switched off")], reader.ends)
        self.assertEqual(["other"], self.consoles.list_nodes())
        self.line.is_deaf = False
        again = Reader()
        self.attend(again)
        self.wait(lambda: again.states[-1:] == ["open"], "its turn comes again")

    def test_all_are_closed_at_once(self) -> None:
        ended: list[Line] = []

        async def attend(line: Line) -> None:
            """Give way only when all others are to be closed, too."""
            line.begun.append(line)
            while not all(other.is_closing for other in line.made):
                await asyncio.sleep(0.01)
            ended.append(line)

        self.useFixture(fixtures.MonkeyPatch("ingot.drivers.interfaces.serial_stream._FAREWELL", patience.seconds(5)))
        self.line.attend = attend
        for number in range(3):
            self.consoles.keep(f"node-{number}", self.line)
        self.wait(lambda: len(self.line.begun) == 3, "they are being opened")
        self.consoles.stop_all("the process ends")
        self.assertCountEqual(self.line.made, ended)
        self.assertEqual([], self.consoles.list_nodes())

    def test_one_that_does_not_end_keeps_no_one_waiting(self) -> None:
        log = self.useFixture(fixtures.FakeLogger(level=logging.WARNING))
        self.useFixture(fixtures.MonkeyPatch("ingot.drivers.interfaces.consoles._DONE_WITHIN_S", 0.1))
        self.line.is_deaf = True
        self.consoles.keep(NODE, self.line)
        self.wait(lambda: self.line.begun, "it is being opened")
        self.consoles.stop(NODE, "switched off")
        self.assertIn("Closing serial consoles has not ended within 0 s", log.output)
        self.wait(lambda: not self.consoles.list_nodes(), "it is given up")

    def test_a_failure_while_one_is_closed_spares_the_others(self) -> None:
        log = self.useFixture(fixtures.FakeLogger(level=logging.ERROR))
        reader = Reader()
        self.useFixture(fixtures.MonkeyPatch(f"{__name__}.Reader.end", lambda *_: {}["odd"]))
        self.attend(reader)
        self.consoles.keep("other", self.line)
        self.consoles.stop_all("the process ends")
        self.assertEqual([NODE], self.consoles.list_nodes())
        self.assertIn("Node node: closing serial consoles failed unexpectedly", log.output)
        self.run_there(lambda: self.consoles._consoles[NODE].leave(reader))

    def test_one_that_is_closed_while_it_connects_never_was_open(self) -> None:
        self.line.gate = False
        opening = self.run_there(lambda: self.consoles.attend(NODE, self.line, Reader(), take_over=False)._opened)
        self.consoles.stop(NODE, "switched off")
        self.assertIn("it was closed meanwhile", str(opening.exception()))

    def test_who_opens_one_does_not_wait_for_ever(self) -> None:
        self.useFixture(fixtures.MonkeyPatch("ingot.drivers.interfaces.shared_console._OPENED_WITHIN_S", 0.2))
        self.line.gate = False
        late = self.assertRaises(errors.HardwareUnreachable, self.consoles.start, NODE, self.line)
        self.assertIn("it is not open after 0 s", late.message)
        self.wait(lambda: not self.consoles.list_nodes(), "it is given up, as no one reads it")

    def test_who_comes_at_the_end_of_the_time_stays(self) -> None:
        first, second = Reader(), Reader()
        console = self.attend(first)
        self.wait(lambda: first.states[-1:] == ["open"], "it is open")

        async def expire_and_attend() -> None:
            console.leave(first)
            console._expire()
            self.consoles.attend(NODE, self.line, second, take_over=False)
            await asyncio.sleep(0.1)

        self.run_there(expire_and_attend)
        self.assertEqual(([], [NODE]), (second.ends, self.consoles.list_nodes()))
        self.run_there(lambda: console.leave(second))
        self.wait(lambda: not self.consoles.list_nodes(), "it is closed after that one, too")

    def test_one_that_has_failed_is_due_after_a_pause(self) -> None:
        self.useFixture(
            fixtures.MonkeyPatch("ingot.drivers.interfaces.shared_console._FIRST_PAUSE_S", patience.seconds(2))
        )
        self.assertTrue(self.consoles.is_ready_to_open(NODE))
        self.line.fault = errors.HardwareError(what="BMC", reason="no")
        self.consoles.keep(NODE, self.line)

        def has_failed() -> bool:  # it has not at once begun
            return not self.consoles.is_running(NODE) and not self.consoles.is_ready_to_open(NODE)

        self.wait(has_failed, "it has failed, and pauses")
        self.wait(lambda: self.consoles.is_ready_to_open(NODE), "the pause is over")

    def test_a_failure_that_is_a_bug_ends_it_with_a_message(self) -> None:
        self.line.fault = ValueError("odd")
        refused = self.assertRaises(errors.StepFailed, self.consoles.start, NODE, self.line)
        self.assertIn("odd", refused.message)


class LogsTest(testtools.TestCase):
    def test_a_disk_that_is_away_costs_what_it_would_have_taken(self) -> None:
        logs = console_logs.ConsoleLogs("/dev/null/none")
        logs.add(NODE, b"hello")
        logs.add(NODE, b"x" * 2**23)  # more than may wait
        conductor_case.eventually(lambda: not logs._is_busy, "it is given up")

    def test_without_a_directory_nothing_is_kept(self) -> None:
        logs = console_logs.ConsoleLogs(None)
        logs.add(NODE, b"hello")
        self.assertFalse(logs._is_busy)
