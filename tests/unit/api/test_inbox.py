"""The inbox: machines that were discovered, what they can do to it, and what an operator makes of them."""

import copy
from typing import Any

import sqlalchemy as sa

from ingot.api import app
from ingot.common import clock
from ingot.db import inbox, models, nodes
from tests import api_case, database, notices, sql_counter

MAC, OTHER = "52:54:00:aa:bb:01", "52:54:00:aa:bb:02"
FOUND: dict[str, Any] = {
    "inventory": {
        "interfaces": [{"name": "eth0", "mac_address": MAC}, {"name": "eth1", "mac_address": OTHER.upper()}],
        "cpu": {"count": 8, "architecture": "x86_64"},
        "memory": {"physical_mb": 4096},
        "disks": [{"name": "/dev/sda", "size": 5_000_000}],
        "bmc_address": "10.9.9.9",
        "system_vendor": {"manufacturer": "Ingot", "product_name": "rack", "serial_number": "S1"},
        "boot": {"current_boot_mode": "uefi", "pxe_interface": f"01-{OTHER.replace(':', '-')}"},
    },
    "root_disk": {"name": "/dev/sda"},
    "logs": "x" * 2**20,
    "error": None,
}
_INBOX = models.table(models.InboxEntry)


class InboxCase(api_case.ApiCase):
    def configure(self) -> None:
        self.conf.set_override("enabled", True, group="auto_discovery")
        self.conf.set_override("driver", "fake-hardware", group="auto_discovery")

    def send(self, status: int = 202, **changes: Any) -> Any:
        """Send what was found in a machine; return the uuid of its entry, or the message of the refusal."""
        body = copy.deepcopy(FOUND)
        body["inventory"] |= changes
        answer = self.api("POST", "/v1/continue_inspection", body, version=None)
        self.assertEqual(status, answer.status, answer)
        return answer.json["uuid"] if status == 202 else answer.message

    def age(self, seconds: float = 31) -> None:
        """Have all entries be some seconds older."""
        self.db.write(sa.update(_INBOX).values(seen_at=clock.after(-seconds)))

    def list(self) -> Any:
        return self.good("GET", "/ingot/v1/inbox")["inbox"]

    def accept(self, uuid: str, **body: Any) -> Any:
        return self.good("POST", f"/ingot/v1/inbox/{uuid}/accept", body)


