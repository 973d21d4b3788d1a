"""Declaring steps: what the decorators accept, and where priorities come from."""

from collections.abc import Callable
from typing import Any, ClassVar

import testtools

from ingot.common import errors
from ingot.common.json_types import Json
from ingot.drivers.interfaces import arguments, base
from ingot.drivers.interfaces.management import ManagementInterface
from ingot.drivers.redfish.bios import RedfishBIOS
from ingot.drivers.redfish.firmware import RedfishFirmware
from ingot.drivers.redfish.raid import RedfishRAID
from tests.unit.drivers import fakes


class _Management(ManagementInterface):
    @base.clean_step(priority=base.from_option("deploy", "erase_devices_priority"))
    def scrub(self, task: object) -> None:
        """Scrub, with a priority that the operator sets."""

    @base.service_step(idempotent=True)
    def polish(self, task: object) -> None:
        """Polish; twice does no harm."""

    @base.service_step()
    def sand(self, task: object) -> None:
        """Sand."""


class TestDeclarations(testtools.TestCase):
    def test_an_operators_option_gives_the_priority(self) -> None:
        for configured, expected in ((None, 0), (0, 0), (35, 35)):
            conf = fakes.configuration(deploy__erase_devices_priority=configured)
            (step,) = _Management(conf, "test").declared_steps("clean")
            self.assertEqual(("scrub", expected), (step["step"], step["priority"]))

    def test_service_steps_are_repeated_if_they_say_so(self) -> None:
        steps = _Management(fakes.configuration(), "test").declared_steps("service")
        self.assertEqual({"polish": True, "sand": False}, {step["step"]: step["idempotent"] for step in steps})

    def test_steps_of_redfish_are_repeated_in_each_kind_of_flow(self) -> None:
        conf = fakes.configuration()
        for interface in (RedfishBIOS(conf, "redfish"), RedfishFirmware(conf, "redfish"), RedfishRAID(conf, "redfish")):
            for kind in ("clean", "deploy", "service"):
                steps = interface.declared_steps(kind)
                self.assertEqual([True] * len(steps), [step["idempotent"] for step in steps], (interface, kind))

    def test_wrong_declarations_are_refused_where_they_are_made(self) -> None:
        for priority in (-1, True):
            self.assertRaises(errors.Invalid, base.deploy_step, priority)
        for about in ({}, {"description": "x", "required": "yes"}, {"description": "x", "type": "int"}, {"of": "x"}):
            refused = self.assertRaises(errors.Invalid, self.declare, about, _any)
            self.assertIn("argsinfo[speed]", refused.message)

    def declare(self, about: Any, method: Callable[..., None]) -> Any:
        """Return what is said of the argument speed of a method that is declared as a step."""
        base.clean_step(0, argsinfo={"speed": about})(method)
        return method.__dict__.pop("ingot_steps")["clean"].argsinfo["speed"]

    def test_the_method_says_types_and_what_is_required(self) -> None:
        about = {"description": "How fast."}
        for method, expected in (
            (_integer, {"required": True, "type": "integer"}),
            (_perhaps_integer, {"required": False, "type": "integer"}),
            (_list, {"required": True, "type": "array"}),
            (_object, {"required": True, "type": "object"}),
            (_either, {"required": True}),
            (_any, {"required": False}),
        ):
            self.assertEqual(about | expected, self.declare(about, method), method.__name__)
        said = {**about, "required": True, "type": "number"}
        self.assertEqual(said, self.declare(said, _any))

    def test_annotations_that_are_texts_say_types_too(self) -> None:
        about = {"description": "How fast."}
        for annotation, expected in (
            ("int", "integer"),
            ("int | None", "integer"),
            ("Sequence[str]", None),
            ("list[str]", "array"),
            ("NotThere", None),
        ):

            def method(self: object, task: object, speed: object = None) -> None: ...

            method.__annotations__.update(task="NotThere", speed=annotation)
            self.assertEqual(expected, self.declare(about, method).get("type"), annotation)

    def test_method_and_declaration_fit_together(self) -> None:
        about = {"description": "How fast."}
        for method, said, why in (
            (_nothing, about, "does not take it"),
            (_other, about, "does not declare it"),
            (_integer, {**about, "required": False}, "no default"),
        ):
            refused = self.assertRaises(errors.Invalid, self.declare, said, method)
            self.assertIn(why, refused.message)


def _nothing(self: object, task: object) -> None: ...


def _integer(self: object, task: object, speed: int) -> None: ...


def _perhaps_integer(self: object, task: object, speed: int | None = None) -> None: ...


def _list(self: object, task: object, speed: list[str]) -> None: ...


def _object(self: object, task: object, speed: Json) -> None: ...


def _either(self: object, task: object, speed: int | str) -> None: ...


def _any(self: object, task: object, **more: object) -> None: ...


def _other(self: object, task: object, speed: int, direction: str) -> None: ...


class TestArguments(testtools.TestCase):
    KNOWN: ClassVar[arguments.ArgsInfo] = {
        "speed": {"description": "How fast.", "required": True, "type": "number"},
        "loud": {"description": "Whether it is heard.", "type": "boolean"},
        "note": {"description": "Anything."},
    }

    def test_values_of_the_declared_types_are_taken(self) -> None:
        for args in ({"speed": 1}, {"speed": 1.5, "loud": True}, {"speed": 0, "note": ["x"]}):
            self.assertEqual(args, arguments.read("power.spin", args, self.KNOWN))

    def test_null_leaves_an_argument_out(self) -> None:
        args = {"speed": 1, "loud": None, "note": None}
        self.assertEqual({"speed": 1}, arguments.read("power.spin", args, self.KNOWN))

    def test_others_are_refused_with_step_and_argument(self) -> None:
        for args, parts in (
            ({"speed": "fast"}, ("argument speed of step power.spin", "fast", "number")),
            ({"speed": True}, ("argument speed of step power.spin", "number")),
            ({"speed": None}, ("argument speed of step power.spin", "number")),
            ({"speed": 1, "loud": "yes"}, ("argument loud of step power.spin", "yes", "boolean")),
            ({"speed": 1, "color": "red"}, ("color", "loud, note, speed")),
            ({"loud": True}, ("speed",)),
        ):
            refused = self.assertRaises(errors.Invalid, arguments.read, "power.spin", args, self.KNOWN)
            for part in parts:
                self.assertIn(part, refused.message)
