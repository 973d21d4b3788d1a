"""Tasks: work that goes on after its answer, for some time or until the machine starts again."""

import asyncio
import itertools
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from ingot.rack.http_server import Response
from ingot.rack.redfish.messages import build_message
from ingot.rack.redfish.routing import ROOT, Call, Document, Route, collection, link, resource

if TYPE_CHECKING:
    from ingot.rack.redfish.board import Board

PERCENT = 100
TASKS = f"{ROOT}/TaskService/Tasks"
MONITORS = f"{ROOT}/TaskService/TaskMonitors"
_ENDED = ("Completed", "Exception", "Cancelled")
_NEVER = float("inf")
_numbers = itertools.count(1)


class WorkFailed(Exception):
    """What a task did has failed."""


@dataclass
class Task:
    """One task.

    :ivar seconds: how long it runs once it runs.
    :ivar at_boot: whether the machine's firmware does it, so that it fails without power.
    :ivar prepare: what it does first; it may raise WorkFailed.
    :ivar work: what it does at its end; likewise.
    """

    id: str
    name: str
    seconds: float
    work: Callable[[], None]
    prepare: Callable[[], Awaitable[None]] | None = None
    at_boot: bool = False
    state: str = "New"
    begun: float = 0.0
    started: str = field(default_factory=lambda: datetime.now(UTC).isoformat())
    ended: str | None = None
    messages: list[dict[str, Any]] = field(default_factory=list)
    timer: asyncio.TimerHandle | None = None

    @property
    def running(self) -> bool:
        return self.state not in _ENDED

    @property
    def percent(self) -> int:
        if not self.running:
            return PERCENT
        if self.state != "Running" or self.seconds in (0.0, _NEVER):
            return 0
        return min(int((asyncio.get_running_loop().time() - self.begun) / self.seconds * PERCENT), PERCENT - 1)

    def end(self, state: str, message: dict[str, Any]) -> None:
        self.state, self.ended = state, datetime.now(UTC).isoformat()
        self.messages.append(message)
        if self.timer is not None:
            self.timer.cancel()


class Tasks:
    """The tasks of one board."""

    def __init__(self, board: "Board") -> None:
        self._board = board
        self.all: dict[str, Task] = {}
        self._preparing: set[asyncio.Task[None]] = set()

    def start(
        self,
        name: str,
        work: Callable[[], None],
        at_boot: bool = False,
        prepare: Callable[[], Awaitable[None]] | None = None,
    ) -> Task:
        """Start a task, now or when the machine starts the next time.

        It runs as long as the rack's settings say, if no fault says otherwise.
        """
        faults = self._board.machine.faults
        ordered = faults.take("redfish_slow_tasks")
        usual = self._board.machine.site.config.redfish_task_time
        lasts = float(ordered["seconds"]) if ordered else usual
        if faults.strike("redfish_task_stuck"):
            lasts = _NEVER
        task = Task(f"{self._board.vendor.task_prefix}{next(_numbers):012d}", name, lasts, work, prepare, at_boot)
        self.all[task.id] = task
        self._board.machine.log(f"task {task.id}: {name}")
        if at_boot:
            task.state = "Pending"
            self._board.at_boot.append(lambda: self._run(task))
        else:
            self._run(task)
        return task

    def busy(self) -> bool:
        return any(task.state == "Running" for task in self.all.values())

    def cut(self) -> None:
        """End what the machine's firmware is at work on, as its power goes."""
        for task in self.all.values():
            if task.at_boot and task.state == "Running":
                self._end(task, WorkFailed("The power was cut while the machine's firmware was at work on it."))

    def delete(self, name: str) -> bool:
        """Cancel a task if it runs or waits, and forget it; False: there is none of this name."""
        task = self.all.pop(name, None)
        if task is not None:
            cancel(task)
        return task is not None

    def delete_all(self) -> None:
        """Cancel what runs or waits, and forget all tasks."""
        for task in self.all.values():
            cancel(task)
        self.all.clear()

    def _run(self, task: Task) -> None:
        if not task.running:
            return
        loop = asyncio.get_running_loop()
        task.state, task.begun = "Running", loop.time()
        if task.prepare is not None:
            preparing = asyncio.ensure_future(self._prepare(task, task.prepare))
            self._preparing.add(preparing)
            preparing.add_done_callback(self._preparing.discard)
        elif task.seconds != _NEVER:
            task.timer = loop.call_later(task.seconds, self._finish, task)

    async def _prepare(self, task: Task, prepare: Callable[[], Awaitable[None]]) -> None:
        try:
            await prepare()
        except WorkFailed as error:
            if task.running:
                self._end(task, error)
            return
        if task.running and task.seconds != _NEVER:
            task.timer = asyncio.get_running_loop().call_later(task.seconds, self._finish, task)

    def _finish(self, task: Task) -> None:
        failure = self._board.machine.faults.take("redfish_task_fails")
        try:
            if failure is not None:
                raise WorkFailed(failure)
            task.work()
        except WorkFailed as error:
            self._end(task, error)
        else:
            self._end(task)

    def _end(self, task: Task, error: WorkFailed | None = None) -> None:
        if error is None:
            task.end("Completed", build_message("Success"))
        else:
            task.end("Exception", build_message("OperationFailed", error))
        self._board.machine.log(f"task {task.id}: {task.state}")
        for send in self._board.on_event:
            send("TaskState", task.state)


