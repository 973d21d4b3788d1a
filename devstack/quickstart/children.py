"""The processes that the quickstart starts: they are watched, have logs, and never outlive it."""

import contextlib
import os
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from quickstart.failure import Failure

SLOWNESS = float(os.environ.get("INGOT_TEST_PATIENCE", "1"))  # as tests/patience.py; the gate sets it
START_TIMEOUT = 60 * SLOWNESS
STOP_TIMEOUT = 20 * SLOWNESS

Answer = TypeVar("Answer")


class Child:
    """A process in a session of its own, so that Ctrl-C reaches the quickstart only, which then stops it in order.

    The kernel ends it if the quickstart is killed.

    :param log: receives what it writes to standard error, and to standard output unless ``output`` is given.
    """

    def __init__(self, name: str, command: Sequence[str], log: Path, output: Path | None = None) -> None:
        self.name = name
        self.log = log
        output = output or log
        with log.open("ab") as errors, output.open("ab") as answers:
            self._process = subprocess.Popen(
                ["setpriv", "--pdeathsig", "TERM", *command],
                stdin=subprocess.DEVNULL,
                stdout=answers,
                stderr=errors,
                start_new_session=True,
            )

    def check(self) -> None:
        """Make sure that it still runs.

        :raises Failure: it ended, with the end of its log.
        """
        status = self._process.poll()
        if status is not None:
            raise Failure(f"{self.name} ended with status {status}; the end of {self.log}:\n{last_lines(self.log)}")

    def wait_for(self, ready: Callable[[], Answer | None]) -> Answer:
        """Return the first answer that is not None.

        :raises Failure: the process ended, or there was none in ``START_TIMEOUT`` seconds.
        """
        deadline = time.monotonic() + START_TIMEOUT
        while (answer := ready()) is None:
            self.check()
            if time.monotonic() > deadline:
                raise Failure(
                    f"{self.name} is not ready after {START_TIMEOUT:.0f} s; the end of {self.log}:\n"
                    f"{last_lines(self.log)}"
                )
            time.sleep(0.05)
        return answer

    def stop(self) -> None:
        """End it, by force when it does not listen."""
        self._process.terminate()
        try:
            self._process.wait(STOP_TIMEOUT)
        except subprocess.TimeoutExpired:
            # What it started has ended with it or is in its session.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, 9)
            self._process.wait()


def last_lines(log: Path, count: int = 12) -> str:
    """Return the end of a log file, indented; what that says about a missing or empty one is said instead."""
    lines = log.read_text(errors="replace").splitlines() if log.exists() else []
    return "\n".join(f"    {line}" for line in lines[-count:]) or "    (it is empty)"
