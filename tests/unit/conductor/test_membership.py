"""Whose work a conductor takes, and what it leaves to others: owners, locks of the dead, starting and stopping."""

import gc
import os
import signal
import subprocess
import sys
import threading
import time
import types
import uuid
from typing import Any
from unittest import mock

import sqlalchemy as sa
import testtools
from oslo_db import exception as db_exc

from ingot.common import clock, errors, signals, states, systemd
from ingot.conductor import dispatcher, membership
from ingot.conductor.task import task_manager
from ingot.db import conductors, models, nodes
from ingot.rpcapi import client
from tests import conductor_case, database


class TestParts(conductor_case.ConductorCase):
    def configure(self) -> None:
        self.conf.set_override("sweep_interval", 300, group="conductor")

    def list_stuck(self, seconds: int) -> list[str]:
        """Return the parts that are stuck, by a watchdog of three minutes, if they do not turn for some seconds."""
        now = time.monotonic() + seconds
        with mock.patch.object(systemd, "time", types.SimpleNamespace(monotonic=lambda: now)):
            return systemd.list_stuck(self.conductor.list_parts(), 180)

    def test_a_long_interval_is_no_stop(self) -> None:
        self.assertEqual([], self.conductor.list_lacks())
        self.assertEqual(["heartbeat of the conductor"], self.list_stuck(290))
        self.assertEqual(["heartbeat of the conductor", "sweep"], self.list_stuck(490))


