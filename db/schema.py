"""The schema of the database: creating it, bringing it up to date, and telling how old it is.

The history of the schema is in ``ingot/db/migrations``, which alembic replays; nothing outside the installed
package is needed. Migrations go forward only. Those of a release only add, so that the release before works on with
them; a revision with ``contracts = True`` stands behind them, takes away what only the release before needs, and is
applied when that is gone for good.
"""

import contextlib
import itertools
import logging
from collections.abc import Iterator

import alembic.command
import alembic.config
import alembic.script
import alembic.util
import sqlalchemy as sa
from alembic.runtime import migration

from ingot.common import errors
from ingot.db.engine import Database

LOG = logging.getLogger(__name__)
logging.getLogger("alembic.runtime").setLevel(logging.WARNING)  # chatty even about reading the version

_LOCK_PATIENCE = 600  # seconds: as long as the slowest migration of a large fleet may take

# One process migrates, the others wait and then find nothing to do. The lock ends with the connection, so
# that a process that dies leaves none behind. SQLite needs no statement: BEGIN IMMEDIATE, with which Database
# opens each transaction, is this lock. MySQL's locks belong to the server, hence the database's name in it.
_LOCKS = {
    "mysql": f"SELECT GET_LOCK(CONCAT('ingot-schema-', MD5(DATABASE())), {_LOCK_PATIENCE})",
    "postgresql": "SELECT 1 FROM pg_advisory_lock(452823838580)",  # the letters of ingot as a number
}


def _config(connection: sa.Connection | None = None) -> alembic.config.Config:
    config = alembic.config.Config()
    config.set_main_option("script_location", "ingot.db:migrations")
    config.attributes["connection"] = connection
    return config


def head() -> str:
    """The last revision of this release."""
    revision = alembic.script.ScriptDirectory.from_config(_config()).get_current_head()
    assert revision is not None  # noqa: S101 - the first migration is part of the package
    return revision


def required_revision() -> str:
    """The last revision of this release that only adds: what its services need at least."""
    return _additive()[0]


def _additive() -> list[str]:
    """The last revision that only adds and all before it, newest first."""
    history = alembic.script.ScriptDirectory.from_config(_config()).walk_revisions()
    return [
        script.revision for script in itertools.dropwhile(lambda one: getattr(one.module, "contracts", False), history)
    ]


def version(db: Database) -> str | None:
    """The revision of the database's schema; None for an empty database.

    :raises ServiceUnavailable: the database is away.
    """
    with db.single() as connection:
        return migration.MigrationContext.configure(connection).get_current_revision()


def is_current(db: Database) -> bool:
    """Whether the database has exactly the schema of this release, and nothing that only the one before it needs."""
    return version(db) == head()


def is_behind(db: Database) -> bool:
    """Whether the database lacks something that this release needs.

    A revision that this release does not know is a later one: it only adds, and services of this release go
    on working with it while an upgrade rolls.
    """
    return version(db) in (None, *_additive()[1:])


def is_contracted(db: Database) -> bool:
    """Whether the release before is gone for good, as the operator said with ``ingot-dbsync contract``."""
    return version(db) not in (None, *_additive())


def require_current(db: Database) -> None:
    """What a service does at its start on a database that others care for.

    :raises ConfigurationError: the schema must be upgraded first.
    """
    if is_behind(db):
        raise errors.ConfigurationError(
            option="[database] connection",
            value=_shown(db),
            allowed=f"Its schema is {version(db) or 'empty'}, this release needs {required_revision()}: "
            "run ingot-dbsync upgrade first.",
        )


def ensure_current(db: Database) -> None:
    """What the all-in-one does at its start: creates the schema of its database, or brings it up to date.

    :raises ServiceUnavailable: the database is away.
    """
    if not is_contracted(db):
        upgrade(db)


def expand(db: Database) -> None:
    """Adds what this release needs; services of the release before may run. An empty database gets the whole schema.

    :raises ServiceUnavailable: as :func:`upgrade`.
    """
    upgrade(db, required_revision() if version(db) else "head")


def upgrade(db: Database, revision: str = "head") -> None:
    """Brings the schema up to a revision. Does nothing where it is that far already.

    Any number of processes may do this at once: they take turns by a lock of the database.

    :param revision: a revision's name as in ``ingot/db/migrations/versions``, or ``head``.
    :raises Invalid: there is no such revision, or the schema is of a later release.
    :raises ServiceUnavailable: the database is away, or another process kept the lock for ten minutes.
    """
    with _exclusive(db) as connection, _told(db, revision):
        before = migration.MigrationContext.configure(connection).get_current_revision()
        alembic.command.upgrade(_config(connection), revision)
        after = migration.MigrationContext.configure(connection).get_current_revision()
    if before != after:
        LOG.info("The schema of %s was brought from %s to %s", _shown(db), before or "empty", after)


def stamp(db: Database, revision: str) -> None:
    """Writes down a revision without changing a table, for a schema that was repaired or restored by hand.

    :raises Invalid: there is no such revision.
    :raises ServiceUnavailable: as :func:`upgrade`.
    """
    with _exclusive(db) as connection, _told(db, revision):
        alembic.command.stamp(_config(connection), revision, purge=True)


def draft(db: Database, message: str) -> str:
    """Writes a new migration from what the models have and the database has not, for a developer to finish.

    :param message: what the migration is for, in one sentence.
    :returns: path of the new file.
    """
    with _exclusive(db) as connection:
        config = _config(connection)
        count = len(list(alembic.script.ScriptDirectory.from_config(config).walk_revisions()))
        script = alembic.command.revision(config, message, autogenerate=True, rev_id=f"{count + 1:04}")
    assert isinstance(script, alembic.script.Script)  # noqa: S101 - one revision was asked for
    return script.path


def _shown(db: Database) -> str:
    return db.url.render_as_string(hide_password=True)


@contextlib.contextmanager
def _told(db: Database, revision: str) -> Iterator[None]:
    """Says what alembic complains of in terms of what the operator asked for."""
    try:
        yield
    except alembic.util.CommandError as exc:
        raise errors.Invalid(
            field="revision",
            value=revision,
            allowed=f"The schema of {_shown(db)} is {version(db) or 'empty'}, this release knows revisions up to "
            f"{head()}. ({exc})",
        ) from exc


@contextlib.contextmanager
def _exclusive(db: Database) -> Iterator[sa.Connection]:
    """A transaction on a connection of its own, while no other process migrates this database."""
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
