"""The reading of power states: it delays no other work, whatever BMCs do, and nodes show what was found."""

import threading
from collections.abc import Callable
from concurrent import futures
from typing import Any

from ingot.common import errors, states
from ingot.conductor import power
from ingot.db import models, node_crud, node_lists, nodes
from ingot.drivers.generic import fake
from ingot.drivers.interfaces.power import Reading
from tests import conductor_case, database

SILENCE = errors.HardwareUnreachable(what="BMC 192.0.2.7:623", reason="nothing came back")
ON = Reading(states.POWER_ON, "OK")


class SyncCase(conductor_case.ConductorCase):
    starts = False

    def configure(self) -> None:
        self.conf.set_override("sync_power_state_interval", 60, group="conductor")
        self.conf.set_override("force_power_state_during_sync", False, group="conductor")

    def setUp(self) -> None:
        super().setUp()
        self.time = 1000.0
        self.services = self.conductor.services
        self.services.circuit_breakers._now = lambda: self.time
        self.power: Any = self.services.hardware.interface("power", "fake")
        self.synchroniser = power.PowerSynchronizer(self.services, self.conductor.membership.owns)
        self.addCleanup(self.synchroniser.stop)

    def node(self, **values: Any) -> models.Node:
        known = {"provision_state": states.ACTIVE, "power_state": states.POWER_ON, "health": "OK"}
        return database.make_node(self.db, **{**known, **values})

    def candidates(self) -> list[str]:
        return [node.uuid for node in node_lists.list_for_power_sync(self.db, "", ["fake-hardware"])]

    def round(self) -> None:
        """Read all nodes and wait for the last; let a minute pass."""
        self.synchroniser.read(self.candidates())
        self.ended()
        self.time += 60

    def ended(self) -> None:
        conductor_case.eventually(lambda: not self.synchroniser.running, "all are read")

    def answers(self, answer: Callable[[Any], Reading]) -> None:
        """Make readings end with this answer as soon as they begin."""

        def start(task: Any) -> "futures.Future[Reading]":
            future: futures.Future[Reading] = futures.Future()
            try:
                future.set_result(answer(task))
            except errors.HardwareError as exc:
                future.set_exception(exc)
            return future

        self.power.start_reading = start

    def silent(self, _task: Any) -> Reading:
        raise SILENCE


class TestNonBlocking(SyncCase):
    def test_a_fleet_in_which_nothing_changed_costs_a_statement_for_200_nodes_and_no_write(self) -> None:
        for _one in range(201):
            self.node()
        for about, reader in (("in threads", None), ("at once", lambda _task: ON)):
            if reader is not None:
                self.answers(reader)
            with self.subTest(about), database.statements(self.db) as made:
                self.round()
                self.assertEqual(["SELECT"] * 3, [statement.split()[0] for statement in made])

    def test_no_more_than_256_are_read_at_a_time_and_none_twice(self) -> None:
        begun: dict[str, futures.Future[Reading]] = {}

        def start(task: Any) -> "futures.Future[Reading]":
            self.assertNotIn(task.node.uuid, begun)
            return begun.setdefault(task.node.uuid, futures.Future())

        self.power.start_reading = start
        for _one in range(300):
            self.node()
        first = threading.Thread(target=self.synchroniser.read, args=(self.candidates(),))
        first.start()
        conductor_case.eventually(lambda: len(begun) == 256, "as many as there may be have begun")
        for uuid in list(begun)[:44]:
            begun[uuid].set_result(ON)
        first.join(conductor_case.PATIENCE)
        self.assertEqual(300, len(begun))
        still_read = list(begun)[44:]
        self.synchroniser.read(still_read)
        for uuid in still_read:
            begun[uuid].set_result(ON)
        self.ended()

    def test_none_is_begun_after_the_end(self) -> None:
        for _one in range(3):
            self.node()
        begun = []

        def ends(task: Any) -> Reading:
            begun.append(task.node.uuid)
            self.synchroniser.stop()
            return ON

        self.answers(ends)
        self.round()
        self.assertEqual(1, len(begun))

    def test_a_reading_does_not_overwrite_a_request_that_came_meanwhile(self) -> None:
        self.conf.set_override("force_power_state_during_sync", True, group="conductor")
        node = self.node()

        def reads(_task: object) -> Reading:
            asked = {"power_request": {"target": states.POWER_OFF}}
            nodes.compare_and_set(self.db, nodes.get(self.db, node.uuid), asked)
            return Reading(states.POWER_OFF)

        self.answers(reads)
        self.round()
        self.assertEqual({"target": states.POWER_OFF}, nodes.get(self.db, node.uuid).power_request)
        self.assertEqual([], self.history(node))

    def test_a_node_can_be_locked_and_deleted_while_its_bmc_is_being_asked(self) -> None:
        reading: futures.Future[Reading] = futures.Future()
        self.power.start_reading = lambda _task: reading
        node = self.node(provision_state=states.AVAILABLE)
        self.synchroniser.read(self.candidates())
        nodes.lock(self.db, node.uuid, "conductor-1", "a user's request")
        nodes.release_stale(self.db, "conductor-1")
        node_crud.delete(self.db, nodes.get(self.db, node.uuid))
        reading.set_exception(SILENCE)
        self.ended()
        self.assertRaises(errors.NotFound, nodes.get, self.db, node.uuid)

    def test_a_driver_that_fails_does_not_delay_other_nodes(self) -> None:
        broken, other = self.node(), self.node()

        def reads(task: Any) -> Reading:
            if task.node.uuid == broken.uuid:
                raise KeyError("fans")
            return Reading(states.POWER_OFF)

        self.answers(reads)
        self.round()
        found = [nodes.get(self.db, node.uuid).power_state for node in (broken, other)]
        self.assertEqual([states.POWER_ON, states.POWER_OFF], found)


