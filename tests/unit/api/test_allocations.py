"""Allocations as clients see them: what is written, what is refused, what becomes of their nodes."""

import uuid
from typing import Any

from ingot.common import clock, states
from ingot.db import allocations, models, nodes
from tests import api_case, database, sql_counter

CLASS = "baremetal"


class AllocationCase(api_case.ApiCase):
    def allocation(self, **values: Any) -> dict[str, Any]:
        made: dict[str, Any] = self.good("POST", "/v1/allocations", {"resource_class": CLASS, **values})
        return made

    def machine(self, **values: Any) -> Any:
        return database.make_node(self.db, **{"resource_class": CLASS, **values})

    def allocated(self, node: Any, **values: Any) -> dict[str, Any]:
        """Return an allocation that has got a node."""
        made = self.allocation(**values)
        self.assertTrue(allocations.assign(self.db, self.wish(made["uuid"]), node))
        return made

    def wish(self, ident: str) -> Any:
        found = allocations.find_waiting(self.db, ident)
        self.assertIsNotNone(found)
        return found

    def shown(self, ident: str) -> dict[str, Any]:
        found: dict[str, Any] = self.good("GET", f"/v1/allocations/{ident}")
        return found


class CreatingAllocations(AllocationCase):
    def test_it_is_work_for_a_conductor(self) -> None:
        answer = self.api("POST", "/v1/allocations", {"resource_class": CLASS, "name": "db1"})
        made = answer.json
        self.assertEqual(201, answer.status)
        self.assertEqual(f"http://localhost/v1/allocations/{made['uuid']}", answer.headers["Location"])
        self.assertEqual(
            ("allocating", None, None, [], [], {}, None),
            tuple(
                made[name]
                for name in ("state", "node_uuid", "last_error", "traits", "candidate_nodes", "extra", "owner")
            ),
        )
        self.assertIn(("process_allocation", {"allocation_uuid": made["uuid"]}), self.conductor.asked)

    def test_a_notification_that_cannot_be_sent_loses_nothing(self) -> None:
        self.bus.stop(api_case.HOST)
        made = self.allocation()
        self.assertEqual([made["uuid"]], allocations.list_waiting(self.db, 10))
        self.assertEqual(1, self.client.lost_wakeups)

    def test_no_conductor_has_to_be_there(self) -> None:
        with self.db.single() as connection:
            connection.execute(models.table(models.ConductorHardwareInterface).delete())
            connection.execute(models.table(models.Conductor).delete())
        self.assertEqual("allocating", self.allocation()["state"])

    def test_candidates_are_found_by_name_and_shown_as_uuids(self) -> None:
        first, second = self.machine(name="n1"), self.machine(name="n2")
        made = self.allocation(candidate_nodes=["n2", first.uuid, second.uuid])
        self.assertEqual([second.uuid, first.uuid], made["candidate_nodes"])
        body = {"resource_class": CLASS, "candidate_nodes": ["n1", "nope"]}
        self.assertIn("nope", self.refused(400, "POST", "/v1/allocations", body))

    def test_what_is_wrong_is_named(self) -> None:
        body: dict[str, Any] = {"resource_class": CLASS}
        for wrong, expected in (
            ({"resource_class": None}, "resource_class"),
            ({"resource_class": ""}, "resource_class"),
            ({"resource_class": "x" * 81}, "too long"),
            ({"traits": ["a"]}, "traits"),
            ({"traits": "CUSTOM_A"}, "traits"),
            ({"candidate_nodes": "n"}, "candidate_nodes"),
            ({"name": "has space"}, "name"),
            ({"uuid": "x"}, "UUID"),
            ({"state": "active"}, "state"),
            ({"node_uuid": str(uuid.uuid4())}, "node_uuid"),
            ({"extra": []}, "extra"),
        ):
            self.assertIn(expected, self.refused(400, "POST", "/v1/allocations", {**body, **wrong}), wrong)
        self.assertEqual([], self.good("GET", "/v1/allocations")["allocations"])

    def test_names_and_uuids_are_taken_once(self) -> None:
        made = self.allocation(name="db1", uuid="")
        body = {"resource_class": CLASS}
        self.assertIn("db1", self.refused(409, "POST", "/v1/allocations", {**body, "name": "db1"}))
        self.assertIn(made["uuid"], self.refused(409, "POST", "/v1/allocations", {**body, "uuid": made["uuid"]}))
        self.assertEqual((None, None), (self.allocation(name="")["name"], self.allocation(name="", owner="")["owner"]))

    def test_versions(self) -> None:
        body = {"resource_class": CLASS}
        self.refused(404, "GET", "/v1/allocations", version="1.51")
        self.refused(405, "POST", "/v1/allocations", body, "1.51")
        self.refused(406, "POST", "/v1/allocations", {**body, "owner": "p"}, "1.59")
        self.refused(406, "POST", "/v1/allocations", {"node": "n"}, "1.57")
        made = self.good("POST", "/v1/allocations", {**body, "owner": "p"}, "1.60")
        self.assertEqual("p", made["owner"])
        path = f"/v1/allocations/{made['uuid']}"
        self.assertNotIn("owner", self.good("GET", path, version="1.59"))
        self.refused(406, "GET", "/v1/allocations?owner=p", version="1.59")
        change = [{"op": "add", "path": "/name", "value": "a"}]
        self.assertIn("1.57", self.refused(405, "PATCH", path, change, "1.56"))
        self.assertEqual("a", self.good("PATCH", path, change, "1.57")["name"])

    def test_costs_few_statements(self) -> None:
        self.allocation()  # fills the caches
        node = self.machine(name="n")
        for body in ({}, {"candidate_nodes": ["n"]}, {"traits": ["CUSTOM_A"]}):
            with sql_counter.counting(self.db) as counted:
                self.allocation(**body)
            self.assertLessEqual(len(counted), 8)
        self.assertEqual(node.uuid, self.good("GET", "/v1/nodes/n")["uuid"])


