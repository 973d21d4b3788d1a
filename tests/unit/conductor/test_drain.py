"""Draining conductors: what the command does, what the conductor does then, and how long it lasts."""

import contextlib
import io
import threading

import fixtures

from ingot.common import clock, errors, states
from ingot.common.conf import opts
from ingot.conductor.cmd import drain
from ingot.db import conductors, nodes
from tests import conductor_case, database


class DrainCase(conductor_case.ConductorCase):
    def configure(self) -> None:
        self.conf.set_override("heartbeat_interval", 1, group="conductor")
        self.conf.set_override("sweep_interval", 1, group="conductor")
        self.conf.set_override("hash_ring_reset_interval", 0)
        self.useFixture(fixtures.MonkeyPatch("ingot.conductor.cmd.drain._PAUSE", 0.05))

    def command(self, *words: str) -> str:
        """Return the output of a command of ingot-conductor.

        :raises IngotError: it fails.
        """
        conf = opts.load(words, prog="ingot-conductor", files=[], cli_opts=drain.OPTIONS)
        conf.set_override("host", "conductor-1")
        output = io.StringIO()
        with contextlib.redirect_stdout(output):
            drain.COMMANDS[conf.command](self.db, conf)
        return output.getvalue()

    def listed(self) -> dict[str, str]:
        """Return the state of each conductor by its name."""
        lines = self.command("list").splitlines()
        place = lines[0].index("STATE"), lines[0].index("LOCKED")
        return {line.split()[0]: line[slice(*place)].strip() for line in lines[1:]}

    def owners(self) -> set[str]:
        return {hostname for hostname, _group, _driver in conductors.ring_members(self.db, 30)}

    def another(self) -> None:
        self.conf.set_override("host", "conductor-2")
        self.start(self.make_conductor(self.db))


class TestDrained(DrainCase):
    def test_finishes_what_runs_and_hands_over_what_follows(self) -> None:
        working, seen = threading.Event(), threading.Event()
        self.addCleanup(seen.set)

        def step(_task: object) -> None:
            working.set()
            seen.wait(conductor_case.PATIENCE)

        self.conductor.services.hardware.interface("deploy", "fake").deploy = step  # type: ignore[attr-defined]
        node = database.make_node(self.db)
        pause = {"interface": "vendor", "step": "pause", "priority": 30, "args": {"seconds": 0}}
        self.accept(node, "deploy", states.DEPLOYING, deploy_steps=[pause])
        self.notify(node)
        self.assertTrue(working.wait(conductor_case.PATIENCE))
        self.another()
        self.command("drain", "conductor-1")
        self.assertEqual({"conductor-2"}, self.owners())
        refused = self.assertRaises(errors.Conflict, self.command, "drain", "conductor-1", "--wait", "1")
        self.assertIn("conductor-1 (1 nodes locked)", refused.message)
        self.assertEqual("draining", self.listed()["conductor-1"])
        conductor_case.eventually(self.conductor.services.leaving.is_set, "it knows")
        seen.set()
        self.command("drain", "conductor-1", "--wait", "60")
        self.assertEqual({"conductor-1": "drained", "conductor-2": "online"}, self.listed())
        self.assertEqual(states.ACTIVE, self.settled(node).provision_state)
        ran = [(row.step, row.attempt, row.conductor) for row in self.step_runs(node)][1:]
        self.assertEqual([("deploy", 1, "conductor-1"), ("pause", 1, "conductor-2")], ran)

    def test_begins_nothing_and_comes_back(self) -> None:
        self.command("drain", "--force", "--wait", "60")
        node = database.make_node(self.db)
        self.accept(node, "deploy", states.DEPLOYING)
        self.notify(node)
        self.conductor.sweeper.sweep()
        conductor_case.eventually(lambda: not self.conductor.queues.is_busy(node.uuid), "the wake-up is processed")
        self.assertEqual(("deploy", None), (self.flow_of(node), nodes.get(self.db, node.uuid).reservation))
        self.assertEqual({"conductor-1"}, conductors.online_hosts(self.db, 30))
        self.command("undrain", "--wait", "60")
        self.assertEqual({"conductor-1"}, self.owners())
        self.assertEqual(states.ACTIVE, self.settled(node).provision_state)

    def flow_of(self, node: object) -> str | None:
        return nodes.get(self.db, node.uuid).flow  # type: ignore[attr-defined,no-any-return]

    def test_gives_back_a_lock_that_no_thread_holds(self) -> None:
        self.command("drain", "--force", "--wait", "60")
        node = database.make_node(self.db, reservation="conductor-1", due_at=clock.now())
        conductor_case.eventually(lambda: nodes.get(self.db, node.uuid).reservation is None, "the lock is free")

    def test_stays_so_over_a_restart(self) -> None:
        self.command("drain", "--force", "--wait", "60")
        self.conductor.stop()
        self.assertEqual({"conductor-1": "drained, offline"}, self.listed())
        self.start(self.make_conductor(self.db))
        self.assertEqual({"conductor-1": "drained"}, self.listed())
        self.assertEqual(set(), self.owners())
        self.command("undrain", "conductor-1")
        conductor_case.eventually(lambda: self.owners() == {"conductor-1"}, "it is back")

    def test_is_not_brought_back_to_the_rings_by_the_end_of_its_drain_while_it_stops(self) -> None:
        self.command("drain", "--force", "--wait", "60")
        self.conductor.leave()
        self.command("undrain")
        self.conductor.membership.keepalive()
        self.assertEqual(set(), self.owners())


