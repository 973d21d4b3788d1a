"""What every interface is and does: its properties, its validation, its steps."""

from collections.abc import Callable
from typing import Any, ClassVar

from oslo_config import cfg

from ingot.common import errors
from ingot.drivers import steps
from ingot.drivers.task import Task


def needed(task: Task, kind: str) -> Any:
    """The node's interface of a kind, for one of another kind that cannot do without it.

    :raises Invalid: it is not enabled any more.
    """
    found = getattr(task.driver, kind)
    if found is None:
        raise errors.Invalid(
            f"This conductor does not have the node's {kind} interface, which its other interfaces work with: enable "
            "it, or give the node another one."
        )
    return found


class BaseInterface:
    """Base of all interfaces. Implementations are singletons: they keep nothing of a node in themselves.

    :cvar kind: kind of interface, one of ``ingot.common.interfaces.KINDS``.
    :cvar supported: False for the ``no-*`` implementations, whose features the API reports as not supported.
    :ivar name: entry point under which it was enabled.
    """

    kind: ClassVar[str]
    supported: ClassVar[bool] = True

    def __init__(self, conf: cfg.ConfigOpts, name: str) -> None:
        self.conf = conf
        self.name = name
        self._declared: dict[str, dict[str, steps.Declared]] = {kind: {} for kind in steps.KINDS}
        for attribute in dir(type(self)):
            for kind, declared in getattr(getattr(type(self), attribute), "ingot_steps", {}).items():
                self._declared[kind][attribute] = declared

    def get_properties(self) -> dict[str, str]:
        """driver_info keys that the interface reads, each with a description that says whether it is required."""
        return {}

    def validate(self, task: Task) -> None:
        """Checks that the node has what the interface needs, without touching hardware where that is slow.

        :raises Invalid: what is missing or wrong, with the key's name.
        """

    def declared_steps(self, kind: str) -> list[dict[str, Any]]:
        """The steps of this interface of one kind: highest priority first."""
        found = [declared.as_step(self.kind, name, self.conf) for name, declared in self._declared[kind].items()]
        return sorted(found, key=lambda step: (-step["priority"], step["step"]))

    def run_declared(self, task: Task, kind: str, step: dict[str, Any]) -> Any:
        """Calls the method of a declared step with the step's arguments.

        :raises StepFailed: this interface has no such step.
        """
        if step["step"] not in self._declared[kind]:
            raise errors.StepFailed(f"interface {self.name} ({self.kind}) has no {kind} step {step['step']}")
        method: Callable[..., Any] = getattr(self, step["step"])
        return method(task, **(step.get("args") or {}))

    def get_clean_steps(self, task: Task) -> list[dict[str, Any]]:
        """All clean steps this interface can perform on the node, those with priority 0 too."""
        return self.declared_steps("clean")

    def execute_clean_step(self, task: Task, step: dict[str, Any]) -> Any:
        """Runs a clean step; the answer is one of ``ingot.drivers.results``."""
        return self.run_declared(task, "clean", step)

    def get_deploy_steps(self, task: Task) -> list[dict[str, Any]]:
        """All deploy steps this interface can perform on the node, those with priority 0 too."""
        return self.declared_steps("deploy")

    def execute_deploy_step(self, task: Task, step: dict[str, Any]) -> Any:
        """Runs a deploy step; the answer is one of ``ingot.drivers.results``."""
        return self.run_declared(task, "deploy", step)

    def get_service_steps(self, task: Task) -> list[dict[str, Any]]:
        """All service steps this interface can perform on the node."""
        return self.declared_steps("service")

    def execute_service_step(self, task: Task, step: dict[str, Any]) -> Any:
        """Runs a service step; the answer is one of ``ingot.drivers.results``."""
        return self.run_declared(task, "service", step)

    def get_verify_steps(self, task: Task) -> list[dict[str, Any]]:
        """All verify steps of this interface."""
        return self.declared_steps("verify")

    def execute_verify_step(self, task: Task, step: dict[str, Any]) -> Any:
        """Runs a verify step; the answer is one of ``ingot.drivers.results``."""
        return self.run_declared(task, "verify", step)

    def not_supported(self, what: str) -> errors.UnsupportedInterface:
        """The error of a feature that this implementation does not have; to be raised."""
        return errors.UnsupportedInterface(driver=f"interface {self.name} ({self.kind})", what=what)
