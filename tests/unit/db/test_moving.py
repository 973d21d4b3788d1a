"""Moving a fleet from Ironic: what is taken over, what becomes of the rest, and what is refused."""

import datetime
import json
from typing import Any

import fixtures
import sqlalchemy as sa

from ingot.common import clock, keyring, states
from ingot.common.conf.start import Exit
from ingot.db import agents, models, nodes
from ingot.db.moving import schema
from tests import database, ironic_database
from tests.moving_case import INFO, MovingCase

MOMENT = datetime.datetime(2026, 3, 1, 12, 0)


class ImportsOnSQLite(MovingCase):
    def test_a_row_of_each_table_is_taken_over(self) -> None:
        uuid = self.fill()
        self.assertIn("Imported.", self.take_over())
        self.assertEqual({noun.name: 1 for noun in schema.NOUNS}, self.count())
        (node,) = self.read(models.Node)
        self.assertEqual(uuid, node.uuid)
        self.assertEqual((MOMENT, MOMENT, "ipmi"), (node.created_at, node.updated_at, node.driver))
        self.assertEqual(({"cpus": 4}, {"ü": "ß"}), (node.properties, node.extra))
        self.assertEqual("H4sIAA==", node.configdrive)
        self.assertEqual({"image_source": "http://images/1"}, node.instance_info)
        (port,) = self.read(models.Port)
        self.assertEqual(("p-4", 7, 2, True), (port.uuid, port.node_id, port.portgroup_id, port.pxe_enabled))
        (found,) = self.read(models.NodeInventory)
        self.assertEqual(({"cpu": 2}, MOMENT), (found.inventory, found.inspected_at))
        (allocation,) = self.read(models.Allocation)
        self.assertEqual(
            (7, ["CUSTOM_GPU"], [uuid]), (allocation.node_id, allocation.traits, allocation.candidate_nodes)
        )

    def test_secrets_are_encrypted_on_the_way(self) -> None:
        uuid = self.fill()
        self.take_over()
        self.assertEqual(INFO, nodes.get(self.db, uuid).driver_info)
        kept = {
            name: self.db.read_column(sa.select(sa.type_coerce(table.c[name], sa.Text())))
            for table, name in ((nodes.NODES, "driver_info"), (models.table(models.VolumeTarget), "properties"))
        }
        self.assertNotIn("s3cret", str(kept))
        self.assertEqual(2, str(kept).count(keyring.MARK))

    def test_the_next_row_gets_an_id_that_is_free(self) -> None:
        self.fill()
        self.take_over()
        self.assertLess(7, database.make_node(self.db).id)

    def test_it_may_be_repeated_until_something_is_different(self) -> None:
        uuid = self.fill()
        self.take_over()
        before = nodes.get(self.db, uuid)
        self.assertIn("nothing was written", self.take_over())
        self.assertEqual(vars(before), vars(nodes.get(self.db, uuid)))
        self.db.write(sa.update(nodes.NODES).values(name="renamed"))
        self.assertIn(f"nodes are missing or different, such as {uuid}", self.refused())

    def test_a_database_with_other_rows_is_refused(self) -> None:
        database.make_node(self.db)
        self.assertIn("nodes has 1 rows, Ironic has 0", self.refused())

    def test_a_dry_run_writes_nothing(self) -> None:
        self.fill()
        self.assertIn("Dry run", self.take_over("--dry-run"))
        self.assertEqual({0}, set(self.count().values()))
        self.assertEqual([], self.read(models.SecretKey))

    def test_what_the_database_refuses_leaves_nothing_half_and_is_repeated(self) -> None:
        self.fill()
        self.ironic.add_node(8, name="node-7")
        self.assertIn("Nothing was imported", self.refused())
        self.ironic.execute("UPDATE nodes SET name = 'node-8' WHERE id = 8")
        self.take_over()
        self.assertEqual(2, self.count()["nodes"])

    def test_the_number_of_statements_does_not_grow_with_the_rows_of_a_batch(self) -> None:
        def measure(*numbers: int) -> int:
            for number in numbers:
                self.ironic.add_node(number)
            sent: list[str] = []

            def note(_connection: Any, _cursor: Any, statement: str, *_rest: Any) -> None:
                sent.append(statement)

            def connect(*given: Any, **named: Any) -> sa.Engine:
                engine = make(*given, **named)
                sa.event.listen(engine, "before_cursor_execute", note)
                return engine

            make = sa.create_engine
            # A listener to all engines would cost each statement of later tests, even when it is gone.
            with fixtures.MonkeyPatch("sqlalchemy.create_engine", connect):
                self.take_over("--dry-run")
            self.assertNotEqual([], sent)
            return len(sent)

        self.assertEqual(measure(1), measure(*range(2, 100)))


