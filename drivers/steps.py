"""How interfaces declare steps: one decorator for each kind of flow, hooks for what follows a step.

Sources: specifications 001 (deploy steps), 002 (clean steps), 000 (post-step hooks).
"""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from oslo_config import cfg

from ingot.common import errors

Function = TypeVar("Function", bound=Callable[..., Any])
Priority = int | Callable[[cfg.ConfigOpts], int | None]
Hook = Callable[[Any, Any], None]

KINDS: tuple[str, ...] = ("clean", "deploy", "service", "verify")

CORE_DEPLOY_STEPS = frozenset(
    (
        "deploy",
        "write_image",
        "prepare_instance_boot",
        "tear_down_agent",
        "switch_to_tenant_network",
        "boot_instance",
    )
)
"""Steps of the deploy interface whose priority can only be overridden by 0 (specification 003)."""

IN_BAND_DEPLOY_PRIORITIES = range(41, 100)
"""Where in-band deploy steps may stand: after ``deploy`` and before ``tear_down_agent`` (specification 000)."""


@dataclasses.dataclass(frozen=True, slots=True)
class Declared:
    """What a decorator says of a step.

    :param priority: an integer, or a function of the configuration that gives one (None: 0); 0 is not run by itself.
    :param abortable: whether the step may be cut off while it waits.
    :param argsinfo: argument name -> {"description": str, "required": bool}; None: it takes no arguments.
    :param requires_ramdisk: whether the agent must be running.
    :param idempotent: whether each of its calls may be repeated, with the memory of the last answer: after a conductor
        died in it, or hardware did not answer. Otherwise that ends the flow.
    """

    priority: Priority
    abortable: bool
    argsinfo: Mapping[str, Mapping[str, Any]] | None
    requires_ramdisk: bool
    idempotent: bool

    def as_step(self, interface: str, name: str, conf: cfg.ConfigOpts) -> dict[str, Any]:
        """The step as dictionaries carry it through plans and the API."""
        priority = self.priority(conf) if callable(self.priority) else self.priority
        return {
            "interface": interface,
            "step": name,
            "priority": priority or 0,
            "abortable": self.abortable,
            "argsinfo": self.argsinfo and {arg: dict(about) for arg, about in self.argsinfo.items()},
            "requires_ramdisk": self.requires_ramdisk,
            "idempotent": self.idempotent,
        }


def from_option(group: str, name: str) -> Callable[[cfg.ConfigOpts], int | None]:
    """A priority that the operator sets: ``@clean_step(priority=from_option("deploy", "erase_devices_priority"))``."""
    return lambda conf: conf[group][name]


def _declare(kind: str, declared: Declared) -> Callable[[Function], Function]:
    _check_argsinfo(declared.argsinfo)
    if not callable(declared.priority) and (isinstance(declared.priority, bool) or declared.priority < 0):
        raise errors.Invalid(field="priority", value=declared.priority, allowed="It must be an integer of at least 0.")

    def mark(function: Function) -> Function:
        function.__dict__.setdefault("ingot_steps", {})[kind] = declared
        return function

    return mark


def _check_argsinfo(argsinfo: Mapping[str, Mapping[str, Any]] | None) -> None:
    for name, about in (argsinfo or {}).items():
        unknown = set(about) - {"description", "required"}
        if unknown or not about.get("description") or not isinstance(about.get("required", False), bool):
            raise errors.Invalid(
                field=f"argsinfo[{name}]",
                value=about,
                allowed="It must have a description, and may have required (true or false).",
            )


def deploy_step(
    priority: Priority,
    argsinfo: Mapping[str, Mapping[str, Any]] | None = None,
    *,
    requires_ramdisk: bool = False,
    idempotent: bool = False,
) -> Callable[[Function], Function]:
    """Declares a method of any interface as a deploy step; see :class:`Declared`.

    In-band steps say ``requires_ramdisk`` and stand at 41..99.
    """
    return _declare("deploy", Declared(priority, False, argsinfo, requires_ramdisk, idempotent))


def clean_step(
    priority: Priority,
    abortable: bool = False,
    argsinfo: Mapping[str, Mapping[str, Any]] | None = None,
    requires_ramdisk: bool = True,
) -> Callable[[Function], Function]:
    """Declares a method as a clean step; see :class:`Declared`. Clean steps are idempotent by contract (002)."""
    return _declare("clean", Declared(priority, abortable, argsinfo, requires_ramdisk, idempotent=True))


def service_step(
    priority: Priority = 0,
    abortable: bool = False,
    argsinfo: Mapping[str, Mapping[str, Any]] | None = None,
    requires_ramdisk: bool = True,
) -> Callable[[Function], Function]:
    """Declares a method as a service step; see :class:`Declared`."""
    return _declare("service", Declared(priority, abortable, argsinfo, requires_ramdisk, idempotent=False))


def verify_step(priority: Priority) -> Callable[[Function], Function]:
    """Declares a method as a step of verifying a node that is being managed for the first time."""
    return _declare("verify", Declared(priority, False, None, requires_ramdisk=False, idempotent=True))


_HOOKS: dict[tuple[str, str, str], list[Hook]] = {}


def _hook(kind: str, interface: str, step: str) -> Callable[[Hook], Hook]:
    def register(function: Hook) -> Hook:
        _HOOKS.setdefault((kind, interface, step), []).append(function)
        return function

    return register


def post_clean_step_hook(interface: str, step: str) -> Callable[[Hook], Hook]:
    """Registers ``function(task, result)`` to run when a clean step has ended well; result is the agent's command
    result, None for an out-of-band step."""
    return _hook("clean", interface, step)


def post_deploy_step_hook(interface: str, step: str) -> Callable[[Hook], Hook]:
    """As :func:`post_clean_step_hook`, for deploy steps (specification 000)."""
    return _hook("deploy", interface, step)


def post_service_step_hook(interface: str, step: str) -> Callable[[Hook], Hook]:
    """As :func:`post_clean_step_hook`, for service steps."""
    return _hook("service", interface, step)


def hooks_after(kind: str, interface: str, step: str) -> list[Hook]:
    """The hooks registered for a step."""
    return _HOOKS.get((kind, interface, step), [])
