"""The DHCP provider dnsmasq: what files a node's boots leave in the directories that an operator's dnsmasq reads."""

import pathlib
import tempfile
from typing import Any

from ingot.common import errors
from tests.unit.drivers import fakes

RAMDISK = {"deploy_kernel": "http://files/kernel", "deploy_ramdisk": "http://files/initrd"}
MAC, SECOND = "52:54:00:00:00:01", "52:54:00:00:00:02"


class DHCPTest(fakes.DriverTestCase):
    def setUp(self) -> None:
        super().setUp()
        place = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.hosts, self.opts = place / "hosts", place / "opts"
        self.hosts.mkdir()
        self.opts.mkdir()

    def prepared(self, boot_interface: str = "ipxe", **columns: Any) -> fakes.MemoryTask:
        conf = fakes.configuration(
            enabled_hardware_types=["fake-hardware"],
            enabled_boot_interfaces=["ipxe", "pxe"],
            dhcp__dhcp_provider="dnsmasq",
            dnsmasq__dhcp_hostsdir=str(self.hosts),
            dnsmasq__dhcp_optsdir=str(self.opts),
            service_catalog__endpoint_override="http://10.0.0.1:6385",
        )
        node = fakes.node(boot_interface=boot_interface, driver_info=RAMDISK, **columns)
        task = fakes.MemoryTask(conf, node)
        task.ports = [fakes.port(MAC), fakes.port(SECOND, pxe_enabled=False)]
        return task

    def read(self, directory: pathlib.Path) -> dict[str, list[str]]:
        return {file.name: file.read_text().splitlines() for file in directory.iterdir()}

    def test_a_machine_is_admitted_for_the_agent_and_barred_afterwards(self) -> None:
        task = self.prepared()
        task.driver.boot.validate(task)
        task.driver.boot.prepare_ramdisk(task, {})
        self.assertEqual(
            {"ingot-525400000001.conf": [f"{MAC},set:ingot-525400000001,set:ingot"]}, self.read(self.hosts)
        )
        script, loader = self.read(self.opts)["ingot-525400000001.conf"]
        self.assertEqual("tag:ingot-525400000001,tag:ipxe,option:bootfile-name,http://10.0.0.1:6385/boot.ipxe", script)
        self.assertEqual("tag:ingot-525400000001,tag:!ipxe,option:bootfile-name,snponly.efi", loader)
        task.driver.boot.clean_up_ramdisk(task)
        self.assertEqual({"ingot-525400000001.conf": [f"{MAC},ignore"]}, self.read(self.hosts))
        self.assertEqual({}, self.read(self.opts))

    def test_the_loader_is_that_of_the_machines_firmware(self) -> None:
        for boot_interface, mode, architecture, expected in (
            *(("ipxe", "bios", "x86_64", "undionly.kpxe"), ("ipxe", "uefi", "aarch64", "snponly-arm64.efi")),
            *(("pxe", "uefi", "x86_64", "bootx64.efi"), ("pxe", "bios", "x86_64", "undionly.kpxe")),
        ):
            properties = {"capabilities": f"boot_mode:{mode}", "cpu_arch": architecture}
            task = self.prepared(boot_interface, properties=properties)
            task.driver.boot.prepare_ramdisk(task, {})
            self.assertEqual(expected, self.read(self.opts)["ingot-525400000001.conf"][1].rpartition(",")[2])

    def test_a_directory_that_cannot_be_written_is_found_before_the_boot(self) -> None:
        task = self.prepared()
        task.conf.set_override("dhcp_optsdir", "/no/such/directory", group="dnsmasq")
        refusal = self.assertRaises(errors.Invalid, task.driver.boot.validate, task)
        self.assertIn("[dnsmasq] dhcp_optsdir", refusal.message)
        failure = self.assertRaises(errors.StepFailed, task.driver.boot.prepare_ramdisk, task, {})
        self.assertIn("/no/such/directory", failure.message)

    def test_without_a_provider_no_file_is_written(self) -> None:
        task = self.prepared()
        task.conf.set_override("dhcp_provider", "none", group="dhcp")
        task.driver.boot.prepare_ramdisk(task, {})
        task.driver.boot.clean_up_ramdisk(task)
        self.assertEqual(({}, {}), (self.read(self.hosts), self.read(self.opts)))
