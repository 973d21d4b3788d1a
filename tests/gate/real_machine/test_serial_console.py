"""The serial console of an emulated machine in the web console: what is typed in the browser, the machine runs."""

import testtools
from playwright.sync_api import expect

from tests.gate.console.browser import Browser
from tests.gate.real_machine.bench import PATIENCE_S, Bench

_COMMAND = 'echo "$((6 * 7)) says $(uname -s)"'
_ANSWER = "42 says Linux"


class SerialConsoleTest(testtools.TestCase):
    """Serial over LAN from a real kernel's serial line to the browser, and back."""

    def test_a_command_that_is_typed_in_the_browser_runs_on_the_machine(self) -> None:
        bench = self.useFixture(Bench("console"))
        uuid = bench.enroll("bios", automated_clean=False, console_interface="ipmitool-sol")
        bench.user.patch(
            f"/v1/nodes/{uuid}", {"/driver_info/kernel_append_params": f"{bench.kernel_arguments} ramdisk.shell"}
        )
        bench.ask(uuid, "manage", "manageable")
        bench.start(uuid, "inspect")
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
