"""Why a node is where it is: one answer of its own endpoint, the timeline, the node and the command."""

import contextlib
import datetime
import io
import json
import pathlib
import time
from typing import Any

import fixtures
import sqlalchemy as sa

from ingot.common import clock, states
from ingot.common.waits import TEXTS, Wait
from ingot.db import conductors, nodes
from ingot.db.cmd import status
from tests import api_case, database, sql_counter

RUN = "11111111-1111-1111-1111-111111111111"
PLAN = {"deploy_steps": [{"interface": "deploy", "step": "deploy", "args": {}, "origin": "driver"}],
        "deploy_step_index": 0}  # fmt: skip


class ExplanationsCase(api_case.ApiCase):
    def setUp(self) -> None:
        super().setUp()
        self.known = database.make_node(self.db, name="n", driver="fake-hardware")

    def put(self, **values: Any) -> None:
        with self.db.single() as connection:
            connection.execute(sa.update(nodes.NODES).values(values))

    def deploy(self, step_state: str | None, **values: Any) -> Any:
        """Return the explanation of a node whose deployment stands so."""
        began = clock.after(-100)
        self.put(
            **{
                "flow": "deploy",
                "run_id": RUN,
                "provision_state": states.DEPLOYWAIT,
                "provision_updated_at": began,
                "driver_internal_info": PLAN,
                "step_state": step_state,
                "step_attempt": 1,
                "step_started_at": began,
                "reservation": None,
                "due_at": clock.after(30),
                "step_memory": {},
                **values,
            }
        )
        return self.explained()

    def explained(self) -> Any:
        return self.good("GET", "/ingot/v1/nodes/n/explanation", version=None)

    def remove_conductors(self) -> None:
        with self.db.single() as connection:
            connection.execute(sa.update(conductors.CONDUCTORS).values(online=False))


class Machines(ExplanationsCase):
    """How far a machine is that is to boot the agent."""

    def test_that_has_not_booted_yet(self) -> None:
        deadline = clock.after(1700)
        found = self.deploy("waiting", step_deadline=deadline, boot_script_at=clock.after(-5000))
        self.assertEqual(
            (Wait.BOOT_SCRIPT, "deploy.deploy", "deploy"), tuple(found[k] for k in ("kind", "step", "flow"))
        )
        self.assertEqual(clock.iso(deadline), found["until"])
        self.assertEqual(self.good("GET", "/v1/nodes/n")["provision_updated_at"], found["since"])
        self.assertEqual("boot script fetched", found["last_sign"]["what"])  # that of an earlier boot
        self.assertIn(f"the node becomes 'deploy failed', at {clock.iso(deadline)}", found["next"])
        self.assertIn("MAC address", " ".join(found["usual_causes"]))

    def test_each_sign_of_the_machine_says_more(self) -> None:
        signs: dict[str, Any] = {}
        for seconds, column, what, kind in (
            (-50, "boot_script_at", "boot script fetched", Wait.AGENT_START),
            (-40, "agent_token_at", "node looked up", Wait.FIRST_HEARTBEAT),
            (-30, "agent_last_heartbeat", "heartbeat", Wait.HEARTBEAT),
        ):
            signs[column] = clock.after(seconds)
            found = self.deploy("waiting", **signs)
            self.assertEqual(
                (kind, {"what": what, "at": clock.iso(signs[column])}), (found["kind"], found["last_sign"])
            )
        self.assertIn("no time limit", found["next"])
        found = self.deploy("watching", provision_updated_at=clock.now(), **signs)  # since the step began, not its call
        self.assertEqual(Wait.COMMAND, found["kind"])
        self.assertLess(found["since"], clock.iso(signs["boot_script_at"]))

    def test_that_may_not_be_able_to_fetch_its_kernel(self) -> None:
        doubt = "driver_info.deploy_kernel: http://u:hush@h/k could not be checked from the conductor"
        found = self.deploy("waiting", driver_internal_info={**PLAN, "boot_file_doubts": [doubt]})
        self.assertEqual([doubt.replace("hush", "******")], found["notes"])


