"""The contract of bios interfaces."""

import functools
from typing import Any

from ingot.common import errors, states
from ingot.driver_kit.contracts.base import ContractTest
from ingot.drivers.interfaces import power_control

SETTINGS = [
    {"name": "ProcTurboMode", "value": "Disabled"},
    {"name": "ProcHyperthreading", "value": "false"},
    {"name": "BootRetryCount", "value": "5"},
]


class BIOSContract(ContractTest):
    def values(self) -> dict[str, Any]:
        """Return the settings that are kept with the node."""
        return dict(self.columns(self.task.bios, "name", "value"))

    def test_settings_are_set_and_set_back(self) -> None:
        for kind in ("clean", "deploy", "service"):
            self.step("bios", "apply_configuration", kind, settings=SETTINGS)
            self.assertEqual(SETTINGS, [{"name": one["name"], "value": self.values()[one["name"]]} for one in SETTINGS])
            self.assertEqual(states.POWER_OFF, self.task.driver.power.get_power_state(self.task))
            self.step("bios", "factory_reset", kind)
            changed = [one["name"] for one in SETTINGS if self.values().get(one["name"]) == one["value"]]
            self.assertEqual([], changed)

    def test_settings_that_hold_already_change_nothing(self) -> None:
        self.step("bios", "apply_configuration", settings=SETTINGS)
        before, boots = self.values(), self.bench.count_log("power on")
        self.step("bios", "apply_configuration", settings=SETTINGS)
        self.assertEqual((before, boots), (self.values(), self.bench.count_log("power on")), "nothing differs: no boot")

    def test_a_machine_that_was_on_is_on_afterwards(self) -> None:
        self.finish(power_control.power_on)
        self.bench.await_system()
        self.step("bios", "apply_configuration", settings=SETTINGS[:1])
        self.assertEqual("Disabled", self.values()["ProcTurboMode"])
        self.assertEqual(states.POWER_ON, self.task.driver.power.get_power_state(self.task))

    def test_settings_that_are_none_are_refused(self) -> None:
        for wrong in ([{"value": 1}], ["x"]):
            self.assert_refused(
                functools.partial(self.step, "bios", "apply_configuration", settings=wrong), "settings", "name"
            )
        self.assertRaises(errors.MissingParameter, self.step, "bios", "apply_configuration")

    def test_the_settings_are_read_when_the_node_is_managed(self) -> None:
        self.step("bios", "apply_configuration", settings=SETTINGS)
        self.task.bios = []
        self.step("bios", "cache_bios_settings", "verify")
        self.assertEqual("Disabled", self.values()["ProcTurboMode"])
        self.assertEqual("false", self.values()["ProcHyperthreading"], "Booleans are true and false")


class RegistryContract(ContractTest):
    """What those have besides that know which settings there can be."""

    def test_settings_are_read_with_what_may_be_written(self) -> None:
        self.task.driver.bios.cache_bios_settings(self.task)
        rows = {one["name"]: one for one in self.task.bios}
        for name, key, expected in (
            ("ProcHyperthreading", "value", "true"),
            ("ProcHyperthreading", "attribute_type", "Boolean"),
            ("ProcTurboMode", "allowable_values", ["Enabled", "Disabled"]),
            ("BootRetryCount", "lower_bound", 0),
            ("BootRetryCount", "upper_bound", 10),
            ("BootRetryCount", "read_only", False),
            ("SerialNumber", "read_only", True),
        ):
            self.assertEqual(expected, rows[name][key], f"{name} {key}")

    def test_settings_that_the_machine_would_refuse_are_named_all_at_once(self) -> None:
        wrong = {
            "ProcTurboMode": ("Sometimes", "Enabled, Disabled"),
            "BootRetryCount": (11, "0 to 10"),
            "SerialNumber": ("x", "only be read"),
            "Sriov": ("maybe", "true or false"),
            "AssetText": ("x" * 33, "32 characters"),
            "Nothing": (1, "no such setting"),
        }
        settings = [{"name": name, "value": value} for name, (value, _) in wrong.items()]
        parts = [part for name, (_, part) in wrong.items() for part in (name, part)]
        self.assert_refused(lambda: self.step("bios", "apply_configuration", settings=settings), *parts)
        nothing: tuple[Any, ...] = ([], {}, [{"name": "x"}])
        for none in nothing:
            self.assert_refused(
                functools.partial(self.step, "bios", "apply_configuration", settings=none),
                "settings",
            )
        self.assertEqual(0, self.bench.count_log("power on"))

    def test_a_change_bears_what_passes(self) -> None:
        values = ["Disabled", "Enabled"] * 4

        def change() -> None:
            value = values.pop(0)
            self.step("bios", "apply_configuration", settings=[{"name": "ProcTurboMode", "value": value}])
            self.assertEqual(value, self.columns(self.task.bios, "name", "value")["ProcTurboMode"])

        self.assert_borne(change)

    def test_a_bmc_that_is_silent_is_reported_in_time(self) -> None:
        self.assert_silence_ends(
            lambda: self.task.driver.bios.cache_bios_settings(self.task),
            lambda: self.step("bios", "apply_configuration", settings=SETTINGS),
        )
