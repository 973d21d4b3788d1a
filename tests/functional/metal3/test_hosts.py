"""Hosts of all nine kinds of BMC through their lives, by the requests of Metal3's operator."""

import concurrent.futures
import pathlib
from collections.abc import Callable, Mapping
from typing import Any

import fixtures
import testtools

from ingot.common.media import fat, iso
from ingot.common.media.content import Content
from tests.functional.deployment import lab
from tests.functional.metal3 import operator, schemes

NAMES = tuple(scheme.name for scheme in schemes.SCHEMES)
STEPS = [{"step": "burn_in", "interface": "deploy", "kinds": ["deploy"]}]
SWITCH = (True, "02:00:00:00:00:01", "rack-switch", 120, [{"name": "deployment", "id": 120}])
"""What the rack's switch says: of the card from which a machine boots, as the operator reads it."""

PROPERTIES = {"capabilities": "boot_mode:uefi", "cpu_arch": "x86_64"}


class HostsCase(testtools.TestCase):
    """A laboratory with a host for each kind of BMC; all of them do the same at once."""

    def setUp(self) -> None:
        super().setUp()
        machines = [{"redfish_vendor": scheme.vendor} for scheme in schemes.SCHEMES]
        rack = {
            "machines": len(machines),
            "machine": machines,
            "redfish_base_port": 0,
            "steps": STEPS,
            "redfish_task_time": 0.2,
            "disks": 4,
            "bmc_restart_time": 0.3,
        }
        self.lab = self.useFixture(lab.Lab(rack=rack, options=self.options()))
        self.hosts = [operator.Host(self.lab, index, scheme) for index, scheme in enumerate(schemes.SCHEMES)]

    def options(self) -> dict[str, Any]:
        """Return what Metal3's image of the service configures, as far as it matters to hosts."""
        templates = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        (templates / "esp.img").write_bytes(fat.build({"EFI/BOOT/BOOTX64.EFI": b"MZ a loader"}, "ESP"))
        return {
            "DEFAULT": {
                "enabled_hardware_types": "ipmi,idrac,fake-hardware,redfish",
                "enabled_boot_interfaces": "ipxe,fake,redfish-virtual-media,idrac-redfish-virtual-media,redfish-https",
                "enabled_deploy_interfaces": "autodetect,direct,fake,ramdisk,custom-agent",
                "default_deploy_interface": "autodetect",
                "autodetect_deploy_interfaces": "ramdisk,direct",
            },
            "deploy": {"file_url_allowed_paths": templates},
            "conductor": {"bootloader_by_arch": f"x86_64:file://{templates}/esp.img"},
            "redfish": {"bios_settings_timeout": 60},
            "inspector": {
                "hooks": "$default_hooks,parse-lldp,local-link-connection",
                "extra_kernel_params": "ipa-inspection-collectors=default,logs ipa-collect-lldp=1",
                "add_ports": "all",
                "keep_ports": "present",
            },
        }

    def all_do(self, work: Callable[[operator.Host], Any], *hosts: operator.Host) -> dict[str, Any]:
        """Return what each host's work gives, by its kind; those that fail are all named."""
        with concurrent.futures.ThreadPoolExecutor(len(self.hosts)) as pool:
            jobs = {host.scheme.name: pool.submit(work, host) for host in hosts or self.hosts}
        failed = {name: str(error).split("\n")[0] for name, job in jobs.items() if (error := job.exception())}
        if failed:
            words = "\n".join(f"{name}: {error}" for name, error in failed.items())
            self.fail(f"{len(failed)} of {len(jobs)}:\n{words}\n{self.lab.logs()}")
        return {name: job.result() for name, job in jobs.items()}

    def redfish(self) -> list[operator.Host]:
        return [host for host in self.hosts if host.scheme.speaks_redfish]

    def image(self) -> dict[str, Any]:
        return self.lab.image_info()

    def prepare(self, host: operator.Host, automated_clean: bool = False) -> None:
        """Have a host registered."""
        host.register(PROPERTIES)
        files = self.lab.files.url
        agent = {"deploy_kernel": f"{files}/deploy.kernel", "deploy_ramdisk": f"{files}/deploy.initramfs"}
        host.configure({**agent, "kernel_append_params": "%default% quiet"}, automated_clean)


def configdrive(host: operator.Host) -> dict[str, Any]:
    name = host.scheme.name
    return {
        "meta_data": {"uuid": host.uid, "metal3-namespace": "metal3", "metal3-name": name, "local-hostname": name},
        "network_data": {"links": [], "networks": [], "services": []},
        "user_data": f"#cloud-config\nhostname: {name}\n",
    }


