"""Hardware that does what a script says, and the life of a conductor that can be ended at any access to the database.

Everything between the script and the database is the product: the conductor with its queues, the engine, the factory,
the deploy interface ``direct``, the agent's client.
"""

import contextlib
import dataclasses
import importlib.metadata
from collections.abc import Callable, Iterator
from typing import Any

import sqlalchemy as sa

from ingot.common import errors, interfaces
from ingot.db.engine import Database
from ingot.drivers.agent import direct
from ingot.drivers.agent import inspect as agent_inspect
from ingot.drivers.agent import rescue as agent_rescue
from ingot.drivers.generic import fake
from ingot.drivers.generic.fake import FakeHardware
from ingot.drivers.interfaces import noop, results
from ingot.drivers.interfaces.hardware_type import Supported
from ingot.drivers.interfaces.task import Task
from ingot.drivers.loading import entry_points, factory
from tests import scripted_agent

PAUSE = 3600.0
"""Seconds until a polling step wants to be looked at again: a test looks when it likes."""


class Killed(BaseException):
    """The conductor ends here, as kill -9 ends it."""


class Life:
    """The life of one conductor: when it is over, nothing that it does has any effect.

    :ivar accesses: how often it touched the database, counted before and after each statement or transaction.
    """

    def __init__(self) -> None:
        self.dead = False
        self.accesses = 0
        self._last: int | None = None
        self._ends: Callable[[], None] = self._die

    def end_after(self, accesses: int, ends: Callable[[], None] | None = None) -> None:
        """End the life at an access from now on.

        :param ends: what ends it; by default it is killed.
        """
        self._last = self.accesses + accesses
        self._ends = ends or self._die

    def touch(self) -> None:
        self.accesses += 1
        if self.accesses == self._last:
            self._ends()
        self.check()

    def _die(self) -> None:
        self.dead = True

    def check(self) -> None:
        if self.dead:
            raise Killed

    def end(self) -> None:
        self.dead = True
        raise Killed


class MortalDatabase(Database):
    """The database as a conductor that may die sees it: cut off before or after what it does there.

    :param db: the test's own. All conductors share its connections, and the statements that it has compiled.
    """

    def __init__(self, db: Database, life: Life) -> None:
        vars(self).update(vars(db))
        self.life = life

    @contextlib.contextmanager
    def single(self) -> Iterator[sa.Connection]:
        with self._alive(super().single()) as connection:
            yield connection

    @contextlib.contextmanager
    def transaction(self) -> Iterator[sa.Connection]:
        with self._alive(super().transaction()) as connection:
            yield connection

    @contextlib.contextmanager
    def _alive(self, access: contextlib.AbstractContextManager[sa.Connection]) -> Iterator[sa.Connection]:
        self.life.touch()
        with access as connection:
            yield connection
        self.life.touch()


@dataclasses.dataclass
class Act:
    """A step of the script, or (kind ``flow``) a method that a flow calls around its steps.

    :param way: ``at once``, ``polling`` (hardware that needs a second look), ``waiting`` (for the agent's call) or
        ``agent`` (the agent does it).
    :param fault: what goes wrong: ``raises``, ``is a bug``, ``hangs``, ``killed`` (the conductor, when the step has
        begun); and for the agent those of ``scripted_agent``, or ``upgraded`` and ``replaced``: it has other hardware
        managers when the step begins, or another version after the reboot that the step asks for.
    """

    kind: str
    interface: str
    step: str
    priority: int = 50
    way: str = "at once"
    idempotent: bool = True
    abortable: bool = False
    requires_ramdisk: bool = False
    reboot_requested: bool = False
    fault: str | None = None

    def as_step(self) -> dict[str, Any]:
        step = dataclasses.asdict(self)
        described = {"description": "Tells one run of the step from another."}
        return {name: step[name] for name in step if name not in ("kind", "way", "fault", "idempotent")} | {
            "argsinfo": {"number": described}
        }

    def declared(self) -> dict[str, Any]:
        """Return the step as an interface declares it."""
        step = self.as_step() | {"idempotent": self.idempotent}
        del step["reboot_requested"]
        return step


