"""Follows the database: which machines dnsmasq knows."""

import os
import time
from pathlib import Path

from ingot.boot import dnsmasq
from ingot.db import enrolled
from ingot.db.engine import Database

_SIGNED = "pxe"
"""The boot interface of nodes that start the signed shim and GRUB."""

_TRUSTED_S = 60.0
"""Seconds after which the machines are read whatever the mark says: clocks of writers differ, and commits overtake."""


class Machines:
    """The file with the machines that are enrolled.

    :param path: of the file.
    """

    def __init__(self, db: Database, path: Path) -> None:
        self._db = db
        self._path = path
        self._mark: enrolled.Mark | None = None
        self._text: str | None = None
        self._read_until = 0.0

    def follow(self) -> bool:
        """Write the file if it is not what the database says; return whether it was written.

        :raises ServiceUnavailable: the database is away.
        :raises OSError: the file cannot be written.
        """
        mark = enrolled.read_mark(self._db)
        if mark == self._mark and time.monotonic() < self._read_until:
            return False
        found = enrolled.list_all(self._db)
        text = dnsmasq.render_machines(dnsmasq.Machine(one.address, one.boot_interface == _SIGNED) for one in found)
        is_another = text != self._text
        if is_another:
            write(self._path, text)
        # Last: what could not be written is tried again.
        self._mark, self._text, self._read_until = mark, text, time.monotonic() + _TRUSTED_S
        return is_another


def write(path: Path, content: str | bytes) -> None:
    """Put a file in place at once, which all users may read."""
    fresh = path.with_name(f".{path.name}.new")
    fresh.write_bytes(content.encode() if isinstance(content, str) else content)
    fresh.chmod(0o644)
    os.replace(fresh, path)