def read_switch(found: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return what the operator reads of a host's first card in the data that go with its inventory."""
    data = found["plugin_data"]
    said = data["parsed_lldp"]["eth0"]
    names = ("switch_chassis_id", "switch_system_name", "switch_port_untagged_vlan_id", "switch_port_vlans")
    return data["all_interfaces"]["eth0"]["pxe_enabled"], *(said[name] for name in names)


def write_live_image(path: pathlib.Path) -> None:
    files = {"/boot/kernel": b"kernel", "/boot/grub/grub.cfg": b"linux /boot/kernel root=/dev/ram0\n"}
    image = iso.lay_out({name: Content(content) for name, content in files.items()}, None, "LIVE")
    path.write_bytes(b"".join(image.read(0, image.size)))


class Hosts(HostsCase):
    def test_enrolled_inspected_provisioned_switched_and_forgotten(self) -> None:
        def live(host: operator.Host) -> Any:
            self.prepare(host, automated_clean=True)
            found = host.inspect("agent")
            host.order("provide", "available")
            host.deploy(self.image(), configdrive(host))
            host.run()
            host.switch("soft power off", "power off")
            host.switch("power on", "power on")
            host.undeploy()
            host.order("manage", "manageable")
            host.forget()
            self.assertEqual(SWITCH, read_switch(found))
            return found["inventory"]["interfaces"][0]["mac_address"]

        found = self.all_do(live)
        self.assertEqual({host.scheme.name: host.machine["macs"][0] for host in self.hosts}, found)

    def test_arrays_of_software(self) -> None:
        members = [{"name": f"s== /dev/{name}"} for name in ("sda", "sdb")]
        array = {"size_gb": "MAX", "raid_level": "1", "controller": "software", "is_root_volume": True}
        disks = [{**array, "physical_disks": members}]
        steps = [
            {"interface": "raid", "step": "delete_configuration"},
            {"interface": "deploy", "step": "erase_devices_metadata"},
            {"interface": "raid", "step": "create_configuration"},
        ]

        def live(host: operator.Host) -> Any:
            self.prepare(host)
            return host.clean(steps, "agent", disks)["raid_config"]["logical_disks"]

        for name, built in self.all_do(live).items():
            self.assertEqual(["1"], [array["raid_level"] for array in built], name)

    def test_live_images_and_steps_of_ones_own(self) -> None:
        write_live_image(self.lab.directory / "files" / "live.iso")
        method = [{"interface": "deploy", "step": "burn_in", "args": {}, "priority": 80}]

        def live(host: operator.Host) -> Any:
            self.prepare(host)
            host.order("provide", "available")
            host.deploy({"boot_iso": f"{self.lab.files.url}/live.iso"}, {}, "ramdisk")
            host.run()
            host.undeploy()
            host.deploy({}, configdrive(host), "custom-agent", method)
            host.undeploy()
            host.deploy(self.image(), configdrive(host))
            host.run()
            host.forget()
            return "\n".join(self.lab.rack.control.log(host.machine["name"]))

        for name, log in self.all_do(live).items():
            for part in ("os: started from http", "execute_deploy_step step burn_in", "os: started from /dev/sda"):
                self.assertIn(part, log, name)


class RedfishHosts(HostsCase):
    def test_secure_boot_for_as_long_as_a_host_is_provisioned(self) -> None:
        def live(host: operator.Host) -> Any:
            self.prepare(host)
            host.order("provide", "available")
            provisioned = host.deploy(self.image(), configdrive(host), secure=True)
            return provisioned["secure_boot"], host.undeploy()["secure_boot"]

        for name, found in self.all_do(live, *self.redfish()).items():
            self.assertEqual((True, False), found, name)

    def test_fast_inspection_arrays_settings_and_firmware(self) -> None:
        (self.lab.directory / "files" / "bios-2.1.0.bin").write_bytes(b"firmware")
        firmware = {"component": "bios", "url": f"{self.lab.files.url}/bios-2.1.0.bin"}
        settings = [
            {"name": "ProcTurboMode", "value": "Disabled"},
            {"name": "BootRetryCount", "value": 5},
            {"name": "Sriov", "value": "true"},
        ]
        disks = [
            {"size_gb": "MAX", "raid_level": "1", "volume_name": "root", "is_root_volume": True,
             "number_of_physical_disks": 2},
        ]  # fmt: skip
        steps = [
            {"interface": "raid", "step": "delete_configuration"},
            {"interface": "raid", "step": "create_configuration"},
            {"interface": "bios", "step": "apply_configuration", "args": {"settings": settings}},
            {"interface": "firmware", "step": "update", "args": {"settings": [firmware]}},
        ]

        def live(host: operator.Host) -> Any:
            self.prepare(host)
            found = host.inspect("redfish")
            self.assertEqual([host.machine["macs"][0]], [i["mac_address"] for i in found["inventory"]["interfaces"]])
            before = host.read_settings()["ProcTurboMode"]
            self.assertEqual(
                ("Enumeration", ["Enabled", "Disabled"], False),
                tuple(before[name] for name in ("attribute_type", "allowable_values", "read_only")),
            )
            host.clean(steps, host.scheme.interfaces["raid_interface"], disks)
            after = {name: one["value"] for name, one in host.read_settings().items()}
            return [after[one["name"]] for one in settings], host.read_firmware()["bios"]["current_version"]

        for name, found in self.all_do(live, *self.redfish()).items():
            self.assertEqual((["Disabled", "5", "true"], "2.1.0"), found, name)

    def test_service_data_images_and_events_of_hosts_that_run(self) -> None:
        (self.lab.directory / "files" / "bmc-3.0.1.bin").write_bytes(b"firmware")
        (self.lab.directory / "files" / "data.iso").write_bytes(b"data")
        firmware = {"component": "bmc", "url": f"{self.lab.files.url}/bmc-3.0.1.bin"}
        steps = [
            {"interface": "bios", "step": "apply_configuration",
             "args": {"settings": [{"name": "ProcTurboMode", "value": "Disabled"}]}},
            {"interface": "firmware", "step": "update", "args": {"settings": [firmware]}},
        ]  # fmt: skip
        data = f"{self.lab.files.url}/data.iso"

        def live(host: operator.Host) -> Any:
            self.prepare(host)
            host.order("provide", "available")
            host.deploy(self.image(), configdrive(host))
            host.run()
            serviced = host.order("service", "active", service_steps=steps)
            self.assertEqual("power on", serviced["power_state"])
            attached = host.attach(data), host.detach()
            host.unsubscribe(host.subscribe("https://192.0.2.1/events"))
            host.forget()
            return attached

        for name, attached in self.all_do(live, *self.redfish()).items():
            self.assertEqual(([data], []), attached, name)
