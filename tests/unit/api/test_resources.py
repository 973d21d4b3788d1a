"""Ports, portgroups, chassis, deploy templates, traits: created, changed, deleted, refused."""

import uuid
from typing import Any

import sqlalchemy as sa

from ingot.common import clock, states
from ingot.db import nodes, step_lists
from tests import api_case, sql_counter

MAC = "52:54:00:00:00:01"
STEP = {"interface": "raid", "step": "apply_configuration", "args": {"a": 1}, "priority": 90}


def add(path: str, value: Any) -> list[dict[str, Any]]:
    return [{"op": "add", "path": path, "value": value}]


class ResourceCase(api_case.ApiCase):
    def setUp(self) -> None:
        super().setUp()
        self.uuid = self.node(name="n")["uuid"]

    def put(self, **values: Any) -> None:
        with self.db.single() as connection:
            connection.execute(sa.update(nodes.NODES).where(nodes.NODES.c.uuid == self.uuid).values(values))

    def port(self, address: str = MAC, **values: Any) -> Any:
        return self.good("POST", "/v1/ports", {"node_uuid": self.uuid, "address": address, **values})

    def portgroup(self, **values: Any) -> Any:
        return self.good("POST", "/v1/portgroups", {"node_uuid": self.uuid, **values})


class Ports(ResourceCase):
    def test_is_created_with_its_defaults(self) -> None:
        answer = self.api("POST", "/v1/ports", {"node_ident": "n", "address": MAC.upper()})
        port = answer.json
        self.assertEqual(
            (201, f"http://localhost/v1/ports/{port['uuid']}"), (answer.status, answer.headers["Location"])
        )
        self.assertEqual((MAC, self.uuid, True, None), tuple(
            port[name] for name in ("address", "node_uuid", "pxe_enabled", "portgroup_uuid")))  # fmt: skip

    def test_is_changed_by_name_and_deleted(self) -> None:
        self.port(name="eth0")
        shown = self.good("PATCH", "/v1/ports/eth0", add("/extra/slot", 3))
        self.assertEqual({"slot": 3}, shown["extra"])
        self.assertIsNotNone(shown["updated_at"])
        self.good("DELETE", "/v1/ports/eth0")
        self.refused(404, "GET", "/v1/ports/eth0")

    def test_a_taken_value_is_named(self) -> None:
        port = self.port(name="eth0")
        other = "52:54:00:00:00:02"
        for values, expected in (
            ({"address": MAC}, f"MAC address {MAC}"),
            ({"address": other, "uuid": port["uuid"]}, f"UUID {port['uuid']}"),
            ({"address": other, "name": "eth0"}, "name eth0"),
        ):
            message = self.refused(409, "POST", "/v1/ports", {"node_uuid": self.uuid, **values})
            self.assertEqual(f"A port with {expected} already exists.", message)

    def test_what_it_refers_to_must_exist(self) -> None:
        gone = str(uuid.uuid4())
        self.assertIn(gone, self.refused(400, "POST", "/v1/ports", {"node_uuid": gone, "address": MAC}))
        body = {"node_uuid": self.uuid, "address": MAC, "portgroup_uuid": gone}
        self.assertIn(gone, self.refused(400, "POST", "/v1/ports", body))
        self.assertIn("node_uuid", self.refused(400, "POST", "/v1/ports", {"address": MAC}))

    def test_it_is_available_for_dynamic_portgroups_by_default(self) -> None:
        port = self.port(name="eth0")
        self.assertIs(True, port["available_for_dynamic_portgroup"])
        path, change = "/v1/ports/eth0", add("/available_for_dynamic_portgroup", False)
        self.assertIs(False, self.good("PATCH", path, change)["available_for_dynamic_portgroup"])
        back = self.good("PATCH", path, [{"op": "remove", "path": "/available_for_dynamic_portgroup"}])
        self.assertIs(True, back["available_for_dynamic_portgroup"])
        self.assertNotIn("available_for_dynamic_portgroup", self.good("GET", path, version="1.110"))
        self.good("PATCH", f"/v1/ports/{port['uuid']}", change, "1.1")  # measured: a patch may name it at any version
        body = {"node_uuid": self.uuid, "address": "52:54:00:00:00:02"}
        self.refused(406, "POST", "/v1/ports", {**body, "available_for_dynamic_portgroup": False}, "1.110")
        for wrong in ("yes", 1, None):
            message = self.refused(400, "POST", "/v1/ports", {**body, "available_for_dynamic_portgroup": wrong})
            self.assertIn("available_for_dynamic_portgroup", message)

    def test_the_ports_of_a_portgroup_are_on_one_physical_network(self) -> None:
        group = self.portgroup()["uuid"]
        body = {"node_uuid": self.uuid, "portgroup_uuid": group, "physical_network": "net1"}
        self.good("POST", "/v1/ports", {**body, "address": MAC})
        same = self.good("POST", "/v1/ports", {**body, "address": "52:54:00:00:00:02"})["uuid"]
        for other in ("net2", None):
            sent = {**body, "address": "52:54:00:00:00:03", "physical_network": other}
            message = self.refused(409, "POST", "/v1/ports", sent)
            self.assertIn(group, message)
            self.assertIn("'net1'", message)
        self.refused(409, "PATCH", f"/v1/ports/{same}", add("/physical_network", "net2"))
        body = {"node_uuid": self.uuid, "address": "52:54:00:00:00:03", "physical_network": "net2"}
        outside = self.good("POST", "/v1/ports", body)["uuid"]
        self.refused(409, "PATCH", f"/v1/ports/{outside}", add("/portgroup_uuid", group))
        both = [*add("/portgroup_uuid", group), *add("/physical_network", "net1")]
        self.good("PATCH", f"/v1/ports/{outside}", both)
        self.good("PATCH", f"/v1/ports/{outside}", [{"op": "remove", "path": "/portgroup_uuid"}])
        self.good("PATCH", f"/v1/ports/{outside}", add("/physical_network", "net2"))

    def test_a_portgroup_may_refuse_ports_of_their_own(self) -> None:
        group = self.portgroup(standalone_ports_supported=False)["uuid"]
        path = f"/v1/ports/{self.port()['uuid']}"
        self.good("PATCH", path, add("/portgroup_uuid", group))  # without Neutron it does not matter
        self.good("PATCH", path, [{"op": "remove", "path": "/portgroup_uuid"}])
        self.put(network_interface="neutron", provision_state=states.MANAGEABLE)
        self.assertIn(group, self.refused(409, "PATCH", path, add("/portgroup_uuid", group)))
        self.good("PATCH", path, [*add("/portgroup_uuid", group), *add("/pxe_enabled", False)])
        self.assertIn("pxe_enabled", self.refused(409, "PATCH", path, add("/pxe_enabled", True)))
        there = f"/v1/portgroups/{group}"
        self.good("PATCH", there, add("/standalone_ports_supported", True))
        self.good("PATCH", path, add("/pxe_enabled", True))
        self.assertIn(group, self.refused(409, "PATCH", there, add("/standalone_ports_supported", False)))

    def test_a_portgroup_of_another_node_is_refused(self) -> None:
        group = self.portgroup()["uuid"]
        other = self.node(name="other")["uuid"]
        body = {"node_uuid": other, "address": MAC, "portgroup_uuid": group}
        self.assertIn("another node", self.refused(400, "POST", "/v1/ports", body))

    def test_leaves_its_portgroup_when_it_goes_to_another_node(self) -> None:
        port = self.port(portgroup_uuid=self.portgroup()["uuid"])["uuid"]
        move = {"op": "add", "path": "/node_uuid", "value": self.node(name="other")["uuid"]}
        self.assertIn("portgroup_uuid", self.refused(400, "PATCH", f"/v1/ports/{port}", [move]))
        moved = self.good("PATCH", f"/v1/ports/{port}", [move, {"op": "remove", "path": "/portgroup_uuid"}])
        self.assertEqual((move["value"], None), (moved["node_uuid"], moved["portgroup_uuid"]))

    def test_the_node_s_state_limits_what_can_change(self) -> None:
        port = self.port()["uuid"]
        self.put(provision_state=states.ACTIVE)
        self.assertIn("active", self.refused(409, "PATCH", f"/v1/ports/{port}", add("/address", "52:54:00:00:00:09")))
        self.assertIn("enroll", self.refused(409, "PATCH", f"/v1/ports/{port}", add("/pxe_enabled", False)))
        self.good("PATCH", f"/v1/ports/{port}", add("/extra/a", 1))
        self.put(maintenance=True)
        self.good("PATCH", f"/v1/ports/{port}", add("/pxe_enabled", False))

    def test_a_locked_node_keeps_its_ports(self) -> None:
        port = self.port()["uuid"]
        self.put(reservation="conductor-9", lock_purpose="deploy", locked_at=clock.now())
        self.assertIn("conductor-9 for deploy", self.refused(409, "PATCH", f"/v1/ports/{port}", add("/extra/a", 1)))
        self.assertIn("conductor-9", self.refused(409, "DELETE", f"/v1/ports/{port}"))
        self.port("52:54:00:00:00:09")

    def test_a_connection_has_a_form(self) -> None:
        for link in ({"colour": "red"}, {"switch_id": "0a:1b:2c:3d:4e:5f"}, {"network_type": "secret"}):
            body = {"node_uuid": self.uuid, "address": MAC, "local_link_connection": link}
            self.assertIn("local_link_connection", self.refused(400, "POST", "/v1/ports", body))

    def test_an_identifier_that_names_nothing(self) -> None:
        self.assertIn("UUID or name", self.refused(400, "GET", f"/v1/ports/{MAC}"))
        upper = self.port()["uuid"].upper().replace("-", "")
        self.assertEqual(MAC, self.good("GET", f"/v1/ports/{upper}")["address"])


