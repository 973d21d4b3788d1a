"""The contract of power interfaces."""

import functools

from ingot.common import errors, states
from ingot.driver_kit import patience
from ingot.driver_kit.contracts.base import ContractTest
from ingot.drivers.interfaces import power_control


class PowerContract(ContractTest):
    def switch(self, target: str) -> None:
        self.finish(lambda task: power_control.change(task, target))

    def assert_power(self, state: str) -> None:
        self.assertEqual((state, state), (self.bench.seen_power(), self.task.driver.power.get_power_state(self.task)))

    def test_each_target_is_reached_as_another_client_sees(self) -> None:
        for target, state in (
            (states.POWER_ON, states.POWER_ON),
            (states.REBOOT, states.POWER_ON),
            (states.SOFT_REBOOT, states.POWER_ON),
            (states.SOFT_POWER_OFF, states.POWER_OFF),
            (states.POWER_OFF, states.POWER_OFF),
        ):
            self.assertIn(target, self.task.driver.power.get_supported_power_states(self.task))
            self.switch(target)
            self.assert_power(state)
            if state == states.POWER_ON:
                self.bench.await_system()

    def test_a_command_that_is_repeated_changes_nothing(self) -> None:
        for target in (states.POWER_ON, states.POWER_OFF):
            for _again in range(2):
                self.task.driver.power.start_power_change(self.task, target)
            self.switch(target)
            self.task.driver.power.start_power_change(self.task, target)
            self.assert_power(target)

    def test_a_target_that_there_is_not_is_refused_with_those_that_are(self) -> None:
        supported = ", ".join(self.task.driver.power.get_supported_power_states(self.task))
        self.assert_refused(lambda: power_control.change(self.task, "sideways"), "target", "'sideways'", supported)

    def test_a_soft_power_off_that_is_ignored_fails_and_is_forced_in_flows_only(self) -> None:
        self.bench.fault("boot_hang")
        self.switch(states.POWER_ON)
        self.task.conf.set_override("power_state_change_timeout", 2, "conductor")
        self.bench.limit_time(5)
        error = self.assertRaises(errors.IngotError, self.switch, states.SOFT_POWER_OFF)
        self.assertIsInstance(error, (errors.StepFailed, errors.HardwareError))
        self.assert_power(states.POWER_ON)
        self.task.conf.set_override("power_state_change_timeout", int(patience.seconds(20)), "conductor")
        self.task.memory.clear()
        self.task.memory["power"] = {"target": states.SOFT_POWER_OFF, "at": 0.0}  # it was asked long ago
        memory = dict(self.task.memory)
        self.finish(lambda task: task.memory.update(memory) or power_control.soft_power_off(task))
        self.assert_power(states.POWER_OFF)

    def test_a_machine_that_does_not_obey_is_reported_and_obeys_later(self) -> None:
        self.task.conf.set_override("power_state_change_timeout", 2, "conductor")
        self.bench.fault("power_stuck")
        error = self.assertRaises(errors.StepFailed, self.switch, states.POWER_ON)
        for part in (states.POWER_OFF, states.POWER_ON, "[conductor] power_state_change_timeout"):
            self.assertIn(part, error.message)
        self.assertEqual(states.POWER_OFF, self.task.node.power_state)
        self.bench.clear()
        self.task.conf.set_override("power_state_change_timeout", int(patience.seconds(20)), "conductor")
        self.switch(states.POWER_ON)
        self.assert_power(states.POWER_ON)

    def test_a_change_bears_what_passes(self) -> None:
        targets = [states.POWER_ON, states.POWER_OFF] * 4

        def change() -> None:
            self.switch(targets.pop(0))

        self.assert_borne(change)
        done = states.POWER_ON if len(targets) % 2 else states.POWER_OFF
        self.assert_power(done)

    def test_a_bmc_that_is_silent_or_away_is_reported_in_time_and_works_again(self) -> None:
        task, power = self.task, self.task.driver.power

        def read_elsewhere() -> None:
            reading = power.start_reading(task)
            if reading is None:  # it is read in a thread
                power.get_power_state(task)
            else:
                reading.result()

        self.assert_silence_ends(
            lambda: power.get_power_state(task),
            lambda: power.start_power_change(task, states.POWER_ON),
            read_elsewhere,
            closes=True,
        )
        self.assertFalse(task.circuit_breakers.can_call(power.bmc(task)))
        self.assert_power(states.POWER_OFF)
        self.assertTrue(task.circuit_breakers.can_call(power.bmc(task)))

    def test_a_wrong_password_is_said_and_shown_nowhere(self) -> None:
        task = self.bench.again(**{self.bench.password: "opensesame"})
        error = self.assertRaises(errors.HardwareError, task.driver.power.get_power_state, task)
        self.assertNotIsInstance(error, errors.HardwareUnreachable)
        self.assertIn(self.bench.password, error.message)
        for text in (error.message, task.driver.power.bmc(task)):
            self.assertNotIn("opensesame", text)

    def test_a_reading_tells_the_state_and_the_health(self) -> None:
        task = self.task
        for target in (states.POWER_ON, states.POWER_OFF):
            self.switch(target)
            reading = task.driver.power.start_reading(task)
            if reading is None:  # it is read in a thread
                self.assertEqual(target, task.driver.power.get_power_state(task))
            else:
                found = reading.result(patience.seconds(60))
                self.assertEqual((target, "OK", ()), (found.power_state, found.health, found.findings))

    def test_what_the_node_lacks_is_named(self) -> None:
        self.task.driver.power.validate(self.task)
        key = self.bench.address
        self.assertIn(key, self.task.node.driver_info)
        for wrong in (None, ["x"]):
            task = self.bench.again(**{key: wrong})
            self.assert_refused(functools.partial(task.driver.power.validate, task), key)
