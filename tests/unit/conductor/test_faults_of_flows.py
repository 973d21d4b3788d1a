"""What becomes of a node when something goes wrong: all flows, all ways to run a step, all faults (``fault_table``).

Each cell of the table is a test: the node's state and target, last_error, maintenance and fault, lock, step runs,
history and power are those of the table, and the same node gets through the flow once the fault is gone.
"""

import dataclasses
import functools
import itertools
import re
from collections.abc import Callable

import testtools

from ingot.common import clock, states
from ingot.conductor.flows import FLOWS
from ingot.db import models, nodes
from tests import scripted
from tests.scripted_hardware import Act
from tests.unit.conductor import fault_table
from tests.unit.conductor.fault_table import CANNOT, CASES, EXPECTED, FAULTS, OFF, ON, SCRIPTED, WAYS


class TestTable(testtools.TestCase):
    def test_every_flow_has_its_rows(self) -> None:
        self.assertEqual(sorted(FLOWS), sorted(CASES), "a new flow needs a Case, and reasons for what cannot occur")

    def test_every_cell_is_expected_or_has_a_reason_and_not_both(self) -> None:
        for flow, way, fault in itertools.product(CASES, WAYS, FAULTS):
            is_expected = way in EXPECTED[fault]
            if not is_expected:
                self.assertTrue(fault_table.reasons(flow, way, fault), (flow, way, fault))
        self.assertEqual(sorted(FAULTS), sorted(EXPECTED))

    def test_every_reason_is_needed(self) -> None:
        for number, row in enumerate(CANNOT):
            others = [*CANNOT[:number], *CANNOT[number + 1 :]]
            needed = [
                cell
                for cell in itertools.product(CASES, WAYS, FAULTS)
                if all(part in of for part, of in zip(cell, row[:3], strict=True))
                and not any(all(part in of for part, of in zip(cell, one[:3], strict=True)) for one in others)
            ]
            self.assertTrue(needed, row)

    def test_a_conductor_that_is_at_work_is_not_interrupted_by_an_abort(self) -> None:
        for flow, case in CASES.items():
            self.assertIsNone(states.requested_state(case.accepted, "abort"), flow)