class Portgroups(ResourceCase):
    def test_is_created_changed_and_deleted(self) -> None:
        group = self.portgroup(name="bond0", address=MAC)
        self.assertEqual(("active-backup", True), (group["mode"], group["standalone_ports_supported"]))
        self.assertEqual("802.3ad", self.good("PATCH", "/v1/portgroups/bond0", add("/mode", "802.3ad"))["mode"])
        self.assertEqual(1, len(self.good("GET", "/v1/nodes/n/portgroups")["portgroups"]))
        self.good("DELETE", "/v1/portgroups/bond0")
        self.assertEqual([], self.good("GET", "/v1/portgroups")["portgroups"])

    def test_with_ports_it_stays(self) -> None:
        group = self.portgroup(name="bond0")["uuid"]
        port = self.port(portgroup_uuid=group)
        self.assertEqual(
            [port["uuid"]], [found["uuid"] for found in self.good("GET", f"/v1/portgroups/{group}/ports")["ports"]]
        )
        self.assertIn("has ports", self.refused(400, "DELETE", "/v1/portgroups/bond0"))

    def test_has_a_physical_network_and_a_category(self) -> None:
        sent = {"physical_network": "net1", "category": "storage"}
        group = self.portgroup(name="bond0", **sent)
        self.assertEqual((*sent.values(), False), tuple(
            group[name] for name in ("physical_network", "category", "dynamic_portgroup")))  # fmt: skip
        path = f"/v1/portgroups/{group['uuid']}"
        for name, since in (("physical_network", 102), ("category", 103), ("dynamic_portgroup", 111)):
            self.assertNotIn(name, self.good("GET", path, version=f"1.{since - 1}"))
            self.assertIn(name, self.good("GET", path, version=f"1.{since}"))
        # Measured: requests take them at every version.
        self.good("PATCH", path, add("/physical_network", "net2"), "1.23")
        self.good("POST", "/v1/portgroups", {"node_uuid": self.uuid, **sent}, "1.23")
        self.assertEqual("net2", self.good("GET", path)["physical_network"])
        shown = self.good("PATCH", path, [{"op": "remove", "path": f"/{name}"} for name in sent])
        self.assertEqual((None, None), (shown["physical_network"], shown["category"]))
        self.assertIn("dynamic_portgroup", self.refused(400, "PATCH", path, add("/dynamic_portgroup", True)))

    def test_before_its_version_it_does_not_exist(self) -> None:
        self.refused(404, "GET", "/v1/portgroups", version="1.22")
        self.refused(404, "POST", "/v1/portgroups", {"node_uuid": self.uuid}, "1.22")


