"""What the fleet needs and does: causes, words and next actions, progress by the past, at a cost that does not grow."""

import datetime
import uuid
from typing import Any

import sqlalchemy as sa

from ingot.common import clock, states, triage, waits
from ingot.db import conductors, durations, maintenance, models, nodes, rows
from tests import api_case, database, identity_case, sql_counter

STEPS = ("deploy", "write_image", "boot_instance")
PLAN = [{"interface": "deploy", "step": step, "args": {}, "origin": "driver"} for step in STEPS]


class OverviewCase(api_case.ApiCase):
    def make(self, name: str, state: str = states.AVAILABLE, **values: Any) -> models.Node:
        return database.make_node(
            self.db, name=name, provision_state=state, **{"provision_updated_at": clock.after(-100), **values}
        )

    def deploying(self, name: str, index: int = 1, seconds: float = 100, **values: Any) -> models.Node:
        """Make a node whose deployment has come to a step some seconds ago, and waits for the agent to end it."""
        about = {
            "flow": "deploy",
            "run_id": str(uuid.uuid4()),
            "due_at": clock.after(60),
            "step_state": "watching",
            "step_started_at": clock.after(-seconds),
            "agent_last_heartbeat": clock.now(),
            "driver_internal_info": {"deploy_steps": PLAN, "deploy_step_index": index},
        }
        return self.make(name, values.pop("state", states.DEPLOYWAIT), **{**about, **values})

    def ran(self, node: models.Node, step: str, *seconds: float, **values: Any) -> None:
        """Add attempts of a step that took so long."""
        began = clock.after(-5000)
        attempts = [
            {
                "node_id": node.id, "run_id": str(uuid.uuid4()), "flow": "deploy", "step_index": 0, "attempt": 1,
                "interface": "deploy", "step": step, "args": {}, "priority": 1, "origin": "driver", "state": "done",
                "started_at": began, "finished_at": began + datetime.timedelta(seconds=taken), "conductor": "c",
                **values,
            }
            for taken in seconds
        ]  # fmt: skip
        with self.db.single() as connection:
            connection.execute(sa.insert(models.table(models.StepRun)), attempts)

    def overview(self) -> Any:
        return self.good("GET", "/ingot/v1/overview", version=None)

    def needs(self) -> dict[str, dict[str, Any]]:
        """Return by node's name what it needs, with the cause."""
        found = self.overview()
        return {node["name"]: {"cause": one["cause"], **node} for one in found["triage"] for node in one["nodes"]}

    def work(self) -> dict[str, Any]:
        return {one["name"]: one for one in self.overview()["work"]}