class States(MovingCase):
    """What becomes of nodes in each state."""

    def take(self, **values: Any) -> models.Node:
        self.ironic.add_node(1, **values)
        self.output = self.take_over()
        return self.read(models.Node)[0]  # type: ignore[no-any-return]

    def test_nodes_that_nothing_works_on_stay_as_they_are(self) -> None:
        stable = sorted(states.STABLE | states.FAILED)
        for number, state in enumerate(stable, 1):
            self.ironic.add_node(number, provision_state=state, last_error="before", target_provision_state="t")
        self.take_over()
        found = {node.provision_state: node for node in self.read(models.Node)}
        self.assertEqual(stable, sorted(found))
        self.assertEqual({("before", "t")}, {(one.last_error, one.target_provision_state) for one in found.values()})

    def test_nodes_in_the_middle_of_something_have_failed(self) -> None:
        moving = sorted(states.WORKING | states.WAITING | states.HELD)
        for number, state in enumerate(moving, 1):
            self.ironic.add_node(number, provision_state=state)
        output = self.take_over()
        for state, node in zip(moving, self.read(models.Node), strict=True):
            after = node.provision_state
            self.assertIn(f"{state} becomes {after} (1)", output)
            self.assertIn(f"was in state {state}", node.last_error)
            self.assertIn(after, states.FAILED | {states.ERROR, states.ENROLL}, state)
            self.assertEqual(states.TARGETS.get(after), node.target_provision_state)
            self.assertEqual(states.FAULTS.get(after), node.fault)
            self.assertEqual(after in states.FAULTS, node.maintenance)

    def test_no_node_is_work_for_a_conductor(self) -> None:
        for number, state in enumerate(sorted(states.ALL), 1):
            self.ironic.add_node(number, provision_state=state, target_power_state="power off", reservation="host-1")
        output = self.take_over()
        for node in self.read(models.Node):
            self.assertEqual((None, None, None, {}), (node.due_at, node.flow, node.reservation, node.power_request))
            self.assertEqual((None, None), (node.power_state, node.target_power_state))
        self.assertIn(f"power off ({len(states.ALL)})", output)
        self.assertIn(f"host-1 ({len(states.ALL)})", output)

    def test_an_inspection_does_not_go_on(self) -> None:
        node = self.take(provision_state="inspect wait", inspection_started_at="2026-03-01 12:00:00")
        self.assertEqual(("inspect failed", None), (node.provision_state, node.inspection_started_at))

    def test_an_agent_that_waits_is_still_heard(self) -> None:
        info = {"agent_secret_token": "t" * 32, "agent_url": "http://192.0.2.1:9999", "agent_version": "11.7"}
        beat = {"agent_last_heartbeat": "2026-03-01T12:00:00.5"}
        node = self.take(provision_state="clean wait", driver_internal_info={**info, **beat, "clean_steps": [{}]})
        self.assertEqual(("t" * 32, "11.7", {}), (node.agent_token, node.agent_version, node.driver_internal_info))
        self.assertEqual(MOMENT.replace(microsecond=500000), node.agent_last_heartbeat)
        heard = agents.read_for_heartbeat(self.db, node.uuid)
        self.assertTrue(agents.record_heartbeat(self.db, heard, {"agent_url": "https://192.0.2.1:9999"}))
        self.assertIn("state clean wait (1)", self.output)

    def test_what_looks_like_an_agent_without_a_token_is_none(self) -> None:
        node = self.take(driver_internal_info={"agent_url": "http://192.0.2.1:9999", "agent_version": "11.7"})
        self.assertEqual((None, None), (node.agent_token, node.agent_version))

    def test_consoles_are_off(self) -> None:
        self.assertFalse(self.take(console_enabled=1, console_interface="fake").console_enabled)
        self.assertIn("console interface fake (1)", self.output)

    def test_a_machine_that_boots_from_a_volume_goes_on_doing_so(self) -> None:
        volume = {"id": 1, "uuid": "t-1", "volume_type": "iscsi", "volume_id": "v", "boot_index": 0, "node_id": 1}
        self.ironic.add("volume_targets", **volume)
        self.ironic.add("volume_targets", **{**volume, "id": 2, "uuid": "t-2", "boot_index": 1, "node_id": 2})
        self.ironic.add("volume_targets", **{**volume, "id": 3, "uuid": "t-3", "node_id": 3})
        self.ironic.add("volume_targets", **{**volume, "id": 4, "uuid": "t-4", "node_id": 4})
        own = {"storage_interface": "external", "provision_state": "active"}
        self.ironic.add_node(2, **own)
        self.ironic.add_node(3, **{**own, "provision_state": "available"})
        self.ironic.add_node(4, **{**own, "storage_interface": "noop"})
        self.assertEqual({"target": "volume"}, self.take(**own).boot_config)
        self.assertEqual([{}, {}, {}], [node.boot_config for node in self.read(models.Node)[1:]])
        self.assertIn("volume (1): 00000000-0000-0000-0000-000000000001", self.output)

    def test_a_machine_that_boots_a_users_image_never_boots_its_disk(self) -> None:
        node = self.take(deploy_interface="ramdisk", provision_state="service wait", instance_info={"boot_iso": "x"})
        self.assertEqual({"target": "image"}, node.boot_config)
        self.assertIn("Machines that boot from the network at each start (1)", self.output)

    def test_a_config_drive_that_is_a_link_is_reported(self) -> None:
        self.assertIsNone(self.take(instance_info={"configdrive": "https://swift/1"}).configdrive)
        self.assertIn("Config drives that Ironic keeps as a link (1)", self.output)

    def test_a_state_that_is_not_known_is_an_error(self) -> None:
        node = self.take(provision_state="deploy complete")
        self.assertEqual("error", node.provision_state)
        self.assertIn("was in state deploy complete", node.last_error)

    def test_a_node_without_a_state_is_available(self) -> None:
        self.assertEqual("available", self.take(provision_state=None).provision_state)


