"""What a driver's vendor interface can do for no node in particular, asked of a conductor (004)."""

from typing import Any

import testtools

from ingot.common import context, errors
from ingot.conductor import manager
from ingot.db.engine import Database
from ingot.drivers.generic.fake import FakeHardware
from ingot.drivers.interfaces.vendor import VendorInterface, driver_method
from ingot.drivers.loading import factory
from tests import conductor_case
from tests.unit.drivers import plugins
from tests.unit.drivers.plugins import here, with_plugins


class Catalogue(VendorInterface):
    @driver_method("GET", "POST", description="Versions that the vendor has published.")
    def versions(self, ctx: context.RequestContext, model: str, newest: bool = False) -> dict[str, Any]:
        return {"asked by": ctx.user_id, "model": model, "versions": ["2"] if newest else ["1", "2"]}

    @driver_method("DELETE", description="Fails.")
    def burn(self, ctx: context.RequestContext) -> None:
        raise errors.HardwareError(what="The catalogue", reason="it is made of stone")

    def hidden(self, ctx: context.RequestContext) -> None:
        raise AssertionError("it is not declared")


class Machine(FakeHardware):
    supported_vendor_interfaces = (Catalogue, *FakeHardware.supported_vendor_interfaces)


class Fixed(plugins.FixedFake):
    vendor = Catalogue


SOURCE = with_plugins(types_machine=here(Machine), vendor_catalogue=here(Catalogue), classic_solid=here(Fixed))


class TestDriverMethods(conductor_case.ConductorCase):
    starts = False

    def configure(self) -> None:
        self.conf.set_override("enabled_hardware_types", ["machine", "fake-hardware"])
        self.conf.set_override("enabled_drivers", ["solid"])
        self.conf.set_override("enabled_vendor_interfaces", ["fake", "catalogue"])

    def make_conductor(self, db: Database) -> manager.Conductor:
        return manager.Conductor(self.conf, db, factory.Hardware(self.conf, SOURCE))

    def methods(self, driver: str) -> Any:
        return self.conductor.endpoint.get_driver_methods({}, driver=driver)

    def call(self, driver: str, method: str, http_method: str = "GET", **arguments: Any) -> dict[str, Any]:
        about = {"driver": driver, "vendor_method": method, "http_method": http_method, "arguments": arguments}
        asked_by = context.RequestContext(user_id="ada").to_dict()
        return self.conductor.endpoint.call_driver_method(asked_by, **about)

    def refused(self, *about: Any, **arguments: Any) -> str:
        error = self.call(*about, **arguments)["error"]
        return f"{error['type']}: {error['message']}"

    def test_a_hardware_type_is_represented_by_its_default_vendor_interface(self) -> None:
        methods = self.methods("machine")["result"]
        self.assertEqual({"versions", "burn"}, set(methods))
        expected = {
            "http_methods": ["GET", "POST"],
            "description": "Versions that the vendor has published.",
            "async": False,
            "attach": False,
        }
        self.assertEqual(expected, methods["versions"])
        self.assertEqual({}, self.methods("fake-hardware")["result"])
        self.conf.set_override("enabled_vendor_interfaces", ["fake"])
        hardware = factory.Hardware(self.conf, SOURCE)
        self.assertEqual("fake", hardware.driver_interface("machine", "vendor").name)

    def test_a_classic_driver_has_those_of_its_own(self) -> None:
        self.assertEqual({"versions", "burn"}, set(self.methods("solid")["result"]))
        self.assertEqual("x", self.call("solid", "versions", model="x")["result"]["model"])

    def test_one_is_called_with_arguments_and_answers(self) -> None:
        answer = self.call("machine", "versions", "POST", model="m", newest=True)
        self.assertEqual({"asked by": "ada", "model": "m", "versions": ["2"]}, answer["result"])

    def test_what_cannot_be_called_is_refused_with_what_can(self) -> None:
        self.assertIn("NotFound: Driver moon", self.refused("moon", "versions"))
        for name in ("zz", "hidden", "validate", "__init__"):
            message = self.refused("machine", name)
            self.assertIn(f"Invalid: No handler for method {name}", message)
            self.assertIn("burn, versions", message)
        self.assertIn("'GET'. Method burn answers to: DELETE", self.refused("machine", "burn"))
        self.assertIn("missing a required argument: 'model'", self.refused("machine", "versions"))
        self.assertIn("unexpected keyword argument 'x'", self.refused("machine", "versions", model="m", x=1))
        self.assertIn("HardwareError: The catalogue failed", self.refused("machine", "burn", "DELETE"))


class TestDeclaration(testtools.TestCase):
    def test_it_needs_http_methods_that_exist(self) -> None:
        self.assertRaises(errors.Invalid, driver_method, description="None at all.")
        refused = self.assertRaises(errors.Invalid, driver_method, "FETCH", description="Of another protocol.")
        self.assertIn("GET, POST, PUT, DELETE, PATCH", refused.message)
