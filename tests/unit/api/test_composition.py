"""What the API lets a node be composed of: hardware types, classic drivers, and changing between them (004)."""

from typing import Any

from ingot.common import errors, interfaces
from ingot.db import conductors, nodes
from ingot.rpcapi import versions
from tests import api_case
from tests.json_patch import add, remove

IPMI: dict[str, list[str]] = {"power": ["ipmitool"], "management": ["ipmitool"], **api_case.PLAIN}


class CompositionCase(api_case.ApiCase):
    def setUp(self) -> None:
        super().setUp()
        ipmi = api_case.enabled("ipmi", boot=["ipxe", "fake"], **IPMI)
        about = {"conductor_group": "", "release": "0.1", "rpc_version": versions.RPC_VERSION}
        conductors.register(self.db, "conductor-2", {**about, "classic_drivers": ["fixed", "solid"]}, ipmi)

    def composition(self, node: dict[str, Any]) -> list[str | None]:
        """Return the interface fields of a node as they are stored."""
        stored = nodes.get(self.db, node["uuid"])
        self.assertEqual(
            [node[name] for name in interfaces.FIELDS], [getattr(stored, name) for name in interfaces.FIELDS]
        )
        return [node[name] for name in interfaces.FIELDS]

    def patched(self, node: dict[str, Any], *operations: dict[str, Any]) -> dict[str, Any]:
        shown: dict[str, Any] = self.good("PATCH", f"/v1/nodes/{node['uuid']}", list(operations))
        return shown

    def not_patched(self, node: dict[str, Any], *operations: dict[str, Any]) -> str:
        before = nodes.get(self.db, node["uuid"])
        message = self.refused(400, "PATCH", f"/v1/nodes/{node['uuid']}", list(operations))
        self.assertEqual(before, nodes.get(self.db, node["uuid"]))
        return message


NOTHING = [None] * len(interfaces.TYPES)


class Classic(CompositionCase):
    def test_a_node_of_one_has_no_interfaces(self) -> None:
        self.assertEqual(NOTHING, self.composition(self.node(driver="fixed")))
        self.assertEqual(NOTHING, self.composition(self.node(driver="fixed", boot_interface=None)))

    def test_none_of_them_can_be_set(self) -> None:
        node = self.node(driver="fixed")
        for name in interfaces.FIELDS:
            for message in (
                self.refused(400, "POST", "/v1/nodes", {"driver": "fixed", name: "fake"}),
                self.not_patched(node, add(f"/{name}", "fake")),
            ):
                self.assertIn(f"Invalid {name}: 'fake'", message)
                self.assertIn("Classic driver fixed", message)
        self.assertEqual(NOTHING, self.composition(self.patched(node, add("/boot_interface", None))))

    def test_changing_to_one_resets_them_all(self) -> None:
        self.assertEqual(NOTHING, self.composition(self.patched(self.node(), add("/driver", "fixed"))))

    def test_changing_to_one_and_naming_an_interface_is_refused_even_if_the_node_has_it(self) -> None:
        node = self.node()
        for value in ("fake", "ipxe"):
            message = self.not_patched(node, add("/driver", "fixed"), add("/boot_interface", value))
            self.assertIn("Invalid boot_interface", message)
        shown = self.patched(node, add("/driver", "fixed"), remove("/boot_interface"))
        self.assertEqual(NOTHING, self.composition(shown))

    def test_changing_from_one_takes_the_defaults_of_the_hardware_type(self) -> None:
        node = self.node(driver="fixed")
        self.patched(node, add("/driver", "solid"))
        shown = self.patched(node, add("/driver", "ipmi"), add("/boot_interface", "fake"))
        self.assertEqual(
            ("ipmitool", "fake", "noop"),
            (shown["power_interface"], shown["boot_interface"], shown["network_interface"]),
        )

    def test_both_kinds_of_driver_are_taken_at_every_version(self) -> None:
        for version in ("1.1", "1.30", api_case.LATEST):
            for driver in ("fixed", "ipmi"):
                self.assertEqual(driver, self.good("POST", "/v1/nodes", {"driver": driver}, version)["driver"])
            node = self.node(driver="fixed")
            for driver, power in (("ipmi", "ipmitool"), ("solid", None)):
                change = [add("/driver", driver)]
                shown = self.good("PATCH", f"/v1/nodes/{node['uuid']}", change, version)
                self.assertEqual((driver, power), (shown["driver"], nodes.get(self.db, node["uuid"]).power_interface))

    def test_one_of_another_group_is_not_there(self) -> None:
        message = self.refused(400, "POST", "/v1/nodes", {"driver": "fixed", "conductor_group": "west"})
        self.assertIn("fixed", message)
        self.assertIn("west", message)

    def test_one_that_is_not_enabled_any_more_leaves_the_rest_of_the_node_editable(self) -> None:
        node = self.node(driver="fixed")
        self.register("conductor-2", api_case.enabled("ipmi", **IPMI))
        self.assertEqual({"a": 1}, self.patched(node, add("/extra", {"a": 1}))["extra"])
        self.assertIn("fixed", self.not_patched(node, add("/boot_interface", "fake")))

    def test_its_nodes_have_an_owner(self) -> None:
        node = self.node(driver="fixed")
        self.assertEqual("conductor-2", self.good("GET", f"/v1/nodes/{node['uuid']}")["conductor"])
        self.assertEqual(["fixed", "ipmi", "solid"], self.good("GET", "/v1/conductors/conductor-2")["drivers"])


