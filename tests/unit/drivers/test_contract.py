"""Every interface that is installed keeps the contract of its kind."""

import inspect

from ingot.common import errors, interfaces
from ingot.drivers.interfaces.base import BaseInterface
from ingot.drivers.loading import entry_points
from tests.unit.drivers import fakes


class ContractTest(fakes.DriverTestCase):
    def setUp(self) -> None:
        super().setUp()
        conf = fakes.configuration()
        self.installed = [
            found.load()(conf, found.name)
            for kind in interfaces.TYPES
            for found in entry_points.list_installed(f"ingot.hardware.interfaces.{kind}")
        ]

    def test_nothing_of_the_contract_is_left_out(self) -> None:
        for interface in self.installed:
            if interface.stands_for_others:  # others do all of it
                continue
            contract = next(cls for cls in type(interface).__mro__ if "interface_type" in vars(cls))
            self.assertEqual("ingot.drivers.interfaces", contract.__module__.rpartition(".")[0])
            for name, method in inspect.getmembers(contract, inspect.isfunction):
                if "raise NotImplementedError" in inspect.getsource(method):
                    self.assertIsNot(method, getattr(type(interface), name), f"{interface.name}: {name}")

    def test_overridden_methods_take_the_same_arguments(self) -> None:
        for interface in self.installed:
            for base in type(interface).__mro__[1:]:
                for name, method in vars(base).items():
                    if inspect.isfunction(method) and not name.startswith("_") and base is not BaseInterface:
                        mine = inspect.signature(getattr(type(interface), name)).parameters
                        self.assertEqual(
                            list(inspect.signature(method).parameters), list(mine), f"{interface.name} {name}"
                        )

    def test_steps_take_the_arguments_they_describe(self) -> None:
        for interface in self.installed:
            for kind in ("clean", "deploy", "service", "verify"):
                for step in interface.declared_steps(kind):
                    parameters = list(inspect.signature(getattr(interface, step["step"])).parameters.values())[1:]
                    required = {one.name for one in parameters if one.default is one.empty}
                    described = step["argsinfo"] or {}
                    self.assertEqual({one.name for one in parameters}, set(described), f"{interface.name} {step}")
                    self.assertEqual(required, {name for name, about in described.items() if about.get("required")})

    def test_what_is_unsupported_says_so_and_does_nothing_inside_flows(self) -> None:
        task = self.task(**{interfaces.FIELD[kind]: f"no-{kind}" for kind in ("bios", "console", "raid", "rescue")})
        task.driver.bios.cache_bios_settings(task)
        task.driver.console.stop_console(task)
        task.driver.rescue.clean_up(task)
        error = self.assertRaises(errors.UnsupportedInterface, task.driver.rescue.rescue, task, "$6$s$h")
        self.assertEqual("Driver interface no-rescue (rescue) does not support rescue.", error.message)
        self.assertRaises(errors.UnsupportedInterface, task.driver.raid.validate, task)
