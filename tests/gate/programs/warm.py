"""Runs a program of this environment, whenever it is asked to, in a child of this process, which has imported it.

    warm.py LISTENER PROGRAM PLUGIN...

Most of the time of a short command are its imports. LISTENER is the descriptor of a listening socket: there ``ask.py``
says with which words, directory, environment and streams to run. PLUGINS are names of entry points whose modules the
program imports when it needs them.
"""

import contextlib
import gc
import importlib
import importlib.metadata
import json
import os
import select
import signal
import socket
import sys
import tempfile
from collections.abc import Callable, Sequence
from typing import Any

from stevedore import extension

READS_ITS_PLACE = ("openstack.config.loader",)
"""Modules that look at directory and environment when they are imported."""


def import_program(name: str, plugins: Sequence[str]) -> Callable[[], object]:
    """Return the function of a program."""
    sys.argv = [name]  # some modules look
    program: Callable[[], object] = importlib.metadata.entry_points(group="console_scripts")[name].load()
    for group in plugins:
        extension.ExtensionManager(group)
    gc.collect()
    gc.freeze()
    return program


def await_command(listener: socket.socket) -> dict[str, Any]:
    """Return what to run, in a new process for each command that comes; the first process never returns."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while True:
        connection, _address = listener.accept()
        if os.fork() == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            listener.close()
            return _begin(connection)
        connection.close()


def _begin(connection: socket.socket) -> dict[str, Any]:
    """Return in a child with the streams of the command; tell its end to who asked, or end it if that one has gone."""
    first, streams, _flags, _address = socket.recv_fds(connection, 1, 3)
    with connection.makefile("rb") as sent:
        request: dict[str, Any] = json.loads(sent.read() if first else b"")
    child = os.fork()
    if child == 0:
        connection.close()
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
            os.close(stream)
        return request
    for stream in streams:
        os.close(stream)
    waiting = select.poll()
    waiting.register(os.pidfd_open(child), select.POLLIN)
    waiting.register(connection, 0)  # nothing but that it is closed
    if any(event & select.POLLHUP for _, event in waiting.poll()):
        os.kill(child, signal.SIGKILL)
    _pid, status = os.waitpid(child, 0)
    with contextlib.suppress(BrokenPipeError):
        connection.sendall(str(os.waitstatus_to_exitcode(status)).encode())
    os._exit(0)


def main() -> None:
    listener = socket.socket(fileno=int(sys.argv[1]))
    said = tempfile.TemporaryFile()
    os.dup2(said.fileno(), 2)
    program = import_program(sys.argv[2], sys.argv[3:])
    warnings = os.pread(said.fileno(), 1 << 20, 0)
    command = await_command(listener)
    os.environ.clear()
    os.environ.update(command["environment"])
    os.chdir(command["directory"])
    sys.argv = command["words"]
    os.write(2, warnings)  # what each would have said that imports the same
    for name in READS_ITS_PLACE:
        if name in sys.modules:
            importlib.reload(sys.modules[name])
    sys.exit(program())


if __name__ == "__main__":
    main()
