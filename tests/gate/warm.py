"""Commands that start fast, of programs that import for seconds."""

import os
import pathlib
import socket
import subprocess
import sys
from collections.abc import Sequence

import fixtures

from tests.gate import environments

_SOURCES = pathlib.Path(__file__).parent / "programs"


class Warm(fixtures.Fixture):
    """Runs a program, again and again, as child of a process that has imported it: ``programs/warm.py`` says how.

    :param environment: the directory of its programs.
    :param plugins: names of the entry points that it uses.
    :ivar directory: has a command of the same name, for people and tests alike.
    """

    def __init__(self, environment: pathlib.Path, program: str, plugins: Sequence[str]) -> None:
        super().__init__()
        self._environment = environment
        self._program = program
        self._plugins = plugins

    def _setUp(self) -> None:
        self.directory = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        command = self.directory / self._program
        command.write_text(f"#!{sys.executable} -IS\n{(_SOURCES / 'ask.py').read_text()}")
        command.chmod(0o755)
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(self.directory / ".warm"))
            listener.listen(128)
            self._start(listener.fileno())

    def _start(self, listener: int) -> None:
        command = [
            self._environment / "python",
            "-P",
            _SOURCES / "warm.py",
            str(listener),
            self._program,
            *self._plugins,
        ]
        process = subprocess.Popen(
            [*environments.TIED, *command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            cwd=self.directory,
            env={"PATH": os.defpath, "HOME": str(self.directory), "LC_ALL": "C.UTF-8"},
            pass_fds=(listener,),
        )
        self.addCleanup(process.wait)
        self.addCleanup(process.terminate)
