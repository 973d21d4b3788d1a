"""How a machine's disks are erased, disk by disk, and what the machine's log says about it."""

import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import testtools

from ingot.rack import erasing
from ingot.rack.command_errors import CommandError
from ingot.rack.config import RackConfig, machine_specs
from ingot.rack.loop import LoopThread, Site
from ingot.rack.simulated import SimulatedMachine

SECRET = b"what a user left behind"
MIDDLE = 8 * 2**20


class ErasingTest(testtools.TestCase):
    def machine(self, *kinds: str) -> SimulatedMachine:
        """Return a machine with disks of these kinds, all of them used."""
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        config = RackConfig(
            machines=1, state_dir=Path(directory.name), disk_size=16 * 2**20, disks=len(kinds), disk_kinds=kinds
        )
        site = Site(config)
        self.addCleanup(site.close)
        self.loop = LoopThread()
        self.loop.start()
        self.addCleanup(self.loop.stop)
        made = SimulatedMachine(machine_specs(config)[0], site)
        for disk in made.disks:
            with disk.path.open("r+b") as file:
                for offset in (0, MIDDLE):
                    file.seek(offset)
                    file.write(SECRET)
        return made

    def run_on(self, machine: SimulatedMachine, erase: Any, *args: Any) -> None:
        self.loop.run(erase(SimpleNamespace(machine=machine), *args))

    def erase(self, machine: SimulatedMachine, **info: Any) -> None:
        self.run_on(machine, erasing.erase_completely, {"driver_internal_info": info})

    def left(self, machine: SimulatedMachine) -> list[tuple[bool, bool]]:
        """Return for each disk whether something is left at its start and in its middle."""
        return [tuple(SECRET in disk.read(offset, 4096) for offset in (0, MIDDLE)) for disk in machine.disks]

    def said(self, machine: SimulatedMachine) -> str:
        return "\n".join(machine.log_lines)

    def test_disks_erase_themselves(self) -> None:
        machine = self.machine("ata", "nvme")
        self.erase(machine)
        self.assertEqual([(False, False)] * 2, self.left(machine))
        self.assertIn("erased /dev/sda by ATA secure erase", self.said(machine))
        self.assertIn("erased /dev/nvme1n1 by NVMe format", self.said(machine))

    def test_disks_that_cannot_or_shall_not_are_shredded(self) -> None:
        machine = self.machine("ata:unsupported", "ata", "nvme")
        self.erase(
            machine,
            agent_enable_ata_secure_erase=False,
            agent_enable_nvme_secure_erase=False,
            agent_erase_devices_iterations=3,
        )
        self.assertEqual([(False, False)] * 3, self.left(machine))
        for name in ("/dev/sda", "/dev/sdb", "/dev/nvme2n1"):
            self.assertIn(f"shredded {name}, passes of random data: 3, zeros at the end: yes", self.said(machine))

    def test_without_a_last_pass_of_zeros_there_is_noise(self) -> None:
        machine = self.machine("ata:unsupported")
        self.erase(machine, agent_erase_devices_zeroize=False)
        self.assertEqual([(False, False)], self.left(machine))
        self.assertNotEqual(bytes(4096), machine.disks[0].read(0, 4096))

    def test_a_secure_erase_that_fails_ends_it_or_is_made_up_for(self) -> None:
        for kind, reason in (
            ("ata:frozen", "ATA secure erase of /dev/sda is frozen"),
            ("ata:failing", "ATA secure erase of /dev/sda failed"),
            ("nvme:frozen", "NVMe format of /dev/nvme0n1 is frozen"),
            ("nvme:failing", "NVMe format of /dev/nvme0n1 failed"),
            ("nvme:unsupported", "NVMe format of /dev/nvme0n1 failed"),
        ):
            machine = self.machine(kind, "ata")
            self.assertRaisesRegex(CommandError, f"{reason}.*shredding.*not allowed", self.erase, machine)
            self.assertEqual([(True, True), (False, False)], self.left(machine), "the other disk is erased")
            self.erase(machine, agent_continue_if_secure_erase_failed=True)
            self.assertEqual([(False, False)] * 2, self.left(machine))
            self.assertIn(f"{reason}", self.said(machine))
            self.assertIn("shredded", self.said(machine))

    def test_it_can_be_ordered(self) -> None:
        machine = self.machine("ata")
        for fault, reason in (("disks_frozen", "frozen by the firmware"), ("secure_erase_fails", "failed")):
            self.loop.call(machine.order_fault, fault, None, 1)
            self.assertRaisesRegex(CommandError, reason, self.erase, machine)
        self.erase(machine)

    def test_disks_that_are_read_only(self) -> None:
        machine = self.machine("ata:read-only", "ata")
        self.assertRaisesRegex(CommandError, "/dev/sda is read only", self.erase, machine)
        self.erase(machine, agent_erase_skip_read_only=True)
        self.run_on(machine, erasing.erase_metadata)
        self.assertEqual([(True, True), (False, False)], self.left(machine))

    def test_metadata_is_at_the_ends(self) -> None:
        machine = self.machine("ata")
        self.run_on(machine, erasing.erase_metadata)
        self.assertEqual([(False, True)], self.left(machine))
        self.assertIn("erased the metadata of /dev/sda", self.said(machine))

    def test_the_quick_way_is_for_nvme(self) -> None:
        machine = self.machine("nvme", "nvme:failing", "ata")
        self.run_on(machine, erasing.erase_quickly, {})
        self.assertEqual([(False, False), (False, True), (False, True)], self.left(machine))
