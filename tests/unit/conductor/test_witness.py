"""The witness of a conductor notes its death, and nothing else."""

import os
import pathlib
import signal
import subprocess
import sys

import fixtures

from ingot.conductor.cmd import witness
from ingot.db import conductors
from tests import conductor_case, database

TIMEOUT = 3600.0

_CONDUCTOR = """
import os, sys
from ingot.conductor.cmd.witness import Witness
from ingot.conductor.membership import identify_process
from ingot.db import conductors
from tests import database

db = database.Database(database.configuration(sys.argv[1]))
process = identify_process(os.getpid())
witness = Witness(process, ["--config-file", sys.argv[2]])
process = process if sys.argv[3] == "registered" else "another"
conductors.register(db, "one", {"release": "0.3", "rpc_version": "1.1", "process": process}, [])
print("begun", flush=True)
if sys.stdin.readline() == "stop\\n":
    witness.dismiss()
"""
"""A conductor that registers, and ends in order if it is asked to."""

_OPTIONS = """
[DEFAULT]
host = one
state_path = {folder}
[conductor]
heartbeat_timeout = {timeout}
[database]
connection = {url}
"""


class TestWitness(database.TestCase):
    def begin(self, name: str = "registered") -> "subprocess.Popen[str]":
        folder = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        file = folder / "ingot.conf"
        file.write_text(_OPTIONS.format(url=self.database.url, folder=folder, timeout=int(TIMEOUT)))
        command = [sys.executable, "-W", "ignore", "-c", _CONDUCTOR, self.database.url, str(file), name]
        conductor = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
        )
        self.addCleanup(conductor.communicate)
        self.addCleanup(conductor.kill)
        assert conductor.stdout
        self.assertEqual("begun\n", conductor.stdout.readline())
        self.assertEqual({"one"}, self.online())
        return conductor

    def online(self) -> set[str]:
        return conductors.online_hosts(self.db, TIMEOUT)

    def has_ended(self, conductor: "subprocess.Popen[str]") -> None:
        """Wait until conductor and witness have ended: then no process has the other end of the pipe."""
        assert conductor.stdout
        conductor.stdout.read()

    def test_a_death_is_noted_whatever_the_witness_is_asked_to_do(self) -> None:
        conductor = self.begin()
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGABRT):
            for pid in self.children(conductor.pid):
                os.kill(pid, number)
        conductor.kill()
        self.has_ended(conductor)
        self.assertEqual(set(), self.online())

    def children(self, pid: int) -> list[int]:
        with open(f"/proc/{pid}/task/{pid}/children") as listed:
            found = [int(child) for child in listed.read().split()]
        self.assertEqual(1, len(found))
        return found

    def test_is_no_python_until_there_is_something_to_do(self) -> None:
        (witness,) = self.children(self.begin().pid)
        self.assertNotIn("python", os.readlink(f"/proc/{witness}/exe"))

    def test_is_a_shell_by_its_name_and_trusts_no_directory_that_it_happens_to_be_in(self) -> None:
        """Where one program is all commands of a system, its name decides which."""
        (witness,) = self.children(self.begin().pid)
        command = pathlib.Path(f"/proc/{witness}/cmdline").read_text().split("\0")
        self.assertEqual("sh", command[0])
        self.assertIn("-P", command)

    def test_a_system_without_a_shell_has_none_and_says_so(self) -> None:
        logger = self.useFixture(fixtures.FakeLogger("ingot.witness"))
        self.useFixture(fixtures.MonkeyPatch("ingot.conductor.cmd.witness._SHELL", "/no/shell"))
        witness.Witness("process", []).dismiss()
        self.assertIn("/no/shell", logger.output)

    def test_a_failure_is_a_death(self) -> None:
        conductor = self.begin()
        conductor.communicate("fail\n", conductor_case.PATIENCE)
        self.assertEqual(set(), self.online())

    def test_a_stop_in_order_is_none(self) -> None:
        conductor = self.begin()
        conductor.communicate("stop\n", conductor_case.PATIENCE)
        self.assertEqual({"one"}, self.online())

    def test_the_next_process_of_the_name_is_left_alone(self) -> None:
        conductor = self.begin("another")
        conductor.kill()
        self.has_ended(conductor)
        self.assertEqual({"one"}, self.online())
