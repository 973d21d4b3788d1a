"""A conductor is killed again and again while a machine gets firmware, settings and arrays over Redfish."""

import random
import signal
import time
from typing import Any

import testtools

from tests import patience
from tests.functional.deployment import lab

KILLS = 8
SEED = 14

STEPS: tuple[tuple[str, str, dict[str, Any], dict[str, int]], ...] = (
    (
        "bios",
        "apply_configuration",
        {"settings": [{"name": "ProcTurboMode", "value": "Disabled"}]},
        {},
    ),
    (
        "firmware",
        "update",
        {"settings": [{"component": "bios", "url": "{files}/bios-2.1.0.bin"}]},
        {"Update of BIOS": 1},
    ),
    ("firmware", "update", {"settings": [{"component": "bmc", "url": "{files}/bmc-3.0.1.bin"}]}, {"Update of BMC": 1}),
    ("raid", "create_configuration", {"delete_existing": True}, {": RAID1 of": 1}),
    ("raid", "delete_configuration", {}, {" deleted": 1}),
)
"""Interface, step, arguments, and how often the machine's log must have what is not to be done twice."""


class KillsTest(testtools.TestCase):
    def test_nothing_is_lost_and_nothing_is_done_twice(self) -> None:
        chance = random.Random(SEED)  # noqa: S311 - moments of kills, not secrets
        rack = {"redfish_base_port": 0, "redfish_vendor": "ilo", "bmc_restart_time": 0.5, "redfish_task_time": 0.6}
        options = {
            "DEFAULT": {"enabled_hardware_types": "redfish"},
            "conductor": {"automated_clean": False},
        }
        bench = self.useFixture(lab.Lab(rack=rack, options=options))
        for name in ("bios-2.1.0.bin", "bmc-3.0.1.bin"):
            (bench.directory / "files" / name).write_bytes(b"firmware")
        machine = bench.rack.machines[0]
        info = {
            "redfish_address": machine["redfish"]["address"],
            "redfish_username": "admin",
            "redfish_password": "password",
            "redfish_verify_ca": bench.rack.description["redfish_ca_file"],
        }
        node = bench.user.post("/v1/nodes", {"driver": "redfish", "raid_interface": "redfish", "driver_info": info})[
            "uuid"
        ]
        bench.user.provision(node, "manage")
        bench.reach(node, "manageable")
        target = {"logical_disks": [{"raid_level": "1", "size_gb": "MAX"}]}
        bench.user.request("PUT", f"/v1/nodes/{node}/states/raid", target)
        for interface, step, args, expected in STEPS:
            given = {"interface": interface, "step": step, "args": _fill(args, bench.files.url)}
            bench.user.provision(node, "clean", clean_steps=[given], disable_ramdisk=True)
            for _kill in range(KILLS):
                time.sleep(patience.seconds(chance.uniform(0.05, 0.7)))  # five kills without progress end a flow
                bench.process.stop(signal.SIGKILL)
                bench.process.start()
                bench.wait_until_served()
                if bench.user.node(node)["provision_state"] == "manageable":
                    break
            ended = bench.reach(node, "manageable")
            self.assertIsNone(ended["last_error"], f"{interface}.{step}")
            log = bench.rack.control.log(machine["name"])
            for part, times in expected.items():
                self.assertEqual(times, sum(part in line for line in log), f"{interface}.{step}: {log[-30:]}")
        versions = {one["component"]: one["current_version"] for one in
                    bench.user.get(f"/v1/nodes/{node}/firmware")["firmware"]}  # fmt: skip
        self.assertEqual(("2.1.0", "3.0.1"), (versions["bios"], versions["bmc"]))
        self.assertEqual({}, bench.user.node(node)["raid_config"])


def _fill(value: Any, files: str) -> Any:
    """Return arguments with the address of the files in them."""
    if isinstance(value, dict):
        return {key: _fill(one, files) for key, one in value.items()}
    if isinstance(value, list):
        return [_fill(one, files) for one in value]
    return value.replace("{files}", files) if isinstance(value, str) else value
