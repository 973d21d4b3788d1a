"""JSON patch of nodes, and what must hold when nodes change."""

import threading
from typing import Any

import fixtures
import sqlalchemy as sa

from ingot.common import clock, states
from ingot.db import nodes
from tests import api_case
from tests.json_patch import add, remove

OTHER = "6a4bfd5b-0d02-4d3a-bb0b-d5f8f2a4f3c7"


class PatchCase(api_case.ApiCase):
    def setUp(self) -> None:
        super().setUp()
        self.uuid = self.node(name="n", extra={"list": [1, 2], "deep": {"a": 1}})["uuid"]

    def put(self, **values: Any) -> None:
        """Write columns of the node without the API."""
        with self.db.single() as connection:
            connection.execute(sa.update(nodes.NODES).where(nodes.NODES.c.uuid == self.uuid).values(values))

    def patched(self, *operations: dict[str, Any]) -> Any:
        return self.good("PATCH", "/v1/nodes/n", list(operations))

    def not_patched(self, status: int, *operations: dict[str, Any]) -> str:
        before = self.good("GET", f"/v1/nodes/{self.uuid}")
        message = self.refused(status, "PATCH", f"/v1/nodes/{self.uuid}", list(operations))
        self.assertEqual(before, self.good("GET", f"/v1/nodes/{self.uuid}"))
        return message