class TestSilentBMCs(SyncCase):
    def test_they_are_asked_less_and_less_often_and_last(self) -> None:
        asked: list[str] = []
        silent = self.node(name="silent").uuid

        def reads(task: Any) -> Reading:
            asked.append(task.node.name)
            return self.silent(task) if task.node.uuid == silent else ON

        self.answers(reads)
        self.round()
        self.node(name="live")
        rounds = []
        for _minute in range(12):
            asked.clear()
            self.round()
            rounds.append("".join(name[0] for name in asked))
        self.assertEqual(["ls", "l", "ls", "l", "l", "l", "ls", "l", "l", "l", "l", "ls"], rounds)

    def test_failures_of_nodes_that_are_gone_are_forgotten_and_of_no_others(self) -> None:
        self.answers(self.silent)
        self.start(self.conductor)
        synchronizer = self.conductor.synchronizer
        gone, stays, locked = self.node(), self.node(), self.node()
        synchronizer.sync_power()
        conductor_case.eventually(lambda: not synchronizer.running, "all are read")
        node_crud.delete(self.db, nodes.get(self.db, gone.uuid))
        nodes.set_always(self.db, locked.uuid, {"reservation": "conductor-1"})
        synchronizer.sync_power()
        self.assertEqual({stays.uuid, locked.uuid}, set(synchronizer.failures))

    def test_hardware_that_is_read_in_threads_is_held_off_too(self) -> None:
        asked: list[str] = []

        def reads(task: Any) -> str:
            asked.append(task.node.uuid)
            raise SILENCE

        self.power.get_power_state = reads
        self.node()
        for _minute in range(6):
            self.round()
        self.assertEqual(3, len(asked))

    def test_a_call_of_a_users_that_is_answered_ends_the_pause(self) -> None:
        node = self.node()
        self.answers(self.silent)
        for _minute in range(4):
            self.round()
        self.assertFalse(self.services.circuit_breakers.can_call(node.uuid))
        with self.services.circuit_breakers.observe_call(node.uuid, node.uuid, node.driver):
            """The BMC answers."""
        self.answers(lambda _task: Reading(states.POWER_OFF))
        self.round()
        self.assertEqual(states.POWER_OFF, nodes.get(self.db, node.uuid).power_state)

    def test_the_node_and_its_history_tell_of_the_fault_and_of_its_end(self) -> None:
        self.conf.set_override("power_state_sync_max_retries", 1, group="conductor")
        node = self.node()
        self.answers(self.silent)
        self.round()
        self.assertFalse(nodes.get(self.db, node.uuid).maintenance)
        self.round()
        faulty = nodes.get(self.db, node.uuid)
        self.assertEqual((True, "power failure", None), (faulty.maintenance, faulty.fault, faulty.health))
        self.assertIn("could not be read 2 times in a row; last: BMC 192.0.2.7:623", faulty.maintenance_reason)
        self.answers(lambda _task: ON)
        self.time += 300
        self.round()
        well = nodes.get(self.db, node.uuid)
        self.assertEqual(
            (False, None, None, "OK"), (well.maintenance, well.maintenance_reason, well.fault, well.health)
        )
        self.assertEqual(
            [("ERROR", "power", "could not be read"), ("INFO", "power", "health: OK"), ("INFO", "power", "ends")],
            [
                (entry.severity, entry.event_type, word)
                for entry, word in zip(self.history(node), ("could not be read", "health: OK", "ends"), strict=True)
                if word in entry.event
            ],
        )