class Stage:
    """Where a script is played.

    :ivar acts: the script.
    :ivar did: (node's uuid, interface, step, args) whenever a step has begun to do what it does.
    :ivar life: of the conductor that works now.
    :ivar meanwhile: is called when a step that took more than one call ends.
    :ivar silent_in: interface and name of the step in which agents send no heartbeat.
    :ivar distrusted: whether agents that boot from now on take no command with the token that they were given.
    """

    def __init__(self) -> None:
        self.acts: list[Act] = []
        self.meanwhile: Callable[[], None] = lambda: None
        self.silent_in: tuple[str, str] | None = None
        self.distrusted = False
        self.did: list[tuple[str, str, str, dict[str, Any]]] = []
        self.life = Life()

    def find(self, kind: str, interface: str, step: str) -> Act | None:
        return next((act for act in self.acts if (act.kind, act.interface, act.step) == (kind, interface, step)), None)

    def declared(self, kind: str, interface: str) -> list[dict[str, Any]]:
        own = (act for act in self.acts if (act.kind, act.interface) == (kind, interface) and act.way != "agent")
        return [act.declared() for act in own]

    def offered(self, kind: str) -> list[dict[str, Any]]:
        return [act.as_step() for act in self.acts if act.kind == kind and act.way == "agent"]

    def play(self, task: Any, act: Act) -> results.Result:
        """Play one call of a step of an interface.

        The work is done at the first call; the step ends at the first or the second.
        """
        if "begun" not in task.memory:
            task.memory["begun"] = True
            step = task.step
            self.did.append((task.node.uuid, step.interface, step.step, dict(step.args)))
            if act.fault == "killed":
                self.life.end()
            if act.way == "at once":
                self.complain(act)
                return results.DONE
        elif act.fault != "hangs":
            self.meanwhile()
            self.complain(act)
            return results.DONE
        return results.WaitForAgent() if act.way == "waiting" else results.PollAfter(PAUSE)

    def complain(self, act: Act) -> None:
        if act.fault == "raises":
            raise errors.StepFailed("out of luck")
        if act.fault == "is a bug":
            raise RuntimeError("out of mind")

    def play_entry(self, interface: str, method: str) -> results.Result | None:
        """Play the fault of a method that a flow calls around its steps; return None if there is none."""
        act = self.find("flow", interface, method)
        if act is None or act.fault is None:
            return None
        if act.fault == "killed":
            self.life.end()
        self.complain(act)
        return results.PollAfter(PAUSE)

    def play_on_agent(self, agent: scripted_agent.Agent, kind: str, step: dict[str, Any], node_uuid: str) -> str | None:
        """Begin a step on the machine.

        :returns: the fault with which it ends.
        """
        act = self.find(kind, step["interface"], step["step"])
        if act is None:
            return None
        self.did.append((node_uuid, act.interface, act.step, dict(step["args"])))
        if act.fault == "killed":
            self.life.dead = True
        if act.fault == "upgraded":
            agent.managers = {"manager": "2"}
        return act.fault


class _Acts:
    """What each interface of scripted hardware has besides its own: the steps of the script.

    :ivar stage: set by the maker of the hardware; one for each conductor, as interfaces are.
    """

    interface_type: str
    stage: Stage | None = None

    def declared_steps(self, kind: str) -> list[dict[str, Any]]:
        own: list[dict[str, Any]] = super().declared_steps(kind)  # type: ignore[misc]  # of the interface
        return [*own, *(self.stage.declared(kind, self.interface_type) if self.stage else [])]

    def run_declared(self, task: Task, kind: str, step: dict[str, Any]) -> Any:
        assert self.stage is not None
        self.stage.life.check()
        act = self.stage.find(kind, self.interface_type, step["step"])
        return self.stage.play(task, act) if act else super().run_declared(task, kind, step)  # type: ignore[misc]

    def entry(self, task: Task, name: str, *args: Any) -> Any:
        """Play the fault of a method that a flow calls around its steps, or else call the interface's."""
        assert self.stage is not None
        answer = self.stage.play_entry(self.interface_type, name)
        return getattr(super(), name)(task, *args) if answer is None else answer


