"""Serial consoles of machines of the rack, over IPMI, as a client of websockets reads them and types on them."""

import contextlib
import os
import pathlib
import pty
import select
import signal
import subprocess
import time
import tty
from collections.abc import Iterator
from typing import Any

import fixtures
import requests
import testtools

from ingot.common.console_frames import End
from tests import console_client, patience
from tests.console_client import Terminal
from tests.functional import services
from tests.functional.deployment import lab

LIMIT = patience.seconds(30)
MACHINE = "machine-0"
SOL = {"console_interface": "ipmitool-sol"}


class ConsoleCase(testtools.TestCase):
    def make_lab(self, **settings: Any) -> lab.Lab:
        self.bench = self.useFixture(lab.Lab(**settings))
        self.node = self.bench.enroll(**SOL)
        return self.bench

    def attend(self, query: str = "", node: str = "", **given: Any) -> contextlib.AbstractContextManager[Terminal]:
        return console_client.attend(self.bench.url, node or self.node, query, **given)

    def refuse(self, query: str = "") -> str:
        """Return why the console is not opened: another has it."""
        status, text = console_client.refuse(self.bench.url, self.node, query)
        self.assertEqual(409, status, text)
        return text

    def deploy(self) -> None:
        """Have the machine run a system, which asks for a login on its console."""
        self.bench.make_available(self.node)
        self.bench.set_image(self.node)
        self.bench.user.provision(self.node, "active")
        self.bench.reach(self.node, "active")
        self.bench.rack.control.wait_for_state(MACHINE, "os")

    def enable(self, enabled: bool = True) -> None:
        self.bench.user.put(f"/v1/nodes/{self.node}/states/console", {"enabled": enabled})

    def ask_for_log(self) -> requests.Response:
        return requests.get(f"{self.bench.url}/ingot/v1/nodes/{self.node}/console/log", timeout=LIMIT)

    def read_log(self) -> str:
        answer = self.ask_for_log()
        self.assertEqual(200, answer.status_code, answer.text)
        return answer.text


