"""In BIOS: what goes wrong while an image is streamed to one disk, a system that boots from it, and its rescue."""

from typing import Any

import testtools

from tests.gate.real_machine import traces
from tests.gate.real_machine.bench import Bench

PASSWORD = "Let me in 4711"
ARGUMENTS = "/driver_info/kernel_append_params"
LARGE_GIB = 6


class BiosTest(testtools.TestCase):
    """One machine, act by act: a boot of the agent takes most of a minute without KVM."""

    def setUp(self) -> None:
        super().setUp()
        # An agent that has gone is missed sooner than by default: two acts wait for it.
        options = {"api": {"ramdisk_heartbeat_timeout": 20}, "agent": {"connect_timeout": 5}}
        self.bench = self.useFixture(Bench("bios", disk_sizes=("5G", f"{LARGE_GIB}G"), options=options))
        self.disks = [self.bench.disk(number) for number in range(2)]

    def test_failures_a_system_on_one_disk_and_its_rescue(self) -> None:
        self.uuid = self.bench.enroll("bios", automated_clean=False)
        self.bench.ask(self.uuid, "manage", "manageable")
        self.bench.ask(self.uuid, "provide", "available")
        self.kill_the_agent()
        self.reset_the_machine()
        self.deploy()
        self.rescue()
        self.unrescue()

    def change(self, **fields: Any) -> None:
        self.bench.user.patch(f"/v1/nodes/{self.uuid}", {f"/{name}": value for name, value in fields.items()})

    def arguments(self, more: str = "") -> None:
        """Give the agent's kernel more arguments than it needs."""
        self.bench.user.patch(f"/v1/nodes/{self.uuid}", {ARGUMENTS: f"{self.bench.kernel_arguments} {more}".strip()})

    def root_device(self, **hint: object) -> None:
        """Set a hint for the root device, which is always the second disk."""
        self.bench.user.patch(f"/v1/nodes/{self.uuid}", {"/properties/root_device": hint})

    def check_which_disk(self) -> None:
        """Check that only the second disk was written."""
        self.assertEqual([False, True], [traces.has_partition_table(disk["path"]) for disk in self.disks])
        self.assertEqual(0, self.bench.disk(0)["used"])

    def kill_the_agent(self) -> None:
        """Kill the agent while it writes; the ramdisk starts another, which knows nothing of the image.

        What the first one has logged is on the console.
        """
        self.arguments("ramdisk.shell")
        self.root_device(wwn=self.disks[1]["wwn"])
        self.bench.choose_image(self.uuid, "image.raw")
        self.start_writing()
        self.bench.wait_for_text("Attempting to download image from")
        self.bench.wait_for_text("root@ramdisk")
        self.bench.type("sync; killall -9 python3")
        self.bench.wait_for_text("the agent ended with status 137")
        self.fails_to_write()

    def reset_the_machine(self) -> None:
        """Reset the machine by its BMC; check that it does not start a half-written system.

        No agent calls any more, and none answers.
        """
        self.root_device(size=LARGE_GIB)
        self.start_writing()
        self.bench.say("reset by the BMC")
        self.bench.rack.control.power(self.bench.name, "reset")
        self.fails_to_write()

    def start_writing(self) -> None:
        """Wait until the agent has the beginning of the image, for the second disk, and waits for more."""
        self.bench.files.hold("image.raw")
        self.bench.start(self.uuid, "active", configdrive={"meta_data": {"uuid": self.uuid, "name": "real"}})
        self.bench.eventually(lambda: self.bench.files.is_read, "the agent fetches the image")
        chosen = ("Root device found!", f"'size': {self.disks[1]['size']}")
        self.bench.eventually(
            lambda: any(all(part in line for part in chosen) for line in self.bench.log()),
            f"the console shows {chosen}",
        )

    def fails_to_write(self) -> None:
        """Check that the deployment fails: a machine without an agent refuses connections, or does not answer."""
        failed = self.bench.reach(self.uuid, "deploy failed")
        self.assertIn("write_image", failed["last_error"])
        self.assertRegex(failed["last_error"], "its agent is gone|did not answer")
        self.bench.files.let_go()

    def deploy(self) -> None:
        self.arguments()
        self.root_device(serial=self.disks[1]["serial"])
        self.bench.ask(self.uuid, "active", "active", configdrive={"meta_data": {"uuid": self.uuid, "name": "real"}})
        self.check_system()
        self.check_which_disk()

    def check_system(self) -> None:
        system = self.bench.wait_for_image()
        self.bench.check_facts(system, self.uuid, "bios")
        self.assertEqual({}, system.arrays)

    def rescue(self) -> None:
        """Rescue the machine; check that the user gets in on the serial console."""
        self.bench.ask(self.uuid, "rescue", "rescue", rescue_password=PASSWORD)
        self.bench.wait_for_text("ramdisk login:")
        self.bench.type("rescue")
        self.bench.wait_for_text("Password:")
        self.bench.type(PASSWORD)
        self.bench.wait_for_text("root@ramdisk")
        self.bench.type("echo $LOGNAME has disks $(lsblk -dno SERIAL | sort | xargs)")
        serials = " ".join(sorted(disk["serial"] for disk in self.disks))
        self.bench.wait_for_text(f"rescue has disks {serials}")
        self.bench.say(f"user rescue is logged in and sees disks {serials}")

    def unrescue(self) -> None:
        """End the rescue: the power button stops the ramdisk; then the user's system is there again."""
        self.bench.ask(self.uuid, "unrescue", "active")
        log = "\n".join(self.bench.rack.control.log(self.bench.name))
        self.assertIn("ramdisk: power button", log)
        self.assertIn("off: guest-shutdown", log.partition("ramdisk: power button")[2])
        self.check_system()
