"""Images of the agent as others publish them: verified, served as they are, and booted."""

import hashlib
import pathlib
import subprocess
import sys

import fixtures
import testtools

from tests.functional.deployment import lab

LAYOUTS = (
    ("ipa-centos9-master.kernel", "ipa-centos9-master.initramfs"),
    ("tinyipa-master.vmlinuz", "tinyipa-master.gz"),
    ("ironic-python-agent.kernel", "ironic-python-agent.initramfs"),
)
VERIFY = pathlib.Path(sys.executable).parent / "ingot-image"


def publish(directory: pathlib.Path) -> None:
    """Write images with a checksum file for each, as their projects do."""
    directory.mkdir()
    for name in (name for layout in LAYOUTS for name in layout):
        content = hashlib.sha512(name.encode()).digest() * 1000
        (directory / name).write_bytes(content)
        (directory / f"{name}.sha256").write_text(f"{hashlib.sha256(content).hexdigest()}  {name}\n")


def verify(directory: pathlib.Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([VERIFY, "verify", directory], capture_output=True, text=True, check=False)


class PublishedImagesTest(testtools.TestCase):
    def test_machines_boot_each_of_them_by_http(self) -> None:
        bench = self.useFixture(lab.Lab(machines=len(LAYOUTS), options={"conductor": {"automated_clean": False}}))
        images = bench.directory / "files" / "images"
        publish(images)
        self.assertEqual((0, ""), (verify(images).returncode, verify(images).stderr))
        for index, (kernel, ramdisk) in enumerate(LAYOUTS):
            urls = {"deploy_kernel": f"{bench.files.url}/images/{kernel}"}
            urls["deploy_ramdisk"] = f"{bench.files.url}/images/{ramdisk}"
            node = bench.enroll(index, driver_info={**bench.access(index), **urls})
            bench.make_available(node)
            bench.set_image(node)
            bench.user.provision(node, "active")
            bench.reach(node, "active")
            log = bench.rack.control.log(bench.rack.machines[index]["name"])
            self.assertTrue(any(f"kernel {urls['deploy_kernel']} started" in line for line in log), log)
            self.assertTrue(any(urls["deploy_ramdisk"] in line for line in log), log)

    def test_the_options_that_are_shown_are_those_that_work(self) -> None:
        """A machine boots from a medium with the files of this host that ``ingot-image verify`` has named."""
        images = pathlib.Path(self.useFixture(fixtures.TempDir()).path, "images")
        publish(images)
        loaders = images.parent / "loaders"
        for name in ("shim/shimx64.efi.signed", "grub/x86_64-efi-signed/grubx64.efi.signed"):
            (loaders / name).parent.mkdir(parents=True)
            (loaders / name).write_bytes(b"a loader")
        shown = verify(images).stdout.splitlines()
        options = dict(line.removeprefix("[deploy] ").split(" = ") for line in shown if line.startswith("[deploy] "))
        self.assertEqual({"deploy_kernel", "deploy_ramdisk"}, {*options})
        deploy = {**options, "file_url_allowed_paths": str(images), "signed_loader_path": str(loaders)}
        bench = self.useFixture(
            lab.Lab(
                rack={"redfish_base_port": 0},
                options={
                    "DEFAULT": {"enabled_hardware_types": "redfish"},
                    "deploy": deploy,
                    "conductor": {"automated_clean": False},
                },
            )
        )
        machine = bench.rack.machines[0]
        info = {
            "redfish_address": machine["redfish"]["address"],
            "redfish_username": "admin",
            "redfish_password": "password",
            "redfish_verify_ca": bench.rack.description["redfish_ca_file"],
        }
        body = {"driver": "redfish", "boot_interface": "redfish-virtual-media", "driver_info": info}
        node = bench.user.post("/v1/nodes", {**body, "properties": {"capabilities": "boot_mode:uefi"}})["uuid"]
        for address in machine["macs"]:
            bench.user.post("/v1/ports", {"node_uuid": node, "address": address, "pxe_enabled": False})
        bench.make_available(node)
        bench.set_image(node)
        bench.user.provision(node, "active")
        bench.reach(node, "active")
        self.assertIn("media boot", "\n".join(bench.rack.control.log(machine["name"])))

    def test_what_was_damaged_on_its_way_is_noticed(self) -> None:
        images = pathlib.Path(self.useFixture(fixtures.TempDir()).path, "images")
        publish(images)
        kernel = images / LAYOUTS[0][0]
        kernel.write_bytes(kernel.read_bytes()[:-1])
        found = verify(images)
        self.assertEqual((1, ""), (found.returncode, found.stdout))
        self.assertIn(f"{kernel.name}: its sha256 is", found.stderr)
