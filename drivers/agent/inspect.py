"""Inspects machines in-band: the agent collects what its machine is made of and sends it to the API."""

from ingot.common.conf import opts
from ingot.drivers.agent import booting, session
from ingot.drivers.interfaces import power_control, results
from ingot.drivers.interfaces.base import get_interface
from ingot.drivers.interfaces.inspect import InspectInterface
from ingot.drivers.interfaces.network import NetworkInterface
from ingot.drivers.interfaces.task import Task


class AgentInspect(booting.AgentBooter, InspectInterface):
    """The inspect interface ``agent``."""

    def inspect_hardware(self, task: Task) -> results.Result:
        def wait_for_inventory(task: Task) -> results.Result:
            return results.WaitForAgent() if task.inventory() is None else results.DONE

        boot = (power_control.power_off, self._prepare, booting.boot, wait_for_inventory)
        return results.run_phases(task, *boot, power_control.power_off, self._leave)

    def _prepare(self, task: Task) -> results.Answer:
        """Boot the agent. The URL names the node: whatever network cards the agent finds, it speaks of this machine."""

        def begin(task: Task) -> None:
            session.forget(task)
            get_interface(task, NetworkInterface).add_inspection_network(task)

        callback = f"{opts.agent_api_url(self.conf)}/v1/continue_inspection?node_uuid={task.node.uuid}"
        parameters = {
            "ipa-inspection-callback-url": callback,
            "ipa-inspection-collectors": ",".join(self.conf.inspector.collectors),
        }
        return booting.prepare(task, begin, parameters)

    @staticmethod
    def _leave(task: Task) -> None:
        booting.forget_agent(task)
        get_interface(task, NetworkInterface).remove_inspection_network(task)

    def clean_up(self, task: Task) -> None:
        try:  # first, because an agent that no flow waits for must not stay because a network does
            if task.driver.power is not None and not power_control.stays_on(task):
                power_control.switch_off(task)
        finally:
            self._leave(task)
