"""A database that was restored from a backup: what is given up, what is held back, and who is forgotten."""

import contextlib
import io
import pathlib

import fixtures
import sqlalchemy as sa

from ingot.common import clock, context, errors, states
from ingot.common.conf import opts
from ingot.conductor import manager
from ingot.conductor.cmd import drain
from ingot.db import allocations, conductors, events, maintenance, models, nodes, restoring
from ingot.db.cmd import dbsync
from tests import command_process, conductor_case, database

_ALLOCATIONS = models.table(models.Allocation)


class Restored(conductor_case.ConductorCase):
    starts = False

    def make(self, state: str, **values: object) -> models.Node:
        return database.make_node(self.db, provision_state=state, power_state=states.POWER_ON, **values)

    def test_every_state_of_work_ends_in_a_failure_and_all_others_stay(self) -> None:
        made = {state: self.make(state) for state in states.ALL}
        report = restoring.restore(self.db)
        self.assertEqual(len(made), report.held)
        for state, node in made.items():
            now = nodes.get(self.db, node.uuid)
            stays = state in states.STABLE | states.FAILED
            self.assertEqual(stays, now.provision_state == state, state)
            self.assertIn(now.provision_state, states.STABLE | states.FAILED)
            self.assertEqual(stays, now.last_error is None, state)
            self.assertTrue(now.maintenance)
            self.assertIsNone(now.power_state)
            self.assertEqual([maintenance.UNCONFIRMED], [hold["name"] for hold in now.maintenance_holds])
            self.assertEqual([now.provision_state], [entry.state for entry in self.history(now)])
        lost = {one.state: one.now for one in report.interrupted}
        self.assertEqual(states.ERROR, lost[states.DELETING])
        self.assertEqual(states.ENROLL, lost[states.VERIFYING])
        self.assertEqual(states.SERVICEFAIL, lost[states.SERVICEHOLD])

    def test_a_lock_a_flow_and_an_agent_are_forgotten(self) -> None:
        node = self.make(
            states.DEPLOYWAIT,
            flow="deploy",
            run_id="r",
            due_at=clock.now(),
            step_state="waiting",
            boot_config={"to": "agent"},
        )
        locked = nodes.lock(self.db, node.uuid, "gone", "to deploy")
        nodes.write_locked(self.db, locked, {"agent_token": "known", "agent_url": "https://[::1]:9999"})
        restoring.restore(self.db)
        now = nodes.get(self.db, node.uuid)
        forgotten = (now.reservation, now.flow, now.run_id, now.due_at, now.step_state, now.agent_url)
        self.assertEqual((None,) * 6, forgotten)
        self.assertEqual({}, now.boot_config)
        self.assertNotIn(now.agent_token, (None, "known"))
        self.assertRaises(errors.LockLost, nodes.write_locked, self.db, locked, {"agent_url": None})

    def test_a_hold_of_a_user_outlives_the_confirmation(self) -> None:
        ctx = context.RequestContext(user_id="ada")
        node = self.make(states.AVAILABLE)
        maintenance.write_holds(self.db, node.uuid, lambda found: maintenance.set_flag(found, ctx, True, "a new disk"))
        for _again in range(2):
            restoring.restore(self.db)
        self.assertEqual([node.uuid], [held.uuid for held in restoring.list_held(self.db)])
        restoring.confirm(self.db, [node.uuid])
        now = nodes.get(self.db, node.uuid)
        self.assertEqual((True, "a new disk"), (now.maintenance, now.maintenance_reason))
        self.assertEqual([], restoring.list_held(self.db))

    def test_allocations_that_search_fail_and_others_stay(self) -> None:
        for name, state in (("one", allocations.ALLOCATING), ("two", allocations.ACTIVE)):
            row = {
                "uuid": f"{name:0>36}",
                "name": name,
                "state": state,
                "candidate_nodes": [],
                "traits": [],
                "extra": {},
            }
            self.db.write(sa.insert(_ALLOCATIONS).values(row))
        self.assertEqual(["one"], restoring.restore(self.db).allocations)
        found = self.db.read_column(sa.select(_ALLOCATIONS.c.state).order_by(_ALLOCATIONS.c.name))
        self.assertEqual([allocations.ERROR, allocations.ACTIVE], found)

    def test_readers_of_events_learn_that_some_are_missing(self) -> None:
        nodes.compare_and_set(self.db, self.make(states.AVAILABLE), {"provision_state": states.MANAGEABLE})
        events.collect(self.db, 30)
        _oldest, read_before = events.bounds(self.db)
        restoring.restore(self.db)
        oldest, _latest = events.bounds(self.db)
        self.assertGreater(oldest, read_before + 1_000_000)

    def test_they_learn_it_of_a_backup_without_any_event(self) -> None:
        restoring.restore(self.db)
        self.assertGreater(events.bounds(self.db)[0], 1_000_000)
        nodes.compare_and_set(self.db, self.make(states.AVAILABLE), {"provision_state": states.MANAGEABLE})
        events.collect(self.db, 30)
        self.assertEqual([], [one.id for one in events.read_page(self.db, 0, 10) if one.id < 1_000_000])

    def test_nothing_is_written_without_need(self) -> None:
        node = self.make(states.CLEANWAIT)
        report = restoring.restore(self.db, dry_run=True)
        self.assertEqual([states.CLEANFAIL], [one.now for one in report.interrupted])
        self.assertEqual(states.CLEANWAIT, nodes.get(self.db, node.uuid).provision_state)

    def test_many_nodes_take_few_transactions(self) -> None:
        restoring.restore(self.db)  # the first one leaves a mark in the events
        for _ in range(5):
            self.make(states.AVAILABLE)
        with database.statements(self.db) as few:
            restoring.restore(self.db)
        for _ in range(50):
            self.make(states.AVAILABLE)
        with database.statements(self.db) as many:
            restoring.restore(self.db)
        self.assertEqual(2 * 50, len(many) - len(few))

    def test_conductors_begin_anew_and_work_on_nothing(self) -> None:
        node = self.make(states.DEPLOYWAIT, flow="deploy", due_at=clock.now())
        restoring.restore(self.db)
        self.start(manager.Conductor(self.conf, self.db))
        self.conductor.sweeper.sweep()
        self.assertEqual(states.DEPLOYFAIL, self.settled(node).provision_state)
        self.assertEqual([], self.step_runs(node))