class TestDeployments(SyncCase):
    def test_go_on_while_more_nodes_than_there_are_threads_wait_for_bmcs_known_to_be_unresponsive(self) -> None:
        silent, given_up = [self.node().uuid for _one in range(20)], threading.Event()
        self.answers(lambda task: self.silent(task) if task.node.uuid in silent else ON)
        self.round()

        def deploy(task: Any) -> None:
            if task.node.uuid in silent:
                given_up.wait(conductor_case.PATIENCE)
                raise SILENCE

        deploy_interface: Any = self.services.hardware.interface("deploy", "fake")
        deploy_interface.deploy = deploy
        self.conductor.start()
        self.addCleanup(self.conductor.stop)
        self.addCleanup(given_up.set)
        for uuid in silent:
            node = nodes.get(self.db, uuid)
            self.accept(node, "deploy", states.DEPLOYING)
            self.notify(node)
        done = self.run_flow(self.node(provision_state=states.AVAILABLE), "deploy", states.DEPLOYING)
        self.assertEqual(states.ACTIVE, done.provision_state)
        self.assertFalse(given_up.is_set())


class TestFindings(SyncCase):
    def test_what_a_machine_was_found_in_is_in_its_history(self) -> None:
        node = self.node()
        self.answers(lambda _task: Reading(states.POWER_OFF, "Warning", ("drive fault",)))
        self.round()
        self.round()
        now = nodes.get(self.db, node.uuid)
        self.assertEqual((states.POWER_OFF, "Warning"), (now.power_state, now.health))
        self.assertEqual(
            [
                ("INFO", "The machine was found in 'power off', it was 'power on'"),
                ("ERROR", "The BMC reports the machine's health: Warning: drive fault"),
            ],
            [(entry.severity, entry.event) for entry in self.history(node)],
        )

    def test_what_a_machine_does_not_tell_of_its_health_stays_as_it_is(self) -> None:
        node = self.node(health="Critical")
        self.round()
        self.assertEqual("Critical", nodes.get(self.db, node.uuid).health)

    def test_how_a_machine_boots_is_noted_when_that_was_changed_outside(self) -> None:
        node, other = self.node(boot_mode="bios"), self.node(boot_mode="uefi")
        modes = {node.uuid: "uefi", other.uuid: None}
        self.answers(lambda task: Reading(states.POWER_ON, boot_mode=modes[task.node.uuid]))
        self.round()
        self.round()
        self.assertEqual(["uefi", "uefi"], [nodes.get(self.db, one.uuid).boot_mode for one in (node, other)])
        self.assertEqual(["The machine boots by 'uefi', it was 'bios'"], [one.event for one in self.history(node)])
        self.assertEqual([], self.history(other))

    def test_a_power_state_that_is_to_be_kept_is_asked_for_again(self) -> None:
        self.conf.set_override("force_power_state_during_sync", True, group="conductor")
        node = self.node()
        self.answers(lambda _task: Reading(states.POWER_OFF))
        self.round()
        now = nodes.get(self.db, node.uuid)
        self.assertEqual(({"target": states.POWER_ON}, states.POWER_ON), (now.power_request, now.power_state))
        self.conductor.start()
        self.addCleanup(self.conductor.stop)
        self.notify(node)
        self.assertIsInstance(self.power, fake.FakePower)
        self.assertEqual({}, self.settled(node).power_request)
