"""What every interface is and does: its properties, its validation, its steps, and how steps are declared.

Sources: specifications 001 (deploy steps), 002 (clean steps), 000 (post-step hooks).
"""

import dataclasses
import functools
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, TypeAlias, TypeVar

from oslo_config import cfg

from ingot.common import errors
from ingot.common.steps import StepJson
from ingot.db import models
from ingot.drivers.interfaces import arguments
from ingot.drivers.interfaces.results import Answer
from ingot.drivers.interfaces.task import Task

Function = TypeVar("Function", bound=Callable[..., object])
Priority = int | None | Callable[[cfg.ConfigOpts], int | None]
ArgsInfo: TypeAlias = arguments.ArgsInfo
Hook = Callable[[Task, object], None]

KINDS: tuple[str, ...] = ("clean", "deploy", "service", "verify")

CORE_DEPLOY_STEPS = frozenset(
    ("deploy", "write_image", "prepare_instance_boot", "tear_down_agent", "switch_to_tenant_network", "boot_instance")
)
"""Steps of the deploy interface whose priority can only be overridden by 0 (specification 003)."""

IN_BAND_DEPLOY_PRIORITIES = range(41, 100)
"""Where in-band deploy steps may stand: after ``deploy`` and before ``tear_down_agent`` (specification 000)."""


@dataclasses.dataclass(frozen=True, slots=True)
class DeclaredStep:
    """What a decorator says of a step.

    :param priority: an integer, or a function of the configuration that returns one; 0 is not run by default. None: the
        agent's own priority holds, if it offers a step of this name, else 0.
    :param abortable: whether the step may be cut off while it waits.
    :param argsinfo: None: it takes no arguments. Types and defaults are those of the method, see
        :mod:`ingot.drivers.interfaces.arguments`.
    :param requires_ramdisk: whether the agent must be running.
    :param idempotent: whether each of its calls may be repeated, with the memory of the last answer, when a conductor
        died in it or hardware did not answer. Otherwise that ends the flow.
    """

    priority: Priority
    abortable: bool
    argsinfo: ArgsInfo | None
    requires_ramdisk: bool
    idempotent: bool

    def as_step(self, interface: str, name: str, conf: cfg.ConfigOpts) -> StepJson:
        """Return the step as plans and the API carry it."""
        priority = self.priority(conf) if callable(self.priority) else self.priority
        return {
            "interface": interface,
            "step": name,
            "priority": priority or 0,
            "priority_of_agent": priority is None,
            "abortable": self.abortable,
            "argsinfo": None if self.argsinfo is None else {arg: {**about} for arg, about in self.argsinfo.items()},
            "requires_ramdisk": self.requires_ramdisk,
            "idempotent": self.idempotent,
        }


@dataclasses.dataclass(frozen=True, slots=True)
class FromOption:
    """What an option says: a priority, or a number of seconds."""

    group: str
    name: str

    def __call__(self, conf: cfg.ConfigOpts) -> Any:
        return conf[self.group][self.name]


def from_option(group: str, name: str) -> FromOption:
    """Leave a priority to the operator: ``@clean_step(priority=from_option("deploy", "erase_devices_priority"))``.

    While the option is unset, it is left to the agent.
    """
    return FromOption(group, name)


def _declare(kind: str, declared: DeclaredStep) -> Callable[[Function], Function]:
    if isinstance(declared.priority, int) and (isinstance(declared.priority, bool) or declared.priority < 0):
        raise errors.Invalid(field="priority", value=declared.priority, allowed="It must be an integer of at least 0.")

    def mark(function: Function) -> Function:
        full = dataclasses.replace(declared, argsinfo=arguments.complete(function, declared.argsinfo))
        function.__dict__.setdefault("ingot_steps", {})[kind] = full
        return function

    return mark


def deploy_step(
    priority: Priority, argsinfo: ArgsInfo | None = None, *, requires_ramdisk: bool = False, idempotent: bool = False
) -> Callable[[Function], Function]:
    """Declare a method of any interface as a deploy step; see :class:`DeclaredStep`.

    In-band steps say ``requires_ramdisk`` and stand at 41..99.
    """
    return _declare("deploy", DeclaredStep(priority, False, argsinfo, requires_ramdisk, idempotent))


def clean_step(
    priority: Priority, abortable: bool = False, argsinfo: ArgsInfo | None = None, requires_ramdisk: bool = True
) -> Callable[[Function], Function]:
    """Declare a method as a clean step; see :class:`DeclaredStep`. Clean steps are idempotent by contract (002)."""
    return _declare("clean", DeclaredStep(priority, abortable, argsinfo, requires_ramdisk, idempotent=True))


def service_step(
    priority: Priority = 0, abortable: bool = False, argsinfo: ArgsInfo | None = None, requires_ramdisk: bool = True,
    idempotent: bool = False,
) -> Callable[[Function], Function]:  # fmt: skip
    """Declare a method as a service step; see :class:`DeclaredStep`."""
    return _declare("service", DeclaredStep(priority, abortable, argsinfo, requires_ramdisk, idempotent))


def verify_step(priority: Priority) -> Callable[[Function], Function]:
    """Declare a method as a step of verifying a node that is being managed for the first time."""
    return _declare("verify", DeclaredStep(priority, False, None, requires_ramdisk=False, idempotent=True))


_HOOKS: dict[tuple[str, str, str], list[Hook]] = {}