class ReadingAllocations(AllocationCase):
    def test_lists_are_filtered(self) -> None:
        node = self.machine(name="n", owner="p")
        active = self.allocated(node, name="a", owner="p")
        other = self.good("POST", "/v1/allocations", {"resource_class": "other", "name": "b"})
        for query, expected in (
            ("node=n", [active]),
            (f"node={node.uuid}", [active]),
            ("state=active", [active]),
            ("state=allocating", [other]),
            ("state=bogus", []),
            ("resource_class=other", [other]),
            ("owner=p", [active]),
            ("sort_key=name&sort_dir=desc", [other, active]),
        ):
            found = self.good("GET", f"/v1/allocations?{query}")["allocations"]
            self.assertEqual([one["uuid"] for one in expected], [one["uuid"] for one in found], query)
        self.refused(400, "GET", "/v1/allocations?node=missing")
        self.assertIn("detail", self.refused(400, "GET", "/v1/allocations?detail=true"))
        for key in ("node_uuid", "traits", "candidate_nodes", "extra", "links"):
            self.refused(400, "GET", f"/v1/allocations?sort_key={key}")

    def test_a_list_shows_everything_and_costs_the_same_however_long(self) -> None:
        costs = []
        for length in (1, 20):
            for _missing in range(length - len(costs)):
                self.allocated(self.machine())
            with sql_counter.counting(self.db) as counted:
                found = self.good("GET", "/v1/allocations")["allocations"]
            costs.append(len(counted))
        self.assertEqual([1, 1], costs)
        self.assertEqual(self.shown(found[0]["uuid"]), found[0])

    def test_the_allocation_of_a_node(self) -> None:
        node = self.machine(name="n")
        self.assertIsNone(self.good("GET", "/v1/nodes/n")["allocation_uuid"])
        self.assertIn("n was not found", self.refused(404, "GET", "/v1/nodes/n/allocation"))
        self.refused(404, "DELETE", "/v1/nodes/n/allocation")
        self.assertIn("missing", self.refused(400, "GET", "/v1/nodes/missing/allocation"))
        self.refused(404, "DELETE", "/v1/nodes/missing/allocation")
        made = self.allocated(node)
        self.assertEqual(self.shown(made["uuid"]), self.good("GET", "/v1/nodes/n/allocation"))
        shown = self.good("GET", "/v1/nodes/n")
        self.assertEqual((made["uuid"], made["uuid"]), (shown["allocation_uuid"], shown["instance_uuid"]))
        self.assertEqual([made["uuid"]], [
            found["allocation_uuid"] for found in self.good("GET", "/v1/nodes?fields=allocation_uuid")["nodes"]
        ])  # fmt: skip
        self.assertNotIn("allocation_uuid", self.good("GET", f"/v1/nodes/{node.uuid}", version="1.51"))
        self.refused(404, "GET", f"/v1/nodes/{node.uuid}/allocation", version="1.51")
        with sql_counter.counting(self.db) as counted:
            self.good("GET", "/v1/nodes/n/allocation")
        self.assertLessEqual(len(counted), 4)

    def test_a_patch_changes_name_and_extra_only(self) -> None:
        path = f"/v1/allocations/{self.allocation(name='a', extra={'k': 1})['uuid']}"
        changed = self.good("PATCH", path, [{"op": "replace", "path": "/extra/k", "value": 2}])
        self.assertEqual({"k": 2}, changed["extra"])
        self.assertIsNone(self.good("PATCH", path, [{"op": "remove", "path": "/name"}])["name"])
        for name, value in (
            ("state", "active"),
            ("resource_class", "x"),
            ("owner", "p"),
            ("traits", []),
            ("node", "n"),
        ):
            message = self.refused(400, "PATCH", path, [{"op": "add", "path": f"/{name}", "value": value}])
            self.assertIn("extra, name", message)


