"""openstacksdk, a client from outside this project, against the API on a real socket; it has nothing to warn of."""

import logging

import fixtures
import openstack
import openstack.warnings
import requests

from ingot.api import server
from ingot.conductor import allocations as finding
from ingot.conductor import manager
from ingot.db import facts, inventory, nodes
from ingot.rack import ports
from tests import api_case, conductor_case, database


class OpenStackSdk(api_case.ApiCase):
    def configure(self) -> None:
        self.conf.set_override("host_ip", "127.0.0.1", group="api")
        self.conf.set_override("port", ports.tcp(), group="api")
        self.conf.set_override("api_threads", 2, group="api")

    def setUp(self) -> None:
        super().setUp()
        web = server.Server(self.conf, self.http.application)
        web.start()
        self.addCleanup(web.stop)
        self.url = f"http://127.0.0.1:{self.conf.api.port}"
        connection = openstack.connection.Connection(
            auth_type="none", baremetal_endpoint_override=self.url, baremetal_api_version="1.115"
        )
        self.addCleanup(connection.close)
        self.sdk = connection.baremetal
        self.useFixture(fixtures.WarningsFilter([{"action": "error", "category": openstack.warnings.OpenStackWarning}]))
        said = self.useFixture(fixtures.FakeLogger("openstack", logging.WARNING))
        self.addCleanup(lambda: self.assertEqual("", said.output))

    def test_a_node_is_created_found_changed_and_deleted(self) -> None:
        node = self.sdk.create_node(driver="fake-hardware", name="sdk-1", properties={"cpus": 4})
        self.assertEqual("sdk-1", self.sdk.get_node(node.id).name)
        self.assertEqual(["sdk-1"], [found.name for found in self.sdk.nodes()])
        self.sdk.update_node(node, resource_class="large", extra={"rack": "r1"})
        self.assertEqual({"rack": "r1"}, self.sdk.get_node("sdk-1").extra)
        self.sdk.delete_node(node)
        self.assertIsNone(self.sdk.find_node("sdk-1"))

    def test_ports_traits_and_maintenance(self) -> None:
        node = self.sdk.create_node(driver="fake-hardware", name="sdk-2")
        port = self.sdk.create_port(node_id=node.id, address="52:54:00:11:22:33")
        self.assertEqual([port.id], [found.id for found in self.sdk.ports(node=node.id)])
        self.sdk.set_node_traits(node, ["CUSTOM_GOLD"])
        self.assertEqual(["CUSTOM_GOLD"], self.sdk.get_node(node.id).traits)
        self.sdk.set_node_maintenance(node, "broken fan")
        self.assertTrue(self.sdk.get_node(node.id).is_maintenance)

    def test_provisioning_and_power_are_accepted(self) -> None:
        node = self.sdk.create_node(driver="fake-hardware", name="sdk-3")
        self.sdk.set_node_provision_state(node, "manage", wait=False)
        self.assertEqual("verifying", self.sdk.get_node(node.id).provision_state)
        self.sdk.set_node_power_state(node, "power on")
        self.assertEqual("power on", self.sdk.get_node(node.id).target_power_state)
        self.assertEqual(["manage", "power on"], self.conductor.wakeups)

    def test_deploy_templates_drivers_and_conductors(self) -> None:
        step = {"interface": "raid", "step": "apply_configuration", "args": {}, "priority": 90}
        self.sdk.create_deploy_template(name="CUSTOM_RAID", steps=[step])
        self.assertEqual([step], self.sdk.get_deploy_template("CUSTOM_RAID").steps)
        self.assertEqual(["fake-hardware"], [driver.name for driver in self.sdk.drivers()])
        self.assertEqual([True], [conductor.alive for conductor in self.sdk.conductors()])

    def test_runbooks(self) -> None:
        step = {"interface": "raid", "step": "apply_configuration", "args": {}, "order": 1}
        runbook = self.sdk.create_runbook(name="tidy-up", steps=[step])
        self.assertEqual([step], self.sdk.get_runbook("tidy-up").steps)
        self.sdk.set_runbook_traits("tidy-up", ["CUSTOM_A"])
        self.sdk.add_runbook_trait("tidy-up", "CUSTOM_B")
        self.sdk.remove_runbook_trait("tidy-up", "CUSTOM_A")
        self.assertEqual(["CUSTOM_B"], self.good("GET", "/v1/runbooks/tidy-up/traits")["traits"])
        self.sdk.update_runbook(runbook, extra={"a": 1})
        self.assertEqual({"a": 1}, self.sdk.get_runbook("tidy-up").extra)
        self.assertEqual(["tidy-up"], [found.name for found in self.sdk.runbooks()])
        self.sdk.delete_runbook("tidy-up")
        self.assertEqual([], list(self.sdk.runbooks()))

    def test_what_is_asked_of_a_machine(self) -> None:
        conductor_case.fake_hardware(self.conf)
        self.conf.set_override("host", api_case.HOST)
        self.bus.serve(api_case.HOST, manager.Conductor(self.conf, self.db).endpoint)
        node = self.sdk.create_node(driver="fake-hardware", name="sdk-5")
        self.sdk.enable_node_console(node)
        self.assertTrue(self.sdk.get_node_console(node)["console_enabled"])
        self.sdk.disable_node_console(node)
        self.sdk.set_node_boot_mode(node, "uefi")
        self.sdk.set_node_secure_boot(node, True)
        shown = self.sdk.get_node("sdk-5")
        self.assertEqual(("uefi", True, False), (shown.boot_mode, shown.is_secure_boot, shown.is_console_enabled))
        self.sdk.attach_vif_to_node(node, "a-network")
        self.assertEqual([], self.sdk.list_node_vifs(node))
        self.sdk.detach_vif_from_node(node, "a-network")
        self.sdk.attach_vmedia_to_node(node, "cdrom", "http://files/a.iso")
        self.sdk.detach_vmedia_from_node(node, ["cdrom"])
        self.assertIn("third_method_sync", self.sdk.list_node_vendor_passthru(node))
        self.sdk.call_node_vendor_passthru(node, "POST", "third_method_sync", {"bar": "meow"})
        refused = self.assertRaises(openstack.exceptions.BadRequestException, self.sdk.inject_nmi_to_node, node)
        self.assertIn("does not support inject_nmi", str(refused))

    def test_what_was_read_from_a_machine(self) -> None:
        node = database.make_node(self.db, name="sdk-6")
        inventory.save(self.db, node.id, {"cpu": {"count": 8}}, {})
        self.assertEqual({"count": 8}, self.sdk.get_node_inventory("sdk-6")["inventory"]["cpu"])
        locked = nodes.lock(self.db, node.uuid, "conductor-1", "a reading")
        component = {"component": "bmc", "initial_version": "1", "current_version": "2"}
        read = facts.FIRMWARE.build_write(locked.id, [component])
        nodes.write_locked(self.db, locked, {}, extra_writes=[read])
        (component,) = self.sdk.list_node_firmware("sdk-6")["firmware"]
        self.assertEqual(("bmc", "2"), (component["component"], component["current_version"]))

    def test_allocations(self) -> None:
        node = database.make_node(self.db, name="sdk-4", resource_class="large")
        allocation = self.sdk.create_allocation(resource_class="large", name="mine", candidate_nodes=["sdk-4"])
        self.assertEqual(("allocating", [node.uuid]), (allocation.state, allocation.candidate_nodes))
        finder = finding.Allocator(self.db, api_case.HOST, lambda _key, job: job(), lambda _key: False, 60)
        finder.notify(allocation.id)
        found = self.sdk.wait_for_allocation("mine", timeout=60)
        self.assertEqual(("active", node.uuid), (found.state, found.node_id))
        self.assertEqual(allocation.id, self.sdk.get_node("sdk-4").allocation_id)
        self.assertEqual(["mine"], [one.name for one in self.sdk.allocations(node="sdk-4", state="active")])
        self.assertEqual({"a": 1}, self.sdk.update_allocation(found, extra={"a": 1}).extra)
        self.sdk.delete_allocation("mine")
        self.assertIsNone(self.sdk.get_node("sdk-4").instance_id)

    def test_inspection_rules(self) -> None:
        actions = [{"op": "fail", "args": {"msg": "no"}}]
        rule = self.sdk.create_inspection_rule(actions=actions, conditions=[], priority=5)
        self.assertEqual(actions, self.sdk.get_inspection_rule(rule.id).actions)
        self.sdk.update_inspection_rule(rule, description="all fail")
        self.assertEqual(["all fail"], [found.description for found in self.sdk.inspection_rules()])
        self.sdk.delete_inspection_rule(rule.id)
        self.assertEqual([], list(self.sdk.inspection_rules()))

    def test_many_nodes_come_page_by_page(self) -> None:
        for number in range(7):
            self.node(name=f"n{number}")
        self.assertEqual([f"n{number}" for number in range(7)], [node.name for node in self.sdk.nodes(limit=2)])

    def test_a_refusal_carries_the_message(self) -> None:
        refusal = self.assertRaises(
            openstack.exceptions.BadRequestException, self.sdk.create_node, driver="no-such-type"
        )
        self.assertIn("no-such-type", str(refusal))

    def test_a_chunked_body_is_read_and_bounded(self) -> None:
        small = requests.post(f"{self.url}/v1/chassis", data=iter([b'{"extra":', b' {"a": 1}}']), timeout=60)
        self.assertEqual(201, small.status_code)
        large = requests.post(f"{self.url}/v1/chassis", data=iter([b" " * 2**20] * 2), timeout=60)
        self.assertEqual(413, large.status_code)
