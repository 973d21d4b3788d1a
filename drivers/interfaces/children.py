"""Child processes that work for steps while neither a thread nor the node's lock waits for them: the step polls.

A child ends in time, whatever it does, and never outlives its conductor (``keeper.py``). One that no step asks for any
more, as after an abort or a takeover, is killed, too. It is known only to the process that started it: where a step
finds none it begins anew.
"""

import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from ingot.common import errors
from ingot.drivers.interfaces import keeper
from ingot.drivers.interfaces.task import Task

_SILENCE = 180
"""Seconds after which a child is killed that no step has asked for."""

_END = 64 * 1024
"""Bytes of what a child has said that are read, from the end."""

_Key = tuple[str, str, str]


_guard = threading.Lock()
_children: "dict[_Key, Child]" = {}
_beginning: "set[_Key]" = set()
_prepared: set[Path] = set()


class Limits(NamedTuple):
    """What a child may take.

    :param seconds: in all. :param memory: MiB of each of its processes.
    """

    seconds: int
    memory: int


def run_module(name: str) -> list[str]:
    """Return the command that runs one of Ingot's modules."""
    return [sys.executable, "-P", "-m", name]


class Child:
    """A program that runs in a process of its own, and reads a JSON object from its standard input.

    What it prints to tell how it goes on are lines of JSON objects. It has a directory to itself, ``scratch``, which is
    removed with it.

    :param command: runs the program.
    :param place: in which that directory is.
    :param job: goes by a pipe, so that secrets in it are seen nowhere; ``scratch`` is added to it.
    :raises StepFailed: no process can be started.
    """

    def __init__(self, command: Sequence[str], place: Path, job: Mapping[str, object], limits: Limits) -> None:
        self.limits, self._asked = limits, time.monotonic()
        scratch = _make_scratch(place)
        self._said = tempfile.TemporaryFile()
        lease, self._lease = os.pipe()
        kept = [sys.executable, "-I", "-S", keeper.__file__, str(lease), str(limits.seconds), str(_SILENCE)]
        try:
            self._process = subprocess.Popen(  # noqa: S603 - our own program
                [*kept, str(limits.memory), scratch, *command],
                stdin=subprocess.PIPE,
                stdout=self._said,
                stderr=subprocess.STDOUT,
                pass_fds=[lease],
                start_new_session=True,
            )
        except OSError as exc:
            os.close(self._lease)
            raise errors.StepFailed(f"no process can be started: {exc}") from exc
        finally:
            os.close(lease)
        # One that has ended before it has read its job says itself why, when it is polled.
        with contextlib.suppress(BrokenPipeError), self._process.stdin as pipe:  # type: ignore[union-attr]
            pipe.write(json.dumps({**job, "scratch": scratch}).encode())

    def poll(self) -> int | None:
        """Say that the child is still needed; return its exit code if it has ended."""
        self._asked = time.monotonic()
        code = self._process.poll()
        if code is None:
            try:
                os.write(self._lease, b".")
            except BrokenPipeError:  # it has just ended
                return self._process.wait()
        return code

    def is_left_alone(self) -> bool:
        """Return whether the child has ended, and no step has asked for so long that none will."""
        return self._process.poll() is not None and time.monotonic() > self._asked + _SILENCE

    def said(self) -> list[dict[str, object]]:
        """Return the last of what the child has said; what is no JSON object becomes ``{"text": ...}``."""
        size = os.fstat(self._said.fileno()).st_size
        text = os.pread(self._said.fileno(), _END, max(0, size - _END)).decode(errors="replace")
        return [_read_line(line) for line in text.splitlines() if line.strip()]

    def explain_failure(self, code: int) -> str:
        """Return why the child has failed, in a sentence."""
        failed = [str(line["failed"]) for line in self.said() if "failed" in line]
        if code == keeper.TOO_LATE:
            return f"it took longer than {self.limits.seconds} s"
        if failed:
            return failed[-1]
        texts = [str(line["text"]) for line in self.said() if "text" in line]
        return f"its process ended with exit code {code}: {' '.join(texts)[-500:] or 'it said nothing'}"

    def close(self) -> None:
        """Kill the child, if it runs, with all that it has started, and wait until that is done."""
        os.close(self._lease)
        self._process.wait()
        self._said.close()


def _make_scratch(place: Path) -> str:
    """Return a new directory, in a place from which this process has removed what another one had left.

    :raises StepFailed: the place cannot be used.
    """
    try:
        with _guard:
            if place not in _prepared:
                shutil.rmtree(place, ignore_errors=True)
            _prepared.add(place)
        place.mkdir(parents=True, exist_ok=True, mode=0o700)
        return tempfile.mkdtemp(dir=place)
    except OSError as exc:
        raise errors.StepFailed(f"{place} cannot be used: {exc.strerror}") from exc


def _read_line(line: str) -> dict[str, object]:
    try:
        found = json.loads(line)
    except ValueError:
        found = None
    return found if isinstance(found, dict) else {"text": line}


def find(task: Task, name: str) -> Child | None:
    """Return the child of a name that this process has started for the node's flow."""
    with _guard:
        return _children.get(_make_key(task, name))


def start(task: Task, name: str, begin: Callable[[], Child]) -> Child | None:
    """Start a child in the place of any other of the node; None as long as there are as many as there may be.

    That is a quarter of the conductor's workers.
    """
    end(task)
    key = _make_key(task, name)
    with _guard:
        _forget_ended()
        if len(_children) + len(_beginning) >= max(1, task.conf.conductor.workers_pool_size // 4):
            return None
        _beginning.add(key)
    try:
        child = begin()  # may ask a machine that does not answer soon, while others go on
        with _guard:
            _children[key] = child
    finally:
        _beginning.discard(key)
    return child


def end(task: Task) -> None:
    """Kill whatever this process has started for the node."""
    with _guard:
        ours = [_children.pop(key) for key in list(_children) if key[0] == task.node.uuid]
    for child in ours:
        child.close()


def _make_key(task: Task, name: str) -> _Key:
    return task.node.uuid, str(task.node.run_id), name


def _forget_ended() -> None:
    """Forget children that have ended and were left alone: no step comes for what they have said."""
    for key in [key for key, child in _children.items() if child.is_left_alone()]:
        _children.pop(key).close()