class Dynamic(CompositionCase):
    def test_none_stands_for_the_default_whether_at_creation_or_later(self) -> None:
        node = self.node(driver="ipmi", boot_interface=None)
        self.assertEqual("ipxe", node["boot_interface"])
        self.patched(node, add("/boot_interface", "fake"))
        self.assertEqual("ipxe", self.patched(node, add("/boot_interface", None))["boot_interface"])

    def test_a_patch_is_judged_by_what_it_leads_to(self) -> None:
        """Specification 004: the hardware type alone leaves incompatible interfaces; all in one patch is fine."""
        node = self.node()
        message = self.not_patched(node, add("/driver", "ipmi"))
        for kind in ("management", "power"):
            self.assertIn(f"Could not find {kind} interface 'fake' for hardware type ipmi", message)
        self.assertIn("Enabled and supported are: ipmitool.", message)
        all_at_once = (add("/power_interface", "ipmitool"), add("/management_interface", None), add("/driver", "ipmi"))
        shown = self.patched(node, *all_at_once)
        self.assertEqual(("ipmitool", "ipmitool"), (shown["power_interface"], shown["management_interface"]))
        self.assertEqual([], self.conductor.asked)  # the table knows

    def test_reset_interfaces_keeps_only_what_the_patch_names(self) -> None:
        node = self.node(boot_interface="ipxe")
        url = f"/v1/nodes/{node['uuid']}?reset_interfaces=true"
        shown = self.good("PATCH", url, [add("/driver", "ipmi"), add("/boot_interface", "fake")])
        self.assertEqual(("ipmitool", "fake"), (shown["power_interface"], shown["boot_interface"]))
        self.assertEqual(NOTHING, self.composition(self.good("PATCH", url, [add("/driver", "fixed")])))
        self.assertIn("1.45", self.refused(406, "PATCH", url, [add("/driver", "ipmi")], version="1.44"))

    def test_an_interface_that_was_disabled_leaves_the_rest_of_the_node_editable(self) -> None:
        node = self.node(boot_interface="ipxe")
        self.register(api_case.HOST, api_case.enabled("fake-hardware", boot=["fake"], **api_case.PLAIN))
        self.assertEqual("ipxe", self.good("GET", f"/v1/nodes/{node['uuid']}")["boot_interface"])
        self.assertEqual({"a": 1}, self.patched(node, add("/extra", {"a": 1}))["extra"])
        message = self.not_patched(node, add("/driver", "fake-hardware"), add("/deploy_interface", "pxe"))
        self.assertIn("boot interface 'ipxe'", message)
        self.assertEqual("fake", self.patched(node, add("/boot_interface", None))["boot_interface"])


class Filters(CompositionCase):
    def listed(self, query: str, version: str = api_case.LATEST) -> list[str]:
        return [node["name"] for node in self.good("GET", f"/v1/nodes?{query}", version=version)["nodes"]]

    def test_every_kind_of_interface_filters_nodes(self) -> None:
        self.node(name="booted", boot_interface="ipxe")
        self.node(name="plain")
        self.node(name="classic", driver="fixed")
        for kind in interfaces.TYPES:
            expected = "noop" if kind in api_case.PLAIN else "fake"
            names = ["plain"] if kind == "boot" else ["booted", "plain"]
            self.assertEqual(names, self.listed(f"{kind}_interface={expected}"), kind)
            self.assertEqual([], self.listed(f"{kind}_interface=moon"))
        self.assertEqual(["booted"], self.listed("boot_interface=ipxe&power_interface=fake"))
        detailed = self.good("GET", "/v1/nodes/detail?boot_interface=ipxe")["nodes"]
        self.assertEqual(["booted"], [node["name"] for node in detailed])

    def test_a_filter_is_as_old_as_its_field(self) -> None:
        for kind, since in (
            ("network", 20),
            ("boot", 31),
            ("storage", 33),
            ("rescue", 38),
            ("bios", 40),
            ("firmware", 86),
        ):
            url = f"/v1/nodes?{kind}_interface=x"
            self.good("GET", url, version=f"1.{since}")
            self.assertIn(f"1.{since}", self.refused(406, "GET", url, version=f"1.{since - 1}"))

    def test_the_next_page_keeps_the_filter(self) -> None:
        for _number in range(2):
            self.node(boot_interface="ipxe")
        self.assertIn("boot_interface=ipxe", self.good("GET", "/v1/nodes?boot_interface=ipxe&limit=1")["next"])


