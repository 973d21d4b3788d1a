"""Hundreds of machines in one process."""

from pathlib import Path
from typing import Any, ClassVar

from tests.functional.rack.base import RackTest
from tests.functional.rack.stand_in import wait_until

MACHINES = 200


class ScaleTest(RackTest):
    settings: ClassVar[dict[str, Any]] = {"machines": MACHINES, "heartbeat_max": 5.0, "bmc_base_port": 0}

    def status(self, field: str) -> int:
        lines = Path(f"/proc/{self.rack.pid}/status").read_text().splitlines()
        return int(next(line for line in lines if line.startswith(field)).split()[1])

    def test_all_boot_and_beat_without_a_thread_each(self) -> None:
        for machine in self.rack.machines:
            self.rack.control.power(machine["name"], "on")
        wait_until(lambda: len({beat["node"] for beat in self.service.heartbeats}) == MACHINES, 60, "heartbeats")
        self.assertLess(self.status("Threads:"), 60)
        self.assertLess(self.status("VmRSS:"), 200 * 1024)
        self.assertEqual("Chassis Power is on\n", self.ipmitool("power", "status", index=MACHINES - 1).stdout)
