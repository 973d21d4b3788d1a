"""A rack, a stand-in for the API, and a task that is called again as the conductor would."""

import time
from collections.abc import Callable
from typing import Any, ClassVar

from ingot.common import clock
from ingot.drivers.interfaces import results
from tests import patience
from tests.functional.rack.base import RackTest
from tests.unit.drivers import fakes

LIMIT = patience.seconds(60)


class RackTask(fakes.MemoryTask):
    """What it saves before a boot becomes the boot script of the machines; what agents send becomes the node's."""

    service: Any
    seen = 0

    def save(self) -> None:
        super().save()
        config = self.node.boot_config
        if "kernel" in config:
            self.service.scripts[None] = (
                f"#!ipxe\nkernel {config['kernel']} initrd=initrd {config['kernel_args']}\n"
                f"initrd {config['initrd']}\nboot\n"
            )

    def await_heartbeat(self) -> None:
        """Wait for the next heartbeat and save it in the node."""
        deadline = time.monotonic() + LIMIT
        while not self.hear():
            if time.monotonic() > deadline:
                raise AssertionError(f"no heartbeat within {LIMIT} s")
            time.sleep(0.01)

    def hear(self) -> bool:
        """Save the latest heartbeat in the node, if one has come since the last time."""
        if len(self.service.heartbeats) <= self.seen:
            return False
        self.seen = len(self.service.heartbeats)
        beat = self.service.heartbeats[-1]
        self.set(
            agent_url=beat["callback_url"],
            agent_version=beat["agent_version"],
            agent_verify_ca=beat.get("agent_verify_ca"),
            agent_token=self.service.token,
            agent_last_heartbeat=clock.now(),
        )
        return True


class DriverRackTest(RackTest):
    """The first machine of a rack as a node of type ipmi."""

    columns: ClassVar[dict[str, Any]] = {}
    options: ClassVar[dict[str, Any]] = {}

    def setUp(self) -> None:
        super().setUp()
        machine = self.rack.machines[0]
        conf = fakes.configuration(
            enabled_hardware_types=["ipmi"],
            api__public_endpoint=self.service.url,
            conductor__power_state_change_timeout=10,
            ipmi__command_retry_timeout=3,
            **self.options,
        )
        info = {
            "ipmi_address": "127.0.0.1",
            "ipmi_port": machine["bmc_port"],
            "ipmi_username": "admin",
            "ipmi_password": "password",
            "deploy_kernel": f"{self.service.url}/kernel",
            "deploy_ramdisk": f"{self.service.url}/initrd",
        }
        self.task = RackTask(conf, fakes.node(**{"driver": "ipmi", "driver_info": info, **self.columns}))
        self.task.service = self.service
        self.task.ports = [fakes.port(machine["macs"][0])]
        self.assertEqual({}, self.task.missing)

    def finish(self, call: Callable[[Any], Any]) -> Any:
        """Call again, at heartbeats and poll times, until the answer is done; return that answer."""
        self.task.memory.clear()
        deadline = time.monotonic() + LIMIT
        while time.monotonic() < deadline:
            answer = results.parse_result(call(self.task), "under test")
            if isinstance(answer, results.Done):
                return answer
            if isinstance(answer, results.PollAfter):
                time.sleep(min(answer.after, 0.2))
                self.task.hear()  # the API saves heartbeats at any time: the one before may be of an agent that is gone
            else:
                self.task.await_heartbeat()
        raise AssertionError(f"not done within {LIMIT} s")

    def step(self, name: str, interface: str = "deploy", kind: str = "deploy", **args: Any) -> Any:
        step = {"interface": interface, "step": name, "args": args}
        link = getattr(self.task.driver, interface)
        return self.finish(lambda task: getattr(link, f"execute_{kind}_step")(task, step))
