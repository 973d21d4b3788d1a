"""Ordering faults, counting them, clearing them."""

import testtools

from ingot.rack.faults import FaultError, Faults


class FaultsTest(testtools.TestCase):
    def setUp(self) -> None:
        super().setUp()
        self.faults = Faults()

    def test_a_fault_lasts_until_it_is_cleared(self) -> None:
        self.faults.order("boot_hang")
        self.assertEqual([True, True], [self.faults.strike("boot_hang") for _ in range(2)])
        self.faults.clear("boot_hang")
        self.assertFalse(self.faults.strike("boot_hang"))

    def test_or_as_often_as_ordered(self) -> None:
        self.faults.order("boot_hang", times=2)
        self.assertEqual([True, True, False], [self.faults.strike("boot_hang") for _ in range(3)])
        self.assertEqual({}, self.faults.public())

    def test_a_step_is_named_with_or_without_its_extension(self) -> None:
        self.faults.order("agent_dies_at_step", "prepare_image")
        self.assertFalse(self.faults.strike("agent_dies_at_step", "standby.sync"))
        self.assertTrue(self.faults.strike("agent_dies_at_step", "standby.prepare_image"))

    def test_values(self) -> None:
        self.faults.order("agent_version_after_reboot", "14", times=1)
        self.assertEqual(["14", None], [self.faults.take("agent_version_after_reboot") for _ in range(2)])
        self.faults.order("slow_answer", {"command": "sync", "seconds": 2})
        self.assertEqual((2.0, 0.0), (self.faults.slow_answer("standby.sync"), self.faults.slow_answer("x.y")))

    def test_a_step_can_end_in_a_new_version(self) -> None:
        for part, fault in (("agent", "agent_version_after_reboot"), ("hardware_manager", "hardware_manager_version")):
            self.faults.order("new_version_after_step", {"step": "flash", part: "2"}, times=1)
            self.faults.note_step_end("burn")
            self.assertIsNone(self.faults.value(fault))
            self.faults.note_step_end("flash")
            self.assertEqual("2", self.faults.value(fault))
            self.assertIsNone(self.faults.value("new_version_after_step"))

    def test_what_cannot_be_ordered(self) -> None:
        for value in ({}, {"step": "x"}, {"step": "x", "agent": 1}, {"step": "x", "agent": "1", "more": "2"}):
            self.assertRaisesRegex(
                FaultError, "{step, agent} or {step, hard", self.faults.order, "new_version_after_step", value
            )
        self.assertRaisesRegex(FaultError, "knows .*bmc_silent", self.faults.order, "nope")
        self.assertRaisesRegex(FaultError, "times", self.faults.order, "bmc_silent", None, 0)
        self.assertRaisesRegex(FaultError, "unknown fault", self.faults.clear, "nope")
