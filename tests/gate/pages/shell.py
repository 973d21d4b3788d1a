"""One shell for the commands of a page, as the one terminal of its reader."""

import contextlib
import os
import pathlib
import select
import signal
import subprocess
from collections.abc import Mapping, Sequence

import fixtures

from tests import patience

LIMIT_S = patience.seconds(300)
"""Of a command; one of them waits for an emulated machine that boots."""

_SHELL = ("bash", "--noprofile", "--norc")


class Shell(fixtures.Fixture):
    """
    :param directory: where commands and their output are kept.
    :param environment: all of its variables.
    :param start: the words before those of the shell: what puts it elsewhere.
    :param seen_as: the name of ``directory`` in there.
    :param first: a command that runs before those of the page.
    """

    def __init__(
        self,
        directory: pathlib.Path,
        environment: Mapping[str, str],
        start: Sequence[str] = (),
        seen_as: str | None = None,
        first: str = ":",
    ) -> None:
        super().__init__()
        self._directory = directory
        self._environment = environment
        self._start = start
        self._seen_as = seen_as or str(directory)
        self._first = first
        self._number = 0

    def _setUp(self) -> None:
        self._statuses, write = os.pipe()
        self._fd = write
        self._process = subprocess.Popen(
            [*self._start, *_SHELL],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=(self._directory / "shell.log").open("wb"),
            env=dict(self._environment),
            pass_fds=(write,),
            start_new_session=True,
            text=True,
        )
        os.close(write)
        self.addCleanup(os.close, self._statuses)
        self.addCleanup(self._stop)
        status, printed = self.run(self._first)
        if status != 0:
            raise AssertionError(f"{self._first} ended with {status}: {printed}")

    def _stop(self) -> None:
        """End the shell and what it has left running."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGTERM)
        try:
            self._process.wait(patience.seconds(20))
        except subprocess.TimeoutExpired:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()

    def run(self, command: str) -> tuple[int | None, str]:
        """Return the exit status of a command and what it printed; None: it did not end in time, or ended the shell."""
        self._number += 1
        typed, printed = f"{self._number}.sh", f"{self._number}.out"
        (self._directory / typed).write_text(command + "\n")
        assert self._process.stdin is not None
        here = self._seen_as
        self._process.stdin.write(f". {here}/{typed} < /dev/null > {here}/{printed} 2>&1; echo $? >&{self._fd}\n")
        self._process.stdin.flush()
        status = self._read_status()
        output = self._directory / printed
        return status, output.read_text(errors="replace") if output.exists() else ""

    def _read_status(self) -> int | None:
        ready, _, _ = select.select([self._statuses], [], [], LIMIT_S)
        said = os.read(self._statuses, 16) if ready else b""
        return int(said) if said.strip() else None
