"""The ids of a request are found wherever its work goes: in logs, step runs and timelines."""

import logging
from typing import Any

from oslo_context import context as oslo_context

from ingot.common import clock, context, states
from ingot.db import models
from tests import conductor_case, database, patience, plan_case

CLIENT_IDS = [f"req-0000000{number}-0000-4000-8000-000000000000" for number in range(3)]


class _Listener(logging.Handler):
    """Notes with each line whose context it is logged in."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.lines: list[tuple[str, oslo_context.RequestContext | None]] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append((record.getMessage(), oslo_context.get_current()))


class RequestIds(plan_case.PlanCase):
    def configure(self) -> None:
        self.conf.set_override("workers_pool_size", 3, group="conductor")
        self.conf.set_override("sweep_interval", 3600, group="conductor")

    def setUp(self) -> None:
        super().setUp()
        self.listener = _Listener()
        logger = logging.getLogger("ingot")
        self.addCleanup(logger.setLevel, logger.level)
        logger.setLevel(logging.DEBUG)
        logger.addHandler(self.listener)
        self.addCleanup(logger.removeHandler, self.listener)

    def put(self, node: models.Node, what: str, client_id: str, **body: Any) -> str:
        """Send a request and return the id that its answer names."""
        headers = {"X-OpenStack-Ironic-API-Version": "latest", "X-OpenStack-Request-ID": client_id}
        answer = self.http.put(f"/v1/nodes/{node.uuid}/states/{what}", json=body, headers=headers)
        self.assertEqual(202, answer.status_code, answer.get_data(as_text=True))
        return str(answer.headers["OpenStack-Request-Id"])

    def ids_in_log(self, node: models.Node) -> set[tuple[str | None, str | None]]:
        """Return the ids, the client's and the API's, with which lines about a node were logged.

        Those of a sweep that has found the node too, as the first one of the conductor may, are left out.
        """
        lines = [(line, ctx) for line, ctx in self.listener.lines if node.uuid in line]
        sweeps = {ctx.request_id for line, ctx in lines if ctx and line.endswith(f"{node.uuid}: sweep")}
        found = [ctx for _line, ctx in lines if not ctx or ctx.request_id not in sweeps]
        self.assertTrue(found)
        return {(ctx.global_request_id, ctx.request_id) if ctx else (None, None) for ctx in found}

    def test_what_each_request_leads_to_carries_its_ids(self) -> None:
        asked = {}
        for client_id in CLIENT_IDS:
            node = database.make_node(self.db, provision_state=states.AVAILABLE)
            asked[client_id] = node, self.put(node, "provision", client_id, target="active")
        self.assertEqual(3, len({own_id for _node, own_id in asked.values()}))
        for client_id, (node, own_id) in asked.items():
            self.assertEqual(states.ACTIVE, self.settled(node).provision_state)
            self.assertEqual({(client_id, own_id)}, self.ids_in_log(node))
            runs = {(run.global_request_id, run.request_id) for run in self.step_runs(node)}
            self.assertEqual({(client_id, own_id)}, runs)
            timeline = self.ask("GET", f"/ingot/v1/nodes/{node.uuid}/timeline")
            self.assertEqual((client_id, own_id), (timeline["global_request_id"], timeline["request_id"]))

    def test_wakeups_that_come_in_one_message_carry_the_ids_of_their_requests(self) -> None:
        requests = {f"node-{number}": context.RequestContext() for number in range(2)}
        carried = [["advance", ctx.to_dict(), {"node_uuid": uuid, "why": "test"}] for uuid, ctx in requests.items()]
        self.conductor.endpoint.wake_up({}, wakeups=carried)
        for uuid, ctx in requests.items():
            line = f"Node {uuid} was deleted before it was reconciled (test)"
            conductor_case.eventually(lambda line=line: line in dict(self.listener.lines), line)
            logged_in = dict(self.listener.lines)[line]
            self.assertEqual(ctx.request_id, logged_in and logged_in.request_id)

    def test_one_of_another_form_is_left_out(self) -> None:
        """What a client has sent comes into logs, and to agents."""
        for client_id in ("mine", f"{CLIENT_IDS[0]} ERROR All is lost", f"{CLIENT_IDS[0]}0", CLIENT_IDS[0].upper()):
            node = database.make_node(self.db, provision_state=states.AVAILABLE)
            own_id = self.put(node, "provision", client_id, target="active")
            self.settled(node)
            self.assertEqual({(None, own_id)}, self.ids_in_log(node), client_id)

    def test_a_flow_that_follows_belongs_to_the_same_request(self) -> None:
        node = database.make_node(self.db, provision_state=states.ACTIVE)
        own_id = self.put(node, "provision", CLIENT_IDS[0], target="deleted")
        self.assertEqual(states.AVAILABLE, self.settled(node).provision_state)
        runs = {(run.flow, run.request_id) for run in self.step_runs(node)}
        self.assertEqual({("delete", own_id), ("automated_clean", own_id)}, runs)

    def test_a_change_of_power_does_too(self) -> None:
        node = database.make_node(self.db, power_state=states.POWER_OFF)
        own_id = self.put(node, "power", CLIENT_IDS[0], target="power on")
        self.settled(node)
        self.assertEqual({(CLIENT_IDS[0], own_id)}, self.ids_in_log(node))

    def test_wake_ups_do_not_share_an_id(self) -> None:
        waking = {}
        for _ in range(6):  # more than there are workers
            node = database.make_node(self.db, due_at=clock.now())
            ctx = context.RequestContext()
            waking[node.uuid] = node, ctx.request_id
            self.conductor.endpoint.advance(ctx.to_dict(), node_uuid=node.uuid, why="test")
        seen: list[str | None] = []
        for node, own_id in waking.values():
            self.conductor.queues.submit(node.uuid, lambda: None).result(patience.seconds(60))
            lines = [ctx for line, ctx in self.listener.lines if f"Reconciling node {node.uuid}" in line]
            ids = {ctx and ctx.request_id for ctx in lines}  # a sweep may have found the node too
            self.assertIn(own_id, ids)
            seen.extend(ids)
        self.assertEqual(len(set(seen)), len(seen))

    def test_work_of_an_older_release_has_none_and_goes_on(self) -> None:
        node = database.make_node(self.db)
        self.accept(node, "deploy", states.DEPLOYING, asked_by={"user": "ada", "project": None})
        self.notify(node)
        self.assertEqual(states.ACTIVE, self.settled(node).provision_state)
        self.assertEqual({None}, {run.request_id for run in self.step_runs(node)})
        self.assertEqual({"ada"}, {entry.user for entry in self.history(node)})
