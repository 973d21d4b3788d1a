"""The way back to Ironic: what it finds in its database, and what is refused."""

import json
from typing import Any

import sqlalchemy as sa

from ingot.common import clock
from ingot.common.conf.start import Exit
from ingot.db import models, nodes
from tests import database, ironic_database
from tests.moving_case import INFO, MovingCase


class ExportsOnSQLite(MovingCase):
    def setUp(self) -> None:
        super().setUp()
        for name in ("uuid", "name", "instance_uuid"):  # as in Ironic
            self.ironic.execute(f"CREATE UNIQUE INDEX of_nodes_{name} ON nodes ({name})")

    def everything(self) -> dict[str, list[dict[str, Any]]]:
        """Return all rows, without what Ironic's own code decides anew."""
        ignored = {"version", "created_at", "updated_at", "conductor_affinity"}
        return {
            table: [
                self._as_said({key: row[key] for key in row if key not in ignored}) for row in self.ironic.rows(table)
            ]
            for table in self.ironic.tables
        }

    @staticmethod
    def _as_said(row: dict[str, Any]) -> dict[str, Any]:
        said = {name: json.loads(value) if str(value).startswith(("[", "{")) else value for name, value in row.items()}
        return {name: value for name, value in said.items() if value not in (None, {}, [], 0, "")}

    def test_what_has_not_changed_is_as_it_was(self) -> None:
        self.fill()
        self.ironic.execute("DELETE FROM node_inventory WHERE id = 1")
        agent = {"agent_secret_token": "t", "agent_secret_token_pregenerated": True, "agent_url": "http://192.0.2.1"}
        self.ironic.add_node(
            8,
            instance_info={"configdrive": "https://swift/1", "x": 1},
            driver_internal_info={**agent, "agent_cached_clean_steps": {"deploy": []}},
        )
        self.ironic.add_node(9, driver_internal_info={"agent_url": "http://192.0.2.1", "agent_version": "11.7"})
        before = self.everything()
        self.take_over()
        self.assertIn("0 nodes are new", self.give_back("--dry-run"))
        self.give_back()
        after = self.everything()
        for rows in (before, after):  # Ironic does not refer to these by their ids
            for table in ("node_inventory", "firmware_information"):
                for row in rows[table]:
                    row.pop("id", None)
        self.assertEqual(before, after)

    def test_what_was_changed_here_is_different_there(self) -> None:
        uuid = self.fill()
        gone = self.ironic.add_node(8)
        self.take_over()
        self.db.write(sa.delete(nodes.NODES).where(nodes.NODES.c.uuid == gone))
        values = {"provision_state": "available", "instance_uuid": None, "instance_info": {}, "configdrive": None}
        self.db.write(
            sa.update(nodes.NODES).where(nodes.NODES.c.uuid == uuid).values(power_state="power off", **values)
        )
        self.db.write(sa.delete(models.table(models.Allocation)))
        new = database.make_node(self.db, driver_info=INFO)
        status, output = self.dbsync("export-ironic", "--to", self.ironic.url)
        self.assertEqual(1, status)
        self.assertIn(f"1 nodes that Ingot has not: {gone}", output)
        self.assertEqual(2, len(self.ironic.rows("nodes")))
        self.give_back("--delete")
        first, second = self.ironic.rows("nodes")
        self.assertEqual((uuid, "available", None), (first["uuid"], first["provision_state"], first["allocation_id"]))
        self.assertEqual((new.uuid, INFO), (second["uuid"], json.loads(second["driver_info"])))
        self.assertEqual(("1.44", "1.44"), (first["version"], second["version"]))
        self.assertEqual([], self.ironic.rows("allocations"))

    def test_what_is_unique_may_have_gone_to_another_node(self) -> None:
        first, second = (
            self.ironic.add_node(number, name=name, instance_uuid=instance)
            for number, name, instance in ((1, "spare", None), (2, "rack1-u3", "i-1"))
        )
        self.take_over()
        for uuid, values in (
            (second, {"name": "rack1-u3-broken", "instance_uuid": None}),
            (first, {"name": "moving", "instance_uuid": "i-1"}),
        ):
            self.db.write(sa.update(nodes.NODES).where(nodes.NODES.c.uuid == uuid).values(**values))
        new = database.make_node(self.db, name="rack1-u3")
        self.assertIn("3 nodes are new", self.give_back())
        found = {row["uuid"]: (row["name"], row["instance_uuid"]) for row in self.ironic.rows("nodes")}
        expected = {first: ("moving", "i-1"), second: ("rack1-u3-broken", None), new.uuid: ("rack1-u3", None)}
        self.assertEqual(expected, found)

    def test_a_node_may_have_been_enrolled_again_under_its_uuid(self) -> None:
        uuid = self.ironic.add_node(1)
        self.ironic.add_node(2)
        self.take_over()
        self.db.write(sa.delete(nodes.NODES).where(nodes.NODES.c.uuid == uuid))
        new = database.make_node(self.db, uuid=uuid, name="again")
        self.assertEqual(1, self.dbsync("export-ironic", "--to", self.ironic.url)[0])
        self.assertIn("2 nodes are new, different or gone", self.give_back("--delete", "--dry-run"))
        self.give_back("--delete")
        found = [(row["id"], row["name"]) for row in self.ironic.rows("nodes")]
        self.assertEqual([(2, "node-2"), (new.id, "again")], found)

    def test_the_link_to_a_config_drive_ends_with_its_instance(self) -> None:
        link = {"configdrive": "https://swift/1", "x": 1}
        for number in (1, 2):
            self.ironic.add_node(number, instance_info=link, instance_uuid=f"i-{number}", provision_state="active")
        self.take_over()
        own = nodes.NODES.c.id == 1
        self.db.write(sa.update(nodes.NODES).where(own).values(instance_uuid="i-3"))
        self.give_back()
        self.assertEqual([{"x": 1}, link], [json.loads(row["instance_info"]) for row in self.ironic.rows("nodes")])

    def test_what_was_replaced_is_as_it_was(self) -> None:
        self.ironic.add_node(1, network_interface="flat", provision_state="active", power_state="power on")
        replace = ("--replace", "network_interface=flat:noop")
        self.take_over(*replace)
        self.give_back(*replace)
        (node,) = self.ironic.rows("nodes")
        self.assertEqual(("flat", "power on"), (node["network_interface"], node["power_state"]))

    def test_agents_and_what_only_ironic_understands(self) -> None:
        info = {"agent_secret_token": "t" * 32, "agent_url": "http://192.0.2.1:9999", "is_whole_disk_image": True}
        self.ironic.add_node(1, provision_state="active", driver_internal_info={**info, "deploy_steps": [{}]})
        self.take_over()
        url = "https://192.0.2.1:9999"
        self.db.write(sa.update(nodes.NODES).values(provision_state="clean wait", agent_url=url))
        self.give_back()
        (node,) = self.ironic.rows("nodes")
        self.assertEqual("clean failed", node["provision_state"])
        self.assertIn("moved from Ingot", node["last_error"])
        kept = {"agent_secret_token": "t" * 32, "agent_url": url, "is_whole_disk_image": True}
        self.assertEqual(kept, json.loads(node["driver_internal_info"]))

    def test_another_database_and_services_that_run_are_refused(self) -> None:
        self.ironic.add_node(1)
        self.take_over()
        other = ironic_database.IronicDatabase(self.folder / "other.sqlite")
        other.add_node(2, uuid="00000000-0000-0000-0000-000000000001")
        status, output = self.dbsync("export-ironic", "--to", other.url)
        self.assertEqual(1, status)
        self.assertIn("1 nodes that Ingot has not: 00000000-0000-0000-0000-000000000001 (id 2)", output)
        table = models.table(models.Conductor)
        self.db.write(sa.insert(table).values(hostname="here", release="0.3.0", rpc_version="1.0"))
        status, output = self.dbsync("export-ironic", "--to", self.ironic.url)
        self.assertEqual(1, status)
        self.assertIn("stop them and the APIs first: here", output)

    def test_trouble_of_ironics_database_is_not_said_of_ingots(self) -> None:
        self.fill()
        self.take_over()
        for statement, status, words in (
            ("SELECT x FROM nowhere", Exit.TRY_AGAIN, "ironic.sqlite is not available at the moment: no such table"),
            ("SELECT RAISE(ABORT, 'too long')", Exit.FAILED, "refuses a row, and nothing was changed there: too long"),
        ):
            self.ironic.execute(f"CREATE TRIGGER trouble BEFORE INSERT ON chassis BEGIN {statement}; END")
            ended, output = self.dbsync("export-ironic", "--to", self.ironic.url)
            self.assertEqual(status, ended, output)
            self.assertIn("Ironic's database", output)
            self.assertIn(words, output)
            self.ironic.execute("DROP TRIGGER trouble")

    def test_it_is_not_written_while_ironic_runs(self) -> None:
        self.ironic.add("conductors", id=1, hostname="one", online=1, updated_at=str(clock.now()))
        status, output = self.dbsync("export-ironic", "--to", self.ironic.url)
        self.assertEqual(1, status)
        self.assertIn("Ironic is running", output)