def cancel(task: Task) -> None:
    if task.running:
        task.end("Cancelled", build_message("Success"))


def answer_with(board: "Board", task: Task) -> Response:
    """Return the answer to what has become a task."""
    where = {"task": TASKS, "monitor": MONITORS}[board.vendor.task_location]
    return Response(status=202, headers={"Location": f"{where}/{task.id}", **_wait(board)}, raw=b"")


def _wait(board: "Board") -> dict[str, str]:
    seconds = board.vendor.task_retry_after
    return {} if seconds is None else {"Retry-After": str(seconds)}


def _find(call: Call) -> tuple["Board", Task]:
    for member in call.service.members:
        if call.ids["task"] in member.board.tasks.all:
            return member.board, member.board.tasks.all[call.ids["task"]]
    raise call.missing()


def _service(call: Call) -> Document:
    return resource(
        f"{ROOT}/TaskService",
        "TaskService.v1_2_0.TaskService",
        "Task Service",
        DateTime=datetime.now(UTC).isoformat(),
        CompletedTaskOverWritePolicy="Oldest",
        LifeCycleEventOnTaskStateChange=True,
        ServiceEnabled=True,
        Status={"State": "Enabled", "Health": "OK"},
        Tasks=link(TASKS),
    )


def _list(call: Call) -> Document:
    found = (task for member in call.service.members for task in member.board.tasks.all.values())
    return collection(TASKS, "Task", [f"{TASKS}/{task.id}" for task in found])


def _document(task: Task) -> Document:
    document = resource(
        f"{TASKS}/{task.id}",
        "Task.v1_7_3.Task",
        task.name,
        TaskState=task.state,
        TaskStatus="Critical" if task.state == "Exception" else "OK",
        PercentComplete=task.percent,
        StartTime=task.started,
        TaskMonitor=f"{MONITORS}/{task.id}",
        Messages=task.messages,
    )
    return document | ({"EndTime": task.ended} if task.ended else {})


def _show(call: Call) -> Document | Response:
    board, task = _find(call)
    if task.running and board.vendor.task_location == "task":
        return Response(_document(task), 202, _wait(board))
    return _document(task)


def _monitor(call: Call) -> Document | Response:
    board, task = _find(call)
    if task.running:
        return Response(_document(task), 202, {"Allow": "DELETE", **_wait(board)})
    return _document(task)


def _cancel(call: Call) -> None:
    board, task = _find(call)
    board.tasks.delete(task.id)


ROUTES = (
    Route("GET", "/TaskService", _service),
    Route("GET", "/TaskService/Tasks", _list),
    Route("GET", "/TaskService/Tasks/{task}", _show),
    Route("DELETE", "/TaskService/Tasks/{task}", _cancel),
    Route("GET", "/TaskService/TaskMonitors/{task}", _monitor),
    Route("DELETE", "/TaskService/TaskMonitors/{task}", _cancel),
)
