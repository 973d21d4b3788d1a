"""The deploy interface ``autodetect``: stands for the one that fits what a node's instance names.

It is replaced when a driver is composed for a task, by what ``instance_info`` says and nothing else: every conductor
finds the same, before and after a restart, and the node's ``deploy_interface`` stays what its user has chosen.
"""

from collections.abc import Mapping

from ingot.common import errors
from ingot.common.steps import StepJson
from ingot.db import models
from ingot.drivers.agent.direct import DirectDeploy
from ingot.drivers.interfaces.base import BaseInterface
from ingot.drivers.interfaces.deploy import DeployInterface
from ingot.drivers.interfaces.task import Task

_OPTION = "autodetect_deploy_interfaces"


class AutodetectDeploy(DeployInterface):
    """Never works itself: see :meth:`choose`."""

    stands_for_others = True

    def get_properties(self) -> dict[str, str]:
        return DirectDeploy(self.conf, self.name).get_properties()

    def get_deploy_steps(self, task: Task) -> list[StepJson]:
        """Return none: those of the chosen interface are planned."""
        return []

    def check_enabled(self, enabled: Mapping[str, BaseInterface]) -> None:
        listed: list[str] = self.conf[_OPTION]
        usable = [name for name in enabled if name != self.name]
        missing = [name for name in listed if name not in usable]
        if listed and not missing:
            return
        allowed = f"Names that are in enabled_deploy_interfaces, too: {', '.join(usable) or 'none is'}."
        raise errors.ConfigurationError(option=_OPTION, value=listed, allowed=allowed)

    def choose(self, node: models.Node, enabled: Mapping[str, BaseInterface]) -> BaseInterface:
        """Return the first of the operator's interfaces that can deploy what the instance names; else the last."""
        candidates = [enabled[name] for name in self.conf[_OPTION]]
        fitting = (one for one in candidates if isinstance(one, DeployInterface) and one.supports_deploy(node))
        return next(fitting, candidates[-1])
