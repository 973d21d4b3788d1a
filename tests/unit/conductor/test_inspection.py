"""What becomes of an inventory: hooks and inspection rules, all or nothing."""

import base64
import http.server
import threading
import time
from typing import Any
from unittest import mock

import fixtures
import sqlalchemy as sa
from testtools import matchers

from ingot.api.resources import inspection_rules as api_rules
from ingot.common import states
from ingot.conductor.inspection.hooks import basics, loading
from ingot.conductor.inspection.operators import ACTIONS, TESTS
from ingot.conductor.inspection.rules import PHASE
from ingot.db import inventory, models, nodes, ports
from tests import conductor_case, database

ETH0, ETH1, ETH2 = (f"52:54:00:00:00:0{number}" for number in (1, 2, 3))

FOUND: dict[str, Any] = {
    "interfaces": [
        {"name": "eth0", "mac_address": ETH0.upper(), "ipv4_address": "10.0.0.9", "ipv6_address": "fe80::1%eth0"},
        {"name": "eth1", "mac_address": ETH1, "ipv4_address": None},
        {"name": "lo", "mac_address": "00:00:00:00:00:00", "ipv4_address": "127.0.0.1"},
        {"name": "ib0", "mac_address": "80:00:00:48:fe:80:00:00:00:00:00:00:7c:fe:90:03:00:29:26:52"},
        "noise",
    ],
    "cpu": {"architecture": "x86_64", "count": 8, "model_name": "Xeon"},
    "memory": {"physical_mb": 2048, "total": 2100000000},
    "boot": {"current_boot_mode": "uefi", "pxe_interface": ETH0},
    "system_vendor": {"manufacturer": "Dell Inc.", "product_name": "R640", "serial_number": "7"},
    "bmc_address": "192.0.2.7",
    "disks": [{"name": "/dev/sda", "size": 10}, {"name": "/dev/sdb", "size": 20}],
}


class InspectionCase(conductor_case.ConductorCase):
    def inspect(self, found: dict[str, Any] | None = None, beside: Any = None, **columns: Any) -> models.Node:
        """Return a node after an inspection that has found something."""
        self.node = database.make_node(self.db, provision_state=states.MANAGEABLE, **columns)
        for address in self.known:
            self.make_known(address)
        services = self.conductor.services
        services.inspection_hooks = loading.Hooks(self.conf)  # tests set options after the conductor was made
        fake = services.hardware.interface("inspect", "fake")

        def tells(task: Any) -> None:
            inventory.save(self.db, task.node.id, FOUND if found is None else found, beside or {})

        with mock.patch.object(fake, "inspect_hardware", tells):
            return self.run_flow(self.node, "inspect", states.INSPECTING)

    known: tuple[str, ...] = ()

    def make_known(self, address: str) -> None:
        database.make_port(self.db, self.node, address=address)

    def ports(self) -> dict[str, models.Record]:
        return {port.address: port for port in ports.PORTS.list_of_node(self.db, self.node.id)}

    def plugin_data(self) -> Any:
        return inventory.get(self.db, self.node).plugin_data

    def rule(self, actions: list[Any], conditions: list[Any] | None = None, **values: Any) -> None:
        rule = {"actions": actions, "conditions": conditions or [], "phase": PHASE, **values}
        inventory.RULES.create(self.db, rule)