class TestSweep(conductor_case.ConductorCase):
    starts = False

    def configure(self) -> None:
        self.conf.set_override("sweep_interval", 3600, group="conductor")

    def freed(self, uuid: str) -> bool:
        return nodes.get(self.db, uuid).reservation is None

    def test_a_dead_lock_is_released_even_if_no_conductor_owns_the_node(self) -> None:
        node = database.make_node(self.db, driver="not-enabled-anywhere", reservation="dead", due_at=clock.now())
        self.start(self.conductor)
        conductor_case.eventually(lambda: self.freed(node.uuid), "lock is free")
        self.assertIsNotNone(nodes.get(self.db, node.uuid).due_at)

    def test_much_scheduled_work_of_another_conductor_does_not_delay_its_own(self) -> None:
        """As when one has died with much work and its nodes are not the others' yet."""
        self.start(self.conductor)
        about = {"conductor_group": "", "release": "0.1", "rpc_version": "1.0", "classic_drivers": ["theirs"]}
        conductors.register(self.db, "dead-but-not-missed-yet", about, self.conductor.services.hardware.list_enabled())
        conductor_case.eventually(
            lambda: not all(map(self.conductor.membership.owns, self.fleet(20))), "it is on the ring"
        )
        mine, *_others = filter(self.conductor.membership.owns, self.fleet(20))
        theirs = [node for node in self.fleet(3000) if not self.conductor.membership.owns(node)]
        long_ago = {"due_at": clock.after(-60), "provision_state": states.AVAILABLE}
        template = database.make_node(self.db).as_dict()
        rows = [{**template, "id": None, **vars(node), **long_ago} for node in theirs]
        with self.db.transaction() as connection:
            connection.execute(sa.insert(nodes.NODES), rows)
        node = database.make_node(self.db, uuid=mine.uuid, due_at=clock.now())
        self.conductor.sweeper.sweep()
        conductor_case.eventually(lambda: nodes.get(self.db, node.uuid).due_at is None, "it was looked at")
        self.assertLess(1000, len(theirs))

    def fleet(self, number: int) -> list[models.Record]:
        about = {"driver": "fake-hardware", "conductor_group": ""}
        return [models.Record(uuid=str(uuid.uuid4()), **about) for _number in range(number)]

    def test_a_lock_of_its_own_that_no_thread_holds_is_released_whichever_conductor_owns_the_node(self) -> None:
        self.start(self.conductor)
        node = database.make_node(self.db, conductor_group="elsewhere", reservation="conductor-1")
        self.conductor.sweeper.sweep()
        conductor_case.eventually(lambda: self.freed(node.uuid), "lock is free")

    def test_a_wake_up_for_a_node_of_another_conductor_is_left_to_that_one(self) -> None:
        self.start(self.conductor)
        about = {"conductor_group": "", "release": "0.1", "rpc_version": "1.0"}
        conductors.register(self.db, "conductor-2", about, self.conductor.services.hardware.list_enabled())
        self.conductor.sweeper.sweep()
        members = {"conductor-1": "", "conductor-2": ""}
        rings = client.Rings(
            lambda: [conductors.RingMember(name, "", "fake-hardware") for name in members], time.monotonic, 3600, 5
        )
        fleet = {rings.owner(node.uuid, "", "fake-hardware"): node for node in self.fleet(50)}
        nodes_of = {owner: database.make_node(self.db, uuid=fleet[owner].uuid) for owner in members}
        for node in nodes_of.values():
            self.accept(node, "deploy", states.DEPLOYING)
            self.notify(node)
        self.assertEqual(states.ACTIVE, self.settled(nodes_of["conductor-1"]).provision_state)
        self.conductor.queues.submit(nodes_of["conductor-2"].uuid, lambda: None).result(conductor_case.PATIENCE)
        left = nodes.get(self.db, nodes_of["conductor-2"].uuid)
        self.assertEqual(("deploy", None, None), (left.flow, left.run_id, left.reservation))

    def test_by_default_the_dead_are_missed_within_30_s_and_replaced_within_5(self) -> None:
        options = database.configuration(self.database.url).conductor
        self.assertLessEqual(options.heartbeat_timeout, 30)
        self.assertLessEqual(options.sweep_interval, 5)
        self.start(self.conductor)
        about = {"conductor_group": "", "release": "0.2", "rpc_version": "1.1"}
        conductors.register(self.db, "conductor-2", about, [])
        node = database.make_node(self.db, reservation="conductor-2")
        for silent, freed in ((-3600, False), (options.heartbeat_timeout + 1, True)):
            heard = sa.update(conductors.CONDUCTORS).values(heartbeat_at=clock.after(-silent))
            with self.db.single() as connection:
                connection.execute(heard.where(conductors.CONDUCTORS.c.hostname == "conductor-2"))
            self.conductor.sweeper.sweep()
            self.conductor.queues.submit(node.uuid, lambda: None).result(conductor_case.PATIENCE)
            self.assertEqual(freed, self.freed(node.uuid), silent)

    def test_a_conductor_that_comes_back_takes_no_locks_before_the_others_could_call(self) -> None:
        self.start(self.conductor)
        self.conductor.services.lease.renew(-3600)  # before its own first sweep can see the lock
        node = database.make_node(self.db, reservation="silent-as-the-database-was-away")
        self.conductor.sweeper.sweep()
        self.conductor.membership.keepalive()
        self.conductor.sweeper.sweep()
        time.sleep(0.2)
        self.assertFalse(self.freed(node.uuid))
        self.conductor.membership._judges_from = 0
        self.conductor.sweeper.sweep()
        conductor_case.eventually(lambda: self.freed(node.uuid), "lock is free")