class GivingNodesBack(AllocationCase):
    def setUp(self) -> None:
        super().setUp()
        self.known = self.machine(name="n", instance_info={"image_source": "x"})

    def instance(self) -> str | None:
        found: str | None = nodes.get(self.db, "n").instance_uuid
        return found

    def test_deleting_frees_the_node(self) -> None:
        made = self.allocated(self.known, name="a")
        self.assertEqual(made["uuid"], self.instance())
        self.good("DELETE", "/v1/allocations/a")
        self.assertIsNone(self.instance())
        self.refused(404, "GET", "/v1/allocations/a")
        self.allocated(self.known)
        self.good("DELETE", "/v1/nodes/n/allocation")
        self.assertIsNone(self.instance())
        self.assertEqual({"image_source": "x"}, nodes.get(self.db, "n").instance_info)

    def test_one_without_a_node_just_goes(self) -> None:
        self.good("DELETE", f"/v1/allocations/{self.allocation()['uuid']}")
        self.assertEqual([], allocations.list_waiting(self.db, 10))

    def test_not_while_the_node_is_in_use(self) -> None:
        made = self.allocated(self.known)
        path = f"/v1/allocations/{made['uuid']}"
        for state in (states.ACTIVE, states.DEPLOYING, states.DEPLOYWAIT, states.CLEANING):
            self.put_node(provision_state=state)
            self.assertIn(state, self.refused(409, "DELETE", path))
        self.put_node(
            provision_state=states.AVAILABLE, reservation="other", lock_purpose="a test", locked_at=clock.now()
        )
        self.assertIn("a test", self.refused(409, "DELETE", path))
        self.assertEqual(made["uuid"], self.instance())
        self.put_node(reservation=None, provision_state=states.ACTIVE, maintenance=True)
        self.good("DELETE", path)
        self.assertIsNone(self.instance())

    def test_who_takes_the_instance_away_takes_the_allocation_away(self) -> None:
        made = self.allocated(self.known)
        change = [{"op": "remove", "path": "/instance_uuid"}]
        self.put_node(provision_state=states.ACTIVE)
        self.assertIn(made["uuid"], self.refused(409, "PATCH", "/v1/nodes/n", change))
        self.assertEqual((made["uuid"], "active"), (self.instance(), self.shown(made["uuid"])["state"]))
        self.put_node(provision_state=states.AVAILABLE)
        self.good("PATCH", "/v1/nodes/n", change)
        self.refused(404, "GET", f"/v1/allocations/{made['uuid']}")
        self.assertIsNone(self.instance())

    def test_a_deleted_node_takes_its_allocation_with_it(self) -> None:
        made = self.allocated(self.known)
        self.put_node(maintenance=True)
        self.good("DELETE", "/v1/nodes/n")
        self.refused(404, "GET", f"/v1/allocations/{made['uuid']}")

    def put_node(self, **values: Any) -> None:
        nodes.set_always(self.db, self.known.uuid, values)


class Backfilling(AllocationCase):
    def setUp(self) -> None:
        super().setUp()
        self.known = self.machine(name="n", provision_state=states.ACTIVE)

    def test_a_node_in_use_gets_its_allocation_at_once(self) -> None:
        made = self.good("POST", "/v1/allocations", {"node": "n", "name": "a"})
        self.assertEqual(
            ("active", self.known.uuid, CLASS, None),
            tuple(made[name] for name in ("state", "node_uuid", "resource_class", "last_error")),
        )
        self.assertEqual(made["uuid"], self.good("GET", "/v1/nodes/n")["instance_uuid"])
        self.assertEqual([], [method for method, _arguments in self.conductor.asked if method == "process_allocation"])
        self.assertIn(
            "instance", self.refused(409, "POST", "/v1/allocations", {"node": "n", "uuid": str(uuid.uuid4())})
        )

    def test_it_has_the_uuid_of_the_instance(self) -> None:
        instance = str(uuid.uuid4())
        nodes.set_always(self.db, self.known.uuid, {"instance_uuid": instance})
        self.assertEqual(instance, self.good("POST", "/v1/allocations", {"node": "n", "resource_class": CLASS})["uuid"])

    def test_what_does_not_fit_is_named(self) -> None:
        other = self.machine(name="other", provision_state=states.MANAGEABLE)
        for body, expected in (
            ({"node": "other"}, "manageable"),
            ({"node": "n", "resource_class": "x"}, CLASS),
            ({"node": "n", "traits": ["CUSTOM_A"]}, "CUSTOM_A"),
            ({"node": "n", "candidate_nodes": [other.uuid]}, "candidate"),
        ):
            self.assertIn(expected, self.refused(409, "POST", "/v1/allocations", body))
        self.assertIn("gone", self.refused(400, "POST", "/v1/allocations", {"node": "gone"}))
        self.assertEqual([], self.good("GET", "/v1/allocations")["allocations"])

    def test_a_locked_node_is_left_alone(self) -> None:
        nodes.set_always(
            self.db, self.known.uuid, {"reservation": "other", "lock_purpose": "a test", "locked_at": clock.now()}
        )
        self.assertIn("a test", self.refused(409, "POST", "/v1/allocations", {"node": "n"}))
