"""Follows the database: which machines dnsmasq knows."""

import os
from pathlib import Path

from ingot.boot import dnsmasq
from ingot.db import enrolled
from ingot.db.engine import Database

_SIGNED = "pxe"
"""The boot interface of nodes that start the signed shim and GRUB."""


class Machines:
    """The file with the machines that are enrolled.

    :param path: of the file.
    """

    def __init__(self, db: Database, path: Path) -> None:
        self._db = db
        self._path = path
        self._mark: enrolled.Mark | None = None
        self._text: str | None = None

    def follow(self) -> bool:
        """Write the file if it is not what the database says; return whether it was written.

        :raises ServiceUnavailable: the database is away.
        """
        mark = enrolled.read_mark(self._db)
        if mark == self._mark:
            return False
        found = enrolled.list_all(self._db)
        text = dnsmasq.render_machines(dnsmasq.Machine(one.address, one.boot_interface == _SIGNED) for one in found)
        self._mark = mark
        if text == self._text:
            return False
        write(self._path, text)
        self._text = text
        return True


def write(path: Path, content: str | bytes) -> None:
    """Put a file in place at once, which all users may read."""
    fresh = path.with_name(f".{path.name}.new")
    fresh.write_bytes(content.encode() if isinstance(content, str) else content)
    fresh.chmod(0o644)
    os.replace(fresh, path)