class TestWatch(conductor_case.ConductorCase):
    """The witness of another conductor, which has a lock, notes its death. No sweep comes by in time."""

    starts = False

    def configure(self) -> None:
        self.conf.set_override("sweep_interval", 3600, group="conductor")
        self.conf.set_override("heartbeat_timeout", 3600, group="conductor")

    def with_another(self) -> tuple[conductors.Entry, models.Node]:
        """Return another conductor's entry and a node that it has locked."""
        about = {"conductor_group": "", "release": "0.3", "rpc_version": "1.1", "process": "theirs"}
        entry = conductors.register(self.db, "conductor-2", about, [])
        node = database.make_node(self.db, reservation="conductor-2")
        due = database.make_node(self.db, due_at=clock.now())
        self.start(self.conductor)
        conductor_case.eventually(lambda: nodes.get(self.db, due.uuid).due_at is None, "the first sweep is over")
        return entry, node

    def note_death(self) -> None:
        self.assertTrue(conductors.note_death(self.db, "conductor-2", "theirs", 3600))

    def is_taken_over(self, node: models.Node) -> None:
        conductor_case.eventually(lambda: nodes.get(self.db, node.uuid).reservation is None, "its lock is released")

    def test_its_work_is_taken_over_at_once(self) -> None:
        _entry, node = self.with_another()
        self.note_death()
        self.is_taken_over(node)

    def test_also_if_the_database_is_away_just_then(self) -> None:
        _entry, node = self.with_another()
        refused = []

        def refuse_once(_connection: object, _cursor: object, statement: str, *_rest: object) -> None:
            if "FROM nodes" in statement and threading.current_thread().name == "watch" and not refused:
                refused.append(statement)
                raise db_exc.DBConnectionError("it is away")

        sa.event.listen(self.db.engine, "before_cursor_execute", refuse_once)
        self.addCleanup(sa.event.remove, self.db.engine, "before_cursor_execute", refuse_once)
        self.note_death()
        self.is_taken_over(node)
        self.assertEqual(1, len(refused))

    def test_one_that_is_noted_dead_but_lives_is_back_with_its_next_heartbeat(self) -> None:
        entry, node = self.with_another()
        self.note_death()
        self.is_taken_over(node)
        self.assertRaises(errors.LockLost, nodes.write_locked, self.db, node, {"last_error": "written too late"})
        self.assertTrue(conductors.touch(self.db, entry))
        self.conductor.sweeper.sweep()
        self.assertEqual({"conductor-2"}, self.conductor.membership.others)
        again = database.make_node(self.db, reservation="conductor-2")
        self.conductor.sweeper.sweep()
        self.conductor.queues.submit(again.uuid, lambda: None).result(conductor_case.PATIENCE)
        self.assertEqual("conductor-2", nodes.get(self.db, again.uuid).reservation)


class TestStart(conductor_case.ConductorCase):
    starts = False

    def test_an_unknown_release_to_pin_to_is_refused_before_anything_is_served(self) -> None:
        self.conf.set_override("pin_release_version", "one-of-the-future")
        refused = self.assertRaises(errors.ConfigurationError, self.make_conductor, self.db)
        self.assertIn("one-of-the-future", refused.message)