class Causes(OverviewCase):
    def test_of_a_fleet_that_needs_nothing(self) -> None:
        self.make("n", resource_class="big")
        self.make("m", states.ACTIVE, driver="unserved")
        found = self.overview()
        self.assertEqual(([], [], 0), (found["triage"], found["work"], found["work_count"]))
        counts = {
            "total": 2,
            "by_state": {"active": 1, "available": 1},
            "by_conductor": {"": 1, api_case.HOST: 1},
            "by_class": {"": 1, "big": 1},
        }
        self.assertEqual(counts, found["counts"])

    def test_failures_say_why_and_what_fixes_them(self) -> None:
        verbs = {
            states.DEPLOYFAIL: "active", states.ERROR: "deleted", states.CLEANFAIL: "provide", states.ENROLL: "manage",
            states.INSPECTFAIL: "inspect", states.ADOPTFAIL: "adopt", states.SERVICEFAIL: "abort",
            states.RESCUEFAIL: "rescue", states.UNRESCUEFAIL: "unrescue",
        }  # fmt: skip
        self.assertEqual(set(verbs), triage.FAILURES | {states.ENROLL})
        for state in verbs:
            self.make(state, state, last_error=f"disk of {state} on fire", target_provision_state=states.AVAILABLE)
        self.make("manual", states.CLEANFAIL, target_provision_state=states.MANAGEABLE, last_error="no disk")
        self.make("new", states.ENROLL)
        found = self.needs()
        self.assertEqual({"failed"}, {need["cause"] for need in found.values()})
        self.assertEqual({**verbs, "manual": "manage"}, {n: v["next"]["action"]["target"] for n, v in found.items()})
        need = found[states.DEPLOYFAIL]
        self.assertEqual("disk of deploy failed on fire", need["reason"])
        self.assertEqual({"kind": "provision", "target": "active"}, need["next"]["action"])
        self.assertAlmostEqual(100, need["seconds"], delta=30)

    def test_every_next_verb_is_one_that_the_state_allows(self) -> None:
        events = {"active": "deploy", "deleted": "delete"}
        for state in triage.FAILURES | {states.ENROLL}:
            for target in (states.MANAGEABLE, states.AVAILABLE):
                verb = triage.after_failure(state, target).action.target
                self.assertIsNotNone(states.requested_state(state, events.get(verb, verb)), (state, verb))
        for state in states.HELD:
            self.assertIsNotNone(states.requested_state(state, triage.of_held().action.target))

    def test_a_node_is_in_one_group_only(self) -> None:
        hold = maintenance.fault_hold("power failure", "no answer from 192.0.2.1", "c1")
        self.make("bmc", states.DEPLOYFAIL, last_error="x", **maintenance.hold_columns([hold]))
        clean = maintenance.fault_hold("clean failure", "no disk", "c1")
        self.make("clean", states.CLEANFAIL, last_error="no disk", **maintenance.hold_columns([clean]))
        groups = self.overview()["triage"]
        self.assertEqual(
            [("failed", 1, ["clean"]), ("unresponsive", 1, ["bmc"])],
            [(one["cause"], one["count"], [node["name"] for node in one["nodes"]]) for one in groups],
        )
        need = groups[1]["nodes"][0]
        self.assertEqual("no answer from 192.0.2.1", need["reason"])
        self.assertIn("BMC", need["next"]["text"])
        self.assertIsNone(need["next"]["action"])

    def test_what_an_operator_holds(self) -> None:
        info = {"deploy_steps": PLAN, "deploy_step_index": 1}
        self.make("n", states.DEPLOYHOLD, driver_internal_info=info, flow="deploy", step_state="holding")
        need = self.needs()["n"]
        self.assertEqual(("held", "deploy.write_image"), (need["cause"], need["step"]))
        self.assertEqual({"kind": "provision", "target": "unhold"}, need["next"]["action"])

    def test_maintenance_says_by_whom_and_since_when(self) -> None:
        self.make("n")
        self.api("PUT", "/v1/nodes/n/maintenance", {"reason": "new DIMM"}, X_User_Id="alice")
        self.api("PUT", "/ingot/v1/nodes/n/maintenance/cable", {"reason": "cable"}, version=None, X_User_Id="bob")
        need = self.needs()["n"]
        self.assertEqual(("maintenance", "alice, bob", "new DIMM; cable"), (need["cause"], need["by"], need["reason"]))
        self.assertLess(need["seconds"], 30)
        self.assertEqual({"kind": "clear_maintenance", "target": None}, need["next"]["action"])

    def test_a_bmc_that_does_not_answer_a_step(self) -> None:
        self.deploying("n", step_state="polling", step_memory={"engine": {"waits_for": waits.Wait.BMC}})
        need = self.needs()["n"]
        self.assertEqual(("unresponsive", "deploy.write_image"), (need["cause"], need["step"]))
        self.assertIn("driver_info", need["next"]["text"])

    def test_waiting_for_an_agent(self) -> None:
        self.deploying("boots", step_state="waiting", agent_last_heartbeat=None, state=states.DEPLOYWAIT)
        self.deploying("silent", agent_last_heartbeat=clock.after(-1000))
        self.deploying("busy")
        found = self.needs()
        self.assertEqual({"boots": "waiting", "silent": "waiting"}, {name: one["cause"] for name, one in found.items()})
        self.assertIn("boot from the network", found["boots"]["reason"])
        self.assertIn("If it lasts: look at", found["boots"]["next"]["text"])

    def test_work_that_no_conductor_does(self) -> None:
        self.deploying("n")
        with self.db.single() as connection:
            connection.execute(sa.update(conductors.CONDUCTORS).values(online=False))
        need = self.needs()["n"]
        self.assertEqual("overdue", need["cause"])
        self.assertIn("none is online", need["reason"])
        self.assertIn("Start a conductor", need["next"]["text"])
        self.assertEqual("abort", need["next"]["action"]["target"])

    def test_maintenance_goes_before_work(self) -> None:
        self.deploying("n", seconds=10**6, maintenance=True)
        self.assertEqual({"n": "maintenance"}, {name: one["cause"] for name, one in self.needs().items()})