class Waits(ExplanationsCase):
    def test_of_steps_that_poll(self) -> None:
        until = round(time.time()) + 42
        for wait in (*(wait for wait in TEXTS if wait != Wait.HARDWARE), "the firmware update of a plug-in"):
            found = self.deploy("polling", step_memory={"engine": {"waits_for": str(wait), "until": until}})
            self.assertEqual(until, clock_of(found["until"]))
            self.assertEqual(wait if wait in TEXTS else Wait.HARDWARE, found["kind"])
        self.assertEqual("the firmware update of a plug-in", found["waits_for"])
        found = self.deploy("polling", step_memory={"engine": {"waits_for": "a plug-in", "until": 1e300}})
        self.assertIsNone(found["until"])
        found = self.deploy("polling")  # a driver that says nothing, of another release too
        self.assertEqual(Wait.HARDWARE, found["kind"])
        self.assertIn("deploy.deploy", found["waits_for"])
        self.assertAlmostEqual(time.time() - 100 + self.conf.conductor.step_timeout, clock_of(found["until"]), delta=10)

    def test_of_a_power_change(self) -> None:
        until = round(time.time()) + 42
        self.put(power_request={"target": "power on", "until": until}, target_power_state="power on")
        found = self.explained()
        self.assertEqual((Wait.POWER, until, None), (found["kind"], clock_of(found["until"]), found["flow"]))
        self.assertIsNotNone(found["since"])

    def test_of_a_node_that_an_operator_holds(self) -> None:
        found = self.deploy("holding", provision_state=states.DEPLOYHOLD, abort_requested=True)
        self.assertEqual((Wait.OPERATOR, None), (found["kind"], found["until"]))
        self.assertIn("unhold", found["next"])
        self.assertIn("abort is requested", found["notes"][0])

    def test_for_a_turn(self) -> None:
        for step_state, due_at in ((None, clock.now()), ("next", clock.now()), ("waiting", clock.after(-600))):
            found = self.deploy(step_state, due_at=due_at)
            self.assertEqual((Wait.TURN, clock.iso(due_at)), (found["kind"], found["since"]))

    def test_for_a_conductor(self) -> None:
        found = self.deploy("running", reservation=api_case.HOST, locked_at=clock.now(), lock_purpose="heartbeat")
        self.assertEqual((Wait.CONDUCTOR, api_case.HOST), (found["kind"], found["conductor"]))
        self.assertIn("heartbeat", found["waits_for"])
        found = self.deploy("running", reservation="dead", locked_at=clock.now())
        self.assertEqual(Wait.DEAD_CONDUCTOR, found["kind"])
        self.remove_conductors()
        found = self.deploy("waiting")
        self.assertEqual(Wait.NO_CONDUCTOR, found["kind"])
        self.assertIn("driver fake-hardware in group ''", found["waits_for"])

    def test_for_a_bmc_whose_readings_fail_too(self) -> None:
        found = self.deploy("polling", fault="power failure", maintenance_reason="no answer from 10.0.0.1")
        self.assertIn("10.0.0.1", found["notes"][0])

    def test_says_when_it_is_stale_though_nothing_happens(self) -> None:
        limit = self.conf.api.ramdisk_heartbeat_timeout
        heard, deadline = clock.after(-limit + 60), clock.after(200)
        for values, expected in (
            ({"agent_last_heartbeat": heard, "step_deadline": deadline}, heard + datetime.timedelta(seconds=limit)),
            ({"step_deadline": deadline}, deadline),
            ({"reservation": api_case.HOST, "locked_at": clock.now()}, clock.after(2)),
            ({"reservation": api_case.HOST, "locked_at": clock.after(-10)}, clock.after(3000)),
        ):
            cleared = {"agent_last_heartbeat": None, "due_at": clock.after(3000), "step_deadline": None}
            shown = self.deploy("waiting", **{**cleared, **values})
            self.assertIn("at", shown)
            stale_at = datetime.datetime.fromisoformat(shown["stale_at"]).replace(tzinfo=None)
            self.assertLess(abs((stale_at - expected).total_seconds()), 60, values)
        self.put(flow=None, step_state=None, provision_state=states.AVAILABLE, reservation=None, due_at=None)
        self.assertIsNone(self.explained()["stale_at"])

    def test_for_nothing(self) -> None:
        self.put(provision_state=states.DEPLOYFAIL)
        found = self.explained()
        self.assertEqual((Wait.REQUEST, None, None), (found["kind"], found["step"], found["last_sign"]))


class Doors(ExplanationsCase):
    def test_say_the_same(self) -> None:
        found = self.deploy("waiting", step_deadline=clock.after(1700), boot_script_at=clock.now())
        about = {name: found.pop(name) for name in ("node_uuid", "node_name", "triage", "at", "stale_at")}
        self.assertEqual((self.known.uuid, "n", "waiting"), (*list(about.values())[:2], about["triage"]["cause"]))
        for path in ("nodes/n/timeline", f"runs/{RUN}"):
            self.assertEqual(found, self.good("GET", f"/ingot/v1/{path}", version=None)["explanation"])
        shown = self.good("GET", "/v1/nodes/n")["driver_internal_info"]
        self.assertEqual(found, shown["explanation"])
        code, printed = self.run_command("explain", "n", "--json")
        self.assertEqual((0, {"node_uuid": self.known.uuid, **found}), (code, json.loads(printed)))
        code, printed = self.run_command("explain", self.known.uuid)
        for part in (found["waits_for"], found["since"], found["until"], found["next"], *found["usual_causes"]):
            self.assertIn(part, printed)

    def run_command(self, *arguments: str) -> tuple[int, str]:
        file = pathlib.Path(self.useFixture(fixtures.TempDir()).path) / "ingot.conf"
        url = self.conf.database.connection
        file.write_text(f"[database]\nconnection = {url}\n[DEFAULT]\nauth_strategy = noauth\n")
        with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(out):
            code = status.main(["--config-file", str(file), *arguments])
        return code, out.getvalue()

    def test_a_node_that_is_unknown(self) -> None:
        self.refused(404, "GET", "/ingot/v1/nodes/other/explanation")
        code, printed = self.run_command("explain", "other")
        self.assertEqual(255, code)
        self.assertIn("other", printed)
        self.assertNotIn("Traceback", printed)

    def test_a_node_at_rest_and_a_run_of_the_past_have_none(self) -> None:
        self.assertNotIn("explanation", self.good("GET", "/v1/nodes/n")["driver_internal_info"])
        self.assertIsNone(self.good("GET", "/ingot/v1/nodes/n/timeline", version=None)["explanation"])

    def test_showing_a_node_costs_no_statement_more(self) -> None:
        costs = []
        for step_state in ("waiting", "polling"):
            self.deploy(step_state)
            with sql_counter.counting(self.db) as counted:
                self.good("GET", "/v1/nodes/n?fields=driver_internal_info")
            costs.append(len(counted))
        self.assertEqual([1, 1], costs)

    def test_an_agent_that_looks_its_node_up_gets_none(self) -> None:
        self.deploy("waiting")
        found = self.good("GET", f"/v1/lookup?node_uuid={self.known.uuid}")
        self.assertNotIn("explanation", found["node"]["driver_internal_info"])


def clock_of(moment: str) -> float:
    """Return an answered moment on the clock of time.time."""
    return datetime.datetime.fromisoformat(moment).timestamp()
