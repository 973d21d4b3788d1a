"""Power is level-triggered: each call looks, and nothing waits."""

import copy
import itertools
from typing import Any
from unittest import mock

from ingot.common import errors, states
from ingot.drivers.interfaces import power_control, results
from ingot.drivers.interfaces.power import PowerInterface
from ingot.drivers.redfish import reboot
from tests.unit.drivers import fakes


class SlowPower(PowerInterface):
    """Hardware that needs some looks to change, and can be deaf or silent."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.state = states.POWER_ON
        self.looks_needed = 2
        self.obeys: tuple[str, ...] = (states.POWER_ON, states.POWER_OFF, states.REBOOT, states.SOFT_POWER_OFF)
        self.targets: list[str] = []
        self.silent_for = 0
        self.refuses: tuple[str, ...] = ()
        self._pending: list[str] = []

    def get_power_state(self, task: Any) -> str:
        if self.silent_for:
            self.silent_for -= 1
            raise errors.HardwareUnreachable(what="BMC test:623", reason="silent")
        if self._pending:
            self.state = self._pending.pop(0)
        return self.state

    def start_power_change(self, task: Any, target: str) -> None:
        if target in self.refuses:
            raise errors.HardwareError(what="BMC test:623", reason="ACPI is not there")
        self.targets.append(target)
        if target in self.obeys:
            end = states.POWER_OFF if "off" in target else states.POWER_ON
            self._pending = [self.state] * self.looks_needed + [end]


class PowerControlTest(fakes.DriverTestCase):
    def setUp(self) -> None:
        super().setUp()
        self.subject = self.task()
        self.power = SlowPower(self.subject.conf, "slow")
        self.subject.driver.power = self.power

    def _all(self, call: Any) -> Any:
        return self.run_to_end(lambda: call(self.subject))

    def test_a_change_is_sent_once_and_looked_for_until_it_has_happened(self) -> None:
        first = power_control.power_off(self.subject)
        self.assertIsInstance(first, results.PollAfter)
        self.assertEqual(results.DONE, self._all(power_control.power_off))
        self.assertEqual([states.POWER_OFF], self.power.targets)
        self.assertEqual(states.POWER_OFF, self.subject.node.power_state)
        self.assertEqual({}, self.subject.memory)

    def test_a_boot_may_come_from_another_network_address(self) -> None:
        for change, kept in (
            (power_control.power_off, "192.0.2.7"), (power_control.power_on, None), (power_control.reboot, None),
        ):  # fmt: skip
            self.subject.set(boot_address="192.0.2.7")
            self._all(change)
            self.assertEqual(kept, self.subject.node.boot_address)
        self.subject.set(boot_address="192.0.2.7", disable_power_off=True)
        power_control.power_on(self.subject)
        self.assertIsNone(self.subject.node.boot_address)

    def test_what_a_fast_machine_is_given_as_it_boots_is_not_taken_back(self) -> None:
        for config, before in (({"target": "volume"}, 1), ({"target": "disk"}, 0)):
            self.power = self.subject.driver.power = SlowPower(self.subject.conf, "slow")
            self.power.state = states.POWER_OFF
            self.subject.set(boot_config=config)
            self.subject.saved = 0
            self.subject.memory.clear()
            written: list[int] = []
            send = self.power.start_power_change

            def start(task: Any, target: str, written: list[int] = written, send: Any = send) -> None:
                written.append(task.saved)
                send(task, target)

            with mock.patch.object(self.power, "start_power_change", start):
                power_control.power_on(self.subject)
            self.assertEqual([before], written)

    def test_a_state_that_is_there_needs_no_command(self) -> None:
        self.assertEqual(results.DONE, power_control.power_on(self.subject))
        self.assertEqual([], self.power.targets)

    def test_between_off_and_on_something_is_done_once(self) -> None:
        done: list[str] = []
        self.assertEqual(
            results.DONE, self._all(lambda t: power_control.reboot(t, lambda _t: done.append(t.node.power_state)))
        )
        self.assertEqual([states.POWER_OFF], done)
        self.assertEqual([states.POWER_OFF, states.POWER_ON], self.power.targets)

    def test_a_machine_that_does_not_change_fails_with_both_states(self) -> None:
        self.power.obeys = ()
        power_control.power_off(self.subject)
        self.subject.memory["power"]["at"] -= 1000
        error = self.assertRaises(errors.StepFailed, power_control.power_off, self.subject)
        self.assertIn("still in state 'power on'", error.message)
        self.assertIn("power_state_change_timeout", error.message)

    def test_a_soft_change_that_a_user_asked_for_is_not_forced(self) -> None:
        self.power.obeys = (states.POWER_OFF,)
        power_control.change(self.subject, states.SOFT_POWER_OFF)
        self.subject.memory["phases"]["memory"]["power"]["at"] -= 1000
        self.assertRaises(errors.StepFailed, power_control.change, self.subject, states.SOFT_POWER_OFF)
        self.assertEqual([states.SOFT_POWER_OFF], self.power.targets)

    def test_a_flow_forces_what_does_not_work_softly(self) -> None:
        self.power.obeys = (states.POWER_OFF,)
        power_control.soft_power_off(self.subject)
        self.subject.memory["power"]["at"] -= 1000
        self.assertEqual(results.DONE, self._all(power_control.soft_power_off))
        self.assertEqual([states.SOFT_POWER_OFF, states.POWER_OFF], self.power.targets)

    def test_a_flow_forces_what_the_bmc_refuses_to_do_softly(self) -> None:
        self.power.refuses = (states.SOFT_POWER_OFF,)
        self.assertEqual(results.DONE, self._all(power_control.soft_power_off))
        self.assertEqual([states.POWER_OFF], self.power.targets)

    def test_an_unresponsive_bmc_has_not_refused(self) -> None:
        self.power.silent_for = 1
        self.assertRaises(errors.HardwareUnreachable, power_control.soft_power_off, self.subject)
        self.assertEqual([], self.power.targets)

    def test_a_bmc_that_restarts_with_its_machine_is_given_time(self) -> None:
        power_control.power_off(self.subject)
        self.power.silent_for = 3
        self.assertEqual(results.DONE, self._all(power_control.power_off))

    def test_a_bmc_known_to_be_unresponsive_is_reported_at_once(self) -> None:
        self.power.silent_for = 1
        self.assertRaises(errors.HardwareUnreachable, power_control.power_off, self.subject)

    def test_a_node_that_must_not_go_off_is_reset(self) -> None:
        self.subject.node.disable_power_off = True
        self.assertEqual(results.DONE, self._all(power_control.reboot))
        self.assertEqual([states.REBOOT], self.power.targets)
        self.assertRaises(errors.Invalid, power_control.change, self.subject, states.POWER_OFF)

    def test_a_machine_that_powers_itself_off_gets_no_power_command(self) -> None:
        self.power.state = states.POWER_ON
        watch = lambda: power_control.watch_off(self.subject, patience=30)  # noqa: E731
        self.assertIsInstance(watch(), results.PollAfter)
        self.power.state = states.POWER_OFF
        self.assertEqual(results.DONE, watch())
        self.assertEqual([], self.power.targets)

    def test_one_that_does_not_is_switched_off_after_a_while(self) -> None:
        power_control.watch_off(self.subject, patience=30)
        self.subject.memory["watched_since"] -= 31
        self.assertEqual(results.DONE, self.run_to_end(lambda: power_control.watch_off(self.subject, patience=30)))
        self.assertEqual([states.POWER_OFF], self.power.targets)

    def test_unknown_targets_are_refused_with_the_choices(self) -> None:
        error = self.assertRaises(errors.Invalid, power_control.change, self.subject, "sideways")
        self.assertIn("soft power off", error.message)


class FakeFlowTest(fakes.DriverTestCase):
    def test_every_change_on_fake_hardware_is_done_at_once(self) -> None:
        task = self.task()
        for target in task.driver.power.get_supported_power_states(task):
            self.assertEqual(results.DONE, power_control.change(task, target))
        self.assertEqual(states.POWER_ON, task.node.power_state)


class RebootTest(fakes.DriverTestCase):
    def test_no_power_is_cut_twice_when_no_conductor_lives_to_save_a_call(self) -> None:
        for before, sent in (
            (states.POWER_OFF, [states.POWER_ON]),
            (states.POWER_ON, [states.POWER_OFF, states.POWER_ON]),
        ):
            for looks in (0, 2):
                with self.subTest(before, looks=looks):
                    task = self.task()
                    power = task.driver.power = SlowPower(task.conf, "slow")
                    power.state, power.looks_needed = before, looks
                    answer: results.Result = results.HOLD
                    for _call in range(20):
                        saved = copy.deepcopy(task.memory)
                        reboot.reboot(task)  # its conductor dies; the next one has what was saved
                        task.memory = saved
                        answer = reboot.reboot(task)
                        if answer == results.DONE:
                            break
                    changes = [target for target, _ in itertools.groupby(power.targets)]  # what is so already stays so
                    self.assertEqual((results.DONE, sent), (answer, changes))