class Reports(MovingCase):
    def test_what_is_not_enabled_is_named_and_may_be_replaced(self) -> None:
        uuid = self.ironic.add_node(1, network_interface="flat")
        self.ironic.add_node(2, driver="irmc")
        output = self.take_over("--dry-run")
        self.assertIn(f"network_interface flat of fake-hardware (1): {uuid}", output)
        self.assertIn("driver irmc Machines of type irmc have the hardware type redfish here. (1)", output)
        output = self.take_over("--replace", "network_interface=flat:noop", "--replace", "driver=irmc:ipmi")
        self.assertNotIn("does not have", output)
        found = [(node.driver, node.network_interface) for node in self.read(models.Node)]
        self.assertEqual([("fake-hardware", "noop"), ("ipmi", None)], found)

    def test_rows_that_belong_to_nothing_are_left_out(self) -> None:
        self.ironic.add_node(1, chassis_id=77)
        self.ironic.add("ports", id=1, uuid="p-1", address="52:54:00:00:00:01", node_id=99)
        self.ironic.add("ports", id=2, uuid="p-2", address="52:54:00:00:00:02")
        self.ironic.add("allocations", id=1, uuid="a-1", state="active", node_id=99)
        self.ironic.add("inspection_rules", id=1, uuid="u-1", scope="mine", actions=[])
        output = self.take_over()
        for text in ("ports (2): p-1, p-2", "state active (1): a-1", "mine (1): u-1"):
            self.assertIn(text, output)
        self.assertEqual((0, 1, 1), tuple(self.count()[name] for name in ("ports", "allocations", "inspection_rules")))

    def test_a_file_has_all_of_it(self) -> None:
        uuids = [self.ironic.add_node(number, provision_state="cleaning") for number in range(1, 9)]
        file = self.folder / "report.json"
        self.assertIn("and 3 more", self.take_over("--report", str(file)))
        report = json.loads(file.read_text())
        self.assertEqual(8, report["rows"]["nodes"])
        self.assertEqual([{"cleaning becomes clean failed": uuids}], [one["details"] for one in report["findings"]])

    def test_a_file_that_cannot_be_written_is_refused_first(self) -> None:
        self.ironic.add_node(1)
        self.assertIn("--report", self.refused("--from", self.ironic.url, "--report", str(self.folder / "no" / "file")))