class ChassisTests(ResourceCase):
    def test_is_created_changed_and_deleted(self) -> None:
        chassis = self.good("POST", "/v1/chassis")["uuid"]
        self.good("PATCH", f"/v1/chassis/{chassis}", add("/description", "row 3"))
        self.assertEqual("row 3", self.good("GET", f"/v1/chassis/{chassis}")["description"])
        self.good("DELETE", f"/v1/chassis/{chassis}")
        self.refused(404, "GET", f"/v1/chassis/{chassis}")

    def test_with_nodes_it_stays(self) -> None:
        chassis = self.good("POST", "/v1/chassis", {})["uuid"]
        inside = self.node(chassis_uuid=chassis)["uuid"]
        self.assertIn("has nodes", self.refused(400, "DELETE", f"/v1/chassis/{chassis}"))
        listed = self.good("GET", f"/v1/chassis/{chassis}/nodes")["nodes"]
        self.assertEqual([inside], [node["uuid"] for node in listed])
        self.assertIn("driver_info", self.good("GET", f"/v1/chassis/{chassis}/nodes/detail")["nodes"][0])

    def test_is_known_by_uuid_only(self) -> None:
        self.assertIn("Expected UUID for chassis", self.refused(400, "GET", "/v1/chassis/rack"))


class DeployTemplates(ResourceCase):
    def template(self, **values: Any) -> Any:
        return self.good("POST", "/v1/deploy_templates", {"name": "CUSTOM_RAID", "steps": [STEP], **values})

    def test_is_created_changed_and_deleted(self) -> None:
        self.assertEqual([STEP], self.template()["steps"])
        second = {**STEP, "interface": "bios", "priority": "5"}
        shown = self.good("PATCH", "/v1/deploy_templates/CUSTOM_RAID", add("/steps/-", second))
        self.assertEqual([STEP, {**second, "priority": 5}], shown["steps"])
        listed = self.good("GET", "/v1/deploy_templates?detail=true")["deploy_templates"]
        self.assertEqual(shown, listed[0])
        self.good("DELETE", f"/v1/deploy_templates/{shown['uuid']}")
        self.assertEqual([], self.good("GET", "/v1/deploy_templates")["deploy_templates"])

    def test_secrets_of_steps_are_masked_and_come_back_as_they_were(self) -> None:
        secret = {**STEP, "args": {"admin_password": "hunter2"}}
        shown = {**STEP, "args": {"admin_password": "******"}}
        self.assertEqual([shown], self.template(steps=[secret])["steps"])
        self.assertEqual([shown], self.good("GET", "/v1/deploy_templates")["deploy_templates"][0]["steps"])
        other = {**STEP, "interface": "bios"}
        self.good("PATCH", "/v1/deploy_templates/CUSTOM_RAID", add("/steps", [other, {**shown, "priority": 7}]))
        (_other, kept) = step_lists.list_template_steps(self.db, ["CUSTOM_RAID"])
        self.assertEqual(({"admin_password": "hunter2"}, 7), (kept.args, kept.priority))
        again = {"name": "CUSTOM_COPY", "steps": [shown]}
        self.assertIn("Invalid steps.0.args.admin_password", self.refused(400, "POST", "/v1/deploy_templates", again))

    def test_has_a_second_url_with_a_hyphen(self) -> None:
        created = self.api("POST", "/v1/deploy-templates", {"name": "CUSTOM_RAID", "steps": [STEP]})
        self.assertIn("/v1/deploy-templates/", created.headers["Location"])
        self.assertEqual("CUSTOM_RAID", self.good("GET", "/v1/deploy-templates")["deploy-templates"][0]["name"])
        self.good("PATCH", "/v1/deploy-templates/CUSTOM_RAID", add("/name", "CUSTOM_MIRROR"))
        self.good("DELETE", "/v1/deploy-templates/CUSTOM_MIRROR")

    def test_a_list_shows_steps_at_both_urls(self) -> None:
        created = self.template()
        for url, key in (("/v1/deploy-templates", "deploy-templates"), ("/v1/deploy_templates", "deploy_templates")):
            listed = self.good("GET", url)[key]
            summary = {name: created[name] for name in ("uuid", "name", "links", "steps")}
            self.assertEqual([summary], listed)

    def test_a_list_costs_the_same_however_long(self) -> None:
        costs = []
        for length in (1, 20):
            for number in range(len(self.good("GET", "/v1/deploy_templates")["deploy_templates"]), length):
                self.template(name=f"CUSTOM_{number}")
            with sql_counter.counting(self.db) as counted:
                self.good("GET", "/v1/deploy_templates")
            costs.append(len(counted))
        self.assertEqual([2, 2], costs)

    def test_the_statuses_of_specification_003_at_both_urls(self) -> None:
        gone = str(uuid.uuid4())
        for url in ("/v1/deploy-templates", "/v1/deploy_templates"):
            body = {"name": "CUSTOM_RAID", "steps": [STEP]}
            created = self.api("POST", url, body)
            self.assertEqual((201, f"http://localhost{url}/{created.json['uuid']}"), (
                created.status, created.headers["Location"]))  # fmt: skip
            self.assertEqual((409, 400), tuple(self.api("POST", url, sent).status for sent in (body, {})))
            for ident in ("CUSTOM_RAID", created.json["uuid"]):
                self.assertEqual(created.json, self.good("GET", f"{url}/{ident}"))
            self.good("POST", url, {**body, "name": "CUSTOM_OTHER"})
            for status, ident, patch in (
                (200, "CUSTOM_RAID", add("/name", "CUSTOM_R2")),
                (200, "CUSTOM_R2", add("/name", "CUSTOM_RAID")),
                (200, created.json["uuid"], []),
                (400, "CUSTOM_RAID", add("/uuid", gone)),
                (400, "CUSTOM_RAID", [{"op": "remove", "path": "/name"}]),
                (404, "CUSTOM_NONE", add("/name", "CUSTOM_R2")),
                (409, "CUSTOM_RAID", add("/name", "CUSTOM_OTHER")),
            ):
                self.assertEqual(status, self.api("PATCH", f"{url}/{ident}", patch).status, patch)
            for status, path in ((404, "/CUSTOM_NONE"), (404, f"/{gone}"), (400, "/a%20b")):
                self.assertEqual(status, self.api("GET", url + path).status, path)
                self.assertEqual(status, self.api("DELETE", url + path).status, path)
            for path in ("/CUSTOM_RAID", f"/{self.good('GET', f'{url}/CUSTOM_OTHER')['uuid']}"):
                answer = self.api("DELETE", url + path)
                self.assertEqual((204, ""), (answer.status, answer.text))
            self.assertEqual(400, self.api("DELETE", url).status)
            self.assertEqual(400, self.api("GET", f"{url}?colour=1").status)

    def test_wrong_ones_say_why(self) -> None:
        for values, expected in (
            ({"name": "raid"}, "CUSTOM_"),
            ({"name": "HW_NOPE"}, "os-traits"),
            ({"steps": []}, "steps: [] should be non-empty"),
            ({"steps": [STEP, STEP]}, "raid.apply_configuration"),
            ({"steps": [{**STEP, "interface": "moon"}]}, "steps.0.interface: 'moon' is not one of"),
            ({"steps": [{**STEP, "priority": -1}]}, "steps.0.priority"),
            ({"steps": [{**STEP, "colour": 1}]}, "'colour' was unexpected"),
        ):
            body = {"name": "CUSTOM_RAID", "steps": [STEP], **values}
            self.assertIn(expected, self.refused(400, "POST", "/v1/deploy_templates", body))
        self.good("POST", "/v1/deploy_templates", {"name": "HW_CPU_X86_VMX", "steps": [STEP]})

    def test_a_taken_name_is_refused_and_nothing_changes(self) -> None:
        self.template()
        self.template(name="CUSTOM_OTHER")
        patch = [*add("/steps", [{**STEP, "priority": 1}]), *add("/name", "CUSTOM_RAID")]
        self.assertIn("CUSTOM_RAID", self.refused(409, "PATCH", "/v1/deploy_templates/CUSTOM_OTHER", patch))
        self.assertEqual([STEP], self.good("GET", "/v1/deploy_templates/CUSTOM_OTHER")["steps"])

    def test_before_its_version(self) -> None:
        self.refused(404, "GET", "/v1/deploy_templates", version="1.54")
        for url in ("/v1/deploy_templates", "/v1/deploy-templates"):
            self.refused(404, "GET", url, version="1.54")
            self.refused(405, "POST", url, {}, "1.54")
            for method in ("PATCH", "DELETE"):
                self.refused(405, method, f"{url}/CUSTOM_RAID", version="1.54")


