"""What machines say on their serial consoles, appended to a file for each node."""

import os
import pathlib
import threading
from concurrent import futures

from oslo_log import log

LOG = log.getLogger(__name__)

_MOST_WAITING = 2**22
"""Bytes that wait for the disk, of all nodes."""

_MODE = 0o640


class ConsoleLogs:
    """Written by a thread of their own, since a disk may hang.

    :param directory: for the files; None: nothing is written.
    """

    def __init__(self, directory: str | None) -> None:
        self._directory = None if directory is None else pathlib.Path(directory)
        self._guard = threading.Lock()
        self._waiting: dict[str, list[bytes]] = {}
        self._size = 0
        self._is_busy = False
        self._lost = 0
        self._writer = futures.ThreadPoolExecutor(1, "console-logs")

    def add(self, node: str, said: bytes) -> None:
        """Have something appended soon; what comes while too much waits for the disk is lost."""
        if self._directory is None:
            return
        with self._guard:
            if self._size + len(said) > _MOST_WAITING:
                self._lost += len(said)
                return
            self._size += len(said)
            self._waiting.setdefault(node, []).append(said)
            if not self._is_busy:
                self._is_busy = True
                self._writer.submit(self._write_all, self._directory)

    def _write_all(self, directory: pathlib.Path) -> None:
        while True:
            with self._guard:
                waiting, self._waiting, self._size = self._waiting, {}, 0
                lost, self._lost = self._lost, 0
                if not waiting:
                    self._is_busy = False
                    return
            if lost:
                LOG.warning("%d bytes of serial consoles are in no log: the disk of %s is slow", lost, directory)
            for node, parts in waiting.items():
                said = b"".join(parts)
                try:
                    _append(directory / f"{node}.log", said)
                except OSError as exc:
                    LOG.warning("Node %s: %d bytes of its serial console are in no log: %s", node, len(said), exc)


def _append(path: pathlib.Path, said: bytes) -> None:
    path.parent.mkdir(mode=0o750, parents=True, exist_ok=True)
    with open(os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, _MODE), "ab") as file:
        file.write(said)
