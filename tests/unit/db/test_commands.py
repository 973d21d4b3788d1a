"""ingot-dbsync and ingot-status, as an operator types them."""

import json
import pathlib
import subprocess
import sys

import fixtures
import testtools

from ingot.db import conductors, schema
from ingot.db.cmd import online_data
from ingot.db.conductors import EnabledInterface
from ingot.db.engine import Database
from tests import database


class Commands(testtools.TestCase):
    def setUp(self) -> None:
        super().setUp()
        self.database = self.useFixture(database.DatabaseFixture(migrated=False))
        self.db = self.database.db
        self.file = pathlib.Path(self.useFixture(fixtures.TempDir()).path) / "ingot.conf"
        self.file.write_text(f"[database]\nconnection = {self.database.url}\n")

    def run_command(self, module: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", f"ingot.db.cmd.{module}", "--config-file", str(self.file), *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    def test_the_schema_is_made_and_told(self) -> None:
        before = self.run_command("dbsync", "version")
        made = self.run_command("dbsync", "upgrade")
        after = self.run_command("dbsync", "version")

        self.assertEqual((0, 0, 0), (before.returncode, made.returncode, after.returncode), made.stderr)
        self.assertEqual(f"empty (this release: {schema.head()})\n", before.stdout)
        self.assertEqual(f"{schema.head()} (this release: {schema.head()})\n", after.stdout)
        self.assertTrue(schema.is_current(self.db))

    def test_a_revision_that_does_not_exist_is_told(self) -> None:
        refused = self.run_command("dbsync", "upgrade", "--revision", "0815")

        self.assertEqual(1, refused.returncode)
        self.assertIn("ingot-dbsync: Invalid revision: '0815'", refused.stderr)
        self.assertNotIn("Traceback", refused.stderr)

    def test_a_command_line_that_makes_no_sense_is_told(self) -> None:
        refused = self.run_command("dbsync", "online_data_migrations", "--max-count", "0")

        self.assertEqual(2, refused.returncode)
        self.assertIn("'0' is not a number of rows", refused.stderr)

    def test_nothing_is_left_to_move(self) -> None:
        moved = self.run_command("dbsync", "online_data_migrations", "--max-count", "10")

        self.assertEqual((0, "Nothing is left to move.\n"), (moved.returncode, moved.stdout))

    def test_an_empty_database_stands_in_the_way(self) -> None:
        table = self.run_command("status", "upgrade", "check")
        checked = self.run_command("status", "upgrade", "check", "--json")

        self.assertEqual((2, 2), (table.returncode, checked.returncode), checked.stderr)
        self.assertIn("Result: Failure", table.stdout)
        self.assertIn("run ingot-dbsync upgrade", json.loads(checked.stdout)["checks"][0]["details"])

    def test_nodes_that_no_conductor_can_serve_are_told(self) -> None:
        schema.upgrade(self.db)
        offer = EnabledInterface("fake-hardware", "power", "fake", True)
        values = {"conductor_group": "West", "release": "0.1.0", "rpc_version": "1.0"}
        conductors.register(self.db, "one", {**values, "classic_drivers": ["fixed"]}, [offer])
        classic = database.make_node(self.db, conductor_group="west", driver="fixed")
        served = database.make_node(self.db, conductor_group="west", power_interface="fake")
        elsewhere = database.make_node(self.db, power_interface="fake")
        disabled = database.make_node(self.db, conductor_group="west", power_interface="ipmitool")

        checked = self.run_command("status", "upgrade", "check", "--json")

        self.assertEqual(1, checked.returncode, checked.stderr)
        told = {check["check"]: check for check in json.loads(checked.stdout)["checks"]}
        self.assertEqual(0, told["Schema of the database"]["result"])
        details = told["Drivers of nodes"]["details"]
        self.assertIn("2 nodes need", details)
        self.assertIn(f"node {elsewhere.uuid} (group '') needs driver fake-hardware", details)
        self.assertIn(f"node {disabled.uuid} (group 'west') needs power_interface ipmitool", details)
        self.assertNotIn(served.uuid, details)
        self.assertNotIn(classic.uuid, details)


class _Rows:
    """A migration of so many rows; with ``defect`` it fails."""

    def __init__(self, count: int, defect: bool = False) -> None:
        self.count = count
        self.defect = defect

    def left(self, _db: Database) -> int:
        return self.count

    def move(self, _db: Database, limit: int) -> int:
        if self.defect:
            raise LookupError
        moved = min(limit, self.count)
        self.count -= moved
        return moved

    def migration(self, name: str = "rows") -> online_data.Migration:
        return online_data.Migration(name, self.left, self.move)


class OnlineData(database.TestCase):
    def test_everything_is_moved_without_a_limit(self) -> None:
        rows = [_Rows(1200), _Rows(3)]

        outcome = online_data.run(self.db, [r.migration() for r in rows], None)

        self.assertEqual((online_data.Outcome.DONE, [0, 0]), (outcome, [r.count for r in rows]))

    def test_a_limit_holds_for_all_together(self) -> None:
        rows = [_Rows(6), _Rows(6)]

        outcome = online_data.run(self.db, [r.migration() for r in rows], 8)

        self.assertEqual((online_data.Outcome.MORE, [0, 4]), (outcome, [r.count for r in rows]))

    def test_one_that_fails_does_not_stop_the_others(self) -> None:
        rows = [_Rows(6, defect=True), _Rows(6)]

        outcome = online_data.run(self.db, [r.migration() for r in rows], None)

        self.assertEqual((online_data.Outcome.FAILED, [6, 0]), (outcome, [r.count for r in rows]))
