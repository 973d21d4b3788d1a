"""What the rack's functional tests share: a rack process beside a stand-in for the service."""

import base64
import gzip
import subprocess
import tempfile
from pathlib import Path
from typing import Any, ClassVar

import testtools

from ingot.rack.process import RackProcess
from tests.functional.rack.stand_in import AgentClient, Service

FAST = {
    "boot_delay": 0.05,
    "os_boot_delay": 0.05,
    "shutdown_delay": 0.05,
    "power_off_delay": 0.05,
    "agent_start_delay": 0.0,
    "agent_settle": 0.05,
    "heartbeat_max": 0.3,
    "retry_first": 0.05,
    "retry_max": 0.2,
    "disk_size": "256M",
}


def config_drive(content: bytes) -> str:
    """Return a config drive as the service sends it."""
    return base64.b64encode(gzip.compress(content)).decode()


class RackTest(testtools.TestCase):
    """Each test has a rack of two machines, switched off."""

    settings: ClassVar[dict[str, Any]] = {}

    def setUp(self) -> None:
        super().setUp()
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.service = Service()
        self.service.start()
        self.addCleanup(self.service.stop)
        self.rack = RackProcess(
            Path(directory.name, "rack"),
            boot_url=self.service.url + "/boot/ipxe/{mac}",
            **{"machines": 2, "bmc_base_port": 0, **FAST, **self.settings},
        )
        self.rack.start()
        self.addCleanup(self.rack.stop)
        self.name = self.rack.machines[0]["name"]

    def ipmitool(self, *words: str, index: int = 0, password: str = "password") -> subprocess.CompletedProcess[str]:
        port = str(self.rack.machines[index]["bmc_port"])
        command = ["ipmitool", "-I", "lanplus", "-H", "127.0.0.1", "-p", port, "-U", "admin", "-P", password]
        return subprocess.run([*command, *words], capture_output=True, text=True, check=False)

    def boot_agent(self) -> AgentClient:
        """Start the first machine from the network and return its agent."""
        self.rack.control.set_boot_device(self.name, "pxe")
        self.rack.control.power(self.name, "on")
        agent = self.service.agent()
        self.addCleanup(agent.close)
        return agent

    def disk_paths(self) -> list[Path]:
        return [Path(disk["path"]) for disk in self.rack.control.machine(self.name)["disks"]]