class TestHostNameConflicts(conductor_case.ConductorCase):
    """One process for each name: two would take each other's locks for their own."""

    starts = False

    def configure(self) -> None:
        self.conf.set_override("heartbeat_interval", 1, group="conductor")

    def registered(self, process: str | None) -> conductors.Entry:
        """Register a conductor with the name, with a heartbeat just now."""
        about = {"conductor_group": "", "release": "0.1", "rpc_version": "1.0", "process": process}
        return conductors.register(self.db, "conductor-1", about, [])

    def test_one_that_works_on_this_host_keeps_its_name_until_it_is_killed(self) -> None:
        with subprocess.Popen(["/bin/sleep", "60"]) as other:
            name = membership.identify_process(other.pid)
            self.registered(name)
            refused = self.assertRaises(errors.ConfigurationError, self.conductor.membership.claim_name)
            for part in ("conductor-1", str(other.pid), "name of its own"):
                self.assertIn(part, refused.message)
            other.kill()
            began = time.monotonic()
            conductor_case.eventually(lambda: not membership.is_running(name), "it is gone")
            self.conductor.membership.claim_name()  # its parent has not even asked how it ended
        self.conductor.membership.claim_name()
        self.assertLess(time.monotonic() - began, 2)

    def test_one_elsewhere_is_watched_for_heartbeats(self) -> None:
        for process in ("another-boot pid:[1] 1 1", None):
            self.registered(process)
            self.conductor.membership.claim_name()
            entry = self.registered(process)
            alive = threading.Timer(0.7, conductors.touch, (self.db, entry))
            alive.start()
            self.addCleanup(alive.join)
            self.assertRaises(errors.ConfigurationError, self.conductor.membership.claim_name)

    def test_one_that_stopped_in_order_is_not_waited_for(self) -> None:
        conductors.unregister(self.db, self.registered("another-boot pid:[1] 1 1"))
        began = time.monotonic()
        self.conductor.membership.claim_name()
        self.assertLess(time.monotonic() - began, 1)

    def test_one_whose_name_was_taken_stops_and_leaves_the_entry_alone(self) -> None:
        asked = threading.Event()
        self.conductor.membership.on_name_conflict = asked.set
        self.start(self.conductor)
        self.registered("another-boot pid:[1] 1 1")
        self.assertTrue(asked.wait(conductor_case.PATIENCE))
        self.conductor.stop()
        self.assertEqual({"conductor-1"}, conductors.online_hosts(self.db, 30))

    def test_one_whose_entry_is_gone_enters_again(self) -> None:
        """After a restored backup there is none, or one of an earlier life."""
        self.conductor.membership.on_name_conflict = lambda: self.fail("it has its name")
        entries = models.table(models.Conductor)
        older = {"process": "an earlier life", "heartbeat_at": clock.after(-3600)}
        self.start(self.conductor)
        for restored in (sa.delete(entries), sa.update(entries).values(older)):
            with self.db.single() as connection:
                connection.execute(restored)
            conductor_case.eventually(lambda: conductors.online_hosts(self.db, 30) == {"conductor-1"}, "it is back")
            self.assertTrue(conductors.ring_members(self.db, 30))

    def test_an_unrequested_stop_is_a_failure(self) -> None:
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            self.addCleanup(signal.signal, number, signal.getsignal(number))
        self.addCleanup(gc.unfreeze)
        stopped = threading.Event()
        stopped.set()
        self.assertEqual(1, signals.wait_for_stop(stopped, self.conf))
        # Searches for garbage leave out what a service has built by then.
        self.assertLess(0, gc.get_freeze_count())
        stopped.clear()
        threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGTERM)).start()
        self.assertEqual(0, signals.wait_for_stop(stopped, self.conf))

    def test_a_signal_in_the_middle_of_the_wait_stops_it(self) -> None:
        """The wait holds a lock of the event for moments, which setting the event takes, too."""
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            self.addCleanup(signal.signal, number, signal.getsignal(number))
        self.addCleanup(gc.unfreeze)
        self.assertEqual(0, signals.wait_for_stop(_Interrupted(), self.conf))


class _Interrupted(threading.Event):
    """Is interrupted by a signal while the main thread holds its lock."""

    def wait(self, timeout: float | None = None) -> bool:
        with self._cond:
            signal.raise_signal(signal.SIGTERM)
        return super().wait(timeout)


