"""Reading nodes, the API's compare-and-set, the lock and what it fences."""

import datetime
import threading
import uuid

import sqlalchemy as sa

from ingot.common import clock, errors, states
from ingot.db import allocations, models, node_crud, node_lists, nodes
from tests import call_counter, database, sql_counter

_STEP_RUN = {
    "run_id": "3e1f6b44-1f53-4f8b-9a53-9a35b3a6a2d5",
    "flow": "deploy",
    "step_index": 0,
    "attempt": 1,
    "interface": "deploy",
    "step": "write_image",
    "args": {},
    "priority": 80,
    "origin": "driver",
    "state": "done",
    "started_at": clock.now(),
    "finished_at": clock.now(),
    "conductor": "one",
    "error": None,
}
_EVENT = {"severity": "INFO", "event_type": "provisioning", "event": "deployed"}


class NodesOnSQLite(database.TestCase):
    def rows(self, model: type[models.Base]) -> int:
        with self.db.single() as connection:
            return len(connection.execute(models.table(model).select()).all())

    def test_is_found_by_uuid_and_by_name(self) -> None:
        node = database.make_node(self.db, name="r1u2", extra={"rack": "Zürich \N{SNOWMAN}"})

        self.assertEqual(node.uuid, nodes.get(self.db, "r1u2").uuid)
        self.assertEqual({"rack": "Zürich \N{SNOWMAN}"}, nodes.get(self.db, node.uuid).extra)

    def test_names_differ_by_case(self) -> None:
        database.make_node(self.db, name="Rack")

        self.assertRaises(errors.NotFound, nodes.get, self.db, "rack")
        database.make_node(self.db, name="rack")

    def test_reading_leaves_the_config_drive_where_it_is(self) -> None:
        node = database.make_node(self.db, configdrive="x" * 3_000_000)

        self.assertNotIn("configdrive", node.as_dict())
        self.assertEqual(3_000_000, len(nodes.get(self.db, node.uuid, ("configdrive",)).configdrive or ""))

    def test_moments_keep_their_microseconds(self) -> None:
        moment = datetime.datetime(2026, 2, 3, 4, 5, 6, 789123)
        node = database.make_node(self.db, provision_updated_at=moment)

        self.assertEqual(moment, node.provision_updated_at)

    def test_moments_beyond_calendars_are_the_first_and_the_last_one(self) -> None:
        last, first = clock.after(1e300), clock.after(-1e300)
        node = database.make_node(self.db, due_at=last, step_deadline=first)
        self.assertEqual((last, first), (node.due_at, node.step_deadline))
        due_at = nodes.next_check_at_in_wait(node, None, last)
        nodes.set_always(self.db, node.uuid, {"due_at": due_at, "step_deadline": last})
        found = nodes.get(self.db, node.uuid)
        self.assertEqual((last, last), (found.due_at, found.step_deadline))
        self.assertEqual([], node_lists.list_to_check(self.db, clock.now(), 9, "", ["fake-hardware"]))

    def test_a_request_is_written_if_nothing_changed(self) -> None:
        node = database.make_node(self.db)

        nodes.compare_and_set(self.db, node, {"provision_state": states.DEPLOYING, "request": {"a": 1}})

        written = nodes.get(self.db, node.uuid)
        self.assertEqual((states.DEPLOYING, {"a": 1}), (written.provision_state, written.request))
        self.assertGreater(written.revision, node.revision)

    def test_a_refused_request_needs_no_second_connection(self) -> None:
        """As many as there are threads could be refused at once, and each would wait for another one's connection."""
        node = database.make_node(self.db)
        for option, value in (("max_pool_size", 1), ("max_overflow", 0), ("pool_timeout", 1)):
            self.database.conf.set_override(option, value, group="database")
        db = self.database.another()
        nodes.lock(db, node.uuid, "one", "test")
        chosen = {"uuid": str(uuid.uuid4()), "resource_class": "baremetal"}
        self.assertRaises(errors.NodeLocked, node_crud.change_traits, db, node, ["CUSTOM_A"])
        self.assertRaises(errors.NodeLocked, node_crud.delete, db, node)
        self.assertRaises(errors.NodeLocked, allocations.backfill, db, chosen, node)
        self.assertRaises(errors.NodeLocked, allocations.detach, db, node, {"instance_uuid": None})

    def test_a_column_that_there_is_not_is_refused(self) -> None:
        node = database.make_node(self.db)
        self.assertRaises(TypeError, nodes.compare_and_set, self.db, node, {"nane": "x"})

    def test_the_second_of_two_requests_is_refused(self) -> None:
        node = database.make_node(self.db)
        nodes.compare_and_set(self.db, node, {"description": "first"})

        self.assertRaises(errors.ChangedMeanwhile, nodes.compare_and_set, self.db, node, {"description": "second"})
        self.assertEqual("first", nodes.get(self.db, node.uuid).description)

    def test_a_request_on_a_locked_node_names_the_conductor_that_holds_it(self) -> None:
        node = database.make_node(self.db)
        nodes.lock(self.db, node.uuid, "conductor-7", "power off")

        refusal = self.assertRaises(errors.NodeLocked, nodes.compare_and_set, self.db, node, {"description": "x"})

        self.assertIn("conductor-7", str(refusal))
        self.assertIn("power off", str(refusal))

    def test_a_request_on_a_deleted_node_is_not_found(self) -> None:
        node = database.make_node(self.db)
        with self.db.single() as connection:
            connection.execute(nodes.NODES.delete())

        self.assertRaises(errors.NotFound, nodes.compare_and_set, self.db, node, {"description": "x"})

    def test_a_name_in_use_is_reported(self) -> None:
        database.make_node(self.db, name="instance_uuid")
        node = database.make_node(self.db)
        values = {"name": "instance_uuid", "instance_uuid": str(uuid.uuid4())}

        refusal = self.assertRaises(errors.Duplicate, nodes.compare_and_set, self.db, node, values)

        self.assertEqual("A node with name instance_uuid already exists.", str(refusal))

    def test_an_instance_on_another_node_is_reported(self) -> None:
        instance = str(uuid.uuid4())
        database.make_node(self.db, instance_uuid=instance)
        node = database.make_node(self.db)
        values = {"name": "fresh", "instance_uuid": instance}

        refusal = self.assertRaises(errors.Conflict, nodes.compare_and_set, self.db, node, values)

        self.assertIn(f"Instance {instance} is already associated with a node", str(refusal))

    def test_a_lock_says_who_since_when_and_for_what(self) -> None:
        node = database.make_node(self.db)

        held = nodes.lock(self.db, node.uuid, "one", "deploy")

        lock = (held.reservation, held.lock_purpose, held.lock_epoch)
        self.assertEqual(("one", "deploy", node.lock_epoch + 1), lock)
        self.assertAlmostEqual(0, (clock.now() - held.locked_at).total_seconds(), delta=30)
        refusal = self.assertRaises(errors.NodeLocked, nodes.lock, self.db, node.uuid, "two", "clean")
        self.assertIn("one for deploy since", str(refusal))

    def test_who_looks_for_work_locks_no_node_that_has_none(self) -> None:
        now = clock.now()
        for due_at in (None, now + datetime.timedelta(hours=1)):
            idle = database.make_node(self.db, due_at=due_at)
            self.assertRaises(errors.NodeLocked, nodes.lock, self.db, idle.uuid, "one", "alarm", if_due=True)
            self.assertEqual(idle.lock_epoch, nodes.get(self.db, idle.uuid).lock_epoch)
        busy = database.make_node(self.db, due_at=now)
        self.assertEqual("one", nodes.lock(self.db, busy.uuid, "one", "alarm", if_due=True).reservation)
        dead = database.make_node(self.db, reservation="dead")
        self.assertEqual("one", nodes.lock(self.db, dead.uuid, "one", "sweep", {"dead"}, if_due=True).reservation)

    def test_a_lock_on_nothing_is_not_found(self) -> None:
        self.assertRaises(errors.NotFound, nodes.lock, self.db, "missing", "one", "deploy")

    def test_a_lock_is_given_back_with_the_last_write(self) -> None:
        node = database.make_node(self.db)
        held = nodes.lock(self.db, node.uuid, "one", "deploy")

        nodes.write_locked(self.db, held, {"power_state": states.POWER_ON, **nodes.UNLOCKED})

        self.assertEqual("two", nodes.lock(self.db, node.uuid, "two", "clean").reservation)

    def test_whose_lock_was_stolen_cannot_write(self) -> None:
        node = database.make_node(self.db)
        paused = nodes.lock(self.db, node.uuid, "one", "deploy")
        thief = nodes.lock(self.db, node.uuid, "two", "take over", steal_from={"one"})

        late = {"last_error": "late"}
        self.assertRaises(errors.LockLost, nodes.write_locked, self.db, paused, late)
        self.assertRaises(errors.LockLost, nodes.write_locked, self.db, paused, late, [_STEP_RUN], [_EVENT])

        self.assertIsNone(nodes.get(self.db, node.uuid).last_error)
        self.assertEqual((0, 0), (self.rows(models.StepRun), self.rows(models.NodeHistory)))
        nodes.write_locked(self.db, thief, {"last_error": None})

    def test_a_conductor_that_starts_again_fences_its_earlier_life(self) -> None:
        node = database.make_node(self.db)
        earlier = nodes.lock(self.db, node.uuid, "one", "deploy")

        again = nodes.lock(self.db, node.uuid, "one", "recover", steal_from={"one"})

        self.assertRaises(errors.LockLost, nodes.write_locked, self.db, earlier, {"last_error": "late"})
        nodes.write_locked(self.db, again, nodes.UNLOCKED)

    def test_a_lock_that_is_stolen_before_it_is_read_back_is_none(self) -> None:
        node = database.make_node(self.db)
        others = self.database.another()

        def steal(*_event: object) -> None:
            nodes.lock(others, node.uuid, "two", "take over", steal_from={"one"})

        sa.event.listen(self.db.engine, "after_cursor_execute", steal, once=True)
        refusal = self.assertRaises(errors.NodeLocked, nodes.lock, self.db, node.uuid, "one", "deploy")

        self.assertIn("two for take over", str(refusal))

    def test_only_the_named_hosts_are_stolen_from(self) -> None:
        node = database.make_node(self.db)
        nodes.lock(self.db, node.uuid, "alive", "deploy")

        self.assertRaises(errors.NodeLocked, nodes.lock, self.db, node.uuid, "two", "take over", steal_from={"one"})

    def test_locks_of_an_earlier_life_are_released_at_start(self) -> None:
        mine, other = (database.make_node(self.db) for _ in range(2))
        held = nodes.lock(self.db, mine.uuid, "one", "deploy")
        nodes.lock(self.db, other.uuid, "two", "deploy")

        self.assertEqual(1, nodes.release_stale(self.db, "one"))

        self.assertEqual([other.uuid], [node.uuid for node in node_lists.list_locked(self.db)])
        self.assertRaises(errors.LockLost, nodes.write_locked, self.db, held, {"last_error": "late"})

    def test_step_runs_and_history_are_written_with_the_node(self) -> None:
        held = nodes.lock(self.db, database.make_node(self.db).uuid, "one", "deploy")

        with sql_counter.counting(self.db) as counted:
            nodes.write_locked(self.db, held, {"last_error": "e"}, [_STEP_RUN, _STEP_RUN], [_EVENT])
        self.assertEqual((3, 1), (len(counted), counted.commits))

        self.assertEqual((2, 1), (self.rows(models.StepRun), self.rows(models.NodeHistory)))

    def test_scheduled_work_comes_longest_overdue_first(self) -> None:
        moment = clock.now()
        for minutes in (1, 3, 2, -1):
            database.make_node(
                self.db,
                name=f"due-{minutes}".replace("--", "-in-"),
                due_at=moment - datetime.timedelta(minutes=minutes),
            )
        database.make_node(self.db, name="nothing-to-do")

        overdue = [(moment - node.due_at).total_seconds() / 60 for node in self.find_scheduled(moment, limit=2)]

        self.assertEqual([3, 2], overdue)

    def find_scheduled(self, moment: datetime.datetime, limit: int) -> list[models.Record]:
        return node_lists.list_to_check(self.db, moment, limit, "", ["fake-hardware"])

    def test_work_without_a_conductor_does_not_crowd_out_the_rest(self) -> None:
        moment = clock.now()
        for values in ({"driver": "gone"}, {"conductor_group": "elsewhere"}, {"reservation": "busy"}):
            database.make_node(self.db, due_at=moment - datetime.timedelta(hours=1), **values)
        mine = database.make_node(self.db, due_at=moment)

        self.assertEqual([mine.uuid], [node.uuid for node in self.find_scheduled(moment, limit=1)])

    def test_a_reading_that_is_older_than_a_request_is_not_written_nor_is_what_belongs_to_it(self) -> None:
        read = database.make_node(self.db)
        nodes.compare_and_set(self.db, read, {"power_request": {"target": "power off"}})

        outdated = ({"power_state": "found long ago"}, [_EVENT])
        self.assertRaises(errors.ChangedMeanwhile, nodes.compare_and_set, self.db, read, *outdated)
        self.assertEqual(0, self.rows(models.NodeHistory))
        now = nodes.get(self.db, read.uuid)
        nodes.compare_and_set(self.db, now, {"fault": "hot"}, [_EVENT])

        self.assertEqual(1, self.rows(models.NodeHistory))
        self.assertEqual({"target": "power off"}, now.power_request)
        self.assertNotEqual("found long ago", now.power_state)

    def test_a_wait_that_begins_after_a_heartbeat_or_an_abort_is_over(self) -> None:
        known = clock.now()
        later = known + datetime.timedelta(hours=1)
        for noted, find_scheduled in (
            ({}, later),
            ({"abort_requested": True}, None),
            ({"agent_last_heartbeat": None}, later),
            *(({"agent_last_heartbeat": known + datetime.timedelta(seconds=off)}, None) for off in (-1, 1)),
        ):
            for in_row in (False, True):
                fresh = database.make_node(self.db, agent_last_heartbeat=known, step_heard=known if in_row else None)
                held = nodes.lock(self.db, fresh.uuid, "one", "deploy")
                if noted:
                    nodes.set_always(self.db, held.uuid, noted)
                heard = nodes.STEP_HEARD if in_row else known
                nodes.write_locked(self.db, held, {"due_at": nodes.next_check_at_in_wait(held, heard, later)})
                found = nodes.get(self.db, held.uuid).due_at
                self.assertEqual(find_scheduled is None, found < later, noted)

    def test_the_statement_that_begins_a_wait_is_built_once(self) -> None:
        held = nodes.lock(self.db, database.make_node(self.db).uuid, "one", "deploy")

        def wait() -> None:
            for heard in (nodes.STEP_HEARD, clock.now()):
                nodes.write_locked(self.db, held, {"due_at": nodes.next_check_at_in_wait(held, heard, clock.now())})
            nodes.write_locked(self.db, held, {"due_at": nodes.next_check_at_unless_aborted(held, clock.now())})

        calls = call_counter.count_calls(wait, "sqlalchemy")
        self.assertLessEqual(calls.total(), 400, calls.most_common(20))

    def test_an_abort_that_has_to_wait_does_not_schedule_the_node_again_and_again(self) -> None:
        later = clock.now() + datetime.timedelta(hours=1)
        held = nodes.lock(self.db, database.make_node(self.db, abort_requested=True).uuid, "one", "deploy")

        nodes.write_locked(self.db, held, {"due_at": nodes.next_check_at_in_wait(held, clock.now(), later)})

        self.assertEqual(later, nodes.get(self.db, held.uuid).due_at)

    def test_who_does_not_get_the_lock_reads_only_who_has_it(self) -> None:
        node = database.make_node(self.db)
        nodes.lock(self.db, node.uuid, "one", "deploy")
        with sql_counter.counting(self.db) as counted:
            self.assertRaises(errors.NodeLocked, nodes.lock, self.db, node.uuid, "two", "deploy")
        self.assertEqual(["UPDATE", "SELECT"], [text.split()[0] for text in counted.statements])
        self.assertEqual(4, counted.statements[1].partition(" FROM ")[0].count("nodes."), counted)

    def test_of_many_who_want_the_lock_exactly_one_gets_it(self) -> None:
        node = database.make_node(self.db)
        start = threading.Barrier(20)
        outcomes: list[object] = []

        def compete(number: int) -> None:
            start.wait()
            try:
                outcomes.append(nodes.lock(self.db, node.uuid, f"host-{number}", "deploy").reservation)
            except errors.NodeLocked as exc:
                outcomes.append(exc)
            except Exception as exc:  # noqa: BLE001 - any other error is what the test is about
                outcomes.append(repr(exc))

        threads = [threading.Thread(target=compete, args=(number,)) for number in range(20)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

        winners = [outcome for outcome in outcomes if not isinstance(outcome, errors.NodeLocked)]
        self.assertEqual(20, len(outcomes))
        self.assertEqual([nodes.get(self.db, node.uuid).reservation], winners)

    def test_statements(self) -> None:
        node = database.make_node(self.db)
        with database.statements(self.db) as sent:
            held = nodes.lock(self.db, node.uuid, "one", "deploy")
        self.assertEqual(["UPDATE", "SELECT"], [statement.split()[0] for statement in sent])
        with database.statements(self.db) as sent:
            nodes.write_locked(self.db, held, {"power_state": states.POWER_ON})
        self.assertEqual(["UPDATE"], [statement.split()[0] for statement in sent])
