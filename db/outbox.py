"""What of a write to a node is worth an event, and how it travels: in the outbox, a column of the row that is written.

The statement that changes the node also appends to its outbox, so an event costs no statement and no transaction of its
own, is there if and only if the change is, and cannot be forgotten by whoever writes. ``ingot.db.events`` takes it from
there.
"""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import orjson
import sqlalchemy as sa

from ingot.common import clock
from ingot.db import models

PROVISION = "provision"
POWER = "power"
STEP = "step"
MAINTENANCE = "maintenance"
CONDUCTOR = "conductor"
KINDS = (PROVISION, POWER, STEP, MAINTENANCE, CONDUCTOR)

_NODES = models.table(models.Node)


class _Watched(NamedTuple):
    """Columns of a node whose change is an event.

    :param by: the columns of which one must change.
    :param also: what the event tells besides, if it is in the same write.
    """

    kind: str
    by: tuple[str, ...]
    also: tuple[str, ...] = ()


_WATCHED = (
    _Watched(POWER, ("power_state", "target_power_state"), ("last_error",)),
    _Watched(MAINTENANCE, ("maintenance", "maintenance_reason"), ("fault",)),
    _Watched(PROVISION, ("provision_state",), ("target_provision_state", "last_error")),
)

_OF_A_STEP = ("run_id", "flow", "step_index", "attempt", "interface", "step", "state", "conductor", "error")

Told = dict[str, Any]


def changes(values: Mapping[str, Any], before: Mapping[str, Any] | None = None) -> list[Told]:
    """The events of writing columns of a node.

    :param values: the columns that are written.
    :param before: what they held, as far as that is known; a column that keeps its value has not changed.
    """
    known = before or {}
    return [
        {"kind": watched.kind, **{name: values[name] for name in (*watched.by, *watched.also) if name in values}}
        for watched in _WATCHED
        if any(name in values and (name not in known or known[name] != values[name]) for name in watched.by)
    ]


def of_step(attempt: Mapping[str, Any]) -> Told:
    """The event of an attempt of a step that begins (state ``running``) or has ended.

    :param attempt: a row of the journal, or the beginning of one.
    """
    return {"kind": STEP, **{name: attempt.get(name) for name in _OF_A_STEP}}


def posted(told: Iterable[Told], known_empty: bool = False) -> dict[str, Any]:
    """The columns to write with a change so that its events are in the outbox; none if there are no events.

    :param known_empty: the row is new: the values are plain, not expressions on what it holds.
    """
    moment = clock.now()
    lines = "".join(orjson.dumps({"at": moment, **event}).decode() + "\n" for event in told)
    if not lines:
        return {}
    if known_empty:
        return {"outbox": lines, "outbox_at": moment}
    return {
        "outbox": sa.func.coalesce(_NODES.c.outbox, "").concat(lines),
        "outbox_at": sa.func.coalesce(_NODES.c.outbox_at, moment),
    }


EMPTIED: Mapping[str, Any] = {"outbox": None, "outbox_at": None, "updated_at": _NODES.c.updated_at}
"""The values that empty an outbox; for clients nothing has changed."""


def read(text: str) -> list[Told]:
    """The events in an outbox, oldest first."""
    return [orjson.loads(line) for line in text.splitlines() if line]