class Operations(PatchCase):
    def test_nested_keys_lists_and_escapes(self) -> None:
        shown = self.patched(
            add("/extra/deep/b", 2), remove("/extra/deep/a"), add("/extra/list/-", 3), add("/extra/a~1b~0c", "odd")
        )
        self.assertEqual({"list": [1, 2, 3], "deep": {"b": 2}, "a/b~c": "odd"}, shown["extra"])

    def test_removing_a_field_leaves_what_stands_for_nothing(self) -> None:
        shown = self.patched(remove("/extra"), remove("/name"))
        self.assertEqual(({}, None), (shown["extra"], shown["name"]))

    def test_an_empty_patch_changes_nothing(self) -> None:
        self.assertEqual("n", self.patched()["name"])

    def test_several_operations_are_all_or_nothing(self) -> None:
        self.assertIn("/extra/none", self.not_patched(400, add("/extra/x", 1), remove("/extra/none")))

    def test_a_wrong_patch_says_why(self) -> None:
        for operation, expected in (
            ({"op": "test", "path": "/name", "value": "n"}, "'test' is not one of"),
            ({"op": "add", "path": "name", "value": "n"}, "does not match"),
            ({"op": "add", "path": "/extra/x"}, "value"),
            ({"op": "move", "from": "/a", "path": "/name"}, "from"),
            (add("/extra/q/w", 1), "q"),
            (add("/name/x", 1), "/name/x"),
            (add("/description/x", 1), "/description/x"),
            (add("/extra/list/x", 1), "/extra/list/x"),
            (add("/extra/list/9", 1), "outside"),
            (add("/name", 5), "name: 5 is not of type"),
            (remove("/driver"), "'driver' is a required property"),
        ):
            self.assertIn(expected, self.not_patched(400, operation))

    def test_no_refusal_repeats_a_secret(self) -> None:
        self.patched(add("/driver_info", {"ipmi_password": "s3cr3t", "nested": {"password": "s3cr3t"}}))
        for operation in (
            add("/driver_info/a/b", 1),
            remove("/driver_info/nested/a/b"),
            {"op": "replace", "path": "/driver_info/ipmi_password/a", "value": 1},
            remove("/driver_info/a"),
        ):
            message = self.not_patched(400, operation)
            self.assertIn(operation["path"], message)
            self.assertNotIn("s3cr3t", message)

    def test_read_only_and_unknown_fields_are_named_with_what_can_be_patched(self) -> None:
        for name in ("uuid", "provision_state", "links", "colour", "id", "revision"):
            message = self.not_patched(400, add(f"/{name}", "x"))
            self.assertIn(f"Cannot patch /{name}. Only the following can be updated: automated_clean", message)

    def test_masked_secrets_that_come_back_stay_as_they_are(self) -> None:
        self.patched(add("/driver_info", {"ipmi_password": "hunter2", "ipmi_address": "10.0.0.1"}))
        self.patched(add("/driver_info", {"ipmi_password": "******", "ipmi_address": "10.0.0.2"}))
        stored = nodes.get(self.db, self.uuid).driver_info
        self.assertEqual({"ipmi_password": "hunter2", "ipmi_address": "10.0.0.2"}, stored)

    def test_masked_parts_of_values_come_back_too(self) -> None:
        info = {
            "image_source": "https://ada:hunter2@host/image.raw",
            "fans": [{"name": "a", "password": "one"}, {"name": "b", "password": "two"}],
        }
        self.patched(add("/instance_info", info))
        shown = self.good("GET", "/v1/nodes/n")["instance_info"]
        self.assertEqual("https://ada:******@host/image.raw", shown["image_source"])
        self.assertEqual(["******", "******"], [fan["password"] for fan in shown["fans"]])
        self.patched(add("/instance_info", {**shown, "fans": shown["fans"][::-1], "more": 1}))
        expected = {**info, "fans": info["fans"][::-1], "more": 1}
        self.assertEqual(expected, nodes.get(self.db, self.uuid).instance_info)

    def test_a_mask_is_never_stored(self) -> None:
        self.patched(add("/driver_info", {"ipmi_password": "hunter2", "list": [{"password": "x"}, {"password": "x"}]}))
        url = "http://ada:******@host/"
        for operation, where in (
            (add("/driver_info/redfish_password", "******"), "driver_info.redfish_password"),
            (add("/driver_info/deep", {"er": [{"token": "******"}]}), "driver_info.deep.er.0.token"),
            (add("/driver_info/list", [{"a": 1}, {"b": 2}, {"password": "******"}]), "driver_info.list.2.password"),
            (add("/driver_info/redfish_address", url), "driver_info.redfish_address"),
            (add("/instance_info/image_source", url), "instance_info.image_source"),
        ):
            message = self.not_patched(400, operation)
            self.assertIn(f"Invalid {where}: ******. So secrets are shown", message)
        for field, value in (("driver_info", {"ipmi_password": "******"}), ("instance_info", {"image_source": url})):
            self.assertIn(f"Invalid {field}.", self.refused(400, "POST", "/v1/nodes", {**api_case.NODE, field: value}))
        self.patched(add("/extra", {"password": "******"}))  # which shows what it has, as it has it

    def test_secrets_are_not_decrypted_to_be_written_again(self) -> None:
        self.patched(add("/driver_info", {"ipmi_password": "hunter2", "snmp_community": "public"}))
        before = vars(nodes.get(self.db, self.uuid))["driver_info"]["ipmi_password"].text
        opened = []
        with fixtures.MonkeyPatch("ingot.common.keyring.Sealed.open", opened.append):
            self.patched(add("/driver_info/snmp_community", "private"), add("/driver_info/ipmi_address", "bmc"))
            self.patched(add("/driver_info", self.good("GET", "/v1/nodes/detail")["nodes"][0]["driver_info"]))
        self.assertEqual([], opened)
        after = nodes.get(self.db, self.uuid)
        self.assertEqual(before, vars(after)["driver_info"]["ipmi_password"].text)
        expected = {"ipmi_password": "hunter2", "snmp_community": "private", "ipmi_address": "bmc"}
        self.assertEqual(expected, after.driver_info)

    def test_patches_cannot_pile_up_depth(self) -> None:
        deep: Any = 1
        for _level in range(20):
            deep = {"a": deep}
        self.patched(add("/extra", deep))
        self.assertIn("deep", self.not_patched(400, add("/extra" + "/a" * 20, {"b": {"c": {"d": {"e": {"f": {}}}}}})))


