"""The migrated schema is the one of the models, however many processes make it."""

import contextlib
import threading
import warnings
from collections.abc import Iterator
from typing import Any

import alembic.autogenerate
import alembic.config
import alembic.script
import sqlalchemy as sa
import testtools
from alembic.runtime import migration
from oslo_db import exception

from ingot.common import errors
from ingot.db import migrate, models, schema
from tests import database


def has_nulls_first(index: sa.Index) -> bool:
    """Return whether an index has what is NULL first, by words of PostgreSQL that only its migration says."""
    return len(index.columns) > 1 and bool(index.columns[0].nullable)


class DeathError(Exception):
    """What upgrades the schema dies. Some drivers make it an error of the database."""


@contextlib.contextmanager
def mortal(each: int) -> Iterator[None]:
    """Let what changes tables die after each so many changes, those that were sent before not counted."""
    known: set[str] = set()

    def die(_connection: Any, _cursor: Any, statement: str, *_rest: Any) -> None:
        if statement.lstrip().startswith(("CREATE", "ALTER", "DROP")) and statement not in known:
            known.add(statement)
            if len(known) % each == 0:
                raise DeathError(statement)

    sa.event.listen(sa.Engine, "after_cursor_execute", die)
    try:
        yield
    finally:
        sa.event.remove(sa.Engine, "after_cursor_execute", die)


class SchemaOnSQLite(testtools.TestCase):
    backend = "sqlite"

    def fixture(self, migrated: bool = False) -> database.DatabaseFixture:
        return self.useFixture(database.DatabaseFixture(self.backend, migrated))

    def stamped(self, revision: str) -> database.DatabaseFixture:
        """Return a database that was migrated by a release of another time."""
        fixture = self.fixture(migrated=True)
        with fixture.db.single() as connection:
            table = sa.table("alembic_version", sa.column("version_num"))
            connection.execute(table.update().values(version_num=revision))
        return fixture

    def test_migrations_and_models_agree(self) -> None:
        with self.fixture(migrated=True).db.single() as connection, warnings.catch_warnings():
            warnings.simplefilter("error")
            opts = {"compare_server_default": True, "include_object": self.is_comparable}
            context = migration.MigrationContext.configure(connection, opts=opts)
            differences = alembic.autogenerate.compare_metadata(context, models.Base.metadata)

        self.assertEqual([], differences)

    def is_comparable(self, _item: object, name: str, kind: str, *_: object) -> bool:
        """Leave out indexes that PostgreSQL describes otherwise than they are declared; tests of plans need each."""
        if kind != "index" or self.backend != "postgresql":
            return True
        return not any(index.name == name and has_nulls_first(index) for index in models.table(models.Node).indexes)

    def test_revisions_are_known_without_alembic_as_with_it(self) -> None:
        config = alembic.config.Config()
        config.set_main_option("script_location", "ingot.db:migrations")
        scripts = list(alembic.script.ScriptDirectory.from_config(config).walk_revisions())
        revisions = [script.revision for script in scripts]
        contracts = [getattr(script.module, "contracts", False) for script in scripts]

        self.assertEqual(revisions[0], schema.head())
        self.assertEqual(revisions[contracts.index(False) :], schema.list_additive())

    def test_the_next_migration_has_a_number_that_was_never_used(self) -> None:
        self.assertGreater(migrate.next_revision(), schema.required_revision())
        self.assertNotIn(migrate.next_revision(), schema._TOO_OLD)

    def test_an_empty_database_is_refused_by_services(self) -> None:
        db = self.fixture().db

        self.assertIsNone(schema.version(db))
        refusal = self.assertRaises(errors.ConfigurationError, schema.require_current, db)
        self.assertIn("run ingot-dbsync upgrade", str(refusal))

    def test_is_made_once(self) -> None:
        db = self.fixture().db

        migrate.ensure_current(db)
        migrate.ensure_current(db)

        self.assertEqual(schema.head(), schema.version(db))
        schema.require_current(db)
        database.make_node(db, name="r1u1")

    def test_a_later_schema_is_good_enough_and_left_alone(self) -> None:
        db = self.stamped("9999").db

        schema.require_current(db)
        migrate.ensure_current(db)

        self.assertNotEqual(schema.head(), schema.version(db))
        refusal = self.assertRaises(errors.Invalid, migrate.upgrade, db)
        self.assertIn("9999", str(refusal))

    def test_an_upgrade_leaves_what_the_release_before_needs_until_it_is_gone(self) -> None:
        db = self.stamped(schema.required_revision()).db

        migrate.expand(db)

        self.assertEqual(schema.required_revision(), schema.version(db))
        self.assertFalse(schema.is_behind(db))
        migrate.upgrade(db)
        migrate.expand(db)
        self.assertEqual(schema.head(), schema.version(db))

    def test_an_empty_database_has_no_release_before(self) -> None:
        db = self.fixture().db

        migrate.expand(db)

        self.assertEqual(schema.head(), schema.version(db))

    def test_a_schema_older_than_release_0_2_is_refused_and_left_alone(self) -> None:
        db = self.stamped("0004").db

        for use in (schema.require_current, migrate.ensure_current, migrate.expand, migrate.upgrade):
            refusal = self.assertRaises(errors.Conflict, use, db)
            self.assertIn("is 0004, older than release 0.2. Upgrade to 0.2 first", str(refusal))
        self.assertEqual("0004", schema.version(db))

    def test_an_unknown_revision_is_reported(self) -> None:
        db = self.fixture(migrated=True).db

        refusal = self.assertRaises(errors.Invalid, migrate.upgrade, db, "0815")

        self.assertIn("'0815'", str(refusal))
        self.assertRaises(errors.Invalid, migrate.stamp, db, "0815")
        self.assertEqual(schema.head(), schema.version(db))

    def test_a_revision_can_be_noted_by_hand(self) -> None:
        db = self.stamped("9999").db

        migrate.stamp(db, "0005")

        self.assertEqual("0005", schema.version(db))

    def test_several_may_upgrade_at_once(self) -> None:
        fixture = self.fixture()
        start = threading.Barrier(4)
        failures: list[BaseException] = []

        def upgrade() -> None:
            db = fixture.another()
            start.wait()
            try:
                migrate.ensure_current(db)
            except Exception as exc:  # noqa: BLE001 - any error is what the test is about
                failures.append(exc)

        threads = [threading.Thread(target=upgrade) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

        self.assertEqual([], failures)
        self.assertEqual(schema.head(), schema.version(fixture.db))

    def test_an_upgrade_that_dies_at_any_of_its_statements_can_be_run_again(self) -> None:
        fixture = self.fixture()
        deaths = 0
        with mortal(3 if self.backend.startswith("mysql") else 25):
            while schema.version(fixture.db) != schema.head():
                with contextlib.suppress(DeathError, exception.DBError):
                    migrate.upgrade(fixture.db)
                    continue
                deaths += 1

        self.assertGreater(deaths, 3)
        with fixture.db.single() as connection:
            opts = {"include_object": self.is_comparable}
            context = migration.MigrationContext.configure(connection, opts=opts)
            self.assertEqual([], alembic.autogenerate.compare_metadata(context, models.Base.metadata))

    def test_rows_go_with_what_they_belong_to(self) -> None:
        db = self.fixture(migrated=True).db
        node = database.make_node(db)
        database.make_port(db, node)
        with db.single() as connection:
            connection.execute(models.table(models.Node).delete())
            self.assertEqual([], connection.execute(models.table(models.Port).select()).all())
