"""Shares work that belongs to no node among the conductors: each piece has one that cares for it, if all goes well.

It is a hint, so that they do not all do the same at once. That a piece is done only once is the database's business.
"""

import zlib
from collections.abc import Sequence

from ingot.db import conductors
from ingot.db.engine import Database
from ingot.rpcapi import methods


def hosts(db: Database, timeout: float, method: str) -> list[str]:
    """The sorted hostnames of online conductors that serve a method.

    :param timeout: seconds of silence after which a conductor counts as dead.
    """
    needed = methods.version_tuple(methods.METHODS[method].since)
    online = conductors.versions(db, timeout)
    return sorted(one.hostname for one in online if methods.version_tuple(one.rpc_version) >= needed)


def chosen(key: str, hostnames: Sequence[str]) -> str | None:
    """The one of some hosts that a piece of work is for; None if there are none."""
    return hostnames[zlib.crc32(key.encode()) % len(hostnames)] if hostnames else None
