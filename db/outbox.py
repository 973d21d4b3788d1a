"""Events that wait for their numbers, with the change that they are of: an event exists if and only if its change does.

Those of a node travel in its outbox, a column of the row that is written, and cost no statement. What is no node
(machines of the inbox, plans, conductors), or belongs to one (ports), leaves its events in a table, in the transaction
of the change: one statement each. ``ingot.db.events`` takes them from there.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import Any, NamedTuple

import orjson
import sqlalchemy as sa

from ingot.common import clock, interfaces
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

_SHOWN: Mapping[str, str] = {
    **{name: name for name in ("name", "owner", "lessee", "description", "parent_node", "shard")},
    **{name: name for name in ("driver", "conductor_group", "resource_class", *interfaces.FIELDS)},
    **{name: name for name in ("driver_info", "instance_info", "properties", "extra", "network_data")},
    **{name: name for name in ("instance_uuid", "instance_name", "console_enabled", "automated_clean")},
    **{name: name for name in ("protected", "protected_reason", "retired", "retired_reason", "disable_power_off")},
    "chassis_id": "chassis_uuid",
}
"""What pages show of a node beside its states, by column, as clients call it."""

_WAS = ("name", "owner", "lessee")
"""What must be known of a node at the time of an event, to say to whom it is shown."""

WAS = "was"
"""In the event of a change of these, the values before; it is for the collector, and shown to no client."""

_LONGEST_TEXT = 2000  # characters of a text in an event

_OF_A_STEP = ("run_id", "flow", "step_index", "attempt", "interface", "step", "state", "conductor", "error")


def build_events(values: Mapping[str, object], before: Mapping[str, object] | None = None) -> list[Event]:
    """Return the events of writing columns of a node.

    :param values: the columns that are written.
    :param before: what they held, as far as that is known; a column that keeps its value has not changed.
    """
    known = before or {}
    changed = {name for name, value in values.items() if name not in known or known[name] != value}
    shown = _SHOWN.keys() & changed
    return [
        *([_build_change(values, shown, known)] if shown else ()),
        *(
            {"kind": found.kind, **{name: values[name] for name in (*found.columns, *found.details) if name in values}}
            for found in _EVENT_TYPES
            if not changed.isdisjoint(found.columns)
        ),
    ]


def _build_change(values: Mapping[str, object], columns: Collection[str], known: Mapping[str, object]) -> Event:
    """Return the event of a change of what pages show, which has no values but the name by which people find a node."""
    # A former project that is not known is none: no other is shown what was before.
    was = {name: known.get(name) for name in _WAS if name in columns}
    return {
        **build_node_event(*{_SHOWN[name] for name in columns}),
        **({"name": values["name"]} if "name" in columns else {}),
        **({WAS: was} if was else {}),
    }


def build_node_event(*fields: str) -> Event:
    """Return the event of a change of what pages show of a node.

    :param fields: what it is called; also ``ports``, ``portgroups``, ``traits``.
    """
    return {"kind": "node", "fields": sorted(fields)}


def build_first_events(values: Mapping[str, object], initial: Mapping[str, object]) -> list[Event]:
    """Return the events of a new node.

    :param initial: what of it is no event.
    """
    found = build_events({name: value for name, value in values.items() if name not in _SHOWN}, initial)
    return [{**event, **({"created": True} if event["kind"] == "provision" else {})} for event in found]


def build_last_event() -> Event:
    """Return the event of a node that is deleted."""
    return {"kind": "provision", "provision_state": None, "deleted": True}


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


# Of what is no node, or belongs to one

_WAITING = models.table(models.WaitingEvent)
_NODES = models.table(models.Node)

_ADD = sa.insert(_WAITING)

_GIVEN = ("kind", "created_at", "data")
_ADD_OF_NODES = sa.insert(_WAITING).from_select(
    [*_GIVEN, "node_uuid", "node_name", "node_owner", "node_lessee"],
    sa.select(
        *(sa.bindparam(f"new_{name}", type_=_WAITING.c[name].type) for name in _GIVEN),
        *models.columns(_NODES, ("uuid", "name", "owner", "lessee")),
    ).where(_NODES.c.id.in_(sa.bindparam("own_ids", expanding=True))),
    include_defaults=False,
)


def add(connection: sa.Connection, kind: str, data: Mapping[str, object]) -> None:
    """Leave an event, in a transaction that writes what it is about.

    :param kind: one of :data:`ingot.db.events.KINDS`.
    :param data: what it shows.
    """
    connection.execute(_ADD, {"kind": kind, "created_at": clock.now(), "data": data})
    mark_events(connection)


def add_of_nodes(connection: sa.Connection, node_ids: Collection[int], *fields: str) -> None:
    """Leave the event of a change of what belongs to nodes, in the transaction that makes it.

    The rows of the nodes are not written: they are wide and have many indexes.

    :param fields: see :func:`build_node_event`.
    """
    event = build_node_event(*fields)
    given = {"new_kind": event.pop("kind"), "new_created_at": clock.now(), "new_data": event}
    connection.execute(_ADD_OF_NODES, {**given, "own_ids": sorted(node_ids)})
    mark_events(connection)