class Refusals(MovingCase):
    def check(self, address: str, *parts: str, status: int = Exit.CONFIGURATION) -> None:
        ended, output = self.dbsync("import-ironic", "--from", address)
        self.assertEqual(status, ended, output)
        for part in parts:
            self.assertIn(part, output)
        self.assertNotIn("Traceback", output)

    def test_addresses_that_are_none(self) -> None:
        self.check(f"sqlite:///{self.folder}/nothing.sqlite", "There is no such file")
        self.check("sqlite:///$state_path/ironic.sqlite", "Write the path instead of a reference such as $state_path")
        self.check("postgresql+psycopg://root:s3cret@127.0.0.1/ironic", "Ironic does not work with PostgreSQL")
        self.check("oracle://127.0.0.1/ironic", "address of Ironic's database", "mysql+pymysql://")
        self.check(str(self.folder / "nothing.conf"), "nothing.conf")
        self.check(str(self.file.with_name("empty")), "empty")
        self.check("mysql+pymysql://root:s3cret@127.0.0.1:1/ironic", "root:******@", "refused", status=Exit.TRY_AGAIN)

    def test_the_address_may_be_that_of_a_configuration_file(self) -> None:
        self.ironic.add_node(1)
        file = self.folder / "ironic.conf"
        file.write_text("[DEFAULT]\ndebug = true\n")
        self.check(str(file), "has no [database] connection")
        file.write_text(f"[database]\nconnection = {self.ironic.url}\n")
        self.check(str(file), "Imported.", status=0)

    def test_databases_of_others(self) -> None:
        self.check(self.database.url, "This is a database of Ingot", status=1)
        self.ironic.execute("DROP TABLE nodes")
        self.check(self.ironic.url, "has no tables of Ironic", status=1)
        (self.folder / "text").write_text("hello " * 1000)
        self.check(f"sqlite:///{self.folder}/text", "not a database")
        other = ironic_database.IronicDatabase(self.folder / "other.sqlite")
        other.execute("UPDATE alembic_version SET version_num = 'cafe'")
        self.check(other.url, "revision cafe", "39: 9fb44677ef15", status=1)

    def test_an_ironic_that_runs(self) -> None:
        self.ironic.add("conductors", id=1, hostname="one", online=1, updated_at=str(clock.now()))
        self.ironic.add("conductors", id=2, hostname="two", online=0, updated_at=str(clock.now()))
        self.ironic.add("conductors", id=3, hostname="old", online=1, updated_at=str(clock.after(-61)))
        output = self.refused()
        self.assertRegex(output, r"conductor one \(\d+ s ago\)\. Stop")
        self.assertIn("Ironic is running (1)", self.take_over("--dry-run"))
        self.assertIn("Ironic is running (1)", self.take_over("--while-running"))

    def test_json_that_is_none_is_found_after_most_was_written(self) -> None:
        self.ironic.add_node(1)
        self.ironic.add("inspection_rules", id=1, uuid="u-1", actions="{broken")
        self.assertIn("a row of inspection_rules holds what is no JSON", self.refused())

    def test_replacements_that_are_none(self) -> None:
        for text in ("network_interface", "network_interface=flat", "name=a:b", "driver=:b"):
            error = self.assertRaises(SystemExit, self.dbsync, "import-ironic", "--from", "x", "--replace", text)
            self.assertEqual(2, error.code)
        twice = ("--replace", "network_interface=flat:noop", "--replace", "network_interface=flat:neutron")
        output = self.refused("--from", self.ironic.url, *twice)
        for part in ("network_interface=flat:neutron", "noop replaces it already"):
            self.assertIn(part, output)

    def test_commands_of_ingot_on_the_database_of_ironic(self) -> None:
        self.file.write_text(self.file.read_text().replace(self.database.url, self.ironic.url))
        lines = ("upgrade", "expand", "contract", "stamp 0009", "online_data_migrations")
        for line in (*lines, f"import-ironic --from {self.ironic.url}"):
            status, output = self.dbsync(*line.split())
            self.assertEqual(1, status, line)
            self.assertIn("ingot-dbsync import-ironic --from ADDRESS", output)
        self.assertEqual([{"version_num": ironic_database.NEWEST}], self.ironic.rows("alembic_version"))

    def test_a_schema_of_ingot_that_is_not_there(self) -> None:
        self.file.write_text(self.file.read_text().replace(self.database.url, f"sqlite:///{self.folder}/empty.sqlite"))
        self.check(self.ironic.url, "run ingot-dbsync upgrade first")


