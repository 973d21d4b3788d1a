"""A conductor is killed in each step of firmware, settings and arrays over Redfish, while the BMC holds its request.

The rack keeps the request, done or not, until the conductor is dead: each kill is at a boundary of the step.
"""

import signal
from dataclasses import dataclass, field
from typing import Any

import testtools

from tests.functional.deployment import lab

OFF, ON = "power off requested", "power on requested"
RESET = ("POST", "/Actions/ComputerSystem.Reset")
RESETS = (RESET, RESET)
UPDATE = ("POST", "/UpdateService.SimpleUpdate")
SET = ("PATCH", "/Bios/Settings")
BUILD, REMOVE = ("POST", "/Volumes"), ("DELETE", "/Volumes/")

MIRROR = {"logical_disks": [{"raid_level": "1", "size_gb": "MAX"}]}


@dataclass(frozen=True)
class Case:
    """A step.

    :ivar requests: what it changes by which requests, in this order; each of them is held before and after it is done,
        resets after the first case only when they are done.
    :ivar expected: how often the machine's log must have what is not to be done twice; without resets of a reboot.
    """

    interface: str
    step: str
    args: dict[str, Any]
    requests: tuple[tuple[str, str], ...]
    expected: dict[str, int] = field(default_factory=dict)
    verb: str = "clean"
    reboots: int = 1


def update(file: str) -> dict[str, Any]:
    return {"settings": [{"component": file.partition("-")[0], "url": f"{{files}}/{file}"}]}


BIOS = {"settings": [{"name": "ProcTurboMode", "value": "Disabled"}]}

CASES = {
    "ilo": (
        Case("bios", "apply_configuration", BIOS, (SET, *RESETS), {"BIOS settings applied": 1}),
        Case("bios", "factory_reset", {}, (("POST", "/Bios.ResetBios"), *RESETS), {"BIOS settings applied": 1}),
        Case("firmware", "update", update("bios-2.1.0.bin"), (UPDATE, *RESETS), {": Update of BIOS": 1}),
        Case("firmware", "update", update("bmc-3.0.1.bin"), (UPDATE,), {": Update of BMC": 1}, reboots=0),
        Case("raid", "create_configuration", {"delete_existing": True}, (BUILD, *RESETS), {": RAID1 of": 1}),
        Case("raid", "apply_configuration", {"raid_config": MIRROR}, (REMOVE, *RESETS, BUILD, *RESETS),
             {" deleted": 1, ": RAID1 of": 1, ": Delete volume": 1, ": Create volume": 1}, "service", reboots=2),
        Case("raid", "delete_configuration", {}, (REMOVE, *RESETS), {" deleted": 1, ": Delete volume": 1}, "service"),
    ),
    "dell": (
        Case("bios", "apply_configuration", BIOS, (SET, *RESETS), {": Configure: BIOS": 1, "settings applied": 1}),
        Case("firmware", "update", update("bios-2.1.0.bin"), (UPDATE, *RESETS), {": Update of BIOS": 1}),
    ),
}  # fmt: skip
"""Steps by the maker of the machine. Of Dell, settings and updates are jobs that wait for a boot."""