class Overdue(OverviewCase):
    def test_by_the_past_of_the_machine(self) -> None:
        late, slow = self.deploying("late", seconds=300), self.deploying("slow", seconds=300)
        self.ran(late, "write_image", 90, 100, 110, 4000)
        self.ran(slow, "write_image", 200, 250, 300)
        need = self.needs()
        self.assertEqual({"late": "overdue"}, {name: one["cause"] for name, one in need.items()})
        self.assertRegex(
            need["late"]["reason"], "Step deploy.write_image has taken .*; it usually takes 1 min 45 s here."
        )

    def test_when_it_will_be_is_known_before(self) -> None:
        self.assertIsNone(self.overview()["stale_at"])
        self.ran(self.deploying("n", seconds=20), "write_image", 500)
        late_at = datetime.datetime.fromisoformat(self.overview()["stale_at"])
        self.assertAlmostEqual(980, (late_at - datetime.datetime.now(datetime.UTC)).total_seconds(), delta=60)

    def test_not_in_the_first_minute_of_a_short_step(self) -> None:
        self.ran(self.deploying("n", seconds=30), "write_image", 0.1)
        self.assertEqual({}, self.needs())

    def test_by_machines_with_its_driver_and_then_by_all(self) -> None:
        alike, other = self.make("alike"), self.make("other", driver="ipmi")
        self.deploying("n", seconds=300)
        self.ran(other, "write_image", 10)
        self.assertIn("it usually takes 10 s in this fleet", self.needs()["n"]["reason"])
        durations._fleets.pop(self.db)
        self.ran(alike, "write_image", 290)
        self.assertEqual({}, self.needs())

    def test_by_the_limit_of_the_state_where_there_is_no_past(self) -> None:
        self.deploying("n", provision_updated_at=clock.after(-7200))
        self.assertRegex(self.needs()["n"]["reason"], "In state wait call-back for 2 h.*; 1 h are expected.")


class Work(OverviewCase):
    def test_progress_and_end_by_the_past(self) -> None:
        node = self.deploying("n", seconds=40)
        self.ran(node, "deploy", 60, run_id=node.run_id, started_at=clock.after(-100), finished_at=clock.after(-40))
        for step, taken in (("write_image", (80, 90, 100)), ("boot_instance", (30, 50))):
            self.ran(node, step, *taken)
        work = self.work()["n"]
        self.assertEqual(("deploy.write_image", 1, 3), tuple(work[name] for name in ("step", "index", "steps")))
        self.assertEqual((90, "node", "deploy"), tuple(work[name] for name in ("expected_seconds", "basis", "flow")))
        self.assertAlmostEqual(100 / 190, work["progress"], delta=0.1)
        ends = datetime.datetime.fromisoformat(work["eta"])
        self.assertAlmostEqual(90, (ends - datetime.datetime.now(datetime.UTC)).total_seconds(), delta=30)
        self.assertAlmostEqual(0, seconds_between(work["run_started_at"], clock.iso(clock.after(-100))), delta=30)

    def test_the_weakest_basis_counts(self) -> None:
        node, other = self.deploying("n"), self.make("other")
        self.ran(node, "write_image", 10)
        self.ran(other, "boot_instance", 10)
        self.assertEqual(("class", True), (self.work()["n"]["basis"], self.work()["n"]["progress"] is not None))

    def test_without_a_past_nothing_is_made_up(self) -> None:
        node = self.deploying("n")
        names = ("expected_seconds", "basis", "progress", "eta")
        self.assertEqual((None,) * 4, tuple(self.work()["n"][name] for name in names))
        self.ran(node, "write_image", 500)
        self.assertEqual((500, "node", None, None), tuple(self.work()["n"][name] for name in names))

    def test_failed_attempts_and_other_flows_say_nothing(self) -> None:
        node = self.deploying("n")
        self.ran(node, "write_image", 5, state="failed")
        self.ran(node, "write_image", 5, flow="service")
        self.assertIsNone(self.work()["n"]["expected_seconds"])

    def test_that_has_just_been_accepted(self) -> None:
        self.make("n", states.DEPLOYING, flow="deploy", due_at=clock.now())
        work = self.work()["n"]
        self.assertEqual((None, 0, 0, None), tuple(work[name] for name in ("step", "index", "steps", "progress")))


def seconds_between(one: str, other: str | None) -> float:
    return (datetime.datetime.fromisoformat(one) - datetime.datetime.fromisoformat(str(other))).total_seconds()


