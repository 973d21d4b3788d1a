"""Events that wait for their numbers, with the change that they are of: an event exists if and only if its change does.

Those of a node travel in its outbox, a column of the row that is written, and cost no statement. What is no node
(machines of the inbox, plans, conductors) leaves its events in a table, in the transaction of the change: one statement
each, and such changes are rare. ``ingot.db.events`` takes them from there.
"""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import orjson
import sqlalchemy as sa

from ingot.common import clock
from ingot.common.json_types import Json
from ingot.db import models
from ingot.db.engine import mark_events

Event = Json
"""An event: its ``kind``, and its data."""

# Of nodes


class _EventType(NamedTuple):
    """Columns of a node whose change is an event.

    :param columns: of which one must change.
    :param details: what the event shows besides, if it is in the same write.
    """

    kind: str
    columns: tuple[str, ...]
    details: tuple[str, ...] = ()


_EVENT_TYPES = (
    _EventType("power", ("power_state", "target_power_state"), ("last_error",)),
    _EventType("maintenance", ("maintenance", "maintenance_reason", "maintenance_holds"), ("fault",)),
    _EventType("provision", ("provision_state",), ("target_provision_state", "last_error")),
)

_LONGEST_TEXT = 2000  # characters of a text in an event

_OF_A_STEP = ("run_id", "flow", "step_index", "attempt", "interface", "step", "state", "conductor", "error")


def build_events(values: Mapping[str, object], before: Mapping[str, object] | None = None) -> list[Event]:
    """Return the events of writing columns of a node.

    :param values: the columns that are written.
    :param before: what they held, as far as that is known; a column that keeps its value has not changed.
    """
    known = before or {}
    return [
        {"kind": found.kind, **{name: values[name] for name in (*found.columns, *found.details) if name in values}}
        for found in _EVENT_TYPES
        if any(name in values and (name not in known or known[name] != values[name]) for name in found.columns)
    ]


def build_step_event(attempt: Mapping[str, object]) -> Event:
    """Return the event of an attempt of a step that begins (state ``running``) or has ended.

    :param attempt: a row of the step runs, or the beginning of one.
    """
    return {"kind": "step", **{name: attempt.get(name) for name in _OF_A_STEP}}


SEEN_LOCK_S = 1.0
"""Seconds after which the end of a lock is an event. Most locks last for milliseconds, and many an hour come and go."""


def build_lock_event() -> Event:
    """Return the event of a lock that is given back, and nothing else happens."""
    return {"kind": "lock", "reservation": None}


def build_boot_event(sign: str) -> Event:
    """Return the event of a machine that boots: how far it has come.

    :param sign: what explanations call it.
    """
    return {"kind": "boot", "sign": sign}


def shorten(value: Any) -> Any:
    """Return the data of an event with its long texts cut: many events stand in the memory of each API."""
    if isinstance(value, str):
        more = len(value) - _LONGEST_TEXT
        return value if more <= 0 else f"{value[:_LONGEST_TEXT]}... ({more} more characters)"
    if isinstance(value, Mapping):
        return {name: shorten(one) for name, one in value.items()}
    return [shorten(one) for one in value] if isinstance(value, list) else value


def read(text: str | None) -> list[Event]:
    """Return the events in an outbox, each with its moment."""
    return [orjson.loads(line) for line in (text or "").split("\n") if line]


def build_columns(events: Iterable[Event]) -> dict[str, object]:
    """Return the columns of a new row that has events; none if there are no events."""
    moment = clock.now()
    lines = "".join(orjson.dumps({"at": moment, **shorten(event)}).decode() + "\n" for event in events)
    return {"outbox": lines, "outbox_at": moment} if lines else {}


# Of what is no node


_ADD = sa.insert(models.table(models.WaitingEvent))


def add(connection: sa.Connection, kind: str, data: Mapping[str, object]) -> None:
    """Leave an event, in a transaction that writes what it is about.

    :param kind: one of :data:`ingot.db.events.KINDS`.
    :param data: what it shows.
    """
    connection.execute(_ADD, {"kind": kind, "created_at": clock.now(), "data": data})
    mark_events(connection)