class TestStop(conductor_case.ConductorCase):
    starts = False

    def setUp(self) -> None:
        super().setUp()
        self.working, self.seen = threading.Event(), threading.Event()

    def configure(self) -> None:
        self.conf.set_override("sweep_interval", 1, group="conductor")
        self.conf.set_override("hash_ring_reset_interval", 0)

    def in_a_step(self) -> models.Node:
        """Return a node whose deployment is in the middle of a step; another step is to follow."""

        def step(_task: object) -> None:
            self.working.set()
            self.seen.wait(conductor_case.PATIENCE)

        self.conductor.services.hardware.interface("deploy", "fake").deploy = step  # type: ignore[attr-defined]
        self.start(self.conductor)
        node = database.make_node(self.db)
        pause = {"interface": "vendor", "step": "pause", "priority": 30, "args": {"seconds": 0}}
        self.accept(node, "deploy", states.DEPLOYING, deploy_steps=[pause])
        self.notify(node)
        self.assertTrue(self.working.wait(conductor_case.PATIENCE))
        return node

    def another(self) -> None:
        """Let another conductor join."""
        self.conf.set_override("host", "conductor-2")
        self.start(self.make_conductor(self.db))

    def test_begins_nothing_and_the_next_step_runs_elsewhere(self) -> None:
        node, later = self.in_a_step(), database.make_node(self.db)
        self.conductor.leave()
        self.accept(later, "deploy", states.DEPLOYING)
        self.notify(later)
        self.notify(node)
        self.seen.set()
        self.assertTrue(self.conductor.stop())
        left = nodes.get(self.db, node.uuid)
        self.assertEqual(("deploying", "next", None), (left.provision_state, left.step_state, left.reservation))
        self.assertEqual([], self.step_runs(later))
        self.another()
        for one in (node, later):
            self.assertEqual(states.ACTIVE, self.settled(one).provision_state)
        ran = [(row.step, row.attempt, row.conductor) for row in self.step_runs(node)]
        self.assertEqual(
            [("prepare", 1, "conductor-1"), ("deploy", 1, "conductor-1"), ("pause", 1, "conductor-2")], ran
        )

    def test_what_has_not_ended_in_time_is_recovered_as_after_a_kill(self) -> None:
        self.conf.set_override("graceful_shutdown_timeout", 0, group="conductor")
        node = self.in_a_step()
        self.addCleanup(self.conf.clear_override, "graceful_shutdown_timeout", group="conductor")
        self.addCleanup(self.seen.set)
        self.assertFalse(self.conductor.stop())
        self.another()
        self.assertEqual(states.ACTIVE, self.settled(node).provision_state)
        attempts = [(row.attempt, row.state, row.conductor) for row in self.step_runs(node) if row.step == "deploy"]
        self.assertEqual([(1, "interrupted", "conductor-2"), (2, "done", "conductor-2")], attempts)

    def test_is_alive_and_owns_nothing_until_its_steps_have_ended(self) -> None:
        node = self.in_a_step()
        stopping = threading.Thread(target=self.conductor.stop)
        stopping.start()
        try:
            conductor_case.eventually(lambda: not conductors.ring_members(self.db, 30), "others own the nodes")
            self.assertEqual({"conductor-1"}, conductors.online_hosts(self.db, 30))
            self.assertRaises(errors.ServiceUnavailable, self._asked_too_late)
        finally:
            self.seen.set()
            stopping.join()
        self.assertEqual(set(), conductors.online_hosts(self.db, 30))
        self.assertIsNone(nodes.get(self.db, node.uuid).reservation)

    def _asked_too_late(self) -> None:
        conductor_case.eventually(lambda: self.conductor.queues._stopped, "the queues stop")
        self.conductor.queues.submit("another", lambda: None)


class TestStopBeforeStart(conductor_case.ConductorCase):
    starts = False

    def test_a_conductor_that_was_never_started_stops(self) -> None:
        self.assertTrue(self.conductor.stop())

    def test_one_whose_start_failed_before_it_was_registered_stops(self) -> None:
        unavailable = errors.ServiceUnavailable(what="Database", reason="it is away")
        with mock.patch("ingot.db.conductors.register", side_effect=unavailable):
            self.assertRaises(errors.ServiceUnavailable, self.conductor.start)
        self.assertTrue(self.conductor.stop())


class TestLease(testtools.TestCase):
    """A lease that other threads read while it is renewed."""

    def test_no_reader_sees_a_break_covered_in_the_middle_of_a_renewal(self) -> None:
        options: Any = types.SimpleNamespace(
            conductor=types.SimpleNamespace(heartbeat_interval=5, heartbeat_timeout=30)
        )
        lease = task_manager.Lease(options, clock=lambda: 0.0)
        lease.renew(0.0)
        lease.now = lambda: 1000.0
        seen: list[bool] = []

        def read(_frame: types.FrameType, _event: str, _arg: object) -> Any:
            sys.settrace(None)
            seen.append(lease.covers(0.0))
            sys.settrace(read)
            return read

        before = sys.gettrace()
        sys.settrace(read)
        try:
            gap = lease.renew(1000.0)
        finally:
            sys.settrace(before)
        self.assertEqual(1000.0, gap)
        self.assertGreater(len(seen), 3)
        self.assertEqual({False}, set(seen))
        self.assertTrue(lease.covers(1000.0))

    def test_it_begins_with_the_first_heartbeat_that_is_written(self) -> None:
        options: Any = types.SimpleNamespace(
            conductor=types.SimpleNamespace(heartbeat_interval=5, heartbeat_timeout=30)
        )
        lease = task_manager.Lease(options, clock=lambda: 0.0)
        self.assertFalse(lease.covers(0.0))
        self.assertEqual(0.0, lease.renew(0.0))
        self.assertTrue(lease.covers(0.0))