class Bios(_Acts, fake.FakeBIOS):
    pass


class Boot(_Acts, fake.FakeBoot):
    pass


class Console(_Acts, fake.FakeConsole):
    pass


class Firmware(_Acts, fake.FakeFirmware):
    pass


class Inspect(_Acts, agent_inspect.AgentInspect):
    def inspect_hardware(self, task: Task) -> Any:
        return self.entry(task, "inspect_hardware")


class Management(_Acts, fake.FakeManagement):
    pass


class Network(_Acts, noop.NoopNetwork):
    pass


class Raid(_Acts, fake.FakeRAID):
    pass


class Rescue(_Acts, agent_rescue.AgentRescue):
    def rescue(self, task: Task, password_hash: str) -> Any:
        return self.entry(task, "rescue", password_hash)

    def unrescue(self, task: Task) -> Any:
        return self.entry(task, "unrescue")


class Storage(_Acts, noop.NoopStorage):
    pass


class Vendor(_Acts, fake.FakeVendor):
    pass


class Power(_Acts, fake.FakePower):
    def validate(self, task: Task) -> None:
        assert self.stage is not None
        self.stage.play_entry("power", "verify_power")

    def start_power_change(self, task: Task, target: str) -> None:
        """Start a power change, which goes wrong in reserved steps only.

        Those of the flows are not what is tested.
        """
        assert self.stage is not None
        self.stage.life.check()
        reserved = task.step is not None and task.step.step == target.replace(" ", "_")
        if not reserved or self.stage.play_entry("power", target.replace(" ", "_")) is None:
            super().start_power_change(task, target)


class Deploy(_Acts, direct.DirectDeploy):
    def run_declared(self, task: Task, kind: str, step: dict[str, Any]) -> Any:
        assert self.stage is not None
        answer = self.stage.play_entry("deploy", step["step"])
        return super().run_declared(task, kind, step) if answer is None else answer

    def prepare(self, task: Task) -> Any:
        return self.entry(task, "prepare")

    def prepare_cleaning(self, task: Task) -> Any:
        return self.entry(task, "prepare_cleaning")

    def prepare_service(self, task: Task) -> Any:
        return self.entry(task, "prepare_service")

    def tear_down(self, task: Task) -> Any:
        return self.entry(task, "tear_down")

    def tear_down_service(self, task: Task) -> Any:
        return self.entry(task, "tear_down_service")

    def adopt(self, task: Task) -> Any:
        return self.entry(task, "adopt")


_CLASSES: dict[str, Any] = {
    "bios": Bios, "boot": Boot, "console": Console, "deploy": Deploy, "firmware": Firmware, "inspect": Inspect,
    "management": Management, "network": Network, "power": Power, "raid": Raid, "rescue": Rescue, "storage": Storage,
    "vendor": Vendor,
}  # fmt: skip


class ScriptedHardware(FakeHardware):
    def list_supported(self, kind: str) -> Supported:
        return (_CLASSES[kind],)


def _source(group: str) -> list[importlib.metadata.EntryPoint]:
    """Return the entry points of an installation that has nothing but scripted hardware."""
    offered = {entry_points.TYPES: ScriptedHardware}
    offered |= {entry_points.interface_group(kind): cls for kind, cls in _CLASSES.items()}
    if group not in offered:
        return []
    return [importlib.metadata.EntryPoint("scripted", entry_points.class_path(offered[group]), group)]


def hardware(conf: Any, stage: Stage) -> factory.Hardware:
    """Load scripted hardware as a conductor does.

    :raises ConfigurationError: the script has steps without an order.
    """
    _Acts.stage = stage  # what is loaded is checked
    try:
        made = factory.Hardware(conf, _source)
    finally:
        _Acts.stage = None
    for kind in interfaces.TYPES:
        made.interface(kind, "scripted").stage = stage  # type: ignore[attr-defined]
    return made