class Drivers(CompositionCase):
    def test_both_types_are_listed_at_every_version(self) -> None:
        for version in ("1.1", "1.29", api_case.LATEST):
            names = [driver["name"] for driver in self.good("GET", "/v1/drivers", version=version)["drivers"]]
            self.assertEqual(["fake-hardware", "fixed", "ipmi", "solid"], names)

    def test_the_type_is_shown_and_filters_from_its_version_on(self) -> None:
        shown = {one["name"]: one["type"] for one in self.good("GET", "/v1/drivers", version="1.30")["drivers"]}
        self.assertEqual({"fake-hardware": "dynamic", "fixed": "classic", "ipmi": "dynamic", "solid": "classic"}, shown)
        for requested in ("classic", "dynamic"):
            found = self.good("GET", f"/v1/drivers?type={requested}", version="1.30")["drivers"]
            self.assertEqual([name for name, of in shown.items() if of == requested], [one["name"] for one in found])
        self.assertNotIn("type", self.good("GET", "/v1/drivers", version="1.29")["drivers"][0])
        self.refused(406, "GET", "/v1/drivers?type=classic", version="1.29")
        self.assertIn("classic, dynamic", self.refused(400, "GET", "/v1/drivers?type=steam"))

    def test_a_classic_one_has_neither_defaults_nor_a_choice(self) -> None:
        shown = self.good("GET", "/v1/drivers/fixed")
        self.assertEqual((["conductor-2"], "classic"), (shown["hosts"], shown["type"]))
        for kind in interfaces.TYPES:
            offer = shown[f"default_{kind}_interface"], shown[f"enabled_{kind}_interfaces"]
            self.assertEqual((None, None), offer)
        detailed = {one["name"]: one for one in self.good("GET", "/v1/drivers?detail=true")["drivers"]}
        self.assertIsNone(detailed["fixed"]["enabled_boot_interfaces"])
        self.assertEqual(["ipxe", "fake"], detailed["ipmi"]["enabled_boot_interfaces"])

    def test_a_hardware_type_tells_its_defaults_and_what_is_enabled(self) -> None:
        shown = self.good("GET", "/v1/drivers/ipmi")
        for kind in interfaces.TYPES:
            offered = {"boot": ["ipxe", "fake"], **IPMI}.get(kind, ["fake"])
            offer = shown[f"default_{kind}_interface"], shown[f"enabled_{kind}_interfaces"]
            self.assertEqual((offered[0], offered), offer)

    def test_properties_of_a_classic_one_come_from_its_conductor(self) -> None:
        self.bus.serve("conductor-2", self.conductor)
        self.good("GET", "/v1/drivers/fixed/properties")
        self.assertEqual(("get_driver_properties", {"hardware_type": "fixed"}), self.conductor.asked[-1])

    def test_a_name_of_both_types_counts_as_the_hardware_type(self) -> None:
        """Conductors warn of it; until it is put right there is one answer."""
        self.register("conductor-3", api_case.enabled("fixed", **api_case.PLAIN))
        self.assertEqual("dynamic", self.good("GET", "/v1/drivers/fixed")["type"])


class VendorMethods(CompositionCase):
    URL = "/v1/drivers/fake-hardware/vendor_passthru"

    def test_they_are_listed_by_a_conductor_of_the_driver(self) -> None:
        methods = {"versions": {"http_methods": ["GET"], "description": "", "async": False, "attach": False}}
        self.conductor.answers["get_driver_methods"] = methods
        self.assertEqual(methods, self.good("GET", f"{self.URL}/methods", version="1.1"))
        self.assertEqual(("get_driver_methods", {"driver": "fake-hardware"}), self.conductor.asked[-1])

    def test_one_is_called_by_path_or_query_with_the_body_as_arguments(self) -> None:
        self.conductor.answers["call_driver_method"] = {"found": 3}
        for verb in ("GET", "POST", "PUT", "DELETE", "PATCH"):
            for url in (f"{self.URL}?method=count", f"{self.URL}/count"):
                self.assertEqual({"found": 3}, self.good(verb, url, {"a": 1}))
                about = {
                    "driver": "fake-hardware",
                    "vendor_method": "count",
                    "http_method": verb,
                    "arguments": {"a": 1},
                }
                self.assertEqual(("call_driver_method", about), self.conductor.asked[-1])
        self.good("GET", f"{self.URL}/count")
        self.assertEqual({}, self.conductor.asked[-1][1]["arguments"])

    def test_what_cannot_be_called_is_refused(self) -> None:
        self.assertIn("Missing mandatory parameter: method", self.refused(400, "POST", self.URL, {}))
        self.assertIn("JSON object", self.refused(400, "POST", f"{self.URL}/count", [1]))
        self.conductor.answers["call_driver_method"] = errors.Invalid("No handler for method zz.")
        self.assertIn("zz", self.refused(400, "POST", f"{self.URL}?method=zz", {}))
        for url in ("/v1/drivers/moon/vendor_passthru/methods", "/v1/drivers/moon/vendor_passthru?method=x"):
            self.assertIn("moon", self.refused(404, "GET", url))
