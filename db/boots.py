"""Queries for machines that boot. They take no lock: what they write belongs to machines and not to conductors."""

import secrets

import sqlalchemy as sa

from ingot.common import clock
from ingot.db import models, nodes, outbox
from ingot.db.engine import Database

_NODES = nodes.NODES

_TICKET_SECONDS = 60
"""How long a ticket is good: the machine uses it at once."""


def note_script(db: Database, node: models.Node) -> None:
    """Write that the machine of a node has fetched its boot script."""
    _write_fetched(db, _NODES.c.id == node.id)


def issue_ticket(db: Database, node: models.Node, address: str | None) -> str | None:
    """Return a new ticket for the boot script of a volume, in place of any other; the machine has fetched its script.

    :param address: network address of the client, empty if it is not known; None: any may have it.
    :returns: None if another address had one since the conductor last booted the machine.
    """
    ticket = secrets.token_urlsafe(32)
    own, more = _NODES.c.id == node.id, {"boot_ticket": ticket}
    if address is not None:
        is_same = [_NODES.c.boot_address == address] if address else []
        own = sa.and_(own, sa.or_(_NODES.c.boot_address.is_(None), *is_same))
        more["boot_address"] = address
    return ticket if _write_fetched(db, own, **more) == 1 else None


def _write_fetched(db: Database, own: sa.ColumnElement[bool], **more: object) -> int:
    """Write that a boot script was fetched; the first time since the step began is an event.

    Any client can fetch one, as often as it likes.
    """
    began, before = _NODES.c.step_started_at, _NODES.c.boot_script_at
    is_first = sa.and_(began.is_not(None), sa.or_(before.is_(None), before < began))
    events = [(_NODES.c[name], sa.case((is_first, new), else_=_NODES.c[name])) for name, new in nodes.APPENDED.items()]
    fetched = {"boot_script_at": clock.now(), "updated_at": _NODES.c.updated_at, **more}
    values = [*events, *((_NODES.c[name], value) for name, value in fetched.items())]  # MariaDB assigns in this order
    statement = sa.update(_NODES).where(own).ordered_values(*values)
    return db.write(statement, has_events=True, **nodes.as_appended([outbox.build_boot_event("boot script fetched")]))


def redeem_ticket(db: Database, uuid: str, ticket: str, address: str | None) -> models.Node | None:
    """Take a ticket back and return its node: id, uuid, boot_config; None if it is not good, or not any more.

    :param address: as :func:`issue_ticket` was given it.
    """
    own = [_NODES.c.uuid == uuid, *([] if address is None else [_NODES.c.boot_address == address])]
    oldest = clock.after(-_TICKET_SECONDS)
    good = sa.update(_NODES).where(*own, _NODES.c.boot_ticket == ticket, _NODES.c.boot_script_at > oldest)
    if db.write(good.values(boot_ticket=None, updated_at=_NODES.c.updated_at)) != 1:
        return None
    return nodes.get(db, uuid, ("id", "uuid", "boot_config"))