class Consoles(ConsoleCase):
    def test_what_is_typed_and_said_goes_through_to_all_readers_and_into_a_file(self) -> None:
        logs = pathlib.Path(self.useFixture(fixtures.TempDir()).path) / "consoles"
        bench = self.make_lab(options={"console": {"log_directory": logs}})
        self.deploy()
        with self.attend("mode=write") as writer, self.attend() as reader:
            writer.wait_for(state="open", mode="write")
            bench.rack.control.power(MACHINE, "reset")
            for terminal in (writer, reader):
                terminal.read_until("firmware")
                terminal.read_until(": os")
            writer.type("root\r")
            for terminal in (writer, reader):
                terminal.read_until(f"root\r\n{MACHINE} login: ")
            writer.connection.send('{"type": "break"}')
            bench.eventually(
                lambda: "break on the serial console" in " ".join(bench.rack.control.log(MACHINE)), "the break arrives"
            )
            reader.type("not mine\r")
            reader.wait_for("types here", mode="read", state="open")
            with self.attend() as late:
                self.assertIn(b"firmware", late.read_until(f"root\r\n{MACHINE} login: "))
            self.assertIn("root\r\n", self.read_log())
            self.assertNotIn("not mine", self.read_log())
        written = logs / f"{self.node}.log"
        bench.eventually(lambda: b"root\r\n" in written.read_bytes(), "it is in the file")
        self.assertEqual(0o640, written.stat().st_mode & 0o777)

    def test_one_types_and_takes_over_from_another_only_if_it_says_so(self) -> None:
        self.make_lab()
        self.deploy()
        with self.attend("mode=write") as first:
            first.wait_for(state="open", mode="write")
            self.assertIn("take_over=true", self.refuse("mode=write"))
            with self.attend("mode=write&take_over=true") as second:
                lost = first.wait_for(mode="read", state="open")
                self.assertIn("types now instead of", lost["reason"])
                second.type("second\r")
                first.read_until("second\r\n")
            first.wait_for(writer=None, readers=1)

    def test_another_client_of_the_bmc_is_not_disturbed_unless_that_is_requested(self) -> None:
        bench = self.make_lab()
        self.deploy()
        port = str(bench.rack.machines[0]["bmc_port"])
        ipmitool = ["ipmitool", "-I", "lanplus", "-H", "127.0.0.1", "-p", port, "-U", "admin", "-P", "password", "sol"]
        with self.ipmitool_console([*ipmitool, "activate"]):
            with self.attend() as refused:
                self.assertIn("another client", refused.wait_for(state="taken")["reason"])
                self.assertEqual(End.TAKEN, refused.read_end()[0])
            with self.attend("mode=write&take_over=true") as terminal:
                terminal.wait_for(state="open")
                terminal.type("mine\r")
                terminal.read_until("mine\r\n")
                subprocess.run([*ipmitool, "deactivate"], check=True, timeout=LIMIT, capture_output=True)
                terminal.wait_for(state="taken")
                self.assertEqual(End.TAKEN, terminal.read_end()[0])

    @contextlib.contextmanager
    def ipmitool_console(self, command: list[str]) -> Iterator[None]:
        """Open the console with ipmitool, in a terminal."""
        ours, theirs = pty.openpty()
        tty.setraw(theirs)
        with subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs) as process:
            os.close(theirs)
            try:
                said, deadline = b"", time.monotonic() + LIMIT
                while b"SOL Session operational" not in said:
                    ready, _, _ = select.select([ours], [], [], max(0.0, deadline - time.monotonic()))
                    self.assertTrue(ready, said)
                    said += os.read(ours, 1000)
                yield
            finally:
                process.send_signal(signal.SIGTERM)
                process.wait(LIMIT)
                os.close(ours)

    def test_a_bmc_that_is_lost_and_comes_back_costs_no_reader(self) -> None:
        bench = self.make_lab(options={"ipmi": {"command_retry_timeout": 3}})
        self.deploy()
        with self.attend("mode=write") as terminal:
            terminal.wait_for(state="open")
            bench.rack.control.order_fault(MACHINE, "bmc_silent")
            terminal.type("x")
            self.assertIn("did not answer", terminal.wait_for(state="lost")["reason"])
            bench.rack.control.clear_faults(MACHINE)
            terminal.wait_for(state="open")
            terminal.type("after\r")
            terminal.read_until("after\r\n")

    def test_many_cost_the_api_no_thread(self) -> None:
        bench = self.make_lab(machines=2, options={"api": {"api_threads": 4}})
        other = bench.enroll(1, **SOL)
        tasks = pathlib.Path(f"/proc/{bench.process.pid}/task")
        with self.attend() as first:
            first.wait_for(state="open")
            before = len(list(tasks.iterdir()))
            with contextlib.ExitStack() as stack:
                many = [stack.enter_context(self.attend(node=(self.node, other)[n % 2])) for n in range(50)]
                for terminal in many:
                    terminal.wait_for(state="open")
                self.assertLess(len(list(tasks.iterdir())), before + 5)
                self.assertEqual(200, requests.get(f"{bench.url}/v1/nodes", timeout=LIMIT).status_code)

    def test_an_enabled_one_is_open_and_kept_until_the_instance_goes(self) -> None:
        bench = self.make_lab()
        self.enable()
        shown = bench.user.get(f"/v1/nodes/{self.node}/states/console")
        where = f"{bench.url.replace('http', 'ws')}/ingot/v1/nodes/{self.node}/console"
        self.assertEqual({"type": "websocket", "url": where}, shown["console_info"])
        self.deploy()
        bench.eventually(lambda: "firmware" in self.read_log(), "it was read without a reader")
        self.assertLess(self.read_log().count("firmware"), 3)  # what was said before the last boot is forgotten
        with self.attend() as tenant:
            tenant.wait_for(state="open")
            bench.user.provision(self.node, "deleted")
            code, _reason = tenant.read_end()
            self.assertEqual(End.RELEASED, code)
        bench.reach(self.node, "available")
        bench.eventually(lambda: self.ask_for_log().status_code == 200, "it is open again")
        self.enable(False)
        gone = self.ask_for_log()
        self.assertEqual(404, gone.status_code)
        self.assertIn("Enable it", gone.text)


class Clusters(ConsoleCase):
    def test_readers_come_back_to_a_conductor_that_was_killed(self) -> None:
        self.make_lab(rabbit_url=services.broker_url(), database_url=None)
        self.deploy()
        self.enable()
        (conductor,) = self.bench.conductors.values()
        with self.attend("mode=write") as terminal:
            terminal.wait_for(state="open")
            conductor.stop(signal.SIGKILL)
            code, reason = terminal.read_end()
            self.assertEqual((End.STOPS, True), (code, "come back" in reason))
        conductor.start()
        self.bench.wait_until_served()
        with self.attend() as reader:  # the BMC still has the session of before
            self.assertEqual(End.TAKEN, reader.read_end()[0])
        with self.attend("mode=write&take_over=true") as terminal:
            terminal.wait_for(state="open")
            terminal.type("again\r")
            terminal.read_until("again\r\n")
            conductor.stop()
            self.assertEqual(End.STOPS, terminal.read_end()[0])
        conductor.start()
        self.bench.wait_until_served()
        self.bench.eventually(lambda: self.ask_for_log().status_code == 200, "it is open again")
        with self.attend() as reader:
            reader.wait_for(state="open")
