"""Agents and machines: lookup, heartbeat, boot scripts."""

import logging
from typing import Any

import fixtures
import sqlalchemy as sa

from ingot.common import clock, states
from ingot.db import agents, models, nodes
from tests import api_case, database, sql_counter

MAC = "52:54:00:aa:bb:cc"


class AgentCase(api_case.ApiCase):
    def setUp(self) -> None:
        super().setUp()
        secrets = {"instance_info": {"image_url": "http://x?secret"}, "driver_info": {"ipmi_password": "x"}}
        self.known = database.make_node(self.db, name="n", provision_state=states.DEPLOYWAIT, **secrets)
        database.make_port(self.db, self.known, address=MAC)

    def put(self, **values: Any) -> None:
        with self.db.single() as connection:
            connection.execute(sa.update(nodes.NODES).values(values))

    @property
    def row(self) -> models.Node:
        return nodes.get(self.db, self.known.uuid)


class Lookup(AgentCase):
    def test_by_any_of_the_addresses(self) -> None:
        found = self.good("GET", f"/v1/lookup?addresses=00:11:22:33:44:55,{MAC.upper()},not-a-mac", version="1.62")
        self.assertEqual(self.known.uuid, found["node"]["uuid"])
        self.assertEqual({"image_url": "******"}, found["node"]["instance_info"])
        self.assertNotIn("driver_info", found["node"])
        self.assertEqual((300, None), (found["config"]["heartbeat_timeout"], found["config"]["metrics"]))

    def test_the_token_is_not_given_out_any_more_once_an_agent_has_shown_it(self) -> None:
        lookup = f"/v1/lookup?node_uuid={self.known.uuid}"
        first = self.good("GET", lookup)
        self.assertEqual(self.row.agent_token, first["config"]["agent_token"])
        self.assertEqual(43, len(first["config"]["agent_token"]))
        self.put(agent_url="https://10.0.0.9:9999")
        second = self.good("GET", lookup)
        self.assertEqual("******", second["config"]["agent_token"])
        self.assertEqual("******", second["node"]["driver_internal_info"]["agent_secret_token"])
        self.assertEqual(self.row.agent_token, first["config"]["agent_token"])

    def test_another_one_while_an_agent_works_has_the_conductor_ask_that(self) -> None:
        lookup = f"/v1/lookup?node_uuid={self.known.uuid}"
        self.put(agent_token="t" * 43, agent_url="https://10.0.0.9:9999", step_state="waiting", due_at=clock.after(60))
        self.good("GET", lookup)
        self.assertEqual([], self.conductor.wakeups)
        self.put(step_state="watching")
        self.good("GET", lookup)
        self.assertLessEqual(self.row.due_at, clock.now())
        self.good("GET", lookup)
        self.assertEqual(["lookup"], self.conductor.wakeups)

    def test_only_while_an_agent_is_expected(self) -> None:
        for state in states.ALL:
            self.put(provision_state=state)
            answer = self.api("GET", f"/v1/lookup?node_uuid={self.known.uuid}")
            self.assertEqual(200 if state in states.LOOKUP_ALLOWED else 404, answer.status, state)

    def test_what_is_refused_tells_nothing(self) -> None:
        self.put(provision_state=states.ACTIVE)
        in_wrong_state = self.refused(404, "GET", f"/v1/lookup?node_uuid={self.known.uuid}")
        unknown = self.refused(404, "GET", "/v1/lookup?addresses=00:11:22:33:44:55")
        self.assertEqual(unknown, in_wrong_state)
        for query in ("", "?addresses=rubbish", "?node_uuid=rubbish", f"?addresses={MAC}&colour=red"):
            self.refused(400, "GET", f"/v1/lookup{query}")
        self.refused(404, "GET", f"/v1/lookup?addresses={MAC}", version="1.21")


