"""What loaders get that are not iPXE: configurations of GRUB, PXELINUX and Petitboot."""

import shlex
from typing import Any

from ingot.api.agents import boot_scripts
from tests.unit.api.test_agents import MAC, AgentCase

BOOT = {
    "target": "ramdisk",
    "kernel": "http://10.0.0.1:8080/boot/vmlinuz?v=1",
    "initrd": "http://10.0.0.1:8080/boot/initrd.img",
    "kernel_args": 'console=ttyS0  dyndbg="file a.c +p"\n$x;reboot {a} BOOTIF=01-${mac:hexhyp}',
}
HYPHENS = MAC.replace(":", "-")
PATHS = {
    "grub": "/boot/grub/grub.cfg-01-{}",
    "pxelinux": "/boot/pxelinux/pxelinux.cfg/01-{}",
    "petitboot": "/boot/petitboot/pxelinux.cfg/01-{}",
}
DISK = {
    "grub": boot_scripts.LOADERS["grub"].disk,
    "pxelinux": "DEFAULT disk\nPROMPT 0\nTIMEOUT 1\nLABEL disk\nLOCALBOOT -1\n",
    "petitboot": "# from disk\n",
}


def read_petitboot(text: str) -> dict[str, dict[str, str]]:
    """Return labels with their directives, as Petitboot reads them.

    Names are in capitals, the rest of a line is one value, and what comes before a label is passed over.
    """
    labels: dict[str, dict[str, str]] = {}
    for line in text.splitlines():
        name, _, value = line.strip().partition(" ")
        if line.startswith("#") or not value:
            continue
        if name == "LABEL":
            labels[value] = {}
        elif labels:
            labels[list(labels)[-1]][name] = value
    return labels


class BootLoaders(AgentCase):
    def fetch(self, loader: str, mac: str = MAC, **config: Any) -> str:
        if config:
            self.put(boot_config=config)
        answer = self.api("GET", PATHS[loader].format(mac), version=None)
        self.assertEqual((200, "text/plain; charset=utf-8"), (answer.status, answer.headers["Content-Type"]))
        return str(answer.text)

    def test_grub_gets_files_as_its_devices_and_arguments_as_words(self) -> None:
        for mac in (MAC, MAC.upper(), HYPHENS):
            kernel, initrd, boot = self.fetch("grub", mac, **BOOT).splitlines()
            expected = ["linux", "(http,10.0.0.1:8080)/boot/vmlinuz?v=1"]
            expected += ["console=ttyS0", "dyndbg=file a.c +p", "$x;reboot", "{a}", f"BOOTIF=01-{HYPHENS}"]
            self.assertEqual(expected, shlex.split(kernel))
            self.assertEqual("initrd '(http,10.0.0.1:8080)/boot/initrd.img'", initrd)
            self.assertEqual("boot", boot)

    def test_grub_gets_nothing_that_ends_a_word(self) -> None:
        text = self.fetch("grub", **{**BOOT, "kernel_args": "a='b\nsearch \"x"})
        self.assertEqual(3, len(text.splitlines()))
        self.assertEqual(["a='b", "search", '"x'], shlex.split(text.splitlines()[0])[2:])

    def test_the_others_get_labels(self) -> None:
        arguments = f'console=ttyS0 dyndbg="file a.c +p" $x;reboot {{a}} BOOTIF=01-{HYPHENS}'
        for loader, kernel in (("pxelinux", "LINUX"), ("petitboot", "KERNEL")):
            found = read_petitboot(self.fetch(loader, **BOOT))
            self.assertEqual({"ingot": {kernel: BOOT["kernel"], "INITRD": BOOT["initrd"], "APPEND": arguments}}, found)
        self.assertEqual({}, read_petitboot(DISK["petitboot"]))

    def test_only_what_was_asked_for_boots(self) -> None:
        for loader, disk in DISK.items():
            self.assertEqual(disk, self.fetch(loader, target="disk", kernel="http://h/k"))
            self.assertEqual(disk, self.fetch(loader, "00:11:22:33:44:55"))
            self.assertEqual(disk, self.fetch(loader, "rubbish"))

    def test_machines_are_discovered_by_the_agent_of_their_architecture_or_not_at_all(self) -> None:
        self.conf.set_override("enabled", True, group="auto_discovery")
        self.conf.set_override("deploy_kernel", "http://h/k", group="deploy")
        self.conf.set_override("deploy_ramdisk", "http://h/i", group="deploy")
        unknown = "00:11:22:33:44:55"
        everywhere = self.fetch("grub", unknown)
        self.assertTrue(everywhere.startswith("linux '(http,h)/k'"), everywhere)
        self.assertIn("LINUX http://h/k\n", self.fetch("pxelinux", unknown))
        self.assertEqual(DISK["petitboot"], self.fetch("petitboot", unknown))
        for name in ("deploy_kernel_by_arch", "deploy_ramdisk_by_arch"):
            self.conf.set_override(name, {"aarch64": "http://h/arm"}, group="deploy")
        arm64, pc = self.fetch("grub", unknown).split("else\n")
        self.assertTrue(arm64.startswith("if [ \"$grub_cpu\" = arm64 ]; then\nlinux '(http,h)/arm'"), arm64)
        self.assertEqual(f"{everywhere}fi\n", pc)

    def test_a_volume_is_not_replaced_by_the_disk(self) -> None:
        self.put(boot_config={"target": "volume"})
        for path in PATHS.values():
            answer = self.api("GET", path.format(MAC), version=None)
            self.assertEqual(404, answer.status)
            self.assertIn("iPXE only", answer.text)
        self.assertIsNone(self.row.boot_script_at)

    def test_it_is_noted_as_a_script_is(self) -> None:
        for loader in PATHS:
            self.put(boot_script_at=None)
            self.fetch(loader, **BOOT)
            self.assertIsNotNone(self.row.boot_script_at)

    def test_other_names_that_loaders_try_are_not_there(self) -> None:
        for name in ("0A000002", "default", "f5e21c60-b7a9-4b3b-a2f6-3d5b5f5d7a10"):
            self.assertEqual(404, self.api("GET", f"/boot/pxelinux/pxelinux.cfg/{name}", version=None).status)

    def test_an_image_is_a_drive_of_ipxe_and_not_replaced_by_the_disk(self) -> None:
        self.put(boot_config={"target": "image", "image": "http://10.0.0.1:6385/boot/media/n/t/boot.iso"})
        script = str(self.api("GET", f"/boot/ipxe/{HYPHENS}", version=None).text)
        self.assertEqual(["#!ipxe", "sanboot http://10.0.0.1:6385/boot/media/n/t/boot.iso || echo"],
                         script.partition(" The image")[0].splitlines())  # fmt: skip
        self.assertTrue(script.endswith("reboot\n"))
        for path in PATHS.values():
            answer = self.api("GET", path.format(MAC), version=None)
            self.assertEqual(404, answer.status)
            self.assertIn("its image", answer.text)

    def test_a_machine_whose_image_stayed_in_ironic_waits(self) -> None:
        self.put(boot_config={"target": "image"})
        script = str(self.api("GET", f"/boot/ipxe/{HYPHENS}", version=None).text)
        self.assertNotIn("sanboot", script)
        self.assertIn("The machine tries again in a minute.\nsleep 60\nreboot\n", script)
