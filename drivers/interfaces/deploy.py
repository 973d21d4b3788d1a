"""The deploy interface: prepares machine and networks, and declares the core deploy steps."""

from typing import ClassVar

from ingot.common.json_types import OfferedSteps
from ingot.common.steps import StepJson
from ingot.db import models
from ingot.drivers.interfaces import results
from ingot.drivers.interfaces.base import BaseInterface
from ingot.drivers.interfaces.results import Answer
from ingot.drivers.interfaces.task import Task


class DeployInterface(BaseInterface):
    """What the flows call around their steps; all of it may answer as steps do and must be safe to repeat.

    :meth:`prepare` comes before the deploy steps, :meth:`tear_down` and :meth:`clean_up` when an instance is deleted,
    the cleaning pair around clean steps, the service pair around service steps.
    """

    interface_type = "deploy"

    keeps_drive_parts: ClassVar[bool] = False
    """Whether a config drive that is given as an object stays one, for steps of the agent that know its parts."""

    def prepare(self, task: Task) -> Answer:
        """Prepare the machine for the deploy steps: powered off, on the provisioning network, ramdisk prepared."""
        raise NotImplementedError

    def tear_down(self, task: Task) -> Answer:
        """Remove the instance: machine off, tenant networks gone."""
        raise NotImplementedError

    def adopt(self, task: Task) -> Answer:
        """Take over a machine that was deployed elsewhere: it boots its instance from now on, on its user's networks.

        It may be in use, so its power is not touched.
        """
        return results.DONE

    def clean_up(self, task: Task) -> Answer:
        """Remove what a deployment left outside of the machine: boot scripts, published files.

        Also called, once, when a deployment has failed, and then without waiting for what it answers.
        """
        return results.DONE

    def prepare_cleaning(self, task: Task) -> Answer:
        """Prepare the machine for clean steps; an agent-based implementation boots the agent and waits for it."""
        return results.DONE

    def tear_down_cleaning(self, task: Task) -> Answer:
        """Leave the cleaning environment: machine off, cleaning network gone."""
        return results.DONE

    def prepare_service(self, task: Task) -> Answer:
        """Prepare a machine with an instance for service steps.

        An agent-based implementation ends the user's system, boots the agent and waits for it.
        """
        return results.DONE

    def tear_down_service(self, task: Task) -> Answer:
        """Give the machine back to its user: on the user's networks, with the user's system running."""
        return results.DONE

    def runs_agent(self, task: Task, kind: str) -> bool:
        """Return whether an agent, which may offer steps, runs on the machine during the node's flows of a kind.

        :param kind: ``clean``, ``deploy`` or ``service``.
        """
        return False

    def get_in_band_steps(self, task: Task, kind: str) -> list[StepJson]:
        """Return the steps that the running agent offers; none for deploy interfaces without an agent.

        :raises AgentError: the agent does not answer as it must.
        """
        return []

    def recall_in_band_steps(self, task: Task, kind: str) -> OfferedSteps | None:
        """Return the steps that an agent offered last, with the operator's priorities; None if none ever did."""
        return None

    def execute_in_band_step(self, task: Task, kind: str, step: StepJson) -> Answer:
        """Run a step of the agent's; called again at each heartbeat until it answers done."""
        raise self.not_supported("in-band steps")

    def has_decomposed_deploy_steps(self) -> bool:
        """Return whether the core steps are declared one by one (specification 000)."""
        declared = {step["step"] for step in self.declared_steps("deploy")}
        return "write_image" in declared or "boot_instance" in declared

    def supports_deploy(self, node: models.Node) -> bool:
        """Return whether this interface can deploy what a node's ``instance_info`` names; ``autodetect`` asks."""
        return True

    def collect_logs(self, task: Task) -> bytes | None:
        """Return the agent's logs as a tar.gz after a failure, None if there are none to be had."""
        return None