class Receiving(InboxCase):
    def test_a_machine_is_shown_with_what_it_says_of_itself(self) -> None:
        uuid = self.send()
        (entry,) = self.list()
        expected = {"uuid": uuid, "addresses": [MAC, OTHER], "boot_address": OTHER, "boot_mode": "uefi", "cpus": 8}
        expected |= {"cpu_arch": "x86_64", "memory_mb": 4096, "bmc_address": "10.9.9.9", "manufacturer": "Ingot"}
        expected |= {"disk_sizes": [5_000_000], "seen_count": 1}
        self.assertEqual(expected, {name: entry[name] for name in expected})
        self.assertNotIn("inventory", entry)
        whole = self.good("GET", f"/ingot/v1/inbox/{uuid}")
        self.assertEqual(FOUND["inventory"], whole["inventory"])
        self.assertEqual({"root_disk": {"name": "/dev/sda"}, "error": None}, whole["plugin_data"])

    def test_lists_have_the_fields_that_are_named(self) -> None:
        self.send()
        (entry,) = self.good("GET", "/ingot/v1/inbox?fields=uuid,addresses,cpus")["inbox"]
        self.assertEqual({"uuid", "addresses", "cpus"}, entry.keys())

    def test_the_same_cards_are_the_same_machine(self) -> None:
        first = self.send()
        cards = list(reversed(FOUND["inventory"]["interfaces"]))
        self.age()
        self.assertEqual(first, self.send(interfaces=cards, memory={"physical_mb": 1}))
        (entry,) = self.list()
        self.assertEqual((2, 1), (entry["seen_count"], entry["memory_mb"]))
        self.assertNotEqual(first, self.send(interfaces=cards[:1]))

    def test_a_machine_that_calls_without_end_is_written_twice_a_minute(self) -> None:
        uuid = self.send()
        entry = self.good("GET", f"/ingot/v1/inbox/{uuid}")
        self.assertEqual(uuid, self.send(memory={"physical_mb": 1}))
        self.assertEqual(entry, self.good("GET", f"/ingot/v1/inbox/{uuid}"))
        self.age()
        self.send(memory={"physical_mb": 1})
        self.assertEqual([(2, 1)], [(one["seen_count"], one["memory_mb"]) for one in self.list()])

    def test_while_discovery_is_off_nothing_is_kept(self) -> None:
        self.conf.set_override("enabled", False, group="auto_discovery")
        self.send(404)
        self.assertEqual([], self.list())

    def test_machines_of_nodes_are_not_discovered(self) -> None:
        node = database.make_node(self.db, name="n")
        database.make_port(self.db, node, address=MAC, pxe_enabled=False)
        self.send(404)
        another = database.make_node(self.db, name="m")
        database.make_port(self.db, another, address=OTHER)
        self.assertIn(MAC, self.send(404))
        self.assertEqual([], self.list())

    def test_what_a_hostile_machine_can_take_is_limited(self) -> None:
        self.conf.set_override("max_entries", 2, group="auto_discovery")
        known = self.send()
        self.send(interfaces=[{"mac_address": "52:54:00:00:00:01"}])
        message = self.send(409, interfaces=[{"mac_address": "52:54:00:00:00:02"}])
        self.assertIn("max_entries", message)
        self.assertEqual(known, self.send())
        self.conf.set_override("max_entry_size", 16, group="auto_discovery")
        self.assertIn("max_entry_size", self.send(400, padding="x" * 17000))
        self.assertEqual(2, len(self.list()))

    def test_inventories_of_any_form_leave_facts_of_a_known_form(self) -> None:
        odd: list[Any] = [None, [], "x" * 100_000, {"a": 1}, -1, 2**70, True, {"size": 1}]
        for value in odd:
            self.age()
            self.send(cpu=value, memory={"physical_mb": value}, disks=value, boot=value, bmc_address=value)
            (entry,) = self.list()
            for name in ("cpu_arch", "memory_mb", "bmc_address", "boot_mode"):
                self.assertTrue(entry[name] is None or len(str(entry[name])) <= 255, (name, value))
        for cards in (None, "x", [1], [{"mac_address": 1}], []):
            self.send(404, interfaces=cards)

    def test_it_costs_few_statements(self) -> None:
        self.send()
        with sql_counter.counting(self.db) as counted:
            self.send()
        self.assertLessEqual(len(counted), 5, counted)


class Notices(InboxCase):
    def configure(self) -> None:
        super().configure()
        notices.switch_on(self.conf)

    def test_a_node_that_is_accepted_has_the_notices_of_any_other_and_of_its_ports(self) -> None:
        uuid = self.send(boot={})
        self.accept(uuid, name="first")
        sent = notices.take(self.http.application.extensions[app.NOTIFIER])
        types = [message["event_type"].removeprefix("baremetal.") for message in sent]
        of_a_port = ["port.create.start", "port.create.end"]
        self.assertEqual(["node.create.start", "node.create.end", *of_a_port, *of_a_port], types)
        node, first, second = (notices.data(sent[number]) for number in (1, 3, 5))
        self.assertEqual((uuid, "first", "enroll"), (node["uuid"], node["name"], node["provision_state"]))
        self.assertEqual(
            [(MAC, uuid), (OTHER, uuid)], [(port["address"], port["node_uuid"]) for port in (first, second)]
        )

    def test_what_is_refused_ends_in_an_error(self) -> None:
        uuid = self.send()
        database.make_node(self.db, name="taken")
        self.refused(409, "POST", f"/ingot/v1/inbox/{uuid}/accept", {"name": "taken"})
        types = [message["event_type"] for message in notices.take(self.http.application.extensions[app.NOTIFIER])]
        self.assertEqual(["baremetal.node.create.start", "baremetal.node.create.error"], types)


