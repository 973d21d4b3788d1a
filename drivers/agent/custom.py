"""Deploys by the steps that are asked for: ``custom-agent`` boots the agent and ends it, and writes nothing itself.

A node that boots from a volume needs no agent: the same steps are planned, and those for agent or disk do nothing. The
core steps are those of specification 000, with its priorities. Each looks at what is there before it acts, so that
another conductor can repeat it.
"""

import json

from ingot.common.json_types import Json
from ingot.common.steps import StepJson
from ingot.drivers.agent import booting, commands, session
from ingot.drivers.agent.deploy import AgentDeploy
from ingot.drivers.interfaces import base, boot, power_control, results
from ingot.drivers.interfaces.base import get_interface
from ingot.drivers.interfaces.network import NetworkInterface
from ingot.drivers.interfaces.storage import StorageInterface
from ingot.drivers.interfaces.task import Task


def uses_agent(task: Task) -> bool:
    """Return whether the agent writes to the machine's disk; else it boots from a volume, and no agent runs."""
    return get_interface(task, StorageInterface).should_write_image(task)


class CustomAgentDeploy(AgentDeploy):
    """The deploy interface ``custom-agent``, and the base of those that know what to write."""

    keeps_drive_parts = True

    def get_properties(self) -> dict[str, str]:
        return {
            **super().get_properties(),
            booting.FORCE_OUT_OF_BAND: "Whether the BMC, and not the agent, switches the machine off after a "
            "deployment. Optional, default false.",
        }

    def runs_agent(self, task: Task, kind: str) -> bool:
        return super().runs_agent(task, kind) or (kind == "deploy" and uses_agent(task))

    def validate(self, task: Task) -> None:
        super().validate(task)
        boot.find_boot_mode(task)

    def prepare(self, task: Task) -> results.Result:
        def prepare_machine(task: Task) -> results.Result:
            if uses_agent(task):
                return booting.run_unless_running(task, power_control.power_off, self._enter_networks)
            # an agent that was left running from before is not used either
            return results.run_phases(task, power_control.power_off, booting.forget_agent)

        def attach_volumes(task: Task) -> None:
            get_interface(task, StorageInterface).attach_volumes(task)

        return results.run_phases(task, self.check_instance, prepare_machine, attach_volumes)

    def check_instance(self, task: Task) -> results.Answer:
        """Refuse what cannot be deployed, before the machine is touched; called again until it answers done."""
        return results.DONE

    @staticmethod
    def _enter_networks(task: Task) -> results.Result:
        network = get_interface(task, NetworkInterface)
        enter = (network.unconfigure_tenant_networks, network.add_provisioning_network)
        return booting.reconnect(task, *enter, session.forget)  # last: until then it is known that this has to be done

    def execute_in_band_step(self, task: Task, kind: str, step: StepJson) -> results.Result:
        """Give steps of deployments the config drive: writing it is theirs here."""

        def read_drive() -> Json:
            drive = task.configdrive() if kind == "deploy" else None
            if drive is None:
                return {}
            return {"configdrive": json.loads(drive) if drive.startswith("{") else drive}

        return commands.execute_step(task, kind, step, read_drive if self.keeps_drive_parts else None)

    @base.deploy_step(priority=100, idempotent=True)
    def deploy(self, task: Task) -> results.Result:
        """Boot the agent and wait for it, unless one is there already or none is needed."""

        def prepare_machine(task: Task) -> results.Result:
            """Also connect to the networks that :meth:`prepare` did not enter for an agent that has gone since."""
            networks = (self._enter_networks,) if session.read_facts(task).get("used_as_found") else ()
            return results.run_phases(task, power_control.power_off, *networks)

        if not uses_agent(task):
            return results.DONE
        return booting.run_unless_running(task, prepare_machine, *booting.BOOT)

    @base.deploy_step(priority=60, requires_ramdisk=True, idempotent=True)
    def prepare_instance_boot(self, task: Task) -> results.Result:
        """Make the machine boot what was written."""
        return results.run_phases(task, booting.prepare_instance)

    @base.deploy_step(priority=40, idempotent=True)
    def tear_down_agent(self, task: Task) -> results.Result:
        """End the agent, if there is one, and leave the machine off."""
        return results.run_phases(task, *booting.SHUT_DOWN) if uses_agent(task) else power_control.power_off(task)

    @base.deploy_step(priority=30, idempotent=True)
    def switch_to_tenant_network(self, task: Task) -> results.Result:
        """Move the machine from the network of deployments to those of the user."""
        network = get_interface(task, NetworkInterface)
        return booting.reconnect(task, network.remove_provisioning_network, network.configure_tenant_networks)

    @base.deploy_step(priority=20, idempotent=True)
    def boot_instance(self, task: Task) -> results.Result:
        """Switch the machine on."""
        return power_control.power_on(task)
