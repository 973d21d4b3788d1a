"""Events: in the outbox with the change, in the one order with a number, each once, whichever process collects."""

import contextlib
import threading
import uuid
from collections.abc import Callable, Iterator

import sqlalchemy as sa

from ingot.common import clock, errors, states
from ingot.db import agents, boots, conductors, events, listing, models, node_crud, nodes, outbox, ports, step_lists
from tests import database, sql_counter

_SILENT_AFTER = 60.0
_PORT = "11111111-1111-1111-1111-111111111111"
_ENTRY = {"conductor": "one", "severity": "INFO", "event_type": "power", "event": "on", "user": None, "project": None}


class EventsOnSQLite(database.TestCase):
    def recorded(self, after: int = 0) -> list[models.Record]:
        events.collect(self.db, _SILENT_AFTER)
        return events.read_page(self.db, after, 10_000)

    def make(self) -> str:
        """Create a node as the API does; return its uuid."""
        ident = str(uuid.uuid4())
        node_crud.create(self.db, {"uuid": ident, "driver": "fake-hardware", "provision_state": states.ENROLL})
        return ident

    def test_a_change_and_its_event_are_one_statement(self) -> None:
        node = database.make_node(self.db, name="r1u2")
        with sql_counter.counting(self.db) as counted:
            nodes.compare_and_set(self.db, node, {"provision_state": states.DEPLOYING, "last_error": None})
        self.assertEqual((1, 0), (len(counted), counted.commits))

        event = self.recorded()[-1]
        self.assertEqual(("provision", node.uuid, "r1u2"), (event.kind, event.node_uuid, event.node_name))
        self.assertEqual({"provision_state": "deploying", "last_error": None}, event.data)

    def test_a_write_that_is_refused_leaves_no_event(self) -> None:
        node = database.make_node(self.db)
        nodes.set_always(self.db, node.uuid, {"health": "OK"})
        self.assertRaises(
            errors.ChangedMeanwhile, nodes.compare_and_set, self.db, node, {"provision_state": states.DEPLOYING}
        )
        self.assertEqual([], self.recorded())

    def test_a_node_is_changed_by_names_of_fields_without_values(self) -> None:
        node = database.make_node(self.db, name="old", extra={"a": 1}, owner="one")
        changes = {
            "name": "new",
            "extra": {"a": 2},
            "driver_info": {"password": "x"},
            "owner": "one",
            "chassis_id": None,
        }
        with sql_counter.counting(self.db) as counted:
            nodes.compare_and_set(self.db, node, changes)
        self.assertEqual(1, len(counted), counted)
        (event,) = self.recorded()
        self.assertEqual({"fields": ["driver_info", "extra", "name"], "name": "new"}, event.data)
        self.assertEqual(("node", "new", "one"), (event.kind, event.node_name, event.node_owner))

    def test_an_event_has_the_name_and_the_projects_of_its_time(self) -> None:
        node = database.make_node(self.db, name="first", owner="one", lessee="guest")
        for values in (
            {"last_error": "secret of one", "provision_state": states.DEPLOYFAIL},
            {"owner": "two", "lessee": None, "name": "second", "maintenance": True},
            {"power_state": states.POWER_ON},
        ):
            nodes.compare_and_set(self.db, nodes.get(self.db, node.uuid), values)
        known = nodes.get(self.db, node.uuid)
        node_crud.delete(self.db, known)
        recorded = self.recorded()
        self.assertEqual(
            [
                ("provision", "first", "one", "guest"),
                ("node", "second", "two", None),
                ("maintenance", "second", "two", None),
                ("power", "second", "two", None),
                ("provision", "second", "two", None),
            ],
            [(event.kind, event.node_name, event.node_owner, event.node_lessee) for event in recorded],
        )
        self.assertEqual({"name": "first", "owner": "one", "lessee": "guest"}, recorded[1].node_was)
        self.assertEqual({"fields": ["lessee", "name", "owner"], "name": "second"}, recorded[1].data)
        self.assertEqual([None] * 4, [event.node_was for event in recorded if event.kind != "node"])
        self.assertTrue(recorded[-1].data["deleted"])

    def test_a_new_node_is_one_event(self) -> None:
        made = self.make()
        (event,) = self.recorded()
        self.assertEqual((made, {"provision_state": states.ENROLL, "created": True}), (event.node_uuid, event.data))

    def test_ports_are_changes_of_their_nodes(self) -> None:
        one, other = (database.make_node(self.db, name=name, owner=name) for name in ("one", "other"))
        with sql_counter.counting(self.db) as counted:
            ports.PORTS.create(self.db, {"node_id": one.id, "address": "52:54:00:00:00:01", "uuid": _PORT})
        written = [text for text in counted.statements if text[:5] != "BEGIN"]
        self.assertEqual((2, 1), (len(written), counted.commits), written)
        for values in ({"extra": {"a": 1}}, {"node_id": other.id}):
            ports.PORTS.update(self.db, listing.get(self.db, ports.PORTS.source, _PORT), values)
        ports.PORTS.delete(self.db, listing.get(self.db, ports.PORTS.source, _PORT))
        ports.PORTGROUPS.create(self.db, {"node_id": one.id})
        node_crud.change_traits(self.db, one, ["CUSTOM_A"])
        recorded = [(event.node_name, event.node_owner, event.data["fields"]) for event in self.recorded()]
        about = {name: (name, name, ["ports"]) for name in ("one", "other")}
        self.assertEqual([about["one"], about["one"]], recorded[:2])
        self.assertEqual([about["one"], about["other"]], sorted(recorded[2:4]))
        self.assertEqual(about["other"], recorded[4])
        self.assertEqual([("one", "one", ["portgroups"]), ("one", "one", ["traits"])], recorded[5:])
        self.assertEqual({"node"}, {event.kind for event in self.recorded()})

    def test_what_is_refused_of_a_port_is_no_event(self) -> None:
        node = database.make_node(self.db)
        ports.PORTS.create(self.db, {"node_id": node.id, "address": "52:54:00:00:00:01", "uuid": _PORT})
        port = listing.get(self.db, ports.PORTS.source, _PORT)
        nodes.lock(self.db, node.uuid, "one", "test")
        before = len(self.recorded())
        self.assertRaises(errors.NodeLocked, ports.PORTS.update, self.db, port, {"extra": {"a": 1}})
        self.assertRaises(errors.NodeLocked, ports.PORTS.delete, self.db, port)
        self.assertEqual(before, len(self.recorded()))

    def test_what_stays_as_it_was_is_no_event(self) -> None:
        node = database.make_node(self.db, power_state=states.POWER_ON)
        nodes.compare_and_set(self.db, node, {"power_state": states.POWER_ON, "health": "OK"})
        self.assertEqual([], self.recorded())

    def test_kinds_follow_from_the_columns(self) -> None:
        node = database.make_node(self.db)
        for values in (
            {"power_state": states.POWER_OFF},
            {"maintenance": True, "maintenance_reason": "hot", "fault": None},
            {"provision_state": states.DEPLOYING},
            {"extra": {"a": 1}},
            {"health": "OK"},
        ):
            nodes.set_always(self.db, node.uuid, values)
        self.assertEqual(["power", "maintenance", "provision", "node"], [event.kind for event in self.recorded()])

    def test_a_task_tells_of_what_it_has_changed_and_of_its_steps(self) -> None:
        node = database.make_node(self.db, power_state=states.POWER_ON)
        held = nodes.lock(self.db, node.uuid, "one", "test")
        step = outbox.build_step_event({"interface": "deploy", "step": "write_image", "state": "running"})
        nodes.write_locked(self.db, held, {"extra": {"a": 1}}, events=[step])
        event = self.recorded()[0]
        self.assertEqual(("step", "write_image", "running"), (event.kind, event.data["step"], event.data["state"]))

    def test_collecting_changes_nothing_that_a_client_sees(self) -> None:
        node = database.make_node(self.db)
        nodes.set_always(self.db, node.uuid, {"provision_state": states.AVAILABLE})
        before = nodes.get(self.db, node.uuid)
        self.recorded()
        self.assertEqual(before.as_dict(), nodes.get(self.db, node.uuid).as_dict())
        self.assertNotIn("outbox", before.as_dict())

    def test_numbers_have_no_gaps_and_no_event_comes_twice(self) -> None:
        for _ in range(3):
            self.make()
        for event in self.recorded():
            nodes.set_always(self.db, event.node_uuid, {"provision_state": states.AVAILABLE})
        self.assertEqual(list(range(1, 7)), [event.id for event in self.recorded()])
        self.assertEqual(6, len(self.recorded()))

    def test_a_look_in_vain_costs_four_statements_and_any_other_few(self) -> None:
        for _ in range(30):
            self.make()
        for expected in (9, 4):
            with sql_counter.counting(self.db) as counted:
                events.collect(self.db, _SILENT_AFTER)
            self.assertLessEqual(len([text for text in counted.statements if text[:5] != "BEGIN"]), expected)

    def test_whether_anything_is_later_costs_one_statement(self) -> None:
        for expected in (False, True, True, True):
            with sql_counter.counting(self.db) as counted:
                self.assertEqual(expected, events.has_later(self.db, 0))
            self.assertEqual(1, len(counted), counted)
            if expected:
                self.recorded()
            else:
                self.make()
        node = nodes.get(self.db, self.recorded()[0].node_uuid or "")
        self.assertFalse(events.has_later(self.db, 1))
        node_crud.delete(self.db, node)
        self.assertTrue(events.has_later(self.db, 1))

    def test_who_listens_learns_of_each_commit_with_events_and_of_no_other(self) -> None:
        heard: list[str] = []
        node = self.make()
        with self.db.listening(lambda: heard.append(nodes.get(self.db, node, ("provision_state",)).provision_state)):
            nodes.set_always(self.db, node, {"health": "OK"})
            self.assertEqual([], heard)
            nodes.set_always(self.db, node, {"provision_state": states.MANAGEABLE})
            self.assertEqual([states.MANAGEABLE], heard)
            held = nodes.lock(self.db, node, "one", "test")
            values = {"power_state": states.POWER_ON, **nodes.UNLOCKED}
            nodes.write_locked(self.db, held, values, history=[_ENTRY], events=outbox.build_events(values))
            self.make()
            self.assertEqual(3, len(heard))
        nodes.set_always(self.db, node, {"provision_state": states.AVAILABLE})
        self.assertEqual(3, len(heard))

    def test_what_happened_to_a_node_outlives_it(self) -> None:
        node = self.make()
        node_crud.delete(self.db, nodes.get(self.db, node))
        recorded = self.recorded()
        self.assertEqual([(1, node), (2, node)], [(event.id, event.node_uuid) for event in recorded])
        self.assertEqual([states.ENROLL, None], [event.data["provision_state"] for event in recorded])

    def test_to_delete_a_node_draws_no_number(self) -> None:
        """Who draws one waits for all others that do."""
        node = self.make()
        with sql_counter.counting(self.db) as counted:
            node_crud.delete(self.db, nodes.get(self.db, node))
        self.assertEqual([], [text for text in counted.statements if " events" in text])
        self.assertEqual(2, len(self.recorded()))
        self.assertEqual(2, len(self.recorded()))

    def test_many_are_deleted_at_once(self) -> None:
        made = [nodes.get(self.db, self.make()) for _ in range(24)]
        refused: list[Exception] = []

        def delete(some: list[nodes.ShownNode]) -> None:
            for node in some:
                try:
                    node_crud.delete(self.db, node)
                except Exception as exc:  # noqa: BLE001 whatever it is
                    refused.append(exc)

        threads = [threading.Thread(target=delete, args=(made[n::8],)) for n in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        self.assertEqual([], refused)
        self.assertEqual(list(range(1, 49)), [event.id for event in self.recorded()])

    def test_a_node_whose_events_are_collected_meanwhile_can_be_deleted_at_the_next_try(self) -> None:
        node = nodes.get(self.db, self.make())
        self.recorded()
        node_crud.delete(self.db, node)
        self.assertEqual([states.ENROLL, None], [event.data["provision_state"] for event in self.recorded()])

    def test_a_node_whose_events_are_collected_at_that_moment_is_deleted_all_the_same(self) -> None:
        node = nodes.get(self.db, self.make())
        collecting = threading.Thread(target=events.collect, args=(self.db, _SILENT_AFTER))

        def collect(_connection: object, _cursor: object, statement: str, *_rest: object) -> None:
            if statement.startswith("DELETE FROM ports") and collecting.ident is None:
                collecting.start()
                collecting.join(0.3)  # or as long as the deletion lets it wait

        sa.event.listen(self.db.engine, "before_cursor_execute", collect)
        node_crud.delete(self.db, node)
        collecting.join(60)
        recorded = self.recorded()
        self.assertEqual([states.ENROLL, None], [event.data["provision_state"] for event in recorded])

    def test_lines_of_a_text_are_not_those_of_the_outbox(self) -> None:
        node = database.make_node(self.db)
        text = "one\ntwo\N{LINE SEPARATOR}three\N{NEXT LINE}four\x0bfive"
        nodes.set_always(self.db, node.uuid, {"provision_state": states.DEPLOYFAIL, "last_error": text})
        self.assertEqual([text], [event.data["last_error"] for event in self.recorded()])

    def test_conductors_come_fall_silent_come_back_and_stop(self) -> None:
        about = {"conductor_group": "", "release": "0.2", "rpc_version": "1.0"}
        ident = conductors.register(self.db, "one", about, [])
        self.recorded()
        with self.db.single() as connection:
            asleep = sa.update(models.table(models.Conductor)).values(heartbeat_at=clock.after(-100))
            connection.execute(asleep)
        self.recorded()
        conductors.touch(self.db, ident)
        self.recorded()
        conductors.unregister(self.db, ident)
        self.assertEqual(["online", "silent", "online", "stopped"], self.states_of_conductors())

    def states_of_conductors(self) -> list[str]:
        return [event.data["state"] for event in self.recorded() if event.kind == "conductor"]

    def test_conductors_are_drained_come_back_and_are_removed(self) -> None:
        about = {"conductor_group": "rack", "release": "0.3", "rpc_version": "1.3"}
        own = conductors.register(self.db, "one", about, [])
        conductors.drain(self.db, "one")
        conductors.drain(self.db, "one")
        conductors.confirm_drain(self.db, own)
        conductors.undrain(self.db, "one")
        conductors.undrain(self.db, "one")  # it is not drained anymore: nothing happens
        conductors.register(self.db, "one", about, [])
        conductors.withdraw(self.db, own)
        conductors.unregister(self.db, own)
        conductors.forget(self.db, "one", _SILENT_AFTER)
        expected = ["online", "draining", "drained", "undrained", "online", "leaving", "stopped", "removed"]
        self.assertEqual(expected, self.states_of_conductors())
        last = self.recorded()[-1]
        self.assertEqual(("one", "rack", None), (last.data["conductor"], last.data["conductor_group"], last.node_uuid))

    def test_what_is_refused_of_a_conductor_is_no_event(self) -> None:
        for refused in (conductors.drain, conductors.undrain):
            self.assertRaises(errors.NotFound, refused, self.db, "missing")
        own = conductors.register(self.db, "one", {"release": "0.3", "rpc_version": "1.3", "process": "1"}, [])
        conductors.withdraw(self.db, own._replace(process="another"))
        self.assertEqual(["online"], self.states_of_conductors())

    def test_rows_that_take_the_ids_of_those_that_another_process_has_moved_keep_their_events(self) -> None:
        for table, leave in (("waiting_events", self._leave_event), ("removed_nodes", self._leave_node)):
            before = len(self.recorded())
            leave()
            with self._between_two_statements(table, lambda leave=leave: (events.collect_outboxes(self.db), leave())):
                events.collect_outboxes(self.db)
            added = [(event.node_uuid, event.data.get("plan")) for event in self.recorded()[before:]]
            self.assertEqual((2, 2), (len(added), len(set(added))), added)

    @contextlib.contextmanager
    def _between_two_statements(self, table: str, work: Callable[[], object]) -> Iterator[None]:
        """Have another process do something when a collection has looked into a table, and before it goes on."""
        looked: list[str] = []

        def intervene(_connection: object, _cursor: object, statement: str, *_rest: object) -> None:
            if f"FROM {table}" in statement and not looked:
                looked.append(statement)
                work()

        sa.event.listen(self.db.engine, "after_cursor_execute", intervene)
        try:
            yield
        finally:
            sa.event.remove(self.db.engine, "after_cursor_execute", intervene)

    def _leave_event(self) -> None:
        with self.db.transaction() as connection:
            outbox.add(connection, "plan", {"plan": str(uuid.uuid4())})

    def _leave_node(self) -> None:
        left = outbox.build_columns([outbox.build_lock_event()])["outbox"]
        row = {"uuid": str(uuid.uuid4()), "name": None, "outbox": left}
        self.db.write(sa.insert(models.table(models.RemovedNode)).values(row))

    def test_plans_are_made_changed_and_deleted(self) -> None:
        step = {"interface": "deploy", "step": "erase", "priority": 10}
        step_lists.TEMPLATES.create(self.db, {"name": "CUSTOM_A", "steps": [step], "extra": {}})
        step_lists.RUNBOOKS.create(
            self.db, {"name": "r", "owner": "p", "public": False, "steps": [{**step, "order": 1}]}
        )
        template = listing.get(self.db, step_lists.TEMPLATES.source, "CUSTOM_A")
        step_lists.TEMPLATES.update(self.db, template, {"extra": {"a": 1}})
        step_lists.set_runbook_traits(self.db, listing.get(self.db, step_lists.RUNBOOKS.source, "r"), ["CUSTOM_B"])
        self.assertRaises(errors.ChangedMeanwhile, step_lists.TEMPLATES.delete, self.db, template)
        step_lists.TEMPLATES.delete(self.db, listing.get(self.db, step_lists.TEMPLATES.source, "CUSTOM_A"))
        recorded = self.recorded()
        self.assertEqual({"plan"}, {event.kind for event in recorded})
        self.assertEqual(
            [
                ("deploy_template", "CUSTOM_A", "created"),
                ("runbook", "r", "created"),
                ("deploy_template", "CUSTOM_A", "updated"),
                ("runbook", "r", "updated"),
                ("deploy_template", "CUSTOM_A", "deleted"),
            ],
            [(event.data["plan"], event.data["name"], event.data["change"]) for event in recorded],
        )
        self.assertEqual(("p", False), (recorded[1].data["owner"], recorded[1].data["public"]))
        self.assertEqual({template.uuid}, {event.data["uuid"] for event in recorded[::2]})

    def test_a_lock_that_was_seen_ends_with_an_event_and_others_do_not(self) -> None:
        node = self.make()
        held = nodes.lock(self.db, node, "one", "test")
        before = len(self.recorded())
        nodes.release_stale(self.db, "other")
        self.assertEqual(before, len(self.recorded()))
        nodes.release_stale(self.db, "one")
        (event,) = self.recorded()[before:]
        self.assertEqual(("lock", held.uuid, {"reservation": None}), (event.kind, event.node_uuid, event.data))

    def test_a_machine_that_boots_says_how_far_it_is_once_each(self) -> None:
        node = database.make_node(
            self.db, flow="deploy", step_started_at=clock.after(-5), provision_state=states.DEPLOYWAIT
        )
        for _ in range(2):
            boots.note_script(self.db, node)
        found = agents.look_up(self.db, node.uuid, ())
        assert found is not None
        for _ in range(2):
            self.assertIsNotNone(agents.issue_token(self.db, found, "192.0.2.7", 300))
        for _ in range(2):
            heard = agents.read_for_heartbeat(self.db, node.uuid)
            with sql_counter.counting(self.db) as counted:
                agents.record_heartbeat(self.db, heard, {"agent_url": "http://192.0.2.7:9999"})
            self.assertEqual(1, len(counted))
        recorded = [(event.kind, event.data["sign"]) for event in self.recorded()]
        self.assertEqual([("boot", sign) for sign in ("boot script fetched", "node looked up", "heartbeat")], recorded)

    def test_a_machine_that_boots_without_work_is_no_event(self) -> None:
        node = database.make_node(self.db)
        boots.note_script(self.db, node)
        self.assertIsNotNone(nodes.get(self.db, node.uuid, ("boot_script_at",)).boot_script_at)
        self.assertEqual([], self.recorded())

    def test_only_the_newest_are_kept_and_numbers_go_on(self) -> None:
        for _ in range(10):
            self.make()
        self.recorded()
        self.assertEqual(7, events.prune(self.db, 3, batch=2))
        self.assertEqual((8, 10), events.bounds(self.db))
        self.make()
        self.assertEqual([8, 9, 10, 11], [event.id for event in self.recorded()])

    def test_many_writers_and_collectors_at_once(self) -> None:
        """Each event once, without gaps, those of a node in the order of its writes."""
        made = [database.make_node(self.db) for _ in range(4)]
        writing = [threading.Thread(target=self._write, args=(node.uuid,)) for node in made]
        done = threading.Event()
        seen: list[list[int]] = [[], []]
        collecting = [threading.Thread(target=self._read, args=(done, ids)) for ids in seen]
        for thread in (*collecting, *writing):
            thread.start()
        for thread in writing:
            thread.join(60)
        done.set()
        for thread in collecting:
            thread.join(60)
        recorded = self.recorded()
        self.assertEqual(list(range(1, len(recorded) + 1)), [event.id for event in recorded])
        self.assertEqual([event.id for event in recorded], seen[0])
        self.assertEqual([event.id for event in recorded], seen[1])
        for node in made:
            numbers = [
                e.data["maintenance_reason"] for e in recorded if e.node_uuid == node.uuid and "maintenance" in e.kind
            ]
            self.assertEqual([str(number) for number in range(25)], numbers)

    def _write(self, uuid: str) -> None:
        for number in range(25):
            nodes.set_always(self.db, uuid, {"maintenance": True, "maintenance_reason": str(number)})

    def _read(self, done: threading.Event, ids: list[int]) -> None:
        """Collect as a stream does, and read on from where it is."""
        last = False
        while not last:
            last = done.is_set()
            events.collect(self.db, _SILENT_AFTER)
            ids += [event.id for event in events.read_page(self.db, ids[-1] if ids else 0, 1000)]