class FaultCase(scripted.ScriptedCase):
    """Runs one cell: the flow meets the fault, is checked, and is asked for again once the fault is gone."""

    def meets(self, flow: str, way: str, fault: str) -> None:
        self.flow, self.way, self.fault, self.case = flow, way, fault, CASES[flow]
        self.node = self.machine_before()
        self.past = len(self.history(self.node))
        self.step = self.script()
        kin = {"parent_node": self.node.uuid, "provision_state": states.ACTIVE}
        self.kin = [self.machine(**kin)] if way == "children" else []
        self.expected = fault_table.expected(flow, way, fault)
        self.ask(self.case.start)
        _PROVOKE.get(fault, FaultCase.just_run)(self)
        self.check()
        if self.expected.cause:
            self.recovers()

    def machine_before(self) -> models.Node:
        """Return a machine that can run the flow."""
        before = CASES[self.case.after] if self.case.after else self.case
        node = self.machine(
            provision_state=before.start, power_state=before.power[0], automated_clean=self.flow != "delete"
        )
        if self.case.after:
            spill = {"interface": "vendor", "step": "spill", "args": {}}
            self.stage.acts = [Act(str(before.kind), "vendor", "spill", fault="raises")]
            self.asked(node, self.case.after, before.accepted, **{str(before.asks): [spill]})
            self.take_turns(node)
            self.clear_maintenance(node)
        self.assertEqual(self.case.start, self.now(node).provision_state)
        return node

    def clear_maintenance(self, node: models.Node) -> None:
        """Clear the maintenance as an operator does."""
        nodes.set_always(self.db, node.uuid, {"maintenance": False, "fault": None})

    # The script

    def script(self) -> tuple[str, str]:
        """Write the script; return interface and name of the step that meets the fault."""
        elsewhere = ("agent dies", "heartbeat lost", "aborted", "aborted late")
        fault = {**dict.fromkeys(elsewhere), "raises after abort": "raises"}.get(self.fault, self.fault)
        if self.way == "reserved":
            failing = {"agent dies": "wait", "heartbeat lost": "wait", "aborted": "hold"}.get(self.fault)
            failing = failing or ("power_on" if self.flow == "for_parent" else "power_off")
            self.stage.acts = [Act("flow", "power", failing, fault=fault)]
            step = ("power", failing)
        elif self.way in ("entry", "boot"):
            name = str(self.case.entry if self.way == "entry" else self.case.boot)
            own = {entry.name: entry.interface for entry in (*FLOWS[self.flow].first, *FLOWS[self.flow].last)}
            step = (own.get(name, "deploy"), name)
            self.stage.acts = [Act("flow", *step, fault=None if fault == "token wrong" else fault)]
            self.stage.distrusted = fault == "token wrong"
        else:
            step = ("raid", "mirror") if self.way == "agent" else ("vendor", "polish")
            slowly = self.way == "children" and self.fault in ("hangs", "aborted")
            way, fault = ("polling", "hangs") if slowly else (self.way, fault)
            act = Act(str(self.case.kind), *step, way="at once" if way == "children" else way, fault=fault)
            act.idempotent, act.abortable = self.case.idempotent, self.fault == "aborted"
            act.reboot_requested = self.fault == "replaced"
            # The second step must not begin after an abort that had to wait for the end of the first.
            rinse = [Act(str(self.case.kind), "vendor", "rinse", 40)] if self.fault == "aborted late" else []
            self.stage.acts = [act, *rinse]
        return step

    def ask(self, state: str) -> None:
        case = self.case
        if case.verb:
            self.assertEqual(case.accepted, case.find_reached(state))
        named = [self.step, *((act.interface, act.step) for act in self.stage.acts[1:])]
        steps = [{"interface": one[0], "step": one[1], "args": {}, "priority": 50} for one in named]
        request = dict(case.request)
        if case.asks:
            requested = self.way == "reserved" or (self.flow != "deploy" and self.way not in ("entry", "boot"))
            request[case.asks] = steps if requested else []
        if self.way == "children":
            request[str(case.asks)][0]["execute_on_child_nodes"] = True
        if self.flow == "for_parent":
            request |= {"kind": "service", "run": scripted.some_run(), "origin": "request", "disable_ramdisk": True}
        self.asked(self.node, self.flow, case.accepted, **request)

    # The faults

    def just_run(self) -> None:
        self.take_turns(self.node)

    def hang(self) -> None:
        self.just_run()
        limit = self.conf.conductor
        seconds = limit.power_state_change_timeout if self.way == "reserved" else limit.step_timeout
        hanging = self.kin[0] if self.kin else self.node
        states = {"waiting": "waiting", "agent": "watching"}
        self.assertEqual(states.get(self.way, "polling"), self.now(hanging).step_state)
        self.let_pass(hanging, seconds + 1)
        self.just_run()

    def die(self) -> None:
        self.stage.silent_in = self.step
        before = self.take_turns(self.node)
        self.assertEqual(FLOWS[self.flow].waiting, before.provision_state)
        self.let_pass(self.node, self.conf.conductor[str(FLOWS[self.flow].timeout_option)] + 1)
        self.take_turns(self.node, sweeps=True)

    def lose_heartbeat(self) -> None:
        self.take_turns(self.node, sweeps=True)

    def kill(self) -> None:
        if self.way == "children":
            life = self.stage.life
            self.stage.acts[0].fault = None
            self.conductor.services.notify = lambda _node, _why: life.end()
        dead = self.take_turns(self.node)
        self.assertTrue(self.stage.life.dead)
        self.assertEqual(("conductor-1", "running"), (dead.reservation, dead.step_state))
        self.stage.acts[0].fault = None
        self.another_conductor()
        self.sweep_for(self.node)
        self.just_run()

    def abort(self) -> None:
        """Write what the API writes, where the API accepts it."""
        wait_or_hold = (FLOWS[self.flow].waiting, FLOWS[self.flow].held)
        now = self.take_turns(
            self.node, until=lambda now: scripted.current(now) == self.step and now.provision_state in wait_or_hold
        )
        self.assertIsNotNone(states.requested_state(now.provision_state, "abort"))
        nodes.set_always(self.db, self.node.uuid, {"abort_requested": True, "due_at": clock.now()})
        self.just_run()
        for child in self.kin:  # no flow waits for them any more
            self.notify_and_wait(child)
            self.assertIn("was aborted", self.now(child).last_error)

    # The checks

    def check(self) -> None:
        now, case, flow = self.now(self.node), self.case, FLOWS[self.flow]
        self.free(self.node)
        if self.expected.cause is None:
            self.check_good_end(now)
        elif self.expected.leaves:
            self.assertEqual((case.done, None), (now.provision_state, now.target_provision_state))
            self.assertEqual((False, None, case.power[2]), (now.maintenance, now.fault, now.power_state))
            self.check_error(now.last_error, "was aborted", flow.title, "")
        else:
            aborted = self.fault.startswith("aborted")
            self.assertEqual(case.failed, (now.provision_state, now.target_provision_state))
            fault = None if aborted else case.fault
            self.assertEqual((fault is not None, fault), (now.maintenance, now.fault))
            self.check_error(now.last_error, "was aborted" if aborted else "failed", flow.title, f" {flow.advice}")
            self.assertEqual(self.power_after_failure(), now.power_state)
        self.check_step_runs(now)
        for child in self.kin:
            self.free(child)

    def check_error(self, last_error: str, what: str, title: str, advice: str) -> None:
        where = "vendor.rinse" if self.fault == "aborted late" else ".".join(self.step)
        pattern = rf"{title} {what} in step {re.escape(where)} on conductor conductor-\d: (.*)\.{re.escape(advice)}"
        found = re.fullmatch(pattern, last_error)
        self.assertIsNotNone(found, last_error)
        self.assertRegex(found[1], str(self.expected.cause))  # type: ignore[index]

    def power_after_failure(self) -> str:
        before, failed, _done = self.case.power
        if self.way == "reserved" and self.fault in ("raises", "is a bug", "hangs"):
            return OFF if self.flow == "for_parent" else ON  # the BMC did not obey, and still does not
        ran = self.way not in ("entry", "boot") or self.fault not in ("raises", "is a bug", "hangs")
        return failed if ran or self.flow in ("deploy", "rescue") else before

    def check_good_end(self, now: models.Node) -> None:
        case = self.case
        power = ON if (self.flow, self.way) == ("for_parent", "reserved") else case.power[2]
        self.assertEqual((case.done, None, None), (now.provision_state, now.target_provision_state, now.last_error))
        self.assertEqual((False, None, power), (now.maintenance, now.fault, now.power_state))

    def check_step_runs(self, now: models.Node) -> None:
        run = [row for row in self.step_runs(self.node) if row.flow == self.flow]
        own = [row.state for row in run if (row.interface, row.step) == self.step]
        self.assertEqual(list(self.expected.attempts), own)
        others = {row.state for row in run if (row.interface, row.step) != self.step}
        self.assertLessEqual(others, {"done", "aborted"} if self.fault == "aborted late" else {"done"})
        self.assertNotIn("rinse", [one[2] for one in self.stage.did])
        if self.way in (*SCRIPTED, "children"):
            did = [one for one in self.stage.did if one[1:3] == self.step]
            # Children are asked once: those of a parent whose conductor dies too.
            self.assertEqual(1 if self.way == "children" else self.expected.did, len(did))
        self.check_history(now, run)

    def check_history(self, now: models.Node, run: list[models.Record]) -> None:
        entries = self.history(self.node)[self.past :]
        if self.flow == "delete" and self.expected.cause is None:
            entries = entries[:-1]  # of the cleaning that follows
        last = entries[-1]
        title = FLOWS[self.flow].title
        severity = "INFO" if self.expected.cause is None or self.expected.leaves else "ERROR"
        ended = (severity, now.last_error or f"{title} completed.")
        self.assertEqual((*ended, "provisioning"), (last.severity, last.event, last.event_type))
        steps = [entry for entry in entries if entry.event_type == "step"]
        # What starts again has an entry for the step once more.
        again = 1 if self.fault in ("upgraded", "replaced") and self.expected.cause is None else 0
        self.assertEqual(
            len({row.step_index for row in run}) + again, len(steps), str([entry.event for entry in steps])
        )
        own = [entry for entry in steps if f"Step {'.'.join(self.step)} " in entry.event]
        self.assertEqual("INFO" if self.expected.attempts[-1] == "done" else "ERROR", own[-1].severity)
        self.assertGreaterEqual(own[-1].duration_seconds, 0)

    def recovers(self) -> None:
        """Check that the same node succeeds once the fault is gone, and leaves its maintenance."""
        self.stage.acts = [dataclasses.replace(act, fault=None) for act in self.stage.acts]
        self.stage.silent_in, self.stage.distrusted, self.agent(self.node).malformed = None, False, False
        failed = self.step_runs(self.node)
        self.ask(self.now(self.node).provision_state)
        held = FLOWS[self.flow].held
        self.take_turns(self.node, until=lambda now: held is not None and now.provision_state == held)
        if self.now(self.node).provision_state == held:
            verb = states.requested_state(str(held), "unhold")
            nodes.set_always(self.db, self.node.uuid, {"provision_state": verb, "due_at": clock.now()})
            self.take_turns(self.node)
        self.free(self.node)
        self.check_good_end(self.now(self.node))
        fresh = self.step_runs(self.node)[len(failed) :]
        self.assertEqual({"done"}, {row.state for row in fresh})
        self.assertIn(self.step, [(row.interface, row.step) for row in fresh])


