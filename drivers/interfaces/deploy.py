"""The deploy interface: prepares machine and networks, and declares the core deploy steps."""

from typing import Any, ClassVar

from ingot.drivers import results
from ingot.drivers.interfaces.base import BaseInterface
from ingot.drivers.task import Task


class DeployInterface(BaseInterface):
    """What the flows call around their steps; all of it may answer as steps do and must be safe to repeat.

    :meth:`prepare` comes before the deploy steps, :meth:`tear_down` and :meth:`clean_up` when an instance is deleted,
    the cleaning pair around clean steps.
    """

    kind = "deploy"
    agent_based: ClassVar[bool] = False
    """Whether an agent runs on the machine at some point, which may offer steps of its own."""

    def prepare(self, task: Task) -> results.Result | None:
        """Gets the machine ready for the deploy steps: powered off, on the provisioning network, ramdisk prepared."""
        raise NotImplementedError

    def tear_down(self, task: Task) -> results.Result | None:
        """Takes the instance away: machine off, tenant networks gone."""
        raise NotImplementedError

    def clean_up(self, task: Task) -> results.Result | None:
        """Removes what a deployment left outside of the machine. Also called after a failure."""
        raise NotImplementedError

    def prepare_cleaning(self, task: Task) -> results.Result | None:
        """Gets the machine ready for clean steps; an agent-based implementation boots the agent and waits for it."""
        return results.DONE

    def tear_down_cleaning(self, task: Task) -> results.Result | None:
        """Leaves the cleaning environment: machine off, cleaning network gone."""
        return results.DONE

    def get_in_band_steps(self, task: Task, kind: str) -> list[dict[str, Any]]:
        """Steps that the running agent offers, each with interface, step, priority, abortable, argsinfo,
        reboot_requested; empty for deploy interfaces without an agent.

        :raises AgentError: the agent does not tell.
        """
        return []

    def execute_in_band_step(self, task: Task, kind: str, step: dict[str, Any]) -> results.Result | None:
        """Runs a step of the agent's; called again at each heartbeat until it answers done."""
        raise self.not_supported("in-band steps")

    def has_decomposed_deploy_steps(self) -> bool:
        """Whether the core steps are declared one by one (specification 000)."""
        declared = {step["step"] for step in self.declared_steps("deploy")}
        return "write_image" in declared or "boot_instance" in declared

    def collect_logs(self, task: Task) -> bytes | None:
        """The agent's logs as a tar.gz after a failure, None if there are none to be had."""
        return None
