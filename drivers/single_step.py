"""Adapts deploy interfaces that were written before deploy steps (specification 001): one step does it all."""

from typing import Any

from oslo_log import log

from ingot.drivers import steps
from ingot.drivers.interfaces.base import BaseInterface
from ingot.drivers.interfaces.deploy import DeployInterface
from ingot.drivers.task import Task

LOG = log.getLogger(__name__)


class DeploysInOneStep:
    """Comes before an old interface's class: its ``deploy`` method becomes the deploy step ``deploy``."""

    @steps.deploy_step(priority=100)
    def deploy(self, task: Task) -> Any:
        """Runs what the interface did before there were steps."""
        return super().deploy(task)  # type: ignore[misc]  # of the class this one is put before


def adapted(cls: type[BaseInterface]) -> type[BaseInterface]:
    """The class itself, or, for a deploy interface that knows nothing of steps, one that has a single step.

    :raises TypeError: a deploy interface has neither steps nor a method ``deploy``.
    """
    if not issubclass(cls, DeployInterface) or _has_steps(cls):
        return cls
    if not callable(getattr(cls, "deploy", None)):
        raise TypeError(f"{cls.__qualname__} has neither deploy steps nor a method deploy")
    LOG.warning(
        "Deploy interface %s declares no deploy steps; its deploy method runs as one step. This is deprecated: declare "
        "steps with deploy_step, and let running deployments end before an upgrade that removes it.",
        cls.__qualname__,
    )
    return type(cls.__name__, (DeploysInOneStep, cls), {"__module__": cls.__module__})


def _has_steps(cls: type[BaseInterface]) -> bool:
    if cls.get_deploy_steps is not BaseInterface.get_deploy_steps:
        return True
    return any("deploy" in getattr(getattr(cls, name), "ingot_steps", {}) for name in dir(cls))