class UsualDurations(OverviewCase):
    def test_of_steps_of_a_timeline_and_of_a_run(self) -> None:
        node = self.deploying("n")
        self.ran(node, "deploy", 60, run_id=node.run_id)
        self.ran(node, "deploy", 10, 20)
        self.ran(self.make("other"), "boot_instance", 30)
        for path in ("nodes/n/timeline", f"runs/{node.run_id}"):
            steps = self.good("GET", f"/ingot/v1/{path}", version=None)["steps"]
            self.assertEqual([15, None, 30], [step["usual_duration"] for step in steps])

    def test_the_explanation_says_what_the_overview_does(self) -> None:
        self.ran(self.deploying("n", seconds=300), "write_image", 10)
        found = self.good("GET", "/ingot/v1/nodes/n/explanation", version=None)["triage"]
        need = self.needs()["n"]
        for name in ("cause", "next", "step", "since"):
            self.assertEqual(need[name], found[name])
        self.assertEqual(need["reason"].split(";")[1], found["reason"].split(";")[1])  # after the time that passes
        self.assertEqual(triage.TITLES[triage.Cause.OVERDUE], found["title"])

    def test_the_explanation_of_a_failure(self) -> None:
        self.make("n", states.DEPLOYFAIL, last_error="disk on fire")
        found = self.good("GET", "/ingot/v1/nodes/n/explanation", version=None)["triage"]
        self.assertEqual(("failed", "disk on fire"), (found["cause"], found["reason"]))
        self.make("m")
        self.assertIsNone(self.good("GET", "/ingot/v1/nodes/m/explanation", version=None)["triage"])


class Cost(OverviewCase):
    def test_is_the_same_for_any_fleet_and_groups_stay_short(self) -> None:
        costs = []
        for size in (1, 300):
            fields, table = rows.json_defaults(nodes.NODES), nodes.NODES
            for state, flow in ((states.DEPLOYFAIL, None), (states.DEPLOYWAIT, "deploy"), (states.ACTIVE, None)):
                row = {**fields, "driver": "fake-hardware", "provision_state": state, "flow": flow,
                       "provision_updated_at": clock.now(), "due_at": clock.after(60) if flow else None,
                       "step_state": "waiting" if flow else None,
                       "driver_internal_info": {"deploy_steps": PLAN, "deploy_step_index": 1}}  # fmt: skip
                with self.db.single() as connection:
                    connection.execute(
                        sa.insert(table),
                        [{**row, "uuid": str(uuid.uuid4()), "run_id": str(uuid.uuid4())} for _ in range(size)],
                    )
            self.overview()
            with sql_counter.counting(self.db) as counted:
                found = self.overview()
            costs.append(len(counted))
        self.assertEqual([("failed", 301, 50), ("waiting", 301, 50)], [
            (one["cause"], one["count"], len(one["nodes"])) for one in found["triage"]])  # fmt: skip
        self.assertEqual((301, 50, 903), (found["work_count"], len(found["work"]), found["counts"]["total"]))
        self.assertEqual([7, 7], costs)


class Projects(OverviewCase, identity_case.IdentityCase):
    def test_see_their_own_nodes_only(self) -> None:
        own = {"owner": "owner", "lessee": "lessee"}
        self.make("theirs", states.DEPLOYFAIL, last_error="disk on fire", **own)
        self.deploying("works", **own)
        self.make("other", states.DEPLOYFAIL, owner="elsewhere", last_error="x")
        every = self.seen_by("system reader")
        self.assertEqual((2, 1, 3), (every["triage"][0]["count"], len(every["work"]), every["counts"]["total"]))
        owners = self.seen_by("owner reader")
        self.assertEqual(["theirs"], [node["name"] for node in owners["triage"][0]["nodes"]])
        self.assertEqual("disk on fire", owners["triage"][0]["nodes"][0]["reason"])
        self.assertEqual((1, 2), (len(owners["work"]), owners["counts"]["total"]))
        lessees = self.seen_by("lessee reader")
        self.assertEqual((2, []), (lessees["counts"]["total"], lessees["work"]))  # runs are the owner's to see
        self.assertIsNone(lessees["triage"][0]["nodes"][0]["reason"])
        self.assertIn("Fix the cause", lessees["triage"][0]["nodes"][0]["next"]["text"])
        self.assertEqual(0, self.seen_by("stranger reader")["counts"]["total"])

    def test_who_sees_nothing_inside_learns_no_name_of_a_conductor(self) -> None:
        self.make("stuck", states.DEPLOYING, flow="deploy", reservation="conductor-9", owner="owner", lessee="lessee",
                  due_at=clock.now(), step_state="running", step_started_at=clock.after(-10**6),
                  provision_updated_at=clock.after(-10**6))  # fmt: skip
        for person, knows in (("owner reader", True), ("lessee reader", False)):
            found = self.seen_by(person)["triage"][0]["nodes"][0]["next"]["text"]
            self.assertEqual(knows, "conductor-9" in found, found)

    def seen_by(self, person: str) -> Any:
        answer = self.ask(person, "GET", "/ingot/v1/overview")
        self.assertEqual(200, answer.status, answer)
        return answer.json
