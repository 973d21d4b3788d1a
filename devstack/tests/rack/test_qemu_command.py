"""The command line of QEMU: what a machine is and boots."""

import itertools
import tempfile
from pathlib import Path
from unittest import mock

import testtools

from ingot.rack import qemu_command
from ingot.rack.config import ConfigError, MachineOverride, RackConfig, machine_specs
from ingot.rack.disks import Disk
from ingot.rack.nvram import BootSetting
from tests import disk_images


class QemuCommandTest(testtools.TestCase):
    def setUp(self) -> None:
        super().setUp()
        self.directory = Path(self.enterContext(tempfile.TemporaryDirectory()))

    def disks(self, *kinds: str) -> list[Disk]:
        override = MachineOverride(disk_sizes=("8M",) * len(kinds), disk_kinds=kinds)
        self.spec = machine_specs(RackConfig(machines=1, nics=2, cpus=3, memory=640, machine=(override,)))[0]
        return [Disk(disk, self.directory / f"disk,{number}.img") for number, disk in enumerate(self.spec.disks)]

    def command(
        self,
        setting: BootSetting | None = None,
        kinds: tuple[str, ...] = ("ata", "nvme"),
        secure_boot: bool = False,
        medium: Path | None = None,
        records: tuple[Path, ...] = (),
        tftp_root: Path | None = None,
    ) -> list[str]:
        urls = ("http://10.0.2.2/boot/a", "http://10.0.3.2/boot/b")
        wiring = qemu_command.Wiring(7, 8, urls, ("127.0.0.1", 4711), records, tftp_root=tftp_root)
        disks = self.disks(*kinds)
        firmware = qemu_command.Firmware(self.directory, secure_boot)
        return qemu_command.build(self.spec, disks, firmware, setting, wiring, medium)

    def after(self, option: str, command: list[str]) -> list[str]:
        return [value for word, value in itertools.pairwise(command) if word == option]

    def order(self, setting: BootSetting | None) -> list[str]:
        """Return what is tried when the machine boots, first to last."""
        found = {}
        for device in self.after("-device", self.command(setting)):
            name, _, options = device.partition(",")
            if ",bootindex=" in options:
                found[int(options.rpartition("=")[2])] = name
        return [found[index] for index in sorted(found)]

    def test_with_tftp_uefi_starts_a_file_without_ipxe(self) -> None:
        for efi, roms in ((True, 2), (False, 0)):
            command = self.command(BootSetting("pxe", True, efi), tftp_root=self.directory)
            cards = [device for device in self.after("-device", command) if device.startswith("virtio-net")]
            self.assertEqual(roms, sum(card.endswith(",romfile=") for card in cards))
            self.assertIn(f",tftp={self.directory}", self.after("-netdev", command)[0])
        self.assertNotIn("tftp", str(self.command()))

    def test_it_is_tied_to_the_rack(self) -> None:
        self.assertEqual(["setpriv", "--pdeathsig", "KILL", qemu_command.PROGRAM], self.command()[:4])

    def test_what_the_machine_is(self) -> None:
        command = self.command()
        for option, value in (("-smp", "3"), ("-m", "640"), ("-uuid", str(self.spec.uuid)), ("-name", "machine-0")):
            self.assertEqual([value], self.after(option, command))

    def test_the_boot_device_comes_first_and_all_others_follow(self) -> None:
        disks, cards = ["scsi-hd", "nvme"], ["virtio-net-pci"] * 2
        for device, expected in (("pxe", cards + disks), ("disk", disks + cards), ("cdrom", disks + cards)):
            self.assertEqual(expected, self.order(BootSetting(device, persistent=False, efi=False)), device)
        self.assertEqual(disks + cards, self.order(None))

    def test_the_efi_flag_decides_on_the_firmware(self) -> None:
        def flash(efi: bool) -> list[str]:
            command = self.command(BootSetting("disk", persistent=True, efi=efi))
            return [drive for drive in self.after("-drive", command) if "if=pflash" in drive]

        self.assertEqual([], flash(efi=False))
        code, variables = flash(efi=True)
        self.assertIn("readonly=on", code)
        self.assertIn(f"file={self.directory}", variables)
        self.assertNotIn("readonly", variables)

    def test_secure_boot_has_variables_of_its_own_that_only_the_firmware_writes(self) -> None:
        command = self.command(BootSetting("disk", persistent=True, efi=True), secure_boot=True)
        code, variables = (drive for drive in self.after("-drive", command) if "if=pflash" in drive)
        self.assertIn(str(qemu_command.SECURE_CODE), code)
        self.assertIn("uefi-variables-secure.fd", variables)
        self.assertEqual(["driver=cfi.pflash01,property=secure,value=on"], self.after("-global", command))
        self.assertEqual(["q35,graphics=off,smm=on"], self.after("-machine", command))

    def test_virtual_media_come_first_when_the_boot_is_from_them(self) -> None:
        image = Path("/tmp/some,image.iso")
        for device, expected in (("cdrom", True), ("http", True), ("disk", False)):
            command = self.command(BootSetting(device, persistent=False, efi=True), medium=image)
            (drive,) = (one for one in self.after("-device", command) if one.startswith("scsi-cd"))
            self.assertEqual(expected, drive.endswith("drive=image,bootindex=0"), drive)
            self.assertIn("readonly=on,media=cdrom,file=/tmp/some,,image.iso", " ".join(self.after("-drive", command)))
        (empty,) = (one for one in self.after("-device", self.command()) if one.startswith("scsi-cd"))
        self.assertEqual("scsi-cd,bus=scsi.0,id=media", empty)

    def test_disks_have_serial_and_wwn(self) -> None:
        devices = self.after("-device", self.command())
        first, second = self.spec.disks
        self.assertIn(f"scsi-hd,bus=scsi.0,drive=disk0,serial={first.serial},wwn={first.wwn},bootindex=1", devices)
        self.assertIn(f"nvme,drive=disk1,serial={second.serial},bootindex=2", devices)

    def test_a_disk_that_can_be_booted_is_the_first(self) -> None:
        self.disks("ata", "ata")[1].write(0, disk_images.mbr_image())
        devices = " ".join(self.after("-device", self.command(kinds=("ata", "ata"))))
        self.assertRegex(devices, "drive=disk0,[^ ]*,bootindex=2 .*drive=disk1,[^ ]*,bootindex=1 ")

    def test_a_comma_in_a_path_does_not_end_it(self) -> None:
        self.assertIn("disk,,0.img", " ".join(self.after("-drive", self.command())))

    def test_disks_may_be_read_only(self) -> None:
        drives = self.after("-drive", self.command(kinds=("ata:read-only", "ata")))
        self.assertEqual([True, False], ["readonly=on" in drive for drive in drives])

    def test_states_that_qemu_does_not_have(self) -> None:
        self.assertRaisesRegex(
            ConfigError, "ata:frozen is for simulated machines", qemu_command.check, self.disks("ata:frozen")
        )

    def test_each_card_has_its_network_and_the_agent_is_reached_through_the_first(self) -> None:
        first, second = self.after("-netdev", self.command())
        self.assertIn("bootfile=http://10.0.2.2/boot/a,hostfwd=tcp:127.0.0.1:4711-:9999", first)
        self.assertIn("net=10.0.3.0/24,bootfile=http://10.0.3.2/boot/b", second)
        self.assertNotIn("hostfwd", second)

    def test_what_passes_through_each_card_can_be_kept(self) -> None:
        self.assertEqual([], self.after("-object", self.command()))
        first, second = self.after("-object", self.command(records=(Path("/tmp/a,0.pcap"), Path("/tmp/a,1.pcap"))))
        self.assertEqual("filter-dump,id=record0,netdev=net0,maxlen=256,file=/tmp/a,,0.pcap", first)
        self.assertIn("netdev=net1", second)


class AcceleratorTest(testtools.TestCase):
    def accelerator(self, modules: set[str], may_use: bool = True) -> str:
        def exists(path: Path) -> bool:
            return path.name in modules

        with mock.patch.object(Path, "exists", exists), mock.patch("os.access", return_value=may_use):
            return qemu_command.accelerator()[0]

    def test_kvm_only_on_processors_that_have_it(self) -> None:
        self.assertEqual("kvm", self.accelerator({"kvm", "kvm_intel"}))
        self.assertEqual("kvm", self.accelerator({"kvm", "kvm_amd"}))
        self.assertEqual("tcg", self.accelerator({"kvm", "kvm_pvm"}))

    def test_kvm_only_for_those_who_may(self) -> None:
        self.assertEqual("tcg", self.accelerator({"kvm", "kvm_intel"}, may_use=False))