class Rules(PatchCase):
    def test_a_node_in_transition_cannot_be_edited(self) -> None:
        self.put(provision_state=states.DEPLOYING)
        message = self.not_patched(409, add("/extra/x", 1))
        self.assertIn("deploying", message)
        self.assertIn("Allowed in: active", message)

    def test_a_locked_node_says_who_holds_it_and_why(self) -> None:
        self.put(reservation="conductor-9", lock_purpose="writing the image", locked_at=clock.now())
        message = self.not_patched(409, add("/extra/x", 1))
        self.assertIn("conductor-9", message)
        self.assertIn("writing the image", message)

    def test_an_instance_is_freed_even_in_transition_under_maintenance(self) -> None:
        self.put(provision_state=states.CLEANWAIT, instance_uuid=OTHER, maintenance=True)
        self.assertIsNone(self.patched(remove("/instance_uuid"))["instance_uuid"])

    def test_a_node_with_an_instance_gets_no_other(self) -> None:
        self.patched(add("/instance_uuid", OTHER))
        self.patched(add("/instance_uuid", OTHER))
        self.assertIn(OTHER, self.not_patched(409, add("/instance_uuid", self.uuid)))

    def test_an_instance_is_on_one_node_only(self) -> None:
        self.patched(add("/instance_uuid", OTHER))
        self.node(name="second")
        self.assertIn(OTHER, self.refused(409, "PATCH", "/v1/nodes/second", [add("/instance_uuid", OTHER)]))

    def test_reasons_go_with_their_flags(self) -> None:
        self.assertIn("protected", self.not_patched(400, add("/protected_reason", "because")))
        self.put(provision_state=states.ACTIVE)
        self.assertEqual(
            "vip", self.patched(add("/protected", True), add("/protected_reason", "vip"))["protected_reason"]
        )

    def test_reasons_go_when_their_flags_go(self) -> None:
        self.put(provision_state=states.ACTIVE)
        for flag in ("protected", "retired"):
            self.patched(add(f"/{flag}", True), add(f"/{flag}_reason", "vip"))
            self.assertIsNone(self.patched(add(f"/{flag}", False))[f"{flag}_reason"], flag)

    def test_states_for_protecting_and_retiring(self) -> None:
        self.assertIn("Allowed in: active, rescue.", self.not_patched(409, add("/protected", True)))
        self.put(provision_state=states.AVAILABLE)
        self.assertIn("another retired while it is in state available", self.not_patched(409, add("/retired", True)))
        self.patched(add("/retired", False))

    def test_names_have_rules(self) -> None:
        self.node(name="taken")
        for status, name, expected in (
            (409, "taken", "already exists"),
            (400, "a b", "1 to 255 characters"),
            (400, "detail", "reserved"),
            (400, OTHER, "not a UUID"),
            (400, "x" * 256, "1 to 255 characters"),
        ):
            self.assertIn(expected, self.not_patched(status, add("/name", name)))

    def test_references_must_exist(self) -> None:
        self.assertIn(OTHER, self.not_patched(400, add("/chassis_uuid", OTHER)))
        self.assertIn("missing", self.not_patched(400, add("/parent_node", "missing")))
        chassis = self.good("POST", "/v1/chassis", {})["uuid"]
        self.assertEqual(chassis, self.patched(add("/chassis_uuid", chassis))["chassis_uuid"])
        self.assertIsNone(self.patched(remove("/chassis_uuid"))["chassis_uuid"])

    def test_leaving_maintenance_takes_reason_and_fault_along(self) -> None:
        self.put(maintenance=True, maintenance_reason="hot", fault="power failure")
        shown = self.patched(add("/maintenance", False))
        self.assertEqual((None, None), (shown["maintenance_reason"], shown["fault"]))

    def test_the_instance_is_named_by_its_display_name(self) -> None:
        self.assertEqual("web", self.patched(add("/instance_info/display_name", "web"))["instance_name"])

    def test_network_data_has_a_form(self) -> None:
        self.assertIn("'links' is a required", self.not_patched(400, add("/network_data", {"networks": []})))
        good = {"links": [], "networks": [], "services": []}
        self.assertEqual(good, self.patched(add("/network_data", good))["network_data"])