_PROVOKE: dict[str, Callable[[FaultCase], None]] = {
    "hangs": FaultCase.hang,
    "agent dies": FaultCase.die,
    "heartbeat lost": FaultCase.lose_heartbeat,
    "killed": FaultCase.kill,
    "aborted": FaultCase.abort,
    "aborted late": FaultCase.abort,
    "raises after abort": FaultCase.abort,
}


def _test(cell: tuple[str, str, str]) -> Callable[[FaultCase], None]:
    return lambda case: case.meets(*cell)


def _class_of(flow: str) -> type[FaultCase]:
    """Make the tests of a flow: a class of its own, so that flows are tested side by side."""
    tests = {
        "_".join(("test", *cell)).replace(" ", "_"): _test(cell) for cell in fault_table.cells() if cell[0] == flow
    }
    return type(f"Test_{flow}", (FaultCase,), {"__module__": __name__, **tests})


globals().update({case.__name__: case for case in map(_class_of, CASES)})


class TestAbortMeanwhile(scripted.ScriptedCase):
    """The API takes an abort while the conductor, which has locked the node before, ends the step that has waited."""

    def abort(self, node: models.Node) -> None:
        now = self.now(node)
        self.assertIsNotNone(states.requested_state(now.provision_state, "abort"))
        nodes.set_always(self.db, node.uuid, {"abort_requested": True, "due_at": clock.now()})

    def test_no_further_step_begins(self) -> None:
        for flow in ("manual_clean", "service"):
            case = CASES[flow]
            for way in ("at once", "agent"):
                with self.subTest(flow=flow, way=way):
                    node = self.machine(provision_state=case.start, power_state=case.power[0])
                    wait = Act(str(case.kind), "raid", "wait", way="waiting")
                    erase = Act(str(case.kind), "vendor", "erase", way=way)
                    self.stage.acts, self.stage.did = [wait, erase], []
                    steps = [{"interface": act.interface, "step": act.step, "args": {}} for act in (wait, erase)]
                    self.stage.meanwhile = functools.partial(self.abort, node)
                    self.asked(node, flow, case.accepted, **{str(case.asks): steps})
                    end = self.take_turns(node)
                    self.assertEqual(["wait"], [one[2] for one in self.stage.did])
                    self.assertIn("was aborted", end.last_error)
