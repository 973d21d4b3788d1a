"""Starts commands of Ingot by forking a process that has imported them: most of what a start costs is its imports.

There are hundreds of laboratories, and each starts some. What runs is what the command would run: the same function in
a process of its own, with the arguments, variables and output that it was given. That a command can be started from
nothing is what the other steps of the gate show.
"""

import array
import atexit
import contextlib
import functools
import importlib
import importlib.metadata
import json
import os
import pathlib
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from typing import Any, BinaryIO, NoReturn

import stevedore

COMMANDS = ("ingot", "ingot-api", "ingot-conductor", "ingot-dbsync")

_LOADED_LATER = ("ingot.conductor.cmd.all_in_one", "ingot.drivers.ipmi.hardware", "ingot.drivers.redfish.hardware")
"""What a command imports when it runs."""

_SIZE = 2**20


class Forked:
    """A process, as ``subprocess.Popen`` has it.

    :param template: its parent, which alone learns how it ended.
    """

    def __init__(self, template: "_Template", pid: int, command: list[str]) -> None:
        self._template = template
        self.pid = pid
        self.args = command
        self.returncode: int | None = None
        self._handle = os.pidfd_open(pid)
        self._ending = threading.Lock()

    def poll(self) -> int | None:
        """Return how it ended; None: it runs."""
        with self._ending:
            if self.returncode is None and _has_ended(self._handle, 0):
                self.returncode = int(self._template.ask({"ended": self.pid}))
                os.close(self._handle)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end.

        :raises subprocess.TimeoutExpired: it has not ended in time.
        """
        if self.returncode is None:
            _has_ended(self._handle, timeout)
        status = self.poll()
        if status is None:
            raise subprocess.TimeoutExpired(self.args, timeout or 0)
        return status

    def send_signal(self, number: int) -> None:
        """Send a signal if it has not ended."""
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._handle, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


def _has_ended(handle: int, timeout: float | None) -> bool:
    """Wait until a process has ended; handles may have numbers that ``select`` does not take."""
    poll = select.poll()
    poll.register(handle, select.POLLIN)
    return bool(poll.poll(None if timeout is None else timeout * 1000))


def start(command: list[str], output: BinaryIO, directory: pathlib.Path | None, variables: Mapping[str, str]) -> Forked:
    """Start one of :data:`COMMANDS`.

    :param command: the path of the program, and its arguments.
    :param output: of the process, with what it complains about.
    :param directory: in which it is started; None: where the tests are.
    :param variables: of its environment, all of them.
    """
    order = {"command": command, "directory": str(directory or pathlib.Path.cwd()), "variables": {**variables}}
    template = _template()
    return Forked(template, int(template.ask(order, output.fileno())), command)


class _Template:
    """The process that is forked; it ends with the tests, and what it has started with it, however the tests end."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        path = os.pathsep.join(filter(None, sys.path))
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", __name__, str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                pass_fds=(theirs.fileno(),),
                env={**os.environ, "PYTHONWARNINGS": "ignore", "PYTHONPATH": path},
            )
        atexit.register(self._stop)

    def ask(self, order: Mapping[str, Any], *descriptors: int) -> str:
        """Return the answer to an order."""
        passed, answer = array.array("i", descriptors), b""
        with self._lock, contextlib.suppress(ConnectionError):
            self._socket.sendmsg([json.dumps(order).encode()], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, passed)])
            answer = self._socket.recv(_SIZE)
        if not answer:
            raise AssertionError("the process that starts commands has ended")
        return answer.decode()

    def _stop(self) -> None:
        self._socket.close()
        self._process.wait()


@functools.cache
def _template() -> _Template:
    return _Template()


def _load(name: str) -> Callable[[], int | None]:
    (found,) = importlib.metadata.entry_points(group="console_scripts", name=name)
    function: Callable[[], int | None] = found.load()
    return function


def _serve(orders: socket.socket) -> None:
    """Fork for each order to start something, and tell of the ends of these processes."""
    functions = {name: _load(name) for name in COMMANDS}
    for module in _LOADED_LATER:
        importlib.import_module(module)
    stevedore.NamedExtensionManager("console_scripts", [])  # it reads what all packages offer, once in a process
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # it ends after what it has started
    started: set[int] = set()
    while True:
        content, ancillary, _, _ = orders.recvmsg(_SIZE, socket.CMSG_SPACE(4))
        if not content:  # the tests have ended, or were killed
            for pid in started:
                os.kill(pid, signal.SIGKILL)
            return
        order = json.loads(content)
        if "ended" in order:
            orders.send(str(os.waitstatus_to_exitcode(os.waitpid(order["ended"], 0)[1])).encode())
            started.remove(order["ended"])
            continue
        (output,) = array.array("i", ancillary[0][2])
        pid = os.fork()
        if pid == 0:
            orders.close()
            _become(order, output, functions)
        started.add(pid)
        os.close(output)
        orders.send(str(pid).encode())


def _become(order: Mapping[str, Any], output: int, functions: Mapping[str, Callable[[], int | None]]) -> NoReturn:
    """Be the command that is ordered; leaving the interpreter ends it as it ends a command."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for stream in (1, 2):
        os.dup2(output, stream)
    os.close(output)
    os.chdir(order["directory"])
    os.environ.clear()
    os.environ.update(order["variables"])
    sys.argv = order["command"]
    sys.exit(functions[pathlib.Path(sys.argv[0]).name]())


if __name__ == "__main__":
    _serve(socket.socket(fileno=int(sys.argv[1])))