class Heartbeat(AgentCase):
    def setUp(self) -> None:
        super().setUp()
        self.body = {
            "callback_url": "https://10.0.0.9:9999/",
            "agent_version": "13.0.0",
            "agent_token": self.good("GET", f"/v1/lookup?addresses={MAC}")["config"]["agent_token"],
            "agent_verify_ca": "-----BEGIN CERTIFICATE-----",
        }

    def beat(self, version: str = "1.68", **changes: Any) -> api_case.Answer:
        body = {name: value for name, value in {**self.body, **changes}.items() if value is not None}
        return self.api("POST", f"/v1/heartbeat/{self.known.uuid}", body, version)

    def test_it_is_written_and_the_waiting_conductor_notified(self) -> None:
        answer = self.beat()
        self.assertEqual((202, ""), (answer.status, answer.text))
        row = self.row
        self.assertEqual(("https://10.0.0.9:9999", "13.0.0"), (row.agent_url, row.agent_version))
        self.assertIsNotNone(row.agent_last_heartbeat)
        self.assertIsNotNone(row.due_at)
        self.assertEqual(["heartbeat"], self.conductor.wakeups)
        shown = self.good("GET", "/v1/nodes/n")["driver_internal_info"]
        self.assertEqual(("https://10.0.0.9:9999", "******"), (shown["agent_url"], shown["agent_secret_token"]))

    def test_one_that_needs_nothing_costs_two_statements_and_no_message(self) -> None:
        self.put(provision_state=states.DEPLOYING)
        with sql_counter.counting(self.db) as counted:
            self.assertEqual(202, self.beat().status)
        self.assertEqual((2, 0), (len(counted), counted.commits), counted)
        self.assertEqual([], self.conductor.asked)

    def test_a_wait_that_begins_meanwhile_is_ended_at_once(self) -> None:
        self.put(provision_state=states.DEPLOYING, flow="deploy", reservation="conductor-1")
        checked = agents.read_for_heartbeat

        def wait(*args: Any) -> Any:
            node = checked(*args)
            self.put(provision_state=states.DEPLOYWAIT, reservation=None)
            return node

        self.patch(agents, "read_for_heartbeat", wait)
        self.assertEqual(202, self.beat().status)
        self.assertIsNotNone(self.row.due_at)
        self.assertEqual(["heartbeat"], self.conductor.wakeups)

    def test_agents_that_call_all_the_time_cost_one_statement_and_no_message(self) -> None:
        self.beat()
        with sql_counter.counting(self.db) as counted:
            self.assertEqual(202, self.beat().status)
        self.assertEqual((1, 0), (len(counted), counted.commits), counted)
        self.assertEqual(["heartbeat"], self.conductor.wakeups)

    def test_a_wrong_or_missing_token(self) -> None:
        self.assertIn("required", self.beat(agent_token=None).message)
        self.assertIn("Invalid or missing agent token", self.beat(agent_token="x" * 43).message)
        self.assertIn("Invalid or missing agent token", self.beat(agent_token="ü").message)
        self.put(agent_token=None)
        self.assertEqual(400, self.beat().status)
        self.assertIsNone(self.row.agent_url)

    def test_an_agent_that_is_given_up_while_it_calls_gets_the_same_answer(self) -> None:
        checked = agents.read_for_heartbeat

        def given_up(*args: Any) -> Any:
            node = checked(*args)
            self.put(agent_token=None)
            return node

        self.patch(agents, "read_for_heartbeat", given_up)
        answer = self.beat()
        self.assertEqual(400, answer.status)
        self.assertIn("Invalid or missing agent token received: look the node up again", answer.message)
        self.assertEqual((None, []), (self.row.agent_url, self.conductor.wakeups))

    def test_an_agent_cannot_speak_for_another_node(self) -> None:
        waiting = {"provision_state": states.DEPLOYWAIT, "agent_token": "of the other agent"}
        other = database.make_node(self.db, name="other", **waiting)
        self.assertIn("token", self.refused(400, "POST", "/v1/heartbeat/other", self.body))
        self.assertIsNone(nodes.get(self.db, other.uuid).agent_url)

    def test_plain_http_is_refused_unless_allowed(self) -> None:
        self.assertIn("TLS is required", self.beat(callback_url="http://10.0.0.9:9999").message)
        self.conf.set_override("require_tls", False, group="agent")
        self.assertEqual(202, self.beat(callback_url="http://10.0.0.9:9999").status)

    def test_wrong_bodies(self) -> None:
        for changes, version, expected in (
            ({"callback_url": "ftp://x"}, "1.68", "http or https"),
            *(
                ({"callback_url": f"https://{where}"}, "1.68", "with a host")
                for where in ("", "[bad", "x:70000", "x/?path=/of/another", "x#", "a:b@x", "x y", "x\0y", "x\ny")
            ),
            ({"callback_url": None}, "1.68", "'callback_url' is a required property"),
            ({"agent_version": None}, "1.68", "agent_version"),
            ({"agent_status": "bored"}, "1.72", "bored"),
            ({"colour": "red"}, "1.68", "colour"),
            ({}, "1.67", "agent_verify_ca"),
        ):
            answer = self.beat(version, **changes)
            self.assertEqual(400, answer.status)
            self.assertIn(expected, answer.message)

    def test_unknown_nodes_and_versions(self) -> None:
        self.refused(404, "POST", "/v1/heartbeat/missing", self.body, "1.68")
        self.assertEqual(404, self.beat("1.21").status)
        self.refused(405, "GET", f"/v1/heartbeat/{self.known.uuid}")

    def test_its_status_is_kept(self) -> None:
        self.beat("1.72", agent_status="error", agent_status_message="disk on fire")
        self.assertEqual("error: disk on fire", self.row.agent_status)


