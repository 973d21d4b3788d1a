"""Secrets in the database: encrypted, with the right key, and again after the key was changed."""

import pathlib
from typing import Any

import fixtures
import sqlalchemy as sa
from sqlalchemy import exc as sa_exc

from ingot.common import errors, keyring
from ingot.db import models, node_lists, nodes, secrets, volumes
from ingot.db.cmd import dbsync
from ingot.db.engine import Database
from tests import database

INFO = {"ipmi_address": "10.0.0.1", "ipmi_password": "s3cret", "nested": {"snmp_auth_key": "s3cret"}}
CHAP = {"auth_username": "ada", "auth_password": "s3cret"}


class SecretsOnSQLite(database.TestCase):
    def setUp(self) -> None:
        super().setUp()
        self.conf = self.database.conf
        self.path = pathlib.Path(self.useFixture(fixtures.TempDir()).path) / "secrets.key"
        self.conf.set_override("key_file", str(self.path), group="secrets")
        self.db = self.another()

    def another(self) -> Database:
        """Return the database as a service sees it that is started now."""
        return self.database.another()

    def configured(self, **options: Any) -> Database:
        for name, value in options.items():
            self.conf.set_override(name, value, group=None if name == "pin_release_version" else "secrets")
        return self.another()

    def prepared(self) -> models.Node:
        """Return a node in a database that encrypts."""
        secrets.prepare_alone(self.db, "host-1")
        return database.make_node(self.db, driver_info=INFO)

    def kept(self, table: sa.Table = nodes.NODES, name: str = "driver_info") -> str:
        """Return the only row's column as it is in the database."""
        statement = sa.select(sa.type_coerce(table.c[name], sa.Text()))
        (text,) = self.db.read_column(statement)
        return str(text)

    def rotate(self) -> None:
        self.db.keyring.add_key()
        former, new = self.path.read_text().splitlines()
        self.path.write_text(f"{new}\n{former}\n")

    def drop_former_key(self) -> None:
        self.path.write_text(self.path.read_text().splitlines()[0])

    def migrate(self, db: Database, most: int | None = None) -> int:
        return int(dbsync.move_rows(db, dbsync.MIGRATIONS, most))

    def test_are_encrypted_in_the_database_and_there_where_they_are_used(self) -> None:
        node = self.prepared()
        self.assertNotIn("s3cret", self.kept())
        self.assertIn("10.0.0.1", self.kept())
        for read in (node, nodes.lock(self.db, node.uuid, "host-1", "a test")):
            self.assertEqual(INFO, read.driver_info)
        nodes.set_always(self.db, node.uuid, {"driver_info": {**node.driver_info, "ipmi_password": "s3cret-2"}})
        self.assertNotIn("s3cret", self.kept())
        self.assertEqual("s3cret-2", nodes.get(self.db, node.uuid).driver_info["ipmi_password"])

    def test_of_volumes_are_too(self) -> None:
        node = self.prepared()
        values = {"node_id": node.id, "volume_type": "iscsi", "volume_id": "v", "boot_index": 0, "extra": {}}
        volumes.TARGETS.create(self.db, {**values, "properties": CHAP})
        self.assertNotIn("s3cret", self.kept(volumes.TARGETS.source.table, "properties"))
        (target,) = volumes.TARGETS.list_of_node(self.db, node.id)
        self.assertEqual(CHAP, target.properties)

    def test_are_not_decrypted_to_be_listed(self) -> None:
        uuid = self.prepared().uuid
        self.path.unlink()
        (listed,) = node_lists.list_unlocked(self.db, [uuid])
        self.assertNotIn("s3cret", str(vars(listed)["driver_info"]))
        self.assertRaises(keyring.SecretUnreadable, getattr, listed, "driver_info")

    def test_cannot_be_read_without_the_key_and_nothing_is_lost(self) -> None:
        node = self.prepared()
        before = self.path.read_text()
        self.path.unlink()
        for prepare in (secrets.require_key, secrets.prepare_alone):
            refusal = self.assertRaises(errors.ConfigurationError, prepare, self.another(), "host-2")
            self.assertIn("There is no such file", refusal.message)
            self.assertFalse(self.path.exists())
        self.db.keyring.add_key()
        refusal = self.assertRaises(errors.ConfigurationError, secrets.require_key, self.another(), "host-2")
        self.assertIn("does not have the key of this database, which host-1 was the first to use", refusal.message)
        self.path.write_text(before)
        secrets.require_key(self.another(), "host-2")
        self.assertEqual(INFO, nodes.get(self.another(), node.uuid).driver_info)

    def test_need_a_key_that_all_services_have(self) -> None:
        refusal = self.assertRaises(errors.ConfigurationError, secrets.require_key, self.db, "host-1")
        for part in ("[secrets] key_file", "ingot-dbsync add_key", "encrypt = false"):
            self.assertIn(part, refusal.message)
        self.db.keyring.add_key()
        self.assertTrue(secrets.require_key(self.db, "host-1"))
        self.assertFalse(secrets.require_key(self.db, "host-2"))

    def test_of_before_are_encrypted_by_the_migration_and_by_a_service_that_is_alone(self) -> None:
        plain = self.configured(encrypt=False)
        node = database.make_node(plain, driver_info=INFO)
        self.assertIn("s3cret", self.kept())
        self.assertEqual(0, secrets.count_pending(plain))
        sealing = self.configured(encrypt=True)
        sealing.keyring.add_key()
        self.assertEqual(["secrets"], dbsync.list_unfinished(sealing))
        self.assertEqual(0, self.migrate(sealing))
        self.assertNotIn("s3cret", self.kept())
        after = nodes.get(sealing, node.uuid)
        self.assertEqual((INFO, node.version), (after.driver_info, after.version))
        self.assertEqual([], dbsync.list_unfinished(sealing))
        nodes.set_always(self.configured(encrypt=False), node.uuid, {"driver_info": INFO})
        secrets.prepare_alone(self.configured(encrypt=True), "host-1")
        self.assertNotIn("s3cret", self.kept())

    def test_are_moved_so_many_at_a_time(self) -> None:
        plain = self.configured(encrypt=False)
        for _number in range(5):
            database.make_node(plain, driver_info=INFO)
        database.make_node(plain, driver_info={"ipmi_address": "10.0.0.1"})
        sealing = self.configured(encrypt=True)
        sealing.keyring.add_key()
        self.assertEqual((1, 3), (self.migrate(sealing, 2), secrets.count_pending(sealing)))
        self.assertEqual((0, 0), (self.migrate(sealing), secrets.count_pending(sealing)))

    def test_are_encrypted_anew_after_the_key_was_changed(self) -> None:
        node = self.prepared()
        self.rotate()
        self.assertEqual(INFO, nodes.get(self.db, node.uuid).driver_info)
        self.assertEqual(2, secrets.count_pending(self.db))
        self.assertEqual(0, self.migrate(self.db))
        self.drop_former_key()
        secrets.require_key(self.another(), "host-1")
        self.assertEqual(INFO, nodes.get(self.another(), node.uuid).driver_info)

    def test_that_are_not_encrypted_any_more_need_no_key(self) -> None:
        node = self.prepared()
        plain = self.configured(encrypt=False)
        self.assertEqual(INFO, nodes.get(plain, node.uuid).driver_info)
        self.assertEqual(0, self.migrate(plain))
        self.assertIn("s3cret", self.kept())
        self.path.unlink()
        secrets.require_key(plain, "host-1")
        self.assertEqual(INFO, nodes.get(plain, node.uuid).driver_info)

    def test_are_in_plain_while_a_release_is_pinned_that_cannot_decrypt(self) -> None:
        pinned = self.configured(pin_release_version="0.2")
        secrets.require_key(pinned, "host-1")
        node = database.make_node(pinned, driver_info=INFO)
        self.assertIn("s3cret", self.kept())
        self.assertEqual([], dbsync.list_unfinished(pinned))
        free = self.configured(pin_release_version="0.3")
        secrets.prepare_alone(free, "host-1")
        self.assertNotIn("s3cret", self.kept())
        self.assertEqual(INFO, nodes.get(pinned, node.uuid).driver_info)

    def test_are_in_no_error_of_the_database(self) -> None:
        node = self.prepared()
        error = self.assertRaises(
            (errors.IngotError, sa_exc.SQLAlchemyError, Exception),
            database.make_node,
            self.db,
            uuid=node.uuid,
            driver_info=INFO,
        )
        self.assertNotIn("s3cret", str(error))
