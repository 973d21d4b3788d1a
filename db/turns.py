"""Turns: what only one of all conductors may do at a time, and belongs to no node. The database's own locks keep them.

They end with the connection: a process that dies leaves none behind. One thread of a process at a time asks for a turn;
the others wait for it, without a connection.
"""

import contextlib
import fcntl
import hashlib
import pathlib
import tempfile
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Mapping

import sqlalchemy as sa

from ingot.db.engine import Database

_PAUSE = 0.2
"""Seconds between two tries."""

# MySQL's locks belong to the server, hence the database's name in them.
_TRIES: Mapping[str, str] = {
    "mysql": "SELECT GET_LOCK(CONCAT('ingot-', MD5(CONCAT(DATABASE(), :name))), 0)",
    "postgresql": "SELECT CASE WHEN pg_try_advisory_lock(:number) THEN 1 ELSE 0 END",
}


_guard = threading.Lock()
_here: "weakref.WeakKeyDictionary[Database, dict[str, threading.Lock]]" = weakref.WeakKeyDictionary()
"""What the threads of this process take before, by database and name: as many as there are switches."""


@contextlib.contextmanager
def take(db: Database, name: str, patience: float) -> Iterator[None]:
    """Wait until it is this one's turn, and keep it.

    :param name: of what is done alone.
    :param patience: seconds for which others are waited for.
    :raises TimeoutError: others had it all the time.
    :raises ServiceUnavailable: the database is away.
    """
    until = time.monotonic() + patience
    with _guard:
        own = _here.setdefault(db, {}).setdefault(name, threading.Lock())
    if not own.acquire(timeout=patience):
        raise TimeoutError
    try:
        with _take(db, name, until):
            yield
    finally:
        own.release()


@contextlib.contextmanager
def _take(db: Database, name: str, until: float) -> Iterator[None]:
    digest = hashlib.sha256(name.encode()).digest()
    if db.url.get_backend_name() == "sqlite":
        with _find_file(db, digest.hex()[:16]).open("w") as file:
            _wait(lambda: _try_file(file.fileno()), until)
            yield
        return
    values = {"name": name, "number": int.from_bytes(digest[:8], signed=True)}
    with db.own_connection(limited=True) as connection:
        statement = sa.text(_TRIES[connection.dialect.name])
        needed = {key: value for key, value in values.items() if f":{key}" in statement.text}

        def attempt() -> bool:
            found = connection.execute(statement, needed).scalar()
            connection.commit()  # the lock is the session's, and no transaction is to stay open
            return found == 1

        _wait(attempt, until)
        yield


def _wait(attempt: Callable[[], bool], until: float) -> None:
    while not attempt():
        if time.monotonic() > until:
            raise TimeoutError
        time.sleep(_PAUSE)


def _try_file(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _find_file(db: Database, digest: str) -> pathlib.Path:
    """Return the file for a turn: beside the database's, which all of its conductors see."""
    path = db.url.database
    place = pathlib.Path(path).parent if path and path != ":memory:" else pathlib.Path(tempfile.gettempdir())
    return place / f".ingot-turn-{digest}"