def _hook(kind: str, interface: str, step: str) -> Callable[[Hook], Hook]:
    """Register ``function(task, result)`` to run when a step of a kind has ended well (specification 000).

    The result is that of the agent's command, None for an out-of-band step.
    """

    def register(function: Hook) -> Hook:
        _HOOKS.setdefault((kind, interface, step), []).append(function)
        return function

    return register


post_clean_step_hook = functools.partial(_hook, "clean")
post_deploy_step_hook = functools.partial(_hook, "deploy")
post_service_step_hook = functools.partial(_hook, "service")


def find_hooks(kind: str, interface: str, step: str) -> list[Hook]:
    """Return the hooks registered for a step."""
    return _HOOKS.get((kind, interface, step), [])


class BaseInterface:
    """Base of all interfaces. Implementations are singletons: they keep nothing of a node in themselves.

    :cvar interface_type: one of ``ingot.common.interfaces.TYPES``.
    :cvar stands_for_others: whether :meth:`choose` returns another one, which does all the work.
    :ivar name: entry point under which it was enabled.
    """

    interface_type: ClassVar[str]
    stands_for_others: ClassVar[bool] = False

    def __init__(self, conf: cfg.ConfigOpts, name: str) -> None:
        self.conf = conf
        self.name = name
        self._declared: dict[str, dict[str, DeclaredStep]] = {kind: {} for kind in KINDS}
        for attribute in dir(type(self)):
            for kind, declared in getattr(getattr(type(self), attribute), "ingot_steps", {}).items():
                self._declared[kind][attribute] = declared

    def check_enabled(self, enabled: Mapping[str, "BaseInterface"]) -> None:
        """Check, when a conductor starts, that what this interface works with is enabled.

        :param enabled: all interfaces of its type for a hardware type, itself among them.
        :raises ConfigurationError: it is not.
        """

    def choose(self, node: models.Node, enabled: Mapping[str, "BaseInterface"]) -> "BaseInterface":
        """Return the interface that works for a node: another one, if this one stands for others.

        :param enabled: as that of :meth:`check_enabled`.
        """
        return self

    def get_properties(self) -> dict[str, str]:
        """Return the driver_info keys that the interface reads, with descriptions that say which are required."""
        return {}

    def validate(self, task: Task) -> None:
        """Check that the node has what the interface needs, without touching hardware where that is slow.

        :raises Invalid: what is missing or wrong, with the key's name.
        """

    def declarations(self, kind: str) -> Mapping[str, DeclaredStep]:
        """Return what the decorators of a kind say, by the steps' names: for documents and tests of drivers."""
        return self._declared[kind]

    def declared_steps(self, kind: str) -> list[StepJson]:
        """Return the steps of this interface of one kind: highest priority first."""
        declared = self._declared[kind].items()
        steps = [one.as_step(self.interface_type, name, self.conf) for name, one in declared]
        return sorted(steps, key=lambda step: (-step["priority"], step["step"]))

    def run_declared(self, task: Task, kind: str, step: StepJson) -> Answer:
        """Call the method of a declared step with the step's arguments.

        :raises StepFailed: this interface has no such step.
        :raises Invalid: its arguments are wrong: it may need some, and a priority without any has made it run.
        """
        name, args = step["step"], step.get("args") or {}
        if name not in self._declared[kind]:
            raise errors.StepFailed(f"interface {self.name} ({self.interface_type}) has no {kind} step {name}")
        if args or self._declared[kind][name].argsinfo:
            args = arguments.read(f"{self.interface_type}.{name}", args, self._declared[kind][name].argsinfo or {})
        method: Callable[..., Answer] = getattr(self, name)
        return method(task, **args)

    # Of each kind: all steps that this interface can perform on the node, those with priority 0 too; and run one.

    def get_clean_steps(self, task: Task) -> list[StepJson]:
        return self.declared_steps("clean")

    def execute_clean_step(self, task: Task, step: StepJson) -> Answer:
        return self.run_declared(task, "clean", step)

    def get_deploy_steps(self, task: Task) -> list[StepJson]:
        return self.declared_steps("deploy")

    def execute_deploy_step(self, task: Task, step: StepJson) -> Answer:
        return self.run_declared(task, "deploy", step)

    def get_service_steps(self, task: Task) -> list[StepJson]:
        return self.declared_steps("service")

    def execute_service_step(self, task: Task, step: StepJson) -> Answer:
        return self.run_declared(task, "service", step)

    def get_verify_steps(self, task: Task) -> list[StepJson]:
        return self.declared_steps("verify")

    def execute_verify_step(self, task: Task, step: StepJson) -> Answer:
        return self.run_declared(task, "verify", step)

    def not_supported(self, what: str) -> errors.UnsupportedInterface:
        """Return the error of a feature that this implementation does not have."""
        return errors.UnsupportedInterface(driver=f"interface {self.name} ({self.interface_type})", what=what)


Interface = TypeVar("Interface", bound=BaseInterface)


def get_interface(task: Task, contract: type[Interface]) -> Interface:
    """Return one of the node's interfaces, for another one that cannot do without it.

    :param contract: the base class of its type, like ``BootInterface``.
    :raises Invalid: it is not enabled anymore.
    """
    interface: Interface | None = getattr(task.driver, contract.interface_type)
    if interface is None:
        raise errors.Invalid(
            f"This conductor does not have the node's {contract.interface_type} interface, which its other interfaces "
            "work with: enable it, or give the node another one."
        )
    return interface
