"""How old the schema of the database is, and whether a service of this release can work with it.

Services ask that when they start. alembic, which is as large as a third of a service, is loaded only by those that
change a schema (:mod:`ingot.db.migrate`).
"""

import importlib.resources
import itertools
import re

import sqlalchemy as sa

from ingot.common import errors
from ingot.db.engine import Database

_TOO_OLD = frozenset(("0001", "0002", "0003", "0004"))
"""Revisions of databases that release 0.2 has not upgraded."""

_OF_IRONIC = re.compile(r"[0-9a-f]{12}")
"""What revisions of Ironic's schema look like; those of Ingot have four digits, or say what they contract."""

_FOUND = sa.text("SELECT version_num FROM alembic_version")

_SAYS = re.compile(r'^(revision|down_revision|contracts) = "?(.*?)"?$', re.MULTILINE)
"""What the file of a revision says of it."""


def _list_revisions() -> list[dict[str, str]]:
    """Return what all revisions say of themselves, newest first."""
    files = importlib.resources.files("ingot.db.migrations.versions").iterdir()
    said = [dict(_SAYS.findall(file.read_text())) for file in files if file.name.endswith(".py")]
    after = {one["down_revision"]: one for one in said if one}
    revisions = [after["None"]]
    while (last := revisions[0]["revision"]) in after:
        revisions.insert(0, after[last])
    return revisions


def head() -> str:
    """Return the last revision of this release."""
    return _list_revisions()[0]["revision"]


def required_revision() -> str:
    """Return the last revision of this release that only adds: what its services need at least."""
    return list_additive()[0]


def list_additive() -> list[str]:
    """Return the last revision that only adds and all before it, newest first."""
    additive = itertools.dropwhile(lambda one: one.get("contracts") == "True", _list_revisions())
    return [one["revision"] for one in additive]


def version(db: Database) -> str | None:
    """Return the revision of the database's schema; None for an empty database.

    :raises ServiceUnavailable: the database is away.
    """
    with db.single() as connection:
        known: str | None = None
        if sa.inspect(connection).has_table("alembic_version"):
            known = connection.execute(_FOUND).scalar()
        return known


def is_behind(db: Database) -> bool:
    """Return whether the database lacks something that this release needs.

    A revision that is unknown here is a later one: it only adds, and services of this release go on working with it
    while an upgrade rolls.

    :raises Conflict: the schema is too old for this release.
    """
    found = version(db)
    refuse_foreign(db, found)
    return found in (None, *list_additive()[1:])


def refuse_foreign(db: Database, revision: str | None) -> None:
    """Refuse a revision that this release cannot upgrade.

    :raises Conflict: it is of before release 0.2, or the database is that of an Ironic.
    """
    refuse_ironic(db, revision)
    if revision in _TOO_OLD:
        raise errors.Conflict(
            reason=f"The schema of {render_url(db)} is {revision}, older than release 0.2. Upgrade to 0.2 first: "
            "install it and run its ingot-dbsync upgrade."
        )


def refuse_ironic(db: Database, revision: str | None) -> None:
    """Refuse the database of an Ironic.

    :raises Conflict: the revision is one of Ironic's.
    """
    if revision and _OF_IRONIC.fullmatch(revision):
        raise errors.Conflict(
            reason=f"{render_url(db)} is the database of an Ironic (revision {revision}); nothing was changed. Ingot "
            "takes its fleet over into a database of its own: make an empty one, name it in [database] connection, run "
            "ingot-dbsync upgrade, then ingot-dbsync import-ironic --from ADDRESS, with the address of this one."
        )


def require_current(db: Database) -> None:
    """Refuse the start of a service on a database that it does not upgrade itself.

    :raises ConfigurationError: the schema must be upgraded first.
    :raises Conflict: it is too old for this release.
    """
    if is_behind(db):
        raise errors.ConfigurationError(
            option="[database] connection",
            value=render_url(db),
            allowed=f"Its schema is {version(db) or 'empty'}, this release needs {required_revision()}: "
            "run ingot-dbsync upgrade first.",
        )


def render_url(db: Database) -> str:
    """Return the address of the database, for messages."""
    return db.url.render_as_string(hide_password=True)