class Commands(conductor_case.ConductorCase):
    starts = False

    def setUp(self) -> None:
        super().setUp()
        self.useFixture(command_process.CommandProcess())

    def command(self, *words: str) -> str:
        """Return the output of a command of ingot-dbsync.

        :raises AssertionError: it fails.
        """
        file = pathlib.Path(self.useFixture(fixtures.TempDir()).path, "ingot.conf")
        connection, key = self.database.url, self.conf.secrets.key_file
        file.write_text(f"[database]\nconnection = {connection}\n[secrets]\nkey_file = {key}\n")
        output, complaints = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(output), contextlib.redirect_stderr(complaints):
            ended = dbsync.main(["--config-file", str(file), *words])
        if ended:
            raise AssertionError(complaints.getvalue())
        return output.getvalue()

    def test_restored_then_confirm(self) -> None:
        node = database.make_node(self.db, name="rack-1-7", provision_state=states.INSPECTWAIT)
        self.assertIn("Dry run", self.command("restored", "--dry-run"))
        said = self.command("restored")
        self.assertIn("node rack-1-7: inspect wait -> inspect failed", said)
        self.assertIn("1 nodes are held back, 1 flows are given up", said)
        self.assertIn(f"{node.uuid}  rack-1-7", self.command("confirm"))
        refused = str(self.assertRaises(AssertionError, self.command, "confirm", "rack-1-7", "rack-1-8"))
        self.assertIn("rack-1-8", refused)
        self.assertIn("1 nodes are confirmed", self.command("confirm", "rack-1-7"))
        self.assertIn("0 nodes are held back", self.command("confirm"))

    def test_a_conductor_that_is_online_is_in_the_way(self) -> None:
        conductors.register(self.db, "rack-1", {"release": "0.3.0", "rpc_version": "1.0"}, [])
        self.assertIn("rack-1", str(self.assertRaises(AssertionError, self.command, "restored")))

    def forget(self, *names: str) -> str:
        conf = opts.load(["forget", *names], prog="ingot-conductor", files=[], cli_opts=drain.OPTIONS)
        output = io.StringIO()
        with contextlib.redirect_stdout(output):
            drain.COMMANDS["forget"](self.db, conf)
        return output.getvalue()

    def test_a_conductor_that_never_comes_back_is_forgotten(self) -> None:
        entry = conductors.register(self.db, "rack-1", {"release": "0.3.0", "rpc_version": "1.0"}, [])
        node = database.make_node(self.db)
        nodes.lock(self.db, node.uuid, "rack-1", "to clean")
        self.assertIn("online", self.assertRaises(errors.Conflict, self.forget, "rack-1").message)
        conductors.unregister(self.db, entry)
        self.assertIn("1 nodes were locked", self.forget("rack-1"))
        self.assertEqual([], conductors.list_all(self.db, 30))
        self.assertIsNone(nodes.get(self.db, node.uuid).reservation)
        self.assertRaises(errors.NotFound, self.forget, "rack-1")
        self.assertRaises(errors.Invalid, self.forget)