class TestHooks(InspectionCase):
    def test_the_usual_ones(self) -> None:
        node = self.inspect(properties={"local_gb": 5})
        self.assertEqual((states.MANAGEABLE, None), (node.provision_state, node.last_error))
        self.assertEqual({"local_gb": 5, "cpu_arch": "x86_64", "cpus": 8, "memory_mb": 2048}, node.properties)
        self.assertEqual([ETH0], list(self.ports()))
        self.assertTrue(self.ports()[ETH0].pxe_enabled)
        self.assertEqual({"eth0", "eth1"}, set(self.plugin_data()["all_interfaces"]))
        self.assertEqual((["eth0"], [ETH0]), (list(self.plugin_data()["valid_interfaces"]), self.plugin_data()["macs"]))
        self.assertEqual(
            [("inspect_hardware", "done"), ("apply_inventory", "done")],
            [(row.step, row.state) for row in self.step_runs(node)],
        )

    def test_which_cards_get_ports(self) -> None:
        unknown = {**FOUND, "boot": {"current_boot_mode": "uefi", "pxe_interface": None}}
        for option, found, beside, expected in (
            ("all", FOUND, {}, {ETH0: True, ETH1: False}),
            ("active", FOUND, {}, {ETH0: True}),
            ("pxe", unknown, {}, {ETH0: True}),
            ("pxe", unknown, {"boot_interface": f"01-{ETH1.replace(':', '-')}"}, {ETH1: True}),
            ("all", unknown, {}, {ETH0: True, ETH1: True}),
            ("disabled", FOUND, {}, {}),
        ):
            self.conf.set_override("add_ports", option, group="inspector")
            self.inspect(found, beside)
            self.assertEqual(expected, {address: port.pxe_enabled for address, port in self.ports().items()}, option)
            with self.db.single() as connection:  # addresses are unique
                connection.execute(sa.delete(models.table(models.Port)))

    def test_a_node_that_gets_no_port_is_named(self) -> None:
        silent = {"interfaces": [{"name": "eth0", "mac_address": ETH0}]}
        for option, known, expected in (("active", (), 1), ("active", (ETH0,), 0), ("disabled", (), 0)):
            self.known = known
            self.conf.set_override("add_ports", option, group="inspector")
            logger = self.useFixture(fixtures.FakeLogger())
            self.assertEqual(states.MANAGEABLE, self.inspect(silent).provision_state)
            text = "none of the 1 network cards that were found fits [inspector] add_ports = active"
            self.assertEqual(expected, logger.output.count(text))
            with self.db.single() as connection:
                connection.execute(sa.delete(models.table(models.Port)))

    def test_ports_that_are_known(self) -> None:
        self.known = (ETH0, ETH2)
        for update, expected in ((True, {ETH0: True, ETH2: False}), (False, {ETH0: True, ETH2: True})):
            self.conf.set_override("update_pxe_enabled", update, group="inspector")
            self.inspect()
            self.assertEqual(expected, {address: port.pxe_enabled for address, port in self.ports().items()})
            with self.db.single() as connection:
                connection.execute(sa.delete(models.table(models.Port)))

    def test_a_port_of_another_node_is_left_alone(self) -> None:
        database.make_port(self.db, database.make_node(self.db), address=ETH0)
        self.assertIsNone(self.inspect().last_error)
        self.assertEqual({}, self.ports())

    def test_the_agents_error_is_shown_and_its_logs_are_kept(self) -> None:
        logs = base64.b64encode(b"a tar file").decode()
        node = self.inspect(FOUND, {"error": "no disk\0", "logs": logs})
        self.assertEqual(states.INSPECTFAIL, node.provision_state)
        self.assertIn("in step inspect.apply_inventory", node.last_error)
        self.assertIn("no disk", node.last_error)
        table = models.table(models.AgentLog)
        with self.db.single() as connection:
            kept = models.AgentLog.all_of(connection.execute(sa.select(table).where(table.c.node_id == node.id)))
        self.assertEqual([(b"a tar file", "inspect")], [(one.content, one.flow) for one in kept])
        self.assertEqual({"error": "no disk\0"}, self.plugin_data())
        self.assertEqual({}, node.properties)

    def test_a_hook_with_an_error_is_named_and_the_logs_are_kept(self) -> None:
        logs = base64.b64encode(b"a tar file").decode()
        with mock.patch.object(basics.RamdiskError, "run", side_effect=KeyError("cpu")):
            node = self.inspect(FOUND, {"logs": logs})
        self.assertEqual(states.INSPECTFAIL, node.provision_state)
        self.assertIn("the inspection hook RamdiskError has an error: KeyError: 'cpu'", node.last_error)
        self.assertNotIn("logs", self.plugin_data())
        self.assertEqual([b"a tar file"], self.db.read_column(sa.select(models.table(models.AgentLog).c.content)))

    def test_only_so_many_ports_are_created(self) -> None:
        self.conf.set_override("add_ports", "all", group="inspector")
        self.conf.set_override("max_ports", 1, group="inspector")
        node = self.inspect()
        self.assertEqual((states.INSPECTFAIL, {}), (node.provision_state, self.ports()))
        for part in ("2 network cards", "[inspector] max_ports is 1", "add_ports = all"):
            self.assertIn(part, node.last_error)

    def test_facts_that_are_none(self) -> None:
        hooks = ["ramdisk-error", "validate-interfaces", "ports", "architecture", "cpus", "memory", "boot-mode"]
        self.conf.set_override("hooks", hooks, group="inspector")
        for part, facts in (
            ("cpu.architecture", {"cpu": {"architecture": "x" * 256}}),
            ("cpu.count", {"cpu": {"count": [1]}}),
            ("memory.physical_mb", {"memory": {"physical_mb": {"a": 1}}}),
            ("boot.current_boot_mode", {"boot": {"current_boot_mode": "uefi,root:yes"}}),
        ):
            node = self.inspect({**FOUND, **facts})
            self.assertIn(f"the inventory's {part}", node.last_error)
            self.assertEqual({}, node.properties)

    def test_a_machine_without_network_cards_is_refused(self) -> None:
        for found in ({}, {"interfaces": None}, {"interfaces": [{"name": "lo", "mac_address": ETH0}]}):
            self.assertIn("network card", self.inspect(found).last_error)

    def test_an_inventory_of_before_is_not_taken_for_that_of_now(self) -> None:
        self.inspect()
        after = self.run_flow(self.node, "inspect", states.INSPECTING)  # the interface finds no inventory this time
        self.assertEqual((states.MANAGEABLE, 8), (after.provision_state, after.properties["cpus"]))
        self.rule([{"op": "fail", "args": {"msg": "never"}}])
        self.assertIsNone(self.run_flow(self.node, "inspect", states.INSPECTING).last_error)

    def test_the_boot_mode(self) -> None:
        self.conf.set_override("hooks", ["boot-mode"], group="inspector")
        node = self.inspect(properties={"capabilities": "a:b"})
        self.assertEqual({"capabilities": "a:b,boot_mode:uefi"}, node.properties)