class Traits(ResourceCase):
    def traits(self) -> list[str]:
        found: list[str] = self.good("GET", "/v1/nodes/n/traits")["traits"]
        return found

    def test_are_replaced_added_and_removed(self) -> None:
        self.good("PUT", "/v1/nodes/n/traits", {"traits": ["CUSTOM_B", "CUSTOM_A", "CUSTOM_B"]})
        self.assertEqual(["CUSTOM_A", "CUSTOM_B"], self.traits())
        answer = self.api("PUT", "/v1/nodes/n/traits/CUSTOM_C")
        self.assertEqual((204, f"http://localhost/v1/nodes/{self.uuid}/traits/CUSTOM_C"), (
            answer.status, answer.headers["Location"]))  # fmt: skip
        self.good("DELETE", "/v1/nodes/n/traits/CUSTOM_A")
        self.assertEqual(["CUSTOM_B", "CUSTOM_C"], self.traits())
        self.assertEqual(["CUSTOM_B", "CUSTOM_C"], self.good("GET", "/v1/nodes/n")["traits"])
        self.good("DELETE", "/v1/nodes/n/traits")
        self.assertEqual([], self.traits())

    def test_what_is_refused(self) -> None:
        many = [f"CUSTOM_{number}" for number in range(51)]
        for body, expected in (
            ({"traits": ["bad"]}, "CUSTOM_"),
            ({"traits": "x"}, "traits: 'x'"),
            ({"traits": many}, "51 vs. 50"),
            ({}, "'traits' is a required property"),
        ):
            self.assertIn(expected, self.refused(400, "PUT", "/v1/nodes/n/traits", body))
        self.assertIn("CUSTOM_X", self.refused(404, "DELETE", "/v1/nodes/n/traits/CUSTOM_X"))
        self.assertIn("'bad'", self.refused(400, "PUT", "/v1/nodes/n/traits/bad"))
        self.refused(400, "PUT", f"/v1/nodes/n/traits/CUSTOM_{'A' * 250}")
        self.put(reservation="conductor-9", locked_at=clock.now())
        self.assertIn("conductor-9", self.refused(409, "PUT", "/v1/nodes/n/traits/CUSTOM_A"))


