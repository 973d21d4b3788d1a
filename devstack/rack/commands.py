"""The agent's commands: what was asked, what became of it, and the table of what can be asked."""

import asyncio
import logging
import uuid
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from ingot.rack.command_errors import CommandError, Refused

if TYPE_CHECKING:
    from ingot.rack.agent import Agent

LOG = logging.getLogger(__name__)

RUNNING, SUCCEEDED = "RUNNING", "SUCCEEDED"


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

    def succeed(self, result: Any) -> None:
        """End well; a text as result begins with the command's name, as by a real agent."""
        answer = {"result": f"{self.name.partition('.')[2]}: {result}"} if isinstance(result, str) else result
        self._end(SUCCEEDED, result=answer)

    def fail(self, error: CommandError) -> None:
        self._end(error.status, error=error.public())

    def _end(self, status: str, result: Any = None, error: dict[str, Any] | None = None) -> None:
        self.status, self.result, self.error = status, result, error
        self.record.update(status=status, error=error["details"] if error else None, finished=_now())


Run = Callable[..., Awaitable[Any]]


@dataclass(frozen=True)
class CommandSpec:
    """How a command runs.

    :param run: is called with the agent and, by their names, with the command's parameters: those that it does not know
        or lacks are an error, as with a real agent.
    :param asynchronous: whether it runs on after its answer; the others are answered when they have ended.
    """

    run: Run
    asynchronous: bool = True


class CommandRunner:
    """Runs an agent's commands, one at a time, and remembers all of them."""

    def __init__(self, agent: "Agent", table: dict[str, CommandSpec]) -> None:
        self._agent = agent
        self._table = table
        self._tasks: set[asyncio.Task[None]] = set()
        self._turn = asyncio.Lock()
        self.commands: list[Command] = []

    async def submit(self, name: str, params: dict[str, Any], wait: bool) -> Command:
        """Start a command and, with ``wait`` or when it is no asynchronous one, let it end.

        :raises Refused: while an asynchronous one runs, and for a name that is not in the table.
        """
        async with self._turn:
            spec = self._accept(name)
            command = Command(name, spec.asynchronous, _step_name(params))
            task = self._start(command, spec, params)
            if not spec.asynchronous:
                await asyncio.shield(task)
        if wait:
            await asyncio.shield(task)
        return command

    def kill(self) -> None:
        """Drop everything that runs."""
        for task in self._tasks:
            task.cancel()
        for command in self.commands:
            if command.status == RUNNING:
                command.record.update(status="LOST", finished=_now())

    def _accept(self, name: str) -> CommandSpec:
        """Find a command that may begin; what stands against it is looked for in a real agent's order."""
        extension, dot, action = name.partition(".")
        if not dot:
            raise Refused(400, "Invalid command: Command name must be of the form <extension>.<name>")
        if self.commands and self.commands[-1].status == RUNNING:
            running = self.commands[-1].public()["command_name"]
            raise Refused(409, f"Agent is busy: executing command {running}")
        too_old = self._agent.machine.faults.strike("agent_lacks_extension", extension)
        if too_old or extension not in {known.partition(".")[0] for known in self._table}:
            raise Refused(404, f"Not found: Extension with id {extension} not found.")
        if name not in self._table:
            raise Refused(400, f"Invalid command: Unknown command: {action}")
        return self._table[name]

    def _start(self, command: Command, spec: CommandSpec, params: dict[str, Any]) -> asyncio.Task[None]:
        command.record = {
            "command": command.name,
            "step": command.step,
            "boot": self._agent.machine.boots,
            "status": RUNNING,
            "started": _now(),
            "finished": None,
        }
        self.commands.append(command)
        self._agent.machine.commands.append(command.record)
        self._agent.machine.log(f"command {command.name}{' step ' + command.step if command.step else ''}")
        task = asyncio.ensure_future(self._run(command, spec, params))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _run(self, command: Command, spec: CommandSpec, params: dict[str, Any]) -> None:
        try:
            await self._agent.apply_faults(command.step or command.name)
            command.succeed(await spec.run(self._agent, **params))
            self._agent.machine.faults.note_step_end(command.step or command.name)
        except CommandError as error:
            command.fail(error)
        except Exception as error:
            LOG.exception("%s: %s failed", self._agent.machine.name, command.name)
            command.fail(CommandError("CommandExecutionError", repr(error)))
        self._agent.machine.log(f"command {command.name} {command.status}{_reason(command)}")
        if command.asynchronous:
            self._agent.heartbeat_soon()


def _reason(command: Command) -> str:
    return f": {command.error['details']}" if command.error else ""


def _step_name(params: dict[str, Any]) -> str | None:
    step = params.get("step")
    return str(step.get("step")) if isinstance(step, dict) else None


def _now() -> str:
    return datetime.now(UTC).isoformat()