def action(op: str, **args: Any) -> dict[str, Any]:
    return {"op": op, "args": args}


class TestRules(InspectionCase):
    def test_what_the_api_takes_can_be_run(self) -> None:
        self.assertEqual((set(api_rules.ACTIONS), PHASE), (set(ACTIONS), api_rules.PHASE))
        self.assertEqual(set(api_rules.CONDITIONS), {f"{sign}{name}" for name in TESTS for sign in ("", "!")})

    def test_conditions(self) -> None:
        cpus = "{inventory[cpu][count]}"
        for op, args, expected, *more in (
            ("eq", {"values": [cpus, 8]}, True),
            ("eq", {"values": [cpus, "8"]}, True),
            ("eq", [cpus, 8], True),
            ("eq", [[cpus, 9]], False),
            ("eq", ["{node.driver}", "fake-hardware"], True),
            ("eq", {"values": ["08", "8"], "force_strings": True}, False),
            ("!eq", {"values": [cpus, 8]}, False),
            ("lt", {"values": [cpus, 16]}, True),
            ("lt", {"values": ["8", "16"]}, True),
            ("gt", {"values": [16, cpus, 4]}, True),
            ("gt", {"values": [16, cpus, 8]}, False),
            ("is-empty", {"value": "{inventory[interfaces][1][ipv4_address]}"}, True),
            ("is-empty", {"value": cpus}, False),
            ("in-net", {"address": "{inventory[bmc_address]}", "subnet": "192.0.2.0/24"}, True),
            ("in-net", ["198.51.100.1", "192.0.2.0/24"], False),
            ("matches", {"value": "{inventory[system_vendor][manufacturer]}", "regex": "(?i)dell.{4,5}"}, True),
            ("matches", {"value": "Dell Inc.", "regex": "Dell"}, False),
            ("contains", {"value": "{inventory[system_vendor][manufacturer]}", "regex": "(?i)dell"}, True),
            ("one-of", {"value": cpus, "values": [4, 8]}, True),
            ("one-of", {"value": cpus, "values": [4]}, False),
            ("is-none", {"value": "{inventory[nothing][here]}"}, True),
            ("is-none", {"value": cpus}, False),
            ("is-true", {"value": "{plugin_data[ready]}"}, True),
            ("is-true", {"value": "Yes"}, True),
            ("is-true", {"value": "{plugin_data[missing]}"}, False),
            ("is-false", {"value": 0}, True),
            ("is-false", {"value": "no"}, True),
            ("is-false", {"value": "perhaps"}, False),
            ("eq", ["{item}", cpus], True, [4, 8], "any"),
            ("eq", ["{item}", cpus], False, [4, 8], "all"),
            ("eq", ["{item}", cpus], False, [4, 8], "first"),
            ("eq", ["{item}", cpus], True, [4, 8], "last"),
            ("eq", ["{item}", cpus], True, [4, 8], None),
            ("eq", ["{item[key]}", "a"], True, {"a": 1}, "all"),
            ("eq", ["{item}", cpus], False, [], "first"),
        ):
            inventory.delete_all_rules(self.db)
            loop = {"loop": more[0], **({"multiple": more[1]} if more[1] else {})} if more else {}
            self.rule([action("set-attribute", path="/extra/met", value=True)], [{"op": op, "args": args, **loop}])
            node = self.inspect(beside={"ready": True})
            self.assertIsNone(node.last_error)
            self.assertEqual(expected, node.extra.get("met", False), (op, args, more))

    def test_actions_on_the_node(self) -> None:
        for actions, expected in (
            ([action("set-attribute", path="/extra/a/b", value="{inventory[cpu][count]}")], {"extra": {"a": {"b": 8}}}),
            ([action("set-attribute", path="extra.a", value="rack {node.name:>4}: {{}}")],
             {"extra": {"a": "rack  n-7: {}"}}),
            ([action("set-attribute", path="/extra", value={"x": ["{inventory[bmc_address]}"]})],
             {"extra": {"x": ["192.0.2.7"]}}),
            ([{"op": "set-attribute", "args": ["/resource_class", "big"]}], {"resource_class": "big"}),
            ([action("extend-attribute", path="/extra/l", value=1, unique=unique) for unique in (False, True, False)],
             {"extra": {"l": [1, 1]}}),
            ([action("del-attribute", path="/properties/cpus")],
             {"properties": {"cpu_arch": "x86_64", "memory_mb": 2048}}),
            ([action("del-attribute", path="/description")], {"description": None}),
            ([action("set-capability", name="c", value=1), action("set-capability", name="d", value=2),
              action("unset-capability", name="c"), action("unset-capability", name="e")],
             {"properties": {"cpu_arch": "x86_64", "cpus": 8, "memory_mb": 2048, "capabilities": "d:2"}}),
            ([{**action("set-attribute", path="{item[path]}", value="{item[value]}"),
               "loop": [{"path": "/extra/a", "value": 1}, {"path": "/extra/b", "value": "{inventory[bmc_address]}"}]}],
             {"extra": {"a": 1, "b": "192.0.2.7"}}),
        ):  # fmt: skip
            inventory.delete_all_rules(self.db)
            self.rule(actions)
            node = self.inspect(name="n-7", description="old")
            self.assertIsNone(node.last_error)
            self.assertEqual(expected, {name: getattr(node, name) for name in expected}, actions)
            self.db_forget()

    def db_forget(self) -> None:
        table = models.table(models.Node)
        with self.db.single() as connection:
            connection.execute(sa.update(table).where(table.c.id == self.node.id).values(name=None))
            connection.execute(sa.delete(models.table(models.Port)))

    def test_actions_on_what_belongs_to_it(self) -> None:
        self.known = (ETH1,)
        self.rule(
            [
                action("add-trait", name="CUSTOM_FAST"),
                action("add-trait", name="CUSTOM_SLOW"),
                action("remove-trait", name="CUSTOM_SLOW"),
                action("set-plugin-data", path="a/b", value=1),
                action("extend-plugin-data", path="/l", value=2),
                action("unset-plugin-data", path="/secret"),
                action("set-port-attribute", port_id=ETH1.upper(), path="/physical_network", value="blue"),
                action("extend-port-attribute", port_id=ETH0, path="/extra/seen", value="now"),
                action("set-port-attribute", port_id=ETH0, path="/extra/gone", value="now"),
                action("del-port-attribute", port_id=ETH0, path="/extra/gone"),
                action("log", msg="found {node.uuid}", level="warning"),
            ]
        )
        node = self.inspect(beside={"secret": 1})
        self.assertIsNone(node.last_error)
        self.assertEqual(["CUSTOM_FAST"], nodes.traits_by_node(self.db, [node.id]).get(node.id, []))
        kept = self.plugin_data()
        self.assertEqual(({"b": 1}, [2], False), (kept["a"], kept["l"], "secret" in kept))
        ports = self.ports()
        self.assertEqual("blue", ports[ETH1].physical_network)
        self.assertEqual({"seen": ["now"]}, ports[ETH0].extra)

    def test_priority_decides_the_order_and_what_comes_first_is_seen_by_what_follows(self) -> None:
        seen = [{"op": "eq", "args": ["{node.extra[who]}", "first"]}]
        self.rule([action("set-attribute", path="/extra/who", value="second")], seen, priority=5)
        self.rule([action("set-attribute", path="/extra/who", value="first")], priority=10)
        self.rule([action("set-attribute", path="/extra/who", value="never")], seen, priority=1)
        self.assertEqual({"who": "second"}, self.inspect().extra)

    def test_a_failure_names_the_rule_and_leaves_nothing_behind(self) -> None:
        for bad, expected in (
            (action("fail", msg="not {inventory[system_vendor][product_name]}"), "not R640"),
            (action("set-attribute", path="/provision_state", value="active"), "begins with one of: automated_clean"),
            (action("set-attribute", path="/extra", value=5), "must be an object"),
            (action("set-attribute", path="/description", value="a\0b"), "without NUL"),
            (action("set-attribute", path="/extra/x", value="{inventory[nope]}"), "there is no {inventory[nope]}"),
            (action("set-attribute", path="/", value=1), "path"),
            (action("set-attribute", path="/extra/x", value=1, colour=2), "colour"),
            (action("extend-attribute", path="/properties/cpus", value=1), "must be a list"),
            (action("set-attribute", path="/properties/cpus/x", value=1), "is no object"),
            (action("add-trait", name="fast"), "CUSTOM_"),
            (action("set-port-attribute", port_id=ETH2, path="/extra/a", value=1), ETH0),
            (action("log", msg="x", level="loud"), "loud"),
            (action("api-call", url="http://127.0.0.1:1/", retries=0), "127.0.0.1"),
            (action("api-call", url="http://127.0.0.1:1/", timeout=3600), "timeout"),
        ):
            inventory.delete_all_rules(self.db)
            self.rule([action("set-attribute", path="/extra/a", value=1), bad], description="the strict one")
            node = self.inspect()
            self.assertEqual((states.INSPECTFAIL, {}, {}), (node.provision_state, node.extra, node.properties))
            self.assertIn(f"'the strict one' ({self.only_rule().uuid}), action 2 ({bad['op']}): ", node.last_error)
            self.assertIn(expected, node.last_error)
            self.assertEqual({}, self.ports())

    def test_a_condition_that_makes_no_sense_is_named(self) -> None:
        self.rule([action("fail", msg="x")], [{"op": "in-net", "args": ["moon", "192.0.2.0/24"]}])
        last_error = self.inspect().last_error
        self.assertIn(f"inspection rule {self.only_rule().uuid}, condition 1 (in-net): ValueError: 'moon'", last_error)

    def test_a_stranger_cannot_stop_the_process_with_what_a_regular_expression_is_matched_with(self) -> None:
        """Python's own would go on for longer than the universe is old, without letting another thread run."""
        for operator in ("matches", "contains"):
            condition = {"op": operator, "args": ["{inventory[system_vendor][product_name]}", r"([\w-]+\s?)+\d"]}
            self.rule([{"op": "set-attribute", "args": {"path": "/extra/met", "value": True}}], [condition])
        node = self.inspect({**FOUND, "system_vendor": {"product_name": "a" * 100_000 + "!"}})
        self.assertEqual((states.MANAGEABLE, None, {}), (node.provision_state, node.last_error, node.extra))

    def test_a_rule_of_before_whose_regular_expression_cannot_be_matched_so_is_named(self) -> None:
        self.rule([{"op": "fail", "args": ["no"]}], [{"op": "matches", "args": ["a", "(?=a)."]}], description="old")
        node = self.inspect()
        self.assertEqual(states.INSPECTFAIL, node.provision_state)
        for part in ("'old'", "condition 1 (matches)", "Invalid regex", "RE2"):
            self.assertIn(part, node.last_error)

    def test_capabilities_of_any_form_are_read_quickly(self) -> None:
        self.rule([{"op": "set-capability", "args": ["a", "b"]}])
        node = self.inspect(properties={"capabilities": f"{' ' * 50_000}, boot_mode:uefi,junk,:x, c:d:e"})
        self.assertEqual("boot_mode:uefi,c:d:e,a:b", node.properties["capabilities"])

    def test_a_sensitive_rule_tells_nothing(self) -> None:
        self.rule([action("fail", msg="the password is sesame")], sensitive=True)
        last_error = self.inspect().last_error
        self.assertIn("the rule is sensitive", last_error)
        self.assertNotIn("sesame", last_error)

    def test_passwords_of_bmcs_are_not_shown_to_rules(self) -> None:
        self.rule([action("fail", msg="{node.driver_info[ipmi_address]} {node.driver_info[ipmi_password]}")])
        node = self.inspect(driver_info={"ipmi_password": "sesame", "ipmi_address": "bmc"})
        self.assertIn("bmc ******", node.last_error)

    def only_rule(self) -> models.Node:
        return inventory.list_rules(self.db, PHASE)[0]

    def answered(self, answers: list[dict[str, str]]) -> tuple[str, list[tuple[str, str | None]]]:
        """Start a server that gives these answers in turn.

        :param answers: the headers of each answer; the last one is good, those before tell to try again.
        :returns: its URL, and what it was asked.
        """
        asked: list[tuple[str, str | None]] = []

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                asked.append((self.path, self.headers["X-Who"]))
                headers = answers[len(asked) - 1]
                last = 302 if "Location" in headers else 200
                self.send_response(last if len(asked) == len(answers) else 503)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.end_headers()

            def log_message(self, format: str, *args: Any) -> None:
                """Stay silent."""

        server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
        self.addCleanup(server.server_close)
        threading.Thread(target=lambda: [server.handle_request() for _ in answers], daemon=True).start()
        return f"http://127.0.0.1:{server.server_address[1]}", asked

    def test_a_call_of_an_api(self) -> None:
        url, asked = self.answered([{"Content-Length": "0"}])
        headers = {"X-Who": "{inventory[cpu][count]} CPUs"}
        self.rule([action("api-call", url=f"{url}/found/{{node.uuid}}", headers=headers)])
        self.assertIsNone(self.inspect().last_error)
        self.assertEqual([(f"/found/{self.node.uuid}", "8 CPUs")], asked)

    def test_a_called_api_redirects_no_client(self) -> None:
        url, _asked = self.answered([{"Content-Length": "0", "Location": "http://198.51.100.1/"}])
        self.rule([action("api-call", url=url, retries=0)])
        self.assertIn("leads to http://198.51.100.1/", self.inspect().last_error)

    def test_a_called_api_does_not_say_how_long_a_worker_waits(self) -> None:
        url, asked = self.answered([{"Retry-After": "20", "Content-Length": "0"}, {"Content-Length": "1000000"}])
        self.rule([action("api-call", url=url, backoff_factor=0)])
        began = time.monotonic()
        self.assertIsNone(self.inspect().last_error)
        self.assertEqual(2, len(asked))
        self.assertThat(time.monotonic() - began, matchers.LessThan(15))