class Deleting(ResourceCase):
    def test_a_node_takes_everything_with_it(self) -> None:
        group = self.portgroup()["uuid"]
        port = self.port(portgroup_uuid=group)["uuid"]
        self.good("PUT", "/v1/nodes/n/traits/CUSTOM_A")
        self.good("DELETE", "/v1/nodes/n")
        for url in ("/v1/nodes/n", f"/v1/ports/{port}", f"/v1/portgroups/{group}"):
            self.refused(404, "GET", url)

    def test_what_keeps_a_node(self) -> None:
        instance = str(uuid.uuid4())
        for status, values, expected in (
            (409, {"provision_state": states.ACTIVE}, "any state in maintenance"),
            (
                409,
                {"reservation": "conductor-9", "lock_purpose": "verify", "locked_at": clock.now()},
                "conductor-9 for verify",
            ),
            (409, {"instance_uuid": instance}, instance),
            (403, {"protected": True, "protected_reason": "vip"}, "vip"),
        ):
            before = {"provision_state": states.ENROLL, "reservation": None, "instance_uuid": None, "protected": False}
            self.put(**{**before, **values})
            self.assertIn(expected, self.refused(status, "DELETE", "/v1/nodes/n"))
        self.put(provision_state=states.ACTIVE, protected=False, maintenance=True)
        self.good("DELETE", "/v1/nodes/n")


