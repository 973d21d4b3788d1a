"""The agent's commands: what was asked, what became of it, and the table of what can be asked."""

import asyncio
import logging
import uuid
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ingot.rack.agent import Agent

LOG = logging.getLogger(__name__)

RUNNING, SUCCEEDED, FAILED = "RUNNING", "SUCCEEDED", "FAILED"
# The real agent has one status for a mismatch in any kind of work, and named it after the first.
VERSION_MISMATCH = "CLEAN_VERSION_MISMATCH"


class CommandError(Exception):
    """A command failed.

    :param kind: the class of error as the real agent names it (``ImageWriteError``).
    :param status: the command's status, FAILED or VERSION_MISMATCH.
    """

    def __init__(self, kind: str, message: str, details: str | None = None, status: str = FAILED) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message
        self.details = details or message
        self.status = status

    def public(self) -> dict[str, Any]:
        return {"type": self.kind, "code": 500, "message": self.message, "details": self.details}


class Busy(Exception):
    """Another command is running."""


class Unknown(Exception):
    """There is no such extension or command; ``status`` is the HTTP status a real agent gives for it."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


@dataclass
class Command:
    """One command that an agent was given; ``name`` has its extension in front."""

    name: str
    asynchronous: bool
    step: str | None = None
    id: str = field(default_factory=lambda: str(uuid.uuid4()))
    status: str = RUNNING
    error: dict[str, Any] | None = None
    result: Any = None
    record: dict[str, Any] = field(default_factory=dict)

    def public(self) -> dict[str, Any]:
        """Return what the agent's API shows."""
        return {
            "id": self.id,
            "command_name": self.name.partition(".")[2],
            "command_status": self.status,
            "command_error": self.error,
            "command_result": self.result,
        }

    def finish(self, status: str, result: Any = None, error: dict[str, Any] | None = None) -> None:
        self.status, self.result, self.error = status, result, error
        self.record.update(status=status, error=error["message"] if error else None, finished=_now())


Run = Callable[["Agent", dict[str, Any]], Awaitable[Any]]


@dataclass(frozen=True)
class CommandSpec:
    """How a command runs; asynchronous ones exclude each other, the others are answered at once."""

    run: Run
    asynchronous: bool = True


class CommandRunner:
    """Runs an agent's commands, one asynchronous one at a time, and remembers all of them."""

    def __init__(self, agent: "Agent", table: dict[str, CommandSpec]) -> None:
        self._agent = agent
        self._table = table
        self._tasks: set[asyncio.Task[None]] = set()
        self.commands: list[Command] = []

    async def submit(self, name: str, params: dict[str, Any], wait: bool) -> Command:
        """Start a command and, with ``wait`` or when it is a quick one, let it end.

        :raises Busy: while an asynchronous command runs. :raises Unknown: for a name not in the table.
        """
        spec = self._find(name)
        running = next((c for c in self.commands if c.asynchronous and c.status == RUNNING), None)
        if running and spec.asynchronous:
            raise Busy(f"Agent is busy: executing command {running.name}")
        command = Command(name, spec.asynchronous, _step_name(params))
        command.record = {
            "command": name,
            "step": command.step,
            "boot": self._agent.machine.boots,
            "status": RUNNING,
            "started": _now(),
            "finished": None,
        }
        self.commands.append(command)
        self._agent.machine.commands.append(command.record)
        self._agent.machine.log(f"command {name}{' step ' + command.step if command.step else ''}")
        task = asyncio.ensure_future(self._run(command, spec, params))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        if wait or not spec.asynchronous:
            await asyncio.shield(task)
        return command

    def kill(self) -> None:
        """Drop everything that runs."""
        for task in self._tasks:
            task.cancel()
        for command in self.commands:
            if command.status == RUNNING:
                command.record.update(status="LOST", finished=_now())

    def _find(self, name: str) -> CommandSpec:
        extension, _, action = name.partition(".")
        too_old = self._agent.machine.faults.strike("agent_lacks_extension", extension)
        if too_old or extension not in {known.partition(".")[0] for known in self._table}:
            raise Unknown(404, f"Not found: Extension with id {extension} not found.")
        if name in self._table:
            return self._table[name]
        raise Unknown(400, f"Invalid command: Unknown command: {action}")

    async def _run(self, command: Command, spec: CommandSpec, params: dict[str, Any]) -> None:
        try:
            await self._agent.meet_fate(command.step or command.name)
            command.finish(SUCCEEDED, await spec.run(self._agent, params))
            self._agent.machine.faults.step_ended(command.step or command.name)
        except CommandError as error:
            command.finish(error.status, error=error.public())
        except Exception as error:
            LOG.exception("%s: %s failed", self._agent.machine.name, command.name)
            command.finish(FAILED, error=CommandError("CommandExecutionError", repr(error)).public())
        self._agent.machine.log(f"command {command.name} {command.status}{_reason(command)}")
        if command.asynchronous:
            self._agent.heartbeat_soon()


def _reason(command: Command) -> str:
    return f": {command.error['message']}" if command.error else ""


def _step_name(params: dict[str, Any]) -> str | None:
    step = params.get("step")
    return str(step.get("step")) if isinstance(step, dict) else None


def _now() -> str:
    return datetime.now(UTC).isoformat()
