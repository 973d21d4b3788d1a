"""What the API shows of drivers and conductors, and what it asks of a node's conductor."""

import sqlalchemy as sa

from ingot.common import clock, errors
from ingot.db import conductors
from tests import api_case


class Drivers(api_case.ApiCase):
    def setUp(self) -> None:
        super().setUp()
        self.register("conductor-2", api_case.enabled("fake-hardware", boot=["fake", "pxe"], **api_case.PLAIN))

    def test_are_listed_with_the_conductors_that_have_them(self) -> None:
        (driver,) = self.good("GET", "/v1/drivers")["drivers"]
        self.assertEqual(("fake-hardware", "dynamic"), (driver["name"], driver["type"]))
        self.assertEqual([api_case.HOST, "conductor-2"], driver["hosts"])
        self.assertEqual([], self.good("GET", "/v1/drivers?type=classic")["drivers"])
        self.assertIn("dynamic", self.refused(400, "GET", "/v1/drivers?type=steam"))

    def test_show_what_is_enabled_on_all_of_them(self) -> None:
        driver = self.good("GET", "/v1/drivers/fake-hardware")
        self.assertEqual((["fake"], "fake"), (driver["enabled_boot_interfaces"], driver["default_boot_interface"]))
        self.assertEqual(["noop"], driver["enabled_network_interfaces"])

    def test_properties_come_from_a_conductor(self) -> None:
        self.assertIn("ipmi_address", self.good("GET", "/v1/drivers/fake-hardware/properties"))

    def test_an_unknown_one_is_404(self) -> None:
        self.assertIn("moon", self.refused(404, "GET", "/v1/drivers/moon"))
        self.assertIn("moon", self.refused(404, "GET", "/v1/drivers/moon/properties"))


class Management(api_case.ApiCase):
    def setUp(self) -> None:
        super().setUp()
        self.uuid = self.node(name="n")["uuid"]

    def test_the_boot_device_is_read_and_set(self) -> None:
        self.assertEqual(
            {"boot_device": "pxe", "persistent": False}, self.good("GET", "/v1/nodes/n/management/boot_device")
        )
        self.good("PUT", "/v1/nodes/n/management/boot_device", {"boot_device": "disk", "persistent": "true"})
        asked = {"node_uuid": self.uuid, "device": "disk", "persistent": True}
        self.assertEqual(("set_boot_device", asked), self.conductor.asked[-1])
        supported = self.good("GET", "/v1/nodes/n/management/boot_device/supported")
        self.assertEqual({"supported_boot_devices": ["pxe", "disk"]}, supported)

    def test_a_boot_device_must_be_named(self) -> None:
        message = self.refused(400, "PUT", "/v1/nodes/n/management/boot_device", {"persistent": True})
        self.assertIn("'boot_device' is a required property", message)

    def test_validation_by_path_and_by_query(self) -> None:
        self.conductor.answers["validate_node"] = report = {"power": {"result": False, "reason": "no address"}}
        for url in ("/v1/nodes/n/validate", "/v1/nodes/validate?node=n", f"/v1/nodes/validate?node_uuid={self.uuid}"):
            self.assertEqual(report, self.good("GET", url))
        self.assertIn("node=", self.refused(400, "GET", "/v1/nodes/validate"))

    def test_the_steps_of_cleaning_are_listed(self) -> None:
        step = {"interface": "deploy", "step": "erase_devices", "priority": 10}
        offered = {**step, "offered_at": "2026-11-22T20:15:00+00:00"}
        self.conductor.answers["get_steps"] = [step, offered]  # as release 0.2 has it, and as this one
        self.assertEqual([{**step, "offered_at": None}, offered], self.good("GET", "/v1/nodes/n/cleaning/steps"))
        self.assertEqual(("get_steps", {"node_uuid": self.uuid, "kind": "clean"}), self.conductor.asked[-1])

    def test_a_hardware_type_that_is_gone_is_refused_with_what_to_use_instead(self) -> None:
        message = self.refused(400, "POST", "/v1/nodes", {"driver": "irmc"})
        self.assertIn("No conductor service registered", message)
        self.assertIn("irmc have the hardware type redfish here", message)

    def test_a_conductor_that_is_away_is_503_and_none_at_all_is_400(self) -> None:
        self.conductor.answers["get_boot_device"] = errors.ServiceUnavailable(what="conductor-1", reason="no answer")
        self.refused(503, "GET", "/v1/nodes/n/management/boot_device")
        conductors.unregister(self.db, conductors.Entry(1, None))
        self.client._rings.forget()
        self.refused(503, "GET", "/v1/nodes/n/management/boot_device")
        with self.db.single() as connection:
            connection.execute(sa.update(conductors.CONDUCTORS).values(heartbeat_at=clock.after(-7 * 24 * 3600)))
        message = self.refused(400, "GET", "/v1/nodes/n/management/boot_device")
        self.assertIn("No conductor service registered", message)