class KillsTest(testtools.TestCase):
    def test_nothing_is_lost_and_nothing_is_done_twice(self) -> None:
        rack: dict[str, Any] = {
            "machine": [{"redfish_vendor": vendor} for vendor in CASES],
            "machines": len(CASES), "redfish_base_port": 0, "bmc_restart_time": 0.5, "redfish_task_time": 0.6,
        }  # fmt: skip
        options = {"DEFAULT": {"enabled_hardware_types": "redfish"}, "conductor": {"automated_clean": False}}
        self.bench = bench = self.useFixture(lab.Lab(rack=rack, options=options))
        for name in ("bios-2.1.0.bin", "bmc-3.0.1.bin"):
            (bench.directory / "files" / name).write_bytes(b"firmware")
        for index, vendor in enumerate(CASES):
            self.machine = bench.rack.machines[index]["name"]
            bench.rack.control.power(self.machine, "on")
            self.node = self.enroll(index)
            for case in CASES[vendor]:
                self.play(case, vendor)
            found = bench.user.get(f"/v1/nodes/{self.node}/firmware")["firmware"]
            versions = {one["component"]: one["current_version"] for one in found}
            self.assertEqual(("2.1.0", "3.0.1" if vendor == "ilo" else "1.0.0"), (versions["bios"], versions["bmc"]))
            self.assertEqual({}, bench.user.node(self.node)["raid_config"])

    def enroll(self, index: int) -> str:
        bench = self.bench
        info = {
            "redfish_address": bench.rack.machines[index]["redfish"]["address"],
            "redfish_username": "admin",
            "redfish_password": "password",
            "redfish_verify_ca": bench.rack.description["redfish_ca_file"],
        }
        body = {"driver": "redfish", "raid_interface": "redfish", "deploy_interface": "ramdisk", "driver_info": info}
        node: str = bench.user.post("/v1/nodes", body)["uuid"]
        for mac in bench.rack.machines[index]["macs"]:
            bench.user.post("/v1/ports", {"node_uuid": node, "address": mac})
        bench.user.provision(node, "manage")
        bench.reach(node, "manageable")
        bench.user.request("PUT", f"/v1/nodes/{node}/states/raid", MIRROR)
        return node

    def play(self, case: Case, vendor: str) -> None:
        """Run a step; kill the conductor in each of its requests."""
        bench, state = self.bench, {"clean": "manageable", "service": "active"}[case.verb]
        if bench.user.node(self.node)["provision_state"] != state:
            bench.user.provision(self.node, "adopt")
            bench.reach(self.node, state)
        is_first = case is CASES[vendor][0]
        times = [(*request, done) for request in case.requests for done in (False, True)]
        moments = [one for one in times if is_first or one != (*RESET, False)]
        last = self.log()[-1]
        self.hold(*moments[0])
        given = {"interface": case.interface, "step": case.step, "args": _fill(case.args, bench.files.url)}
        bench.user.provision(self.node, case.verb, disable_ramdisk=True, **{f"{case.verb}_steps": [given]})
        for number, (method, path, done) in enumerate(moments):
            bench.eventually(lambda number=number: self.count_held(last) > number, f"{case}: {method} {path}, {done}")
            bench.process.stop(signal.SIGKILL)
            bench.rack.control.clear_faults(self.machine)
            if number + 1 < len(moments):
                self.hold(*moments[number + 1])
            bench.process.start()
        bench.wait_until_served()
        ended = bench.reach(self.node, state)
        what = f"{vendor} {case.interface}.{case.step}"
        self.assertEqual((None, "power on"), (ended["last_error"], ended["power_state"]), what)
        log = self.log(last)
        resets = {OFF: case.reboots, ON: case.reboots, "Exception": 0}
        for part, times in {**resets, **case.expected}.items():
            self.assertEqual(times, sum(part in line for line in log), f"{what}, {part!r}: {log}")

    def hold(self, method: str, path: str, done: bool) -> None:
        value = {"method": method, "path": path, "done": done}
        self.bench.rack.control.order_fault(self.machine, "redfish_held", value, times=1)

    def count_held(self, last: str) -> int:
        return sum(" is held, " in line for line in self.log(last))

    def log(self, last: str = "") -> list[str]:
        """Return the machine's log, after a line of it."""
        lines = self.bench.rack.control.log(self.machine)
        return lines[lines.index(last) + 1 :] if last else lines


def _fill(value: Any, files: str) -> Any:
    """Return arguments with the address of the files in them."""
    if isinstance(value, dict):
        return {key: _fill(one, files) for key, one in value.items()}
    if isinstance(value, list):
        return [_fill(one, files) for one in value]
    return value.replace("{files}", files) if isinstance(value, str) else value
