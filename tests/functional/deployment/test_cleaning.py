"""Cleaning (specification 002) on machines of the rack: what runs, what is left on the disks, what an operator sees.

A machine's disks are sparse files: a test writes a secret to the start and to the middle of each, and looks for it.
"""

import pathlib
import signal
from typing import Any, ClassVar

import testtools

from tests.functional.deployment import lab

MACHINE = "machine-0"
SECRET = b"what a user left behind"
GONE = (False, False)
METADATA_GONE = (False, True)
UNTOUCHED = (True, True)

CALLBACK = {"conductor": {"clean_callback_timeout": 10}}
"""Options with which a test need not wait half an hour for an agent."""


def in_band(step: str, priority: int, interface: str = "deploy", **more: Any) -> dict[str, Any]:
    """Return a clean step that the rack's agents offer."""
    return {"step": step, "interface": interface, "priority": priority, "kinds": ["clean"], **more}


class CleaningTestCase(testtools.TestCase):
    def manageable(self, steps: tuple[dict[str, Any], ...] = (), **settings: Any) -> str:
        """Return a manageable node, on its own lab, whose agent offers ``steps``, too."""
        rack = {"steps": steps, **settings.pop("rack", {})}
        self.bench = self.useFixture(lab.Lab(rack=rack, **settings))
        self.control = self.bench.rack.control
        uuid = self.bench.enroll()
        self.bench.user.provision(uuid, "manage")
        self.bench.reach(uuid, "manageable")
        return uuid

    def clean(self, uuid: str, end: str = "available", **request: Any) -> dict[str, Any]:
        """Clean, automatically or with the steps of a request, and return the node at the end."""
        self.bench.user.provision(uuid, "clean" if request else "provide", **request)
        return self.bench.reach(uuid, end)

    def waits_in(self, uuid: str, step: str) -> None:
        def check() -> bool:
            node = self.bench.user.node(uuid)
            return bool(node["clean_step"].get("step") == step and node["provision_state"] == "clean wait")

        self.bench.eventually(check, f"step {step} waits for the agent")

    def ran(self, uuid: str) -> list[tuple[str, int, str]]:
        """Return (step, priority, state) of the attempts of the latest run, without what the flow itself did."""
        rows = self.bench.step_runs(uuid)
        return [(row["step"], row["priority"], row["state"]) for row in rows if row["origin"] != "flow"]

    def disks(self) -> list[pathlib.Path]:
        return [pathlib.Path(disk["path"]) for disk in self.control.machine(MACHINE)["disks"]]

    def soil(self) -> None:
        for path in self.disks():
            with path.open("r+b") as disk:
                for offset in (0, path.stat().st_size // 2):
                    disk.seek(offset)
                    disk.write(SECRET)

    def left(self) -> list[tuple[bool, ...]]:
        """Return for each disk whether the secret is left at its start and in its middle."""
        found = []
        for path in self.disks():
            with path.open("rb") as disk:
                places = []
                for offset in (0, path.stat().st_size // 2):
                    disk.seek(offset)
                    places.append(SECRET in disk.read(4096))
            found.append(tuple(places))
        return found

    def said(self) -> str:
        """Return the machine's log."""
        return "\n".join(self.control.log(MACHINE))


class TestAutomated(CleaningTestCase):
    def test_steps_run_by_priority_and_leave_nothing_on_disks_of_any_kind(self) -> None:
        uuid = self.manageable(
            (in_band("last", 5), in_band("off", 0), in_band("first", 120), in_band("between", 50)),
            rack={"disks": 3, "disk_kinds": ["ata", "nvme", "ata:unsupported"]},
            options={"deploy": {"shred_random_overwrite_iterations": 3}},
        )
        self.soil()
        self.clean(uuid)
        expected = [("first", 120), ("erase_devices_metadata", 99), ("between", 50), ("erase_devices", 10), ("last", 5)]
        self.assertEqual([(*step, "done") for step in expected], self.ran(uuid))
        self.assertEqual([GONE] * 3, self.left())
        for words in (
            "erased the metadata of /dev/sda",
            "erased /dev/sda by ATA secure erase",
            "erased /dev/nvme1n1 by NVMe format",
            "shredded /dev/sdc, passes of random data: 3, zeros at the end: yes",
        ):
            self.assertIn(words, self.said())
        self.assertEqual("power off", self.bench.user.node(uuid)["power_state"])
        self.assertEqual({}, self.bench.user.node(uuid)["clean_step"])

    def test_the_operator_says_what_runs_and_in_which_order(self) -> None:
        """Priorities by option and by override, one disabled, and ties by interface: power, management, deploy."""
        uuid = self.manageable(
            (
                in_band("audit", 30),
                in_band("audit", 30, "management"),
                in_band("audit", 30, "power"),
                in_band("noisy", 80),
                in_band("burn", 0),
            ),
            options={
                "deploy": {
                    "erase_devices_priority": 0,
                    "erase_devices_metadata_priority": 20,
                    "delete_configuration_priority": 6,
                    "create_configuration_priority": 0,
                },
                "conductor": {"clean_step_priority_override": "deploy.noisy:0,deploy.burn:15"},
            },
        )
        self.soil()
        listed = self.bench.user.get(f"/v1/nodes/{uuid}/cleaning/steps")
        only = {"interface": "raid", "step": "delete_configuration", "priority": 6, "offered_at": None}
        self.assertEqual([only], listed)
        self.clean(uuid)
        rows = [row for row in self.bench.step_runs(uuid) if row["origin"] != "flow"]
        self.assertEqual(
            [
                ("power", "audit", 30, "agent"),
                ("management", "audit", 30, "agent"),
                ("deploy", "audit", 30, "agent"),
                ("deploy", "erase_devices_metadata", 20, "agent"),
                ("deploy", "burn", 15, "agent"),
                ("raid", "delete_configuration", 6, "driver"),
            ],
            [(row["interface"], row["step"], row["priority"], row["origin"]) for row in rows],
        )
        self.assertEqual([METADATA_GONE] * 2, self.left())

    def test_while_it_runs_the_step_is_shown_and_nothing_can_be_changed(self) -> None:
        uuid = self.manageable()
        self.control.order_fault(MACHINE, "agent_hangs_at_step", "erase_devices")
        self.bench.user.provision(uuid, "provide")
        self.waits_in(uuid, "erase_devices")
        step = self.bench.user.node(uuid)["clean_step"]
        self.assertEqual(("deploy", "erase_devices", 10), (step["interface"], step["step"], step["priority"]))
        listed = self.bench.user.get(f"/v1/nodes/{uuid}/cleaning/steps")
        expected = [("erase_devices_metadata", 99), ("erase_devices", 10)]
        self.assertEqual(expected, [(one["step"], one["priority"]) for one in listed])
        for path, body in (
            ("power", {"target": "power off"}),
            ("power", {"target": "rebooting"}),
            ("provision", {"target": "provide"}),
            ("provision", {"target": "active"}),
            ("provision", {"target": "clean", "clean_steps": [{"interface": "deploy", "step": "erase_devices"}]}),
        ):
            answer = self.bench.user.request("PUT", f"/v1/nodes/{uuid}/states/{path}", body)
            self.assertIn(answer.status_code, (400, 409), body)
            self.assertIn("clean wait", answer.text)
        self.control.clear_faults(MACHINE)
        self.bench.reach(uuid, "available")

    def test_a_conductor_that_comes_back_goes_on_with_what_the_agent_did_meanwhile(self) -> None:
        uuid = self.manageable()
        self.soil()
        self.control.order_fault(MACHINE, "agent_hangs_at_step", "erase_devices")
        self.bench.user.provision(uuid, "provide")
        self.waits_in(uuid, "erase_devices")
        self.bench.process.stop(signal.SIGKILL)
        self.control.clear_faults(MACHINE)
        self.bench.process.start()
        self.bench.reach(uuid, "available")
        self.assertEqual([("erase_devices_metadata", 99, "done"), ("erase_devices", 10, "done")], self.ran(uuid))
        self.assertEqual([GONE] * 2, self.left())

    def test_it_can_be_left_out(self) -> None:
        uuid = self.manageable()
        self.soil()
        self.bench.user.patch(f"/v1/nodes/{uuid}", {"/automated_clean": False})
        self.clean(uuid)
        self.assertEqual([UNTOUCHED] * 2, self.left())
        self.assertEqual(0, self.control.machine(MACHINE)["boots"])


class TestSecureErase(CleaningTestCase):
    def test_a_disk_that_refuses_fails_the_cleaning_and_the_operator_decides(self) -> None:
        """What is shown, what stays allowed, and each way on: skip, put aside, repair and retry."""
        uuid = self.manageable(rack={"disks": 1})
        self.soil()
        self.control.order_fault(MACHINE, "disks_frozen")
        node = self.clean(uuid, "clean failed")
        for words in ("deploy.erase_devices", "ATA secure erase of /dev/sda is frozen", "conductor-0"):
            self.assertIn(words, node["last_error"])
        self.assertEqual((True, "clean failure"), (node["maintenance"], node["fault"]))
        self.assertIn("frozen", node["maintenance_reason"])
        self.assertEqual("erase_devices", node["clean_step"]["step"])
        self.assertEqual("power on", node["power_state"])
        self.assertEqual("on", self.control.machine(MACHINE)["power"])
        self.assertEqual([METADATA_GONE], self.left())

        for target in ("power off", "power on"):
            self.bench.user.put(f"/v1/nodes/{uuid}/states/power", {"target": target})
            self.bench.eventually(lambda: not self.bench.user.node(uuid)["target_power_state"], f"{target} is done")
            self.assertEqual(target, self.bench.user.node(uuid)["power_state"])

        self.bench.user.delete(f"/v1/nodes/{uuid}/maintenance")
        self.bench.user.patch(f"/v1/nodes/{uuid}", {"/automated_clean": False})
        self.clean(uuid)  # skipped
        self.assertEqual([METADATA_GONE], self.left())
        self.bench.user.provision(uuid, "manage")
        self.bench.reach(uuid, "manageable")

        request = {"clean_steps": [{"interface": "deploy", "step": "erase_devices"}]}
        self.clean(uuid, "clean failed", **request)
        self.control.clear_faults(MACHINE)
        self.bench.user.delete(f"/v1/nodes/{uuid}/maintenance")
        self.clean(uuid, "manageable", **request)  # retried from clean failed
        self.assertEqual([GONE], self.left())
        self.assertIsNone(self.bench.user.node(uuid)["last_error"])
        self.assertIsNone(self.bench.user.node(uuid)["fault"])

    def test_or_is_shredded_when_the_operator_wants_that(self) -> None:
        uuid = self.manageable(
            rack={"disks": 4, "disk_kinds": ["ata:frozen", "nvme:failing", "nvme:unsupported", "ata:failing"]},
            options={"deploy": {"continue_if_disk_secure_erase_fails": "true"}},
        )
        self.soil()
        self.clean(uuid)
        self.assertEqual([GONE] * 4, self.left())
        for words in (
            "ATA secure erase of /dev/sda is frozen by the firmware: shredding it",
            "NVMe format of /dev/nvme1n1 failed: shredding it",
            "shredded /dev/nvme2n1",
            "shredded /dev/sdd, passes of random data: 1, zeros at the end: yes",
        ):
            self.assertIn(words, self.said())

    def test_it_can_be_switched_off_for_each_kind(self) -> None:
        uuid = self.manageable(
            rack={"disk_kinds": ["ata", "nvme"]},
            options={"deploy": {"enable_ata_secure_erase": "false", "enable_nvme_secure_erase": "false",
                                "shred_final_overwrite_with_zeros": "false"}},
        )  # fmt: skip
        self.soil()
        self.clean(uuid)
        self.assertEqual([GONE] * 2, self.left())
        self.assertNotIn("secure erase", self.said())
        for name in ("/dev/sda", "/dev/nvme1n1"):
            self.assertIn(f"shredded {name}, passes of random data: 1, zeros at the end: no", self.said())

    def test_read_only_disks_are_left_out_when_that_is_allowed(self) -> None:
        disks = {"disk_kinds": ["ata", "ata:read-only"]}
        uuid = self.manageable(rack=disks, options={"deploy": {"erase_skip_read_only": "true"}})
        self.soil()
        self.clean(uuid)
        self.assertEqual([GONE, UNTOUCHED], self.left())


class TestManual(CleaningTestCase):
    def test_arrays_are_built_and_recorded_and_dissolved(self) -> None:
        uuid = self.manageable()
        requested = lab.MIRROR["raid_config"]
        self.bench.user.put(f"/v1/nodes/{uuid}/states/raid", requested)
        self.clean(uuid, "manageable", clean_steps=[{"interface": "raid", "step": "create_configuration"}])
        self.assertEqual(1, len(self.control.machine(MACHINE)["volumes"]))
        built = self.bench.user.node(uuid)["raid_config"]["logical_disks"]
        self.assertEqual("1", built[0]["raid_level"])
        self.clean(uuid, "manageable", clean_steps=[{"interface": "raid", "step": "delete_configuration"}])
        self.assertEqual([], self.control.machine(MACHINE)["volumes"])
        self.assertEqual({}, self.bench.user.node(uuid)["raid_config"])

    def test_a_reboot_that_a_named_step_wants_is_made(self) -> None:
        flash = in_band("flash", 0, "bios", reboot_requested=True, argsinfo={"to": {"description": "Which one."}})
        uuid = self.manageable((flash,))
        steps = [
            {"interface": "bios", "step": "flash", "args": {"to": "2"}},
            {"interface": "deploy", "step": "erase_devices_metadata"},
        ]
        self.clean(uuid, "manageable", clean_steps=steps)
        ran = [("flash", 0, "done"), ("erase_devices_metadata", 0, "done")]
        self.assertEqual(ran, self.ran(uuid))
        self.assertEqual(2, self.control.machine(MACHINE)["boots"])
        boots = {row["step"]: row["boot"] for row in self.control.machine(MACHINE)["commands"] if row["step"]}
        self.assertEqual({"flash": 1, "erase_devices_metadata": 2}, boots)
        commands = [row["command"] for row in self.control.machine(MACHINE)["commands"]]
        self.assertEqual(2, commands.count("clean.get_clean_steps"), "asked again after the reboot")

    def test_arguments_that_the_agent_did_not_describe_are_refused_before_the_step_runs(self) -> None:
        uuid = self.manageable((in_band("flash", 0, "bios", argsinfo={"to": {"description": "Which one."}}),))
        steps = [{"interface": "bios", "step": "flash", "args": {"form": "2"}}]
        node = self.clean(uuid, "clean failed", clean_steps=steps)
        self.assertIn("bios.flash", node["last_error"])
        self.assertIn("form", node["last_error"])
        self.assertFalse(node["maintenance"])


class TestVersions(CleaningTestCase):
    """The agent, or one of its hardware managers, is not the one any more that the steps were planned with."""

    STEPS: ClassVar[tuple[dict[str, Any], ...]] = (in_band("early", 110), in_band("flash", 100, reboot_requested=True))
    CHANGES: ClassVar[dict[str, dict[str, str]]] = {
        "agent, seen after a reboot": {"step": "flash", "agent": "14.0.0"},
        "hardware manager, seen after a reboot": {"step": "flash", "hardware_manager": "2.0"},
        "hardware manager, seen by the agent": {"step": "early", "hardware_manager": "3.0"},
    }

    def test_automated_cleaning_starts_again_with_what_the_new_one_offers(self) -> None:
        for what, change in self.CHANGES.items():
            uuid = self.manageable(self.STEPS)
            self.soil()
            self.control.order_fault(MACHINE, "new_version_after_step", change, times=1)
            self.clean(uuid)
            again = [("early", 110), ("flash", 100), ("erase_devices_metadata", 99), ("erase_devices", 10)]
            expected = [("early", 110, "done"), ("flash", 100, "interrupted"), *((*step, "done") for step in again)]
            self.assertEqual(expected, self.ran(uuid), what)
            interrupted = next(row for row in self.bench.step_runs(uuid) if row["state"] == "interrupted")
            self.assertIn(next(reversed(change.values())), interrupted["error"])
            self.assertEqual([GONE] * 2, self.left())

    def test_manual_cleaning_fails(self) -> None:
        for what, change in self.CHANGES.items():
            uuid = self.manageable(self.STEPS)
            self.control.order_fault(MACHINE, "new_version_after_step", change, times=1)
            names = ("early", "flash", "erase_devices_metadata")
            steps = [{"interface": "deploy", "step": name} for name in names]
            node = self.clean(uuid, "clean failed", clean_steps=steps)
            self.assertIn("deploy.flash", node["last_error"], what)
            self.assertIn(next(reversed(change.values())), node["last_error"])
            self.assertTrue(node["maintenance"])


class TestAgentTrouble(CleaningTestCase):
    def fails(self, fault: str, *expected: str, value: Any = None, **settings: Any) -> None:
        uuid = self.manageable(**settings)
        self.control.order_fault(MACHINE, fault, value)
        node = self.clean(uuid, "clean failed")
        for words in expected:
            self.assertIn(words, node["last_error"])
        self.assertEqual((True, "clean failure", None), (node["maintenance"], node["fault"], node["reservation"]))
        self.assertNotIn("agent_token=", node["last_error"])
        self.control.clear_faults(MACHINE)
        self.bench.user.delete(f"/v1/nodes/{uuid}/maintenance")
        self.clean(uuid)

    def test_an_offer_that_cannot_be_understood_is_the_agents_error(self) -> None:
        self.fails(
            "malformed_steps", "clean.get_clean_steps", "'high' as clean_steps.GenericHardwareManager[0].priority"
        )

    def test_an_agent_that_refuses_the_token(self) -> None:
        self.fails("command_token_wrong", "clean.get_clean_steps", "Token invalid")

    def test_heartbeats_with_a_wrong_token_are_none(self) -> None:
        self.fails("heartbeat_token_wrong", "prepare_cleaning", "timed out", options=CALLBACK)

    def test_an_agent_that_knows_no_cleaning_cannot_pass_for_one_that_has_cleaned(self) -> None:
        self.fails("agent_lacks_extension", "knows no clean steps", "clean.get_clean_steps", value="clean")


class TestAbort(CleaningTestCase):
    def test_an_abortable_step_is_cut_off_and_another_one_is_not(self) -> None:
        uuid = self.manageable((in_band("delicate", 0),))
        for step, cut_off in (("erase_devices", True), ("delicate", False)):
            self.control.order_fault(MACHINE, "agent_hangs_at_step", step)
            names = (step, "erase_devices_metadata")
            request = {"clean_steps": [{"interface": "deploy", "step": name} for name in names]}
            self.bench.user.provision(uuid, "clean", **request)
            self.waits_in(uuid, step)
            self.bench.user.provision(uuid, "abort")
            if not cut_off:
                self.assertEqual("clean wait", self.bench.user.node(uuid)["provision_state"])
                self.control.clear_faults(MACHINE)
            node = self.bench.reach(uuid, "clean failed")
            self.assertIn("aborted", node["last_error"])
            ends = [(name, state) for name, _priority, state in self.ran(uuid)]
            expected = [(step, "aborted")] if cut_off else [(step, "done"), ("erase_devices_metadata", "aborted")]
            self.assertEqual(expected, ends)
            self.assertEqual((False, None), (node["maintenance"], node["fault"]))
            self.control.clear_faults(MACHINE)
            self.bench.user.provision(uuid, "manage")
            self.bench.reach(uuid, "manageable")