class Releases(MovingCase):
    def test_each_release_since_29_is_read_and_written(self) -> None:
        self.assertEqual(schema.RELEASES.keys(), {*ironic_database.SCHEMA["lacks"], ironic_database.NEWEST})
        for revision in ironic_database.SCHEMA["lacks"]:
            self.ironic = ironic_database.IronicDatabase(self.folder / f"{revision}.sqlite", revision)
            self.ironic.add_node(1)
            self.ironic.add("ports", id=1, uuid="p-1", address="52:54:00:00:00:01", node_id=1)
            self.ironic.add("runbooks", id=1, uuid="r-1", name="CUSTOM_R")
            self.database = self.useFixture(database.DatabaseFixture(self.backend))
            self.db = self.database.db
            self.file.write_text(self.file.read_text().replace("connection", f"connection = {self.database.url}\n#", 1))
            self.take_over()
            (port,) = self.read(models.Port)
            self.assertTrue(port.available_for_dynamic_portgroup)
            traits = [row.trait for row in self.read(models.RunbookTrait)]
            self.assertEqual([] if "runbook_traits" in self.ironic.tables else ["CUSTOM_R"], traits)
            self.give_back()

    def test_every_column_is_taken_over_or_known_to_be_ironics_own(self) -> None:
        own = {"id", "version", "created_at", "updated_at"}
        left = {
            f"{noun.theirs}.{name}"
            for noun in schema.NOUNS
            for name in self.ironic.tables[noun.theirs].keys() - noun.columns.keys() - own
        }
        expected = {"allocations.conductor_affinity", "inspection_rules.scope", "nodes.allocation_id"}
        self.assertEqual(expected | {"nodes.conductor_affinity", "nodes.reservation"}, left)
        tables = {noun.theirs for noun in schema.NOUNS}
        self.assertEqual(schema.NOT_TAKEN, self.ironic.tables.keys() - tables)
