"""The deploy interface: prepares machine and networks, and declares the core deploy steps."""

from typing import Any

from ingot.drivers import results
from ingot.drivers.interfaces.base import BaseInterface
from ingot.drivers.task import Task


class DeployInterface(BaseInterface):
    """What the flows call around their steps; all of it may answer as steps do and must be safe to repeat.

    :meth:`prepare` comes before the deploy steps, :meth:`tear_down` and :meth:`clean_up` when an instance is deleted,
    the cleaning pair around clean steps, the service pair around service steps.
    """

    kind = "deploy"

    def prepare(self, task: Task) -> results.Result | None:
        """Gets the machine ready for the deploy steps: powered off, on the provisioning network, ramdisk prepared."""
        raise NotImplementedError

    def tear_down(self, task: Task) -> results.Result | None:
        """Takes the instance away: machine off, tenant networks gone."""
        raise NotImplementedError

    def adopt(self, task: Task) -> results.Result | None:
        """Takes over a machine that somebody else has deployed: it boots its instance from now on, on its user's
        networks. It may be in use, so its power is not touched."""
        return results.DONE

    def clean_up(self, task: Task) -> results.Result | None:
        """Removes what a deployment left outside of the machine: boot scripts, published files.

        Also called, once, when a deployment has failed, and then without waiting for what it answers.
        """
        return results.DONE

    def prepare_cleaning(self, task: Task) -> results.Result | None:
        """Gets the machine ready for clean steps; an agent-based implementation boots the agent and waits for it."""
        return results.DONE

    def tear_down_cleaning(self, task: Task) -> results.Result | None:
        """Leaves the cleaning environment: machine off, cleaning network gone."""
        return results.DONE

    def prepare_service(self, task: Task) -> results.Result | None:
        """Gets a machine with an instance ready for service steps; an agent-based implementation ends the user's
        system, boots the agent and waits for it."""
        return results.DONE

    def tear_down_service(self, task: Task) -> results.Result | None:
        """Gives the machine back to its user: on the user's networks, with the user's system running."""
        return results.DONE

    def runs_agent(self, task: Task, kind: str) -> bool:
        """Whether an agent runs on the machine during the node's flows of a kind, and may offer steps of its own.

        :param kind: ``clean``, ``deploy`` or ``service``.
        """
        return False

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