class BootScripts(AgentCase):
    def script(self, mac: str, **config: Any) -> str:
        if config:
            self.put(boot_config=config)
        answer = self.api("GET", f"/boot/ipxe/{mac}", version=None, Accept="text/plain")
        self.assertEqual((200, "text/plain; charset=utf-8"), (answer.status, answer.headers["Content-Type"]))
        return answer.text

    def test_a_ramdisk_is_loaded_with_its_arguments(self) -> None:
        parameters = {"kernel": "http://h/vmlinuz", "initrd": "http://h/d/initrd.img?v=1", "kernel_args": "a=1  b\nc"}
        expected = "#!ipxe\nkernel http://h/vmlinuz a=1 b c initrd=initrd.img\ninitrd http://h/d/initrd.img?v=1\nboot\n"
        for target in ("ramdisk", "instance"):
            self.assertEqual(expected, self.script(MAC, target=target, **parameters))
        self.assertEqual(expected, self.script(MAC.replace(":", "-").upper()))

    def test_everything_else_boots_from_the_disk(self) -> None:
        disk = "#!ipxe\nsanboot --no-describe --drive 0x80 || exit\n"
        self.assertEqual(disk, self.script(MAC))
        self.assertEqual(disk, self.script("00:11:22:33:44:55"))
        self.assertEqual(disk, self.script("rubbish"))
        self.assertEqual(disk, self.script(MAC, target="disk", kernel="http://h/k"))

    def test_a_script_costs_one_statement_and_one_for_its_time_stamp(self) -> None:
        for mac, cost in (("00:11:22:33:44:55", 1), (MAC, 2)):
            with sql_counter.counting(self.db) as counted:
                self.script(mac)
            self.assertEqual((cost, 0), (len(counted), counted.commits), counted)

    def test_a_machine_that_fetches_its_script_leaves_a_line_and_a_time_stamp(self) -> None:
        log = self.useFixture(fixtures.FakeLogger("ingot.api.agents.boot", level=logging.INFO))
        self.assertNotIn("boot_script_at", self.good("GET", "/v1/nodes/n")["driver_internal_info"])
        for config in ({"target": "ramdisk", "kernel": "http://h/k"}, {"target": "disk"}):
            self.put(boot_script_at=None, boot_config=config)
            before = self.row
            self.script(MAC)
            self.assertIsNotNone(self.row.boot_script_at)
            self.assertEqual((before.revision, before.updated_at), (self.row.revision, self.row.updated_at))
            line = f"Node {self.known.uuid}: its machine, at 127.0.0.1, has fetched its boot script: {config['target']}"
            self.assertIn(line, log.output)
        shown = self.good("GET", "/v1/nodes/n")
        self.assertEqual(clock.iso(self.row.boot_script_at), shown["driver_internal_info"]["boot_script_at"])

    def test_one_that_is_not_known_leaves_a_line(self) -> None:
        log = self.useFixture(fixtures.FakeLogger("ingot.api.agents.boot", level=logging.INFO))
        self.script("00:11:22:33:44:55")
        self.assertIn("'00:11:22:33:44:55': the machine at 127.0.0.1 boots from its disk", log.output)
        self.script("evil%0aNode%20x:%20forged")
        self.assertEqual(2, len(log.output.splitlines()))
