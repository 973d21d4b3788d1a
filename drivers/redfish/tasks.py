"""Work that a BMC goes on with after its answer: begun once, also when a conductor dies in between, and followed.

A :class:`Job` is what a step does through one task of the BMC. Its phases share a dictionary of the step's memory:
where the task is, and since when.
"""

import time
from collections.abc import Callable
from typing import NamedTuple

from ingot.common import errors
from ingot.common.json_types import Json
from ingot.common.waits import Wait
from ingot.drivers.interfaces import results
from ingot.drivers.interfaces.task import Task
from ingot.drivers.redfish import connection, fields, session
from ingot.drivers.redfish.http import Response

_RUNNING = frozenset(("New", "Starting", "Running", "Suspended", "Interrupted", "Pending", "Stopping", "Cancelling"))
_WAITS_FOR_BOOT = frozenset(("Pending", "Starting", "Suspended", "New"))
_FORGOTTEN = (404, 410)
_PATIENCE = 3
"""How many readings in a row show a task that has not begun before it counts as one that waits for a boot."""

_LONGEST_PAUSE = 15.0


class Progress(NamedTuple):
    """How far a task is.

    :param state: the BMC's own word; empty if it says nothing of a state.
    :param text: what the BMC says of it.
    :param known: whether the BMC still knows the task; one that restarts often does not.
    """

    running: bool
    failed: bool = False
    state: str = ""
    text: str = ""
    known: bool = True


def find_place(response: Response) -> str | None:
    """Return the path of the task that an answer tells of; None: what was requested is done."""
    if response.status_code != 202:
        return None
    location = response.headers.get("Location") or response.headers.get("Content-Location")
    document = response.read_object()
    place = location or fields.path(document, "TaskMonitor") or fields.link(document)
    return session.quote(place) if place else None


def read_texts(document: Json) -> list[str]:
    """Return what the messages of a document say."""
    said = (fields.text(one, "Message") or fields.text(one, "MessageId") for one in fields.parts(document, "Messages"))
    return [text for text in said if text]


def read(machine: connection.Machine, place: str) -> Progress:
    """Return how far the task, or monitor of one, at a path is.

    :raises HardwareError: the BMC answers with an error in place of the task.
    """
    try:
        response = machine.fetch(place)
    except machine.refusals as exc:
        if getattr(exc, "status_code", None) in _FORGOTTEN:
            return Progress(running=False, known=False)
        raise
    document = response.read_object()
    state = fields.text(document, "TaskState") or ""
    said = read_texts(document)
    running = state in _RUNNING if state else response.status_code == 202
    failed = not running and bool(state) and (state != "Completed" or document.get("TaskStatus") == "Critical")
    return Progress(running, failed, state, " ".join(said)[:500])


def list_paths(machine: connection.Machine) -> list[str]:
    """Return the paths of the BMC's tasks; none if it has no list of them."""
    place = find_list(machine)
    members = machine.list_members(place) if place else []
    return [path for path in map(fields.link, members) if path]


def find_list(machine: connection.Machine) -> str | None:
    """Return the path of the BMC's list of tasks; None if it has none."""
    root = machine.service.json
    service = fields.link(root, "Tasks") or fields.link(root, "TaskService")
    return fields.link(machine.read_optional(service), "Tasks") if service else None


def note_known(task: Task, kept: Json) -> results.Result:
    """Note which tasks there are, as a phase: saved before a request is sent, that shows whether it was.

    :param kept: part of the step's memory, which gets their paths as ``known``.
    """
    if "known" in kept:
        return results.DONE
    kept["known"] = connection.call(task, list_paths)
    return results.PollAfter(0.0, waits_for=Wait.HARDWARE)


class Job(NamedTuple):
    """One piece of work of a BMC.

    :param what: how messages name it.
    :param send: requests it, and returns the answer.
    :param kept: part of the step's memory for it alone, which outlasts the phases.
    :param is_done: whether the work shows to be done already, though no task is known for it. Reads some documents.
    """

    what: str
    send: Callable[[connection.Machine], Response]
    kept: Json
    is_done: Callable[[connection.Machine], bool] = lambda machine: False

    def note(self, task: Task) -> results.Result:
        """Note which tasks there are, as a phase; see :func:`note_known`."""
        return note_known(task, self.kept)

    def start(self, task: Task) -> None:
        """Request the work, as a phase, unless an earlier call of the phase has done so."""

        def request(machine: connection.Machine) -> str | None:
            new = [path for path in list_paths(machine) if path not in self.kept["known"]]
            if new:
                return new[-1]
            return None if self.is_done(machine) else find_place(self.send(machine))

        self.kept["place"] = connection.call(task, request, factor=3)
        self.kept["began"] = time.time()

    def follow(self, task: Task, limit: float, option: str, until_boot: bool = False) -> results.Result:
        """Wait, as a phase, until the work has ended; ``kept`` says then whether the BMC still knew it (``sure``).

        :param limit: seconds that it may take, as ``option`` says.
        :param until_boot: end also when the task waits for a boot of the machine; ``kept`` says so (``waits``).
        :raises StepFailed: the BMC says that it has failed, or it takes too long.
        """
        kept = self.kept
        kept["waits"] = False
        if kept["place"] is None:
            kept["sure"] = True
            return results.DONE
        waited = time.time() - kept["began"]
        try:
            progress = connection.call(task, lambda machine: read(machine, kept["place"]))
        except errors.HardwareUnreachable:  # many restart for an update, or are busy with it
            if waited >= limit:
                raise
            progress = Progress(running=True, text="the BMC does not answer")
        if progress.failed:
            raise errors.StepFailed(
                f"{self.what}: the task {kept['place']} has ended as {progress.state}: {progress.text}"
            )
        if not progress.running:
            kept["sure"] = progress.known
            return results.DONE
        if until_boot:
            kept["idle"] = kept.get("idle", 0) + 1 if progress.state in _WAITS_FOR_BOOT else 0
            if kept["idle"] >= _PATIENCE:
                kept["waits"] = True
                return results.DONE
        if waited >= limit:
            raise errors.StepFailed(
                f"{self.what}: the task {kept['place']} is {progress.state or 'running'} after {limit} s ([redfish] "
                f"{option}); {progress.text}"
            )
        pause = min(1.0 + waited / 10, _LONGEST_PAUSE)
        return results.PollAfter(pause, waits_for=Wait.HARDWARE, until=kept["began"] + limit)
