"""Settings of the rack: sizes, files, flags, and machines that stay the same."""

import tempfile
from pathlib import Path

import testtools

from ingot.rack.config import ConfigError, MachineOverride, RackConfig, StepConfig, load, machine_specs, parse_size


class SizeTest(testtools.TestCase):
    def test_numbers_and_units(self) -> None:
        for text, size in (("512", 512), (512, 512), ("1K", 1024), ("8G", 8 * 2**30), ("2TiB", 2**41)):
            self.assertEqual(size, parse_size(text))

    def test_what_is_no_size(self) -> None:
        for text in ("", "G", "-1", "8X", "1.5G"):
            self.assertRaisesRegex(ConfigError, "is not a number of bytes", parse_size, text)


class LoadTest(testtools.TestCase):
    def write(self, name: str, text: str) -> str:
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        path = Path(directory.name, name)
        path.write_text(text)
        return str(path)

    def test_flags_win_over_the_file(self) -> None:
        path = self.write("rack.toml", 'machines = 5\nusername = "root"\n[[steps]]\nstep = "burn"\npriority = 7\n')
        config = load(path, {"machines": 2})
        self.assertEqual((2, "root"), (config.machines, config.username))
        self.assertEqual((StepConfig("burn", priority=7),), config.steps)

    def test_json(self) -> None:
        path = self.write("rack.json", '{"disk_size": "1G", "machine": [{"name": "a", "disk_sizes": ["2G"]}]}')
        config = load(path, {})
        self.assertEqual(2**30, config.disk_size)
        self.assertEqual([2 * 2**30], [disk.size for disk in machine_specs(config)[0].disks])

    def test_errors_name_the_setting(self) -> None:
        for text, message in (
            ("machnes = 3", "unknown setting machnes"),
            ("machines = 0", "machines: 0 is not between"),
            ("machines = ", "rack.toml"),
            ('boot_loader = "lilo"', "boot_loader: 'lilo' is not one of ipxe, grub"),
            ('redfish_vendor = "acme"', "redfish_vendor: 'acme' is not one of generic, ilo"),
            ('[[machine]]\nredfish_vendor = "acme"', "redfish_vendor: 'acme' is not one of generic, ilo"),
            ("forwarded_ports = [22]", "forwarded_ports: .* one QEMU machine only"),
            ('[[steps]]\nstep = "x"\ninterface = "y"', "interface 'y' is not one of"),
            ('[[steps]]\nstep = "x"\nkinds = ["y"]', "kinds"),
            ("[[steps]]\npriority = 1", "steps: .*step"),
            (
                'disk_kinds = ["ata:tired"]',
                "disk_kinds: 'ata:tired' is not one of ata, nvme, with one of normal, unsup",
            ),
            (f'password = "{"x" * 21}"', "at most 16 and 20"),
        ):
            read = lambda text=text: machine_specs(load(self.write("rack.toml", text), {}))  # noqa: E731
            self.assertRaisesRegex(ConfigError, message, read)
        self.assertRaisesRegex(ConfigError, "missing.toml", load, "missing.toml", {})

    def test_the_password_is_not_in_the_repr(self) -> None:
        self.assertNotIn("hunter2", repr(RackConfig(password="hunter2")))


class MachinesTest(testtools.TestCase):
    def test_each_machine_is_itself_and_stays_it(self) -> None:
        specs = machine_specs(RackConfig(machines=300, nics=2))
        for attribute in ("name", "uuid", "macs"):
            self.assertEqual(300, len({getattr(spec, attribute) for spec in specs}))
        self.assertEqual(600, len({disk.serial for spec in specs for disk in spec.disks}))
        self.assertEqual(("52:54:00:01:00:00", "52:54:00:01:00:01"), specs[256].macs)
        self.assertEqual(specs[:3], machine_specs(RackConfig(machines=3, nics=2)))

    def test_overrides(self) -> None:
        override = MachineOverride(name="big", memory=1, macs=("AA:BB:CC:DD:EE:FF",), boot_delay=0.0)
        first, second = machine_specs(RackConfig(machines=2, machine=(override,)))
        self.assertEqual(
            ("big", 1, ("aa:bb:cc:dd:ee:ff",), 0.0), (first.name, first.memory, first.macs, first.boot_delay)
        )
        self.assertEqual("machine-1", second.name)

    def test_disks_have_kinds_and_the_last_one_is_for_all_others(self) -> None:
        override = MachineOverride(disk_sizes=("1G",) * 4, disk_kinds=("nvme:failing", "ata:frozen"))
        first, second = machine_specs(RackConfig(machines=2, machine=(override,)))
        self.assertEqual(
            [("/dev/nvme0n1", "nvme", "failing")] + [(f"/dev/sd{x}", "ata", "frozen") for x in "bcd"],
            [(disk.name, disk.kind, disk.state) for disk in first.disks],
        )
        self.assertEqual([("ata", "normal")] * 2, [(disk.kind, disk.state) for disk in second.disks])

    def test_two_machines_of_one_name(self) -> None:
        config = RackConfig(machines=2, machine=(MachineOverride(name="machine-1"),))
        self.assertRaisesRegex(ConfigError, "same name", machine_specs, config)
