"""The command: its errors, its one line, its end."""

import contextlib
import io
import socket
import tempfile
from pathlib import Path

import testtools

from ingot.rack import ports
from ingot.rack.config import RackConfig
from ingot.rack.main import main
from ingot.rack.process import RackError, RackProcess
from ingot.rack.rack import Rack


class RackTest(testtools.TestCase):
    def test_a_rack_can_be_started_again_in_one_process(self) -> None:
        with tempfile.TemporaryDirectory() as directory:
            for _ in range(2):
                config = RackConfig(machines=2, state_dir=Path(directory), bmc_base_port=0, control_port=0)
                rack = Rack(config)
                rack.start()
                given = {machine["bmc_port"] for machine in rack.describe()["machines"]}
                rack.stop()
                self.assertEqual(2, len(given - {0}))


class MainTest(testtools.TestCase):
    def setUp(self) -> None:
        super().setUp()
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.state = Path(directory.name)

    def test_bad_settings_are_one_line_on_stderr(self) -> None:
        errors = io.StringIO()
        with contextlib.redirect_stderr(errors):
            status = main(["--machines", "0", "--state-dir", str(self.state)])
        self.assertEqual(1, status)
        self.assertEqual("ingot-rack: machines: 0 is not between 1 and 4000\n", errors.getvalue())

    def test_it_says_what_to_enroll_and_no_password(self) -> None:
        port = ports.udp(1)
        with RackProcess(self.state, machines=1, bmc_base_port=port, password="hunter2") as rack:
            (machine,) = rack.machines
            self.assertEqual(("127.0.0.1", port), (machine["bmc_address"], machine["bmc_port"]))
            self.assertNotIn("hunter2", str(rack.description))
            self.assertEqual("off", rack.control.machine(machine["name"])["power"])
            self.assertEqual(0, rack.stop())

    def test_it_does_not_wait_for_a_server_that_does_not_answer(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as silent:
            url = f"http://127.0.0.1:{silent.getsockname()[1]}/{{mac}}"
            with RackProcess(self.state, machines=1, bmc_base_port=0, boot_delay=0.0, boot_url=url) as rack:
                rack.control.power("machine-0", "on")
                rack.control.wait_for_state("machine-0", "network boot")
                connection, _ = silent.accept()
                with connection:
                    self.assertEqual(0, rack.stop(), "it had to be killed")

    def test_a_taken_port_is_named(self) -> None:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taken:
            taken.bind(("127.0.0.1", 0))
            port = taken.getsockname()[1]
            rack = RackProcess(self.state, machines=1, bmc_base_port=port)
            self.assertRaisesRegex(RackError, f"machine-0, 127.0.0.1 UDP port {port}", rack.start)

    def test_control_api_refuses_what_it_does_not_know(self) -> None:
        with RackProcess(self.state, machines=1, bmc_base_port=0) as rack:
            for call, text in (
                (lambda: rack.control.machine("x"), "no machine 'x'; there are machine-0"),
                (lambda: rack.control.power("machine-0", "up"), "action 'up' is not one of"),
                (lambda: rack.control.power("machine-0", "reset"), "machine-0 is off"),
                (lambda: rack.control.set_boot_device("machine-0", "tape"), "device 'tape' is not one of"),
                (lambda: rack.control.type("machine-0", "ls"), "machine-0 has no console"),
                (lambda: rack.control.clear_faults("machine-0", "x"), "unknown fault 'x'"),
            ):
                self.assertRaisesRegex(RackError, text, call)