class TestQueues(database.TestCase):
    def test_a_node_has_one_alarm(self) -> None:
        notified: list[str] = []
        delayed_wakeups = dispatcher.DelayedWakeups(lambda uuid, _why: notified.append(uuid))
        for after in (0.0, 0.1, 0.2):
            delayed_wakeups.set("a node", after)
        delayed_wakeups.set("another", 0.0)
        delayed_wakeups.start()
        conductor_case.eventually(lambda: len(notified) > 1, "both wake up")
        delayed_wakeups.stop()
        self.assertEqual(["another", "a node"], notified)

    def test_a_look_that_ends_its_thread_does_not_end_the_queue(self) -> None:
        looks: list[str] = []

        def look(_uuid: str, why: str) -> None:
            looks.append(why)
            raise SystemExit

        queues = dispatcher.NodeQueues(look, 2, lambda _uuid: False)
        for why in ("first", "second"):
            queues.notify("a node", why)
            conductor_case.eventually(lambda: not queues.is_busy("a node"), "the look ends")
        self.assertEqual(["first", "second"], looks)
        self.assertTrue(queues.stop(1))

    def test_nodes_with_unresponsive_bmcs_keep_only_each_other_waiting(self) -> None:
        answered = threading.Event()
        queues = dispatcher.NodeQueues(lambda _uuid, _why: None, 2, lambda uuid: uuid.startswith("silent"))
        silent = [
            queues.submit(f"silent {number}", lambda: answered.wait(conductor_case.PATIENCE)) for number in range(9)
        ]
        self.assertEqual("done", queues.submit("another", lambda: "done").result(conductor_case.PATIENCE))
        self.assertEqual([False] * 9, [one.done() for one in silent])
        answered.set()
        self.assertEqual([True] * 9, [one.result(conductor_case.PATIENCE) for one in silent])
        self.assertTrue(queues.stop(conductor_case.PATIENCE))

    def test_a_stop_begins_nothing_and_fails_what_is_waiting(self) -> None:
        begun, goes_on = threading.Event(), threading.Event()
        looks: list[str] = []
        queues = dispatcher.NodeQueues(lambda uuid, _why: looks.append(uuid), 2, lambda _uuid: False)

        def job() -> None:
            begun.set()
            goes_on.wait(conductor_case.PATIENCE)

        running = queues.submit("a node", job)
        self.assertTrue(begun.wait(conductor_case.PATIENCE))
        queues.notify("a node", "test")
        waiting = queues.submit("a node", lambda: looks.append("job"))
        self.assertFalse(queues.stop(0))
        self.assertIsInstance(waiting.exception(0), errors.ServiceUnavailable)
        goes_on.set()
        self.assertTrue(queues.stop(conductor_case.PATIENCE))
        self.assertIsNone(running.result(0))
        self.assertEqual([], looks)


class TestQuestions(conductor_case.ConductorCase):
    def test_a_management_interface_that_is_not_enabled_here_is_named(self) -> None:
        node = database.make_node(self.db, management_interface="not-enabled")
        for method, args in (
            ("get_boot_device", {}),
            ("get_supported_boot_devices", {}),
            ("set_boot_device", {"device": "pxe", "persistent": False}),
        ):
            answer = getattr(self.conductor.endpoint, method)({}, node_uuid=node.uuid, **args)
            self.assertEqual("Invalid", answer["error"]["type"], method)
            self.assertIn("not-enabled", answer["error"]["message"])
