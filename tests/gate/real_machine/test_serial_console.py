"""A machine that PXELINUX has booted, its serial console in the web console, and its agent, which has no TLS.

A BIOS starts PXELINUX by TFTP, which asks the API what to boot, by HTTP, as Petitboot does. The machine room has UEFI
start the signed shim and GRUB, with secure boot on.
"""

import pathlib
import shutil

import testtools
from playwright.sync_api import expect

from tests.gate.console.browser import Browser
from tests.gate.real_machine.bench import PATIENCE_S, PLACE, Bench

_COMMAND = 'echo "$((6 * 7)) says $(uname -s)"'
_ANSWER = "42 says Linux"

# QEMU's DHCP server has no option 210, by which PXELINUX would find this alone.
_SECOND = "DEFAULT api\nLABEL api\nCONFIG http://{server}/boot/pxelinux/pxelinux.cfg/01-{mac}\n"
_PXELINUX = ("/usr/lib/PXELINUX/lpxelinux.0", "/usr/lib/syslinux/modules/bios/ldlinux.c32")

# The agent expects an Ingot from before TLS.
_ARGUMENTS = "ramdisk.shell ipa-ironic-api-version=1.67"


class SerialConsoleTest(testtools.TestCase):
    """One machine, act by act: a boot of the agent takes most of a minute without KVM."""

    def setUp(self) -> None:
        super().setUp()
        root = self.empty_directory()
        self.bench = self.useFixture(Bench("console", rack={"tftp_root": str(root), "boot_url": "lpxelinux.0"}))
        for file in _PXELINUX:
            shutil.copyfile(file, root / pathlib.Path(file).name)
        self.mac = self.bench.machine["macs"][0].replace(":", "-")
        (root / "pxelinux.cfg").mkdir()
        (root / "pxelinux.cfg" / f"01-{self.mac}").write_text(_SECOND.format(server=self.bench.server, mac=self.mac))

    def empty_directory(self) -> pathlib.Path:
        """Return the directory of the TFTP server."""
        root = PLACE / "runs" / "console-tftp"
        shutil.rmtree(root, ignore_errors=True)
        root.mkdir(parents=True)
        return root

    def test_pxelinux_boots_an_agent_that_is_typed_to_and_refused_without_tls(self) -> None:
        bench = self.bench
        fields = {"boot_interface": "pxe", "console_interface": "ipmitool-sol"}
        self.uuid = bench.enroll("bios", automated_clean=False, **fields)
        arguments = f"{bench.kernel_arguments} {_ARGUMENTS}"
        bench.user.patch(f"/v1/nodes/{self.uuid}", {"/driver_info/kernel_append_params": arguments})
        bench.ask(self.uuid, "manage", "manageable")
        bench.ask(self.uuid, "provide", "available")
        bench.choose_image(self.uuid, "image.raw")
        bench.start(self.uuid, "active")
        self.type_in_the_browser()
        self.check_loader()
        self.refuse_the_agent()

    def type_in_the_browser(self) -> None:
        """Check that what is typed in the browser runs on the machine: serial over LAN, from a real kernel and back."""
        bench = self.bench
        browser = self.useFixture(Browser(bench.user.url))
        self.addCleanup(browser.check_complaints)
        browser.open(f"/nodes/{bench.name}?tab=console")
        console = browser.page.get_by_role("region", name="Serial console")
        screen = console.locator(".xterm-rows")
        expect(screen).to_contain_text("root@ramdisk", timeout=PATIENCE_S * 1000)
        console.get_by_role("button", name="Type").click()
        expect(console.get_by_role("status")).to_contain_text("You type")
        browser.page.keyboard.type(f"{_COMMAND}\n")
        expect(screen).to_contain_text(_ANSWER)
        self.assertTrue(bench.has_said(_ANSWER))
        browser.shoot("qemu")
        bench.say(f"typed in the browser: {_COMMAND}; the machine: {_ANSWER}")

    def check_loader(self) -> None:
        log = (self.bench.directory / "ingot.log").read_text(errors="replace")
        self.assertIn(f"GET /boot/pxelinux/pxelinux.cfg/01-{self.mac}", log)
        self.assertNotIn("/boot/ipxe", log)

    def refuse_the_agent(self) -> None:
        """Check that an agent which expects an Ingot from before TLS is never used."""
        self.bench.wait_for_text("TLS is required by configuration")
        node = self.bench.user.node(self.uuid)
        self.assertEqual(
            ("wait call-back", None), (node["provision_state"], node["driver_internal_info"].get("agent_url"))
        )