class TestCommand(DrainCase):
    starts = False

    def registered(self, hostname: str, *drivers: str, **about: str) -> None:
        values = {"conductor_group": "", "release": "0.2.0", "rpc_version": "1.1", **about}
        offers = [conductors.EnabledInterface(driver, "power", "fake", True) for driver in drivers]
        conductors.register(self.db, hostname, values, offers)

    def test_nodes_are_not_left_without_a_conductor(self) -> None:
        self.registered("one", "ipmi", "fake-hardware")
        self.registered("two", "fake-hardware")
        self.registered("elsewhere", "ipmi", conductor_group="west")
        self.command("drain", "one")  # no node is served by it alone
        self.command("undrain", "one")
        self.registered("one", "ipmi", "fake-hardware")
        for driver in ("ipmi", "ipmi", "fake-hardware"):
            database.make_node(self.db, driver=driver)
        refused = self.assertRaises(errors.Conflict, self.command, "drain", "one")
        self.assertIn("2 nodes of driver ipmi in conductor group ''", refused.message)
        self.assertNotIn("fake-hardware", refused.message)
        self.assertEqual({"one", "two", "elsewhere"}, self.owners())
        self.command("drain", "one", "--force")
        self.assertEqual({"two", "elsewhere"}, self.owners())

    def test_without_names_it_is_about_the_conductors_of_the_configuration(self) -> None:
        self.registered("conductor-1", "ipmi")
        self.registered("another", "ipmi")
        self.assertIn("conductor-1", self.command("drain"))
        self.assertEqual({"another"}, self.owners())

    def test_an_unknown_one_is_named(self) -> None:
        for command in ("drain", "undrain"):
            refused = self.assertRaises(errors.NotFound, self.command, command, "missing")
            self.assertIn("missing", refused.message)

    def test_one_that_does_not_come_back_in_time_is_named(self) -> None:
        self.registered("here", "ipmi")
        self.registered("stopped", "ipmi")
        self.command("drain", "stopped")
        refused = self.assertRaises(errors.Conflict, self.command, "undrain", "here", "stopped", "--wait", "1")
        self.assertIn("Not back after 1 s: stopped (online). They stay undrained.", refused.message)
        self.assertEqual({"here": "online", "stopped": "online"}, self.listed())

    def test_one_of_a_release_that_does_not_know_is_refused(self) -> None:
        self.registered("old", "ipmi", release="0.1.0", rpc_version="1.0")
        refused = self.assertRaises(errors.Conflict, self.command, "drain", "old")
        self.assertIn("0.1.0", refused.message)
        self.assertEqual({"old"}, self.owners())