class Accepting(InboxCase):
    def test_a_node_with_port_inventory_and_the_uuid_that_the_agent_knows(self) -> None:
        uuid = self.send()
        node = self.accept(uuid, name="first", driver_info={"fake": "x"}, properties={"cpus": 4}, resource_class="rc")
        self.assertEqual((uuid, "first", "enroll"), (node["uuid"], node["name"], node["provision_state"]))
        self.assertEqual(
            {"cpu_arch": "x86_64", "cpus": 4, "memory_mb": 4096, "capabilities": "boot_mode:uefi"}, node["properties"]
        )
        self.assertEqual(("fake-hardware", "rc"), (node["driver"], node["resource_class"]))
        self.assertNotIn("10.9.9.9", str(node["driver_info"]))  # it may be another's
        ports = self.good("GET", f"/v1/nodes/{uuid}/ports")["ports"]
        self.assertEqual([OTHER], [port["address"] for port in ports])
        self.assertEqual(FOUND["inventory"], self.good("GET", f"/v1/nodes/{uuid}/inventory")["inventory"])
        self.assertEqual([], self.list())

    def test_a_machine_that_does_not_say_what_it_booted_from_gets_a_port_for_each_card(self) -> None:
        uuid = self.send(boot={})
        self.accept(uuid)
        ports = self.good("GET", f"/v1/nodes/{uuid}/ports")["ports"]
        self.assertEqual([MAC, OTHER], sorted(port["address"] for port in ports))

    def test_what_is_refused_changes_nothing(self) -> None:
        uuid, path = self.send(), "/ingot/v1/inbox/{}/accept"
        database.make_node(self.db, name="taken")
        for status, body in (
            (409, {"name": "taken"}),
            (400, {"driver": "no-such-driver"}),
            (400, {"nonsense": 1}),
            (400, {"uuid": "5f1f6c8e-7d5e-4f0e-8f39-3d6f0a1b2c3d"}),
            (400, {"properties": 1}),
        ):
            self.refused(status, "POST", path.format(uuid), body)
        self.conf.set_override("driver", None, group="auto_discovery")
        self.assertIn("driver", self.refused(400, "POST", path.format(uuid), {}))
        self.assertEqual([uuid], [entry["uuid"] for entry in self.list()])
        self.assertEqual(["taken"], [node["name"] for node in self.good("GET", "/v1/nodes")["nodes"]])
        self.refused(404, "POST", path.format("5f1f6c8e-7d5e-4f0e-8f39-3d6f0a1b2c3d"), {})
        self.refused(400, "POST", path.format("nonsense"), {})

    def test_a_card_of_another_node_is_refused_with_everything(self) -> None:
        uuid = self.send()
        node = database.make_node(self.db, name="n")
        database.make_port(self.db, node, address=OTHER)
        self.assertIn(OTHER, self.refused(409, "POST", f"/ingot/v1/inbox/{uuid}/accept", {}))
        self.assertEqual([uuid], [entry["uuid"] for entry in self.list()])
        with self.db.single() as connection:
            self.assertEqual(1, connection.execute(sa.select(sa.func.count(nodes.NODES.c.id))).scalar())

    def test_a_machine_that_was_deleted_comes_again(self) -> None:
        uuid = self.send()
        self.good("DELETE", f"/ingot/v1/inbox/{uuid}")
        self.refused(404, "GET", f"/ingot/v1/inbox/{uuid}")
        self.assertNotEqual(uuid, self.send())

    def test_those_that_have_become_nodes_by_other_ways_leave(self) -> None:
        self.send()
        another = self.send(interfaces=[{"mac_address": "52:54:00:00:00:01"}])
        database.make_port(self.db, database.make_node(self.db, name="n"), address=OTHER)
        self.assertEqual(1, inbox.prune(self.db, 14))
        self.assertEqual([another], [entry["uuid"] for entry in self.list()])

    def test_those_that_have_gone_silent_leave(self) -> None:
        self.send()
        self.assertEqual(0, inbox.prune(self.db, 14))
        self.age(15 * 24 * 3600)
        self.assertEqual(1, inbox.prune(self.db, 14))
        self.assertEqual([], self.list())
