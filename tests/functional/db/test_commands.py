"""ingot-dbsync and ingot-status, as an operator types them."""

import contextlib
import importlib.metadata
import io
import json
import pathlib
import subprocess
import sys
from typing import Any

import fixtures
import testtools
from oslo_config import cfg

from ingot.db import conductors, inventory, migrate, schema
from ingot.db.cmd import dbsync, status
from ingot.db.conductors import EnabledInterface
from ingot.db.engine import Database
from tests import database


class Commands(testtools.TestCase):
    def setUp(self) -> None:
        super().setUp()
        self.database = self.useFixture(database.DatabaseFixture(migrated=False))
        self.db = self.database.db
        self.file = pathlib.Path(self.useFixture(fixtures.TempDir()).path) / "ingot.conf"
        self.file.write_text(
            f"[DEFAULT]\nstate_path = {self.file.parent}\n[database]\nconnection = {self.database.url}\n"
        )

    def configure(self, *lines: str) -> None:
        """Add options of the group DEFAULT."""
        self.file.write_text("\n".join(("[DEFAULT]", *lines, self.file.read_text())))

    def run_dbsync(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "ingot.db.cmd.dbsync", "--config-file", str(self.file), *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    def check_upgrade(self, *arguments: str) -> tuple[int, str]:
        """Return exit status and output of ``ingot-status upgrade check``."""
        with contextlib.redirect_stdout(io.StringIO()) as output:
            ended = status.main(["--config-file", str(self.file), "upgrade", "check", *arguments])
        return ended, output.getvalue()

    def test_the_schema_is_made_and_reported(self) -> None:
        before = self.run_dbsync("version")
        made = self.run_dbsync("upgrade")
        after = self.run_dbsync("version")

        self.assertEqual((0, 0, 0), (before.returncode, made.returncode, after.returncode), made.stderr)
        release = f"(this release: {schema.required_revision()}, after contract: {schema.head()})\n"
        self.assertEqual([f"empty {release}", f"{schema.head()} {release}"], [before.stdout, after.stdout])
        self.assertEqual(schema.head(), schema.version(self.db))

    def test_a_revision_that_does_not_exist_is_reported(self) -> None:
        refused = self.run_dbsync("upgrade", "--revision", "0815")

        self.assertEqual(1, refused.returncode)
        self.assertIn("ingot-dbsync: Invalid revision: '0815'", refused.stderr)
        self.assertNotIn("Traceback", refused.stderr)

    def test_an_invalid_command_line_is_reported(self) -> None:
        refused = self.run_dbsync("online_data_migrations", "--max-count", "0")

        self.assertEqual(2, refused.returncode)
        self.assertIn("'0' is not a number of rows", refused.stderr)

    def test_nothing_is_left_to_move(self) -> None:
        self.assertEqual(0, self.run_dbsync("upgrade").returncode)

        moved = self.run_dbsync("online_data_migrations", "--max-count", "10")

        self.assertEqual((0, "Nothing is left to move."), (moved.returncode, moved.stdout.splitlines()[-1]))

    def test_a_key_for_secrets_comes_with_a_new_schema_and_is_changed_in_steps(self) -> None:
        made = self.run_dbsync("upgrade")
        key = self.file.parent / "secrets.key"
        self.assertIn(f"Added a key to {key}. Copy the file to all hosts", made.stdout)
        self.assertEqual((1, 0o600), (len(key.read_text().splitlines()), key.stat().st_mode & 0o777))
        self.assertNotIn("Added", self.run_dbsync("upgrade").stdout)

        again = self.run_dbsync("add_key")

        self.assertIn("It encrypts nothing yet", again.stdout)
        self.assertEqual(2, len(key.read_text().splitlines()))

    def test_a_database_of_before_gets_no_key_on_its_own(self) -> None:
        self.upgraded()
        self.assertEqual(0, self.run_dbsync("upgrade").returncode)
        self.assertFalse((self.file.parent / "secrets.key").exists())

        refused = self.run_dbsync("online_data_migrations")

        self.assertNotEqual(0, refused.returncode)
        self.assertIn("ingot-dbsync add_key", refused.stderr)
        self.assertNotIn("Traceback", refused.stderr)
        self.assertIn("ingot-dbsync add_key", self.check_upgrade("--json")[1])

    def test_data_is_moved_after_the_last_conductor_of_before(self) -> None:
        self.upgraded()
        database.make_node(Database(self.with_encryption(False)), driver_info={"ipmi_password": "s3cret"})
        self.run_dbsync("add_key")
        known = {"conductor_group": "", "rpc_version": "1.0", "process": None}
        old = conductors.register(self.db, "one", {**known, "release": "0.2.7"}, [])
        self.assertNotIn("online_data_migrations", self.check_upgrade("--json")[1])
        self.assertIn("replace them first: one (0.2.7)", self.run_dbsync("online_data_migrations").stderr)
        conductors.unregister(self.db, old)

        ended, text = self.check_upgrade("--json")
        moved = self.run_dbsync("online_data_migrations")

        self.assertEqual(1, ended, text)
        self.assertIn("Run ingot-dbsync online_data_migrations; to do: secrets", text)
        self.assertEqual(0, moved.returncode, moved.stderr)
        self.assertNotIn("online_data_migrations", self.check_upgrade("--json")[1])

    def with_encryption(self, encrypt: bool) -> cfg.ConfigOpts:
        self.database.conf.set_override("encrypt", encrypt, group="secrets")
        return self.database.conf

    def test_an_empty_database_stands_in_the_way(self) -> None:
        ended, table = self.check_upgrade()
        self.assertEqual(2, ended, table)
        self.assertIn("Result: Failure", table)
        command = [sys.executable, "-m", "ingot.db.cmd.status", "--config-file", str(self.file)]
        checked = subprocess.run([*command, "upgrade", "check", "--json"], capture_output=True, text=True, check=False)

        self.assertEqual(2, checked.returncode, checked.stderr)
        self.assertIn("run ingot-dbsync upgrade", json.loads(checked.stdout)["checks"][0]["details"])

    def upgraded(self) -> None:
        """Turn the database into one of an earlier release that this release's expand has upgraded."""
        migrate.upgrade(self.db)
        migrate.stamp(self.db, schema.required_revision())

    def test_an_upgrade_ends_when_the_release_before_is_gone(self) -> None:
        self.upgraded()
        known = {"conductor_group": "", "rpc_version": "1.0", "process": None}
        old = conductors.register(self.db, "one", {**known, "release": "0.2.7"}, [])
        conductors.register(self.db, "two", {**known, "release": importlib.metadata.version("ingot")}, [])

        refused = self.run_dbsync("contract")
        conductors.unregister(self.db, old)
        expanded = self.run_dbsync("expand")
        between = schema.version(self.db)
        done = self.run_dbsync("contract")

        self.assertEqual(1, refused.returncode)
        self.assertIn("online, replace them first: one (0.2.7).", refused.stderr)
        self.assertEqual((0, 0), (expanded.returncode, done.returncode), done.stderr)
        self.assertEqual(schema.required_revision(), between)
        self.assertEqual(schema.head(), schema.version(self.db))

    def test_an_upgrade_does_not_end_while_services_are_pinned(self) -> None:
        self.upgraded()
        self.configure("pin_release_version = 0.2")

        refused = self.run_dbsync("contract")

        self.assertEqual(78, refused.returncode)
        self.assertIn("pin_release_version", refused.stderr)
        self.assertEqual(schema.required_revision(), schema.version(self.db))

    def test_an_upgrade_does_not_end_before_it_began(self) -> None:
        refused = self.run_dbsync("contract")

        self.assertEqual(1, refused.returncode)
        self.assertIn("run ingot-dbsync expand first", refused.stderr)

    def checked_broker(self, options: str) -> dict[str, Any]:
        migrate.upgrade(self.db)
        self.file.write_text(self.file.read_text() + options)
        checks = json.loads(self.check_upgrade("--json")[1])["checks"]
        (broker,) = (check for check in checks if check["check"] == "Message broker")
        return dict(broker)

    def test_options_of_the_broker_that_do_not_work_are_reported(self) -> None:
        options = "rabbit_ha_queues = true\nssl = true\nssl_ca_file =\nheartbeat_timeout_threshold = 0\n"

        check = self.checked_broker(f"[oslo_messaging_rabbit]\n{options}")

        self.assertEqual(1, check["result"])
        for name in ("rabbit_ha_queues", "ssl_ca_file", "heartbeat_timeout_threshold"):
            self.assertIn(name, check["details"])

    def test_names_of_several_brokers_are_not_verified(self) -> None:
        hosts = "[DEFAULT]\ntransport_url = rabbit://one:5671,two:5671/\n"

        check = self.checked_broker(f"{hosts}[oslo_messaging_rabbit]\nssl = true\n")

        self.assertEqual(1, check["result"])
        self.assertIn("not that they were issued for these hosts", check["details"])

    def test_nothing_is_wrong_with_one_broker(self) -> None:
        self.assertEqual(0, self.checked_broker("[DEFAULT]\ntransport_url = rabbit://one/\n")["result"])

    def test_an_invalid_address_of_a_broker_is_reported(self) -> None:
        check = self.checked_broker("[DEFAULT]\ntransport_url = rabbit://u:secret@one:port/\n")

        self.assertEqual(2, check["result"])
        self.assertIn("transport_url", check["details"])
        self.assertNotIn("secret", check["details"])

    def test_a_schema_older_than_release_0_2_is_reported(self) -> None:
        migrate.upgrade(self.db)
        with self.db.single() as connection:
            connection.exec_driver_sql("UPDATE alembic_version SET version_num = '0003'")

        ended, text = self.check_upgrade("--json")
        refused = self.run_dbsync("upgrade")

        self.assertEqual((2, 1), (ended, refused.returncode), text)
        self.assertIn("Upgrade to 0.2 first", json.loads(text)["checks"][0]["details"])
        self.assertIn("Upgrade to 0.2 first", refused.stderr)

    def test_rules_whose_regular_expressions_cannot_be_matched_are_reported(self) -> None:
        migrate.upgrade(self.db)
        conditions = [
            {"op": "eq", "args": [1, 1]},
            {"op": "matches", "args": ["{node.name}", "rack-[0-9]+"]},
            {"op": "contains", "args": ["{node.name}", "{item}(?=a)"]},
        ]
        rule = {"actions": [], "phase": "main", "description": "old one"}
        inventory.RULES.create(self.db, {**rule, "conditions": conditions})
        check = "Regular expressions of inspection rules"
        checks = {found["check"]: found for found in json.loads(self.check_upgrade("--json")[1])["checks"]}
        self.assertEqual(0, checks[check]["result"])
        broken = {"op": "!matches", "args": {"value": "a", "regex": "(?=a)"}}
        inventory.RULES.create(self.db, {**rule, "conditions": [*conditions, broken]})
        ended, text = self.check_upgrade("--json")
        checks = {found["check"]: found for found in json.loads(text)["checks"]}
        self.assertEqual((1, 1), (ended, checks[check]["result"]))
        for part in ("1 regular expressions", "(old one)", "'(?=a)'", "RE2"):
            self.assertIn(part, checks[check]["details"])

    def test_nodes_that_no_conductor_can_serve_are_reported(self) -> None:
        migrate.upgrade(self.db)
        offer = EnabledInterface("fake-hardware", "power", "fake", True)
        values = {"conductor_group": "West", "release": "0.1.0", "rpc_version": "1.0"}
        conductors.register(self.db, "one", {**values, "classic_drivers": ["fixed"]}, [offer])
        classic = database.make_node(self.db, conductor_group="west", driver="fixed")
        served = database.make_node(self.db, conductor_group="west", power_interface="fake")
        elsewhere = database.make_node(self.db, power_interface="fake")
        disabled = database.make_node(self.db, conductor_group="west", power_interface="ipmitool")

        ended, text = self.check_upgrade("--json")

        self.assertEqual(1, ended, text)
        checks = {check["check"]: check for check in json.loads(text)["checks"]}
        self.assertEqual(0, checks["Schema of the database"]["result"])
        details = checks["Drivers of nodes"]["details"]
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

    def migration(self, name: str = "rows") -> dbsync.Migration:
        return dbsync.Migration(name, self.left, self.move)


class OnlineData(database.TestCase):
    def test_everything_is_moved_without_a_limit(self) -> None:
        rows = [_Rows(1200), _Rows(3)]

        outcome = dbsync.move_rows(self.db, [r.migration() for r in rows], None)

        self.assertEqual((dbsync.Outcome.DONE, [0, 0]), (outcome, [r.count for r in rows]))

    def test_a_limit_holds_for_all_together(self) -> None:
        rows = [_Rows(6), _Rows(6)]

        outcome = dbsync.move_rows(self.db, [r.migration() for r in rows], 8)

        self.assertEqual((dbsync.Outcome.MORE, [0, 4]), (outcome, [r.count for r in rows]))

    def test_one_that_fails_does_not_stop_the_others(self) -> None:
        rows = [_Rows(6, defect=True), _Rows(6)]

        outcome = dbsync.move_rows(self.db, [r.migration() for r in rows], None)

        self.assertEqual((dbsync.Outcome.FAILED, [6, 0]), (outcome, [r.count for r in rows]))
