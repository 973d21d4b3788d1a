"""Changing the schema of the database: creating it, upgrading it, drafting what upgrades it next.

The history of the schema since release 0.2 is in ``ingot/db/migrations``, which alembic replays; nothing outside the
installed package is needed. Migrations go forward only. Those of a release only add, so that the release before goes
on working with them. A revision with ``contracts = True`` stands behind them, removes what only the release before
needs, and is applied when that is gone for good.
"""

import contextlib
import logging
from collections.abc import Iterator

import alembic.command
import alembic.config
import alembic.script
import alembic.util
import sqlalchemy as sa
from alembic.runtime import migration

from ingot.common import errors
from ingot.db import repeating, schema
from ingot.db.engine import Database

LOG = logging.getLogger(__name__)
logging.getLogger("alembic.runtime").setLevel(logging.WARNING)  # chatty even about reading the version

_LOCK_PATIENCE = 600  # seconds: as long as the slowest migration of a large fleet may take

# One process migrates, the others wait and then find nothing to do. The lock ends with the connection: a process that
# dies leaves none behind. SQLite needs no statement: BEGIN IMMEDIATE, with which Database opens each transaction, is
# this lock. MySQL's locks belong to the server, hence the database's name in it.
_LOCKS = {
    "mysql": f"SELECT GET_LOCK(CONCAT('ingot-schema-', MD5(DATABASE())), {_LOCK_PATIENCE})",
    "postgresql": "SELECT 1 FROM pg_advisory_lock(452823838580)",  # the letters of ingot as a number
}


def _config(connection: sa.Connection | None = None) -> alembic.config.Config:
    config = alembic.config.Config()
    config.set_main_option("script_location", "ingot.db:migrations")
    config.attributes["connection"] = connection
    return config


def next_revision() -> str:
    """Return the number of the next migration. Those before release 0.2 are gone; their numbers are not used again."""
    known = alembic.script.ScriptDirectory.from_config(_config()).walk_revisions()
    return f"{max(int(script.revision) for script in known if script.revision.isdecimal()) + 1:04}"


def ensure_current(db: Database) -> None:
    """Create or upgrade the schema, as the all-in-one does at its start.

    :raises Conflict: as :func:`upgrade`.
    :raises ServiceUnavailable: as :func:`upgrade`.
    """
    if schema.is_behind(db) or schema.version(db) in schema.list_additive():
        upgrade(db)


def expand(db: Database) -> None:
    """Add what this release needs; services of the release before may run. An empty database gets the whole schema.

    :raises Conflict: as :func:`upgrade`.
    :raises ServiceUnavailable: as :func:`upgrade`.
    """
    upgrade(db, schema.required_revision() if schema.version(db) else "head")


def upgrade(db: Database, revision: str = "head") -> None:
    """Bring the schema up to a revision; do nothing where it is that far already.

    Any number of processes may do this at once: they take turns by a lock of the database. One that was
    killed may be run again.

    :param revision: a revision's name as in ``ingot/db/migrations/versions``, or ``head``.
    :raises Conflict: the schema is older than release 0.2.
    :raises Invalid: there is no such revision, or the schema is of a later release.
    :raises ServiceUnavailable: the database is away, or another process kept the lock for ten minutes.
    """
    with _exclusive(db) as connection, _explain_errors(db, revision):
        before = migration.MigrationContext.configure(connection).get_current_revision()
        schema.refuse_foreign(db, before)
        with repeating.leaving_out_done(connection):
            alembic.command.upgrade(_config(connection), revision)
        after = migration.MigrationContext.configure(connection).get_current_revision()
    if before != after:
        LOG.info("The schema of %s was upgraded from %s to %s", schema.render_url(db), before or "empty", after)


def stamp(db: Database, revision: str) -> None:
    """Write a revision without changing a table, for a schema that was repaired or restored by hand.

    :raises Conflict: it is the database of an Ironic.
    :raises Invalid: there is no such revision.
    :raises ServiceUnavailable: as :func:`upgrade`.
    """
    with _exclusive(db) as connection, _explain_errors(db, revision):
        for before in migration.MigrationContext.configure(connection).get_current_heads():
            schema.refuse_ironic(db, before)
        alembic.command.stamp(_config(connection), revision, purge=True)


def draft(db: Database, message: str) -> str:
    """Write a new migration from what the models have and the database has not, for a developer to finish.

    :param message: what the migration is for, in one sentence.
    :returns: path of the new file.
    """
    with _exclusive(db) as connection:
        config = _config(connection)
        script = alembic.command.revision(config, message, autogenerate=True, rev_id=next_revision())
    assert isinstance(script, alembic.script.Script)  # noqa: S101 - one revision was asked for
    return script.path


@contextlib.contextmanager
def _explain_errors(db: Database, revision: str) -> Iterator[None]:
    """Translate alembic's errors into the terms of the operator's request."""
    try:
        yield
    except alembic.util.CommandError as exc:
        raise errors.Invalid(
            field="revision",
            value=revision,
            allowed=f"The schema of {schema.render_url(db)} is {schema.version(db) or 'empty'}, this release knows "
            f"revisions up to {schema.head()}. ({exc})",
        ) from exc


@contextlib.contextmanager
def _exclusive(db: Database) -> Iterator[sa.Connection]:
    """Open a transaction on a connection of its own, while no other process migrates this database."""
    with db.own_connection() as connection:  # what is set for the session, and its lock, end with it
        backend = connection.dialect.name
        if backend == "sqlite":
            # Copying a table drops the old one, and that would delete the rows that refer to it.
            connection.connection.cursor().execute("PRAGMA foreign_keys=OFF")
        with connection.begin():
            if backend in _LOCKS and connection.exec_driver_sql(_LOCKS[backend]).scalar() != 1:
                raise errors.ServiceUnavailable(
                    what="The lock on the schema",
                    reason=f"another process has held it for over {_LOCK_PATIENCE} seconds",
                )
            yield connection
