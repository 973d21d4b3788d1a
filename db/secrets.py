"""Secrets in rows: whether this service has their key, and rows that are not yet kept as the configuration says."""

import itertools
import logging
from collections.abc import Iterator
from typing import NamedTuple

import orjson
import sqlalchemy as sa
from oslo_db import exception as db_exc

from ingot.common import errors, keyring
from ingot.db import models
from ingot.db.engine import Database
from ingot.db.models.base import AnyColumn

LOG = logging.getLogger(__name__)

_KEYS = models.table(models.SecretKey)
_ID = 1
"""There is one row: who writes it first decides which key it is."""

_PAGE = 500  # rows read at a time

_KNOWN = {"password": "of no BMC"}


def prepare_alone(db: Database, host: str) -> None:
    """Have everything as it should be for a service that has no others beside it: a key, and all rows encrypted.

    :raises ConfigurationError: as :func:`require_key`; a key is made only where nothing was ever encrypted.
    """
    if db.keyring.seals and not db.keyring.exists() and not was_used(db):
        db.keyring.add_key()
        LOG.warning(
            "Made the key that secrets in the database are encrypted with: %s. Keep a copy of it apart from backups of "
            "the database: without it they are lost.",
            db.keyring.path,
        )
    if require_key(db, host):
        while rewrite_pending(db, _PAGE):
            pass


def require_key(db: Database, host: str) -> bool:
    """Refuse the start of a service that cannot read what others have encrypted, or cannot encrypt as it should.

    :returns: whether encryption begins now.
    :raises ConfigurationError: there is no key, or it is not the one of this database.
    """
    known = check_key(db)
    if not db.keyring.seals:
        LOG.warning(
            "Passwords of BMCs are written to the database in plain: [secrets] encrypt is false, or a pinned release "
            "cannot read them otherwise"
        )
    if known or not db.keyring.seals:
        return False
    sealed = db.keyring.seal(_KNOWN)["password"]
    try:
        db.write(sa.insert(_KEYS).values(id=_ID, sealed=sealed, hostname=host))
    except db_exc.DBDuplicateEntry:
        return not check_key(db)
    return True


def was_used(db: Database) -> bool:
    """Return whether anything was ever encrypted."""
    return _read_check(db) is not None


def _read_check(db: Database) -> models.SecretKey | None:
    return db.read_first(models.SecretKey, sa.select(_KEYS))


def check_key(db: Database) -> bool:
    """Return whether anything was ever encrypted; there is the key for it, and one to encrypt with if that is required.

    :raises ConfigurationError: there is not.
    """
    known = _read_check(db)
    if known is not None or db.keyring.seals:
        db.keyring.check()
    if known is None:
        return False
    try:
        db.keyring.open(known.sealed)
    except keyring.SecretUnreadable as exc:
        raise errors.ConfigurationError(
            option="[secrets] key_file",
            value=str(db.keyring.path),
            allowed=f"It does not have the key of this database, which {known.hostname} was the first to use. Copy the "
            "file of that host, or restore it from a backup; nothing was changed.",
        ) from exc
    return True


class _Row(NamedTuple):
    """A row that is not kept as it should be.

    :param text: as it is kept now.
    :param better: as it should be.
    """

    column: AnyColumn
    id: int
    text: str
    better: str


_COLUMNS: tuple[AnyColumn, ...] = tuple(
    column
    for table in models.Base.metadata.sorted_tables
    for column in table.c
    if isinstance(column.type, models.SecretJson)
)


def _list_pending(db: Database) -> Iterator[_Row]:
    """Yield the rows with secrets that are not kept as the configuration says: in plain, or with a former key."""
    for column in _COLUMNS:
        last = 0
        while page := _read_page(db, column, last):
            last = page[-1][0]
            for row_id, text in page:
                kept = orjson.loads(text)
                better = db.keyring.seal(db.keyring.wrap(kept))
                if better != kept:
                    yield _Row(column, row_id, text, orjson.dumps(better).decode())


def _read_page(db: Database, column: AnyColumn, after: int) -> list[tuple[int, str]]:
    own_id = column.table.c.id
    statement = sa.select(own_id, sa.type_coerce(column, models.text())).where(own_id > after, column.is_not(None))
    with db.single() as connection:
        return [(row_id, text) for row_id, text in connection.execute(statement.order_by(own_id).limit(_PAGE))]


def count_pending(db: Database) -> int:
    """Return how many rows are not kept as the configuration says.

    :raises ConfigurationError: there is no key.
    """
    return sum(1 for _row in _list_pending(db)) + (_build_check_write(db) is not None)


def rewrite_pending(db: Database, limit: int) -> int:
    """Rewrite at most so many rows, and return how many these were.

    A row that changes meanwhile is left for the next time. Revision and time of the last change stay as they are.

    :raises ConfigurationError: there is no key.
    """
    pending = list(itertools.islice(_list_pending(db), limit))
    for row in pending:
        table = row.column.table
        as_read = sa.type_coerce(row.column, models.text()) == row.text
        values = {row.column.name: sa.literal(row.better, models.text()), "updated_at": table.c.updated_at}
        db.write(sa.update(table).where(table.c.id == row.id, as_read).values(values))
    if len(pending) < limit and (statement := _build_check_write(db)) is not None:
        return len(pending) + db.write(statement)
    return len(pending)


def _build_check_write(db: Database) -> sa.UpdateBase | None:
    """Return the statement that has the check of the key follow all other rows, if it does not yet."""
    known = _read_check(db)
    if known is None:
        return None
    if not db.keyring.seals:
        return sa.delete(_KEYS)
    if known.sealed.startswith(db.keyring.mark):
        return None
    return sa.update(_KEYS).values(sealed=db.keyring.seal(_KNOWN)["password"])