class Composition(PatchCase):
    def setUp(self) -> None:
        super().setUp()
        kinds = {"power": ["ipmitool"], "management": ["ipmitool"], **api_case.PLAIN}
        self.register("conductor-2", api_case.enabled("ipmi", boot=["ipxe", "fake"], **kinds))

    def test_an_interface_must_be_enabled_for_the_hardware_type(self) -> None:
        message = self.not_patched(400, add("/boot_interface", "pxe"))
        self.assertIn("'pxe' for hardware type fake-hardware", message)
        self.assertIn("fake, ipxe", message)

    def test_an_interface_is_changed_and_reset(self) -> None:
        self.assertEqual("ipxe", self.patched(add("/boot_interface", "ipxe"))["boot_interface"])
        self.assertEqual("fake", self.patched(remove("/boot_interface"))["boot_interface"])

    def test_an_active_node_keeps_its_interfaces_unless_in_maintenance(self) -> None:
        self.put(provision_state=states.ACTIVE)
        self.assertIn("boot_interface", self.not_patched(409, add("/boot_interface", "ipxe")))
        self.put(maintenance=True)
        self.patched(add("/boot_interface", "ipxe"))

    def test_a_driver_that_does_not_support_the_interfaces_is_refused(self) -> None:
        self.assertIn("hardware type ipmi", self.not_patched(400, add("/driver", "ipmi")))

    def test_driver_and_interfaces_change_together(self) -> None:
        shown = self.patched(
            add("/driver", "ipmi"), add("/power_interface", "ipmitool"), add("/management_interface", "ipmitool")
        )
        self.assertEqual(("ipmi", "ipmitool", "fake"), tuple(
            shown[name] for name in ("driver", "power_interface", "boot_interface")))  # fmt: skip

    def test_reset_interfaces_takes_the_defaults_of_the_new_driver(self) -> None:
        shown = self.good(
            "PATCH", "/v1/nodes/n?reset_interfaces=true", [add("/driver", "ipmi"), add("/boot_interface", "fake")]
        )
        self.assertEqual(("ipmitool", "fake"), (shown["power_interface"], shown["boot_interface"]))

    def test_reset_interfaces_needs_a_driver(self) -> None:
        message = self.refused(400, "PATCH", "/v1/nodes/n?reset_interfaces=true", [add("/extra/a", 1)])
        self.assertIn("/driver", message)

    def test_an_unknown_driver_or_group_has_no_conductor(self) -> None:
        self.assertIn("moon", self.not_patched(400, add("/driver", "moon")))
        self.assertIn("far", self.not_patched(400, add("/conductor_group", "FAR")))

    def test_only_what_all_conductors_of_the_group_have_is_offered(self) -> None:
        self.register("conductor-3", api_case.enabled("fake-hardware", boot=["fake"], **api_case.PLAIN))
        self.assertIn("Enabled and supported are: fake.", self.not_patched(400, add("/boot_interface", "ipxe")))

    def test_creation_stores_the_defaults(self) -> None:
        stored = nodes.get(self.db, self.node(driver="ipmi")["uuid"])
        self.assertEqual(
            ("ipmitool", "ipxe", "noop"), (stored.power_interface, stored.boot_interface, stored.network_interface)
        )


class Concurrency(PatchCase):
    def test_no_update_is_lost(self) -> None:
        statuses: list[int] = []

        def write(client: int) -> None:
            for number in range(20):
                answer = self.api("PATCH", f"/v1/nodes/{self.uuid}", [add(f"/extra/c{client}x{number}", number)])
                statuses.append(answer.status)

        threads = [threading.Thread(target=write, args=(client,)) for client in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        kept = [key for key in self.good("GET", "/v1/nodes/n")["extra"] if key.startswith("c")]
        self.assertEqual({200, 409} | set(statuses), {200, 409})
        self.assertGreater(len(kept), 0)
        self.assertEqual(statuses.count(200), len(kept))