class Creating(ResourceCase):
    def test_answers_the_node_and_where_it_is(self) -> None:
        given = str(uuid.uuid4())
        answer = self.api("POST", "/v1/nodes", {**api_case.NODE, "uuid": given.upper()})
        self.assertEqual((201, f"http://localhost/v1/nodes/{given}"), (answer.status, answer.headers["Location"]))

    def test_starts_in_enroll_or_before_1_11_in_available(self) -> None:
        self.assertEqual("enroll", self.node()["provision_state"])
        old = self.good("POST", "/v1/nodes", api_case.NODE, "1.10")
        self.assertEqual("available", old["provision_state"])

    def test_wrong_ones_say_why(self) -> None:
        for status, values, expected in (
            (400, {"driver": "moon"}, "moon"),
            (400, {"conductor_group": "far"}, '"far"'),
            (400, {"boot_interface": "moon"}, "fake, ipxe"),
            (400, {"resource_class": "x" * 81}, "resource_class"),
            (400, {"power_state": "power on"}, "power_state"),
            (400, {"chassis_uuid": str(uuid.uuid4())}, "chassis_uuid"),
            (409, {"name": "n"}, "A node with name n already exists."),
            (409, {"uuid": self.uuid}, f"A node with UUID {self.uuid} already exists."),
        ):
            self.assertIn(expected, self.refused(status, "POST", "/v1/nodes", {**api_case.NODE, **values}))
        self.assertIn("host name", self.refused(400, "POST", "/v1/nodes", {**api_case.NODE, "name": "a_b"}, "1.9"))
        self.assertEqual(1, len(self.good("GET", "/v1/nodes")["nodes"]))
