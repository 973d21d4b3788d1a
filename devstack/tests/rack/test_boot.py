"""Reading iPXE scripts."""

import asyncio

import testtools

from ingot.rack import boot, boot_files

BASE = "http://server/boot/start"
MAC = "52:54:00:aa:bb:cc"


class ScriptTest(testtools.TestCase):
    def setUp(self) -> None:
        super().setUp()
        self.files: dict[str, str] = {"http://server/kernel": "", "http://server/initrd": ""}
        self.asked: list[str] = []

    async def fetch(self, url: str) -> str:
        self.asked.append(url)
        if url not in self.files:
            raise boot.CommandFailed(f"{url}: HTTP 404")
        return self.files[url]

    async def probe(self, url: str) -> None:
        await self.fetch(url)

    def run_script(self, *lines: str) -> boot_files.BootPlan | None:
        variables = {"mac": MAC, "net0/mac": MAC}
        run = boot.ScriptRun(variables, self.fetch, self.probe)
        return asyncio.run(run.boot(BASE, "\n".join(["#!ipxe", *lines])))

    def plan(self, *lines: str) -> boot_files.BootPlan:
        found = self.run_script(*lines)
        assert found is not None
        return found

    def test_kernel_arguments_and_files(self) -> None:
        plan = self.plan(
            "dhcp || echo no lease",
            "kernel --name k /kernel ipa-api-url=http://api BOOTIF=01-${mac:hexhyp} quiet",
            "initrd http://server/initrd",
            "boot",
        )
        expected = {"ipa-api-url": "http://api", "BOOTIF": "01-52-54-00-aa-bb-cc", "quiet": ""}
        self.assertEqual(boot_files.BootPlan("http://server/kernel", ("http://server/initrd",), expected), plan)

    def test_chain_substitutes_and_resolves_against_the_script(self) -> None:
        self.files["http://server/boot/cfg/52-54-00-aa-bb-cc"] = "#!ipxe\nkernel /kernel mac=${net0/mac}\nboot\n"
        plan = self.plan("chain --autofree cfg/${mac:hexhyp}")
        self.assertEqual({"mac": MAC}, plan.arguments)

    def test_a_chained_script_that_exits_gives_control_back(self) -> None:
        self.files["http://server/boot/other"] = "#!ipxe\nexit\n"
        self.assertEqual({"x": "1"}, self.plan("chain other", "kernel /kernel x=1", "boot").arguments)

    def test_exit_and_the_end_leave_booting_to_the_disk(self) -> None:
        self.assertIsNone(self.run_script("exit"))
        self.assertIsNone(self.run_script("echo nothing to do"))

    def test_sanboot_starts_the_disk_from_anywhere(self) -> None:
        self.files["http://server/boot/local"] = "#!ipxe\nsanboot --no-describe --drive 0x80\n"
        self.assertRaises(boot.LocalBoot, self.run_script, "chain local", "kernel /kernel", "boot")

    def test_operators(self) -> None:
        plan = self.plan(
            "isset ${unknown} && set a wrong || echo unset",
            "set a right",
            "isset ${mac} || goto wrong",
            "iseq ${a} right && goto right || goto wrong",
            ":wrong",
            "kernel /kernel wrong=1",
            "boot",
            ":right",
            "kernel /kernel a=${a}",
            "boot || exit 1",
        )
        self.assertEqual({"a": "right"}, plan.arguments)

    def test_failures_name_the_url_or_the_command(self) -> None:
        for lines, text in (
            (["kernel /missing"], "http://server/missing: HTTP 404"),
            (["frobnicate"], "frobnicate: command not found"),
            (["boot"], "no kernel was loaded"),
            (["kernel"], "no URL given"),
            (["goto nowhere"], "goto nowhere: no such label"),
            ([":again", "goto again"], "did not end after"),
            (["exit 1"], "exit 1"),
        ):
            self.assertRaisesRegex(boot_files.BootError, text, self.run_script, *lines)

    def test_what_is_no_script(self) -> None:
        run = boot.ScriptRun({}, self.fetch, self.probe)
        error = self.assertRaises(boot_files.BootError, asyncio.run, run.boot(BASE, "<html>"))
        self.assertIn("not an iPXE script", str(error))
