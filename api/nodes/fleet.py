"""The fleet: nodes by a filter that a person types, any part of the list, and how many there are.

Not part of the OpenStack API: it lives under /ingot/v1. Its nodes are those of ``GET /v1/nodes``, child nodes among
them, with the same rules of policy.
"""

from collections.abc import Sequence
from typing import NamedTuple

from ingot.api.nodes import fleet_filter, nodes
from ingot.api.nodes.fleet_filter import KEYS, Filter
from ingot.api.nodes.node_fields import TABLE as NODE_TABLE
from ingot.api.web import collection, fields, operations, tables, versions
from ingot.api.web.call import Call, Reply
from ingot.api.web.fields import Field
from ingot.api.web.operations import Answer, Param, Plain, operation
from ingot.common import errors
from ingot.common.json_types import Json
from ingot.db import conductors, fleet, node_lists
from ingot.db.nodes import ShownNode

_SHOWN = (
    *("uuid", "name", "provision_state", "target_provision_state", "provision_updated_at", "power_state"),
    *("target_power_state", "maintenance", "maintenance_reason", "fault", "last_error", "driver", "resource_class"),
    *("conductor_group", "conductor", "reservation", "owner", "lessee", "instance_uuid", "instance_name"),
    *("description", "shard", "parent_node", "protected", "retired", "created_at", "updated_at"),
)

TABLE = tables.Table(
    "fleet node",
    *(NODE_TABLE.fields[name] for name in _SHOWN),
    Field("locked_at", see="baremetal:node:get:reservation"),
    Field("flow"),
    always=("owner", "lessee"),
)

_SELECTED = TABLE.select(versions.MAX)
_ONE = collection.One(TABLE, node_lists.SOURCE.json_schema)

_CONDUCTOR = "conductor"
_SORTABLE = (*sorted(one.name for one in TABLE.fields.values() if one.sortable and not one.see), _CONDUCTOR)

_NUMBER: Json = {"type": "integer"}

_KEYS_OF_RING = ("uuid", "driver", "conductor_group")


class _Rows:
    """The shape of a part of the fleet."""

    def schema(self, named: Json) -> Json:
        """See :class:`ingot.api.web.operations.Shape`."""
        counts = dict.fromkeys(("total", "matching", "offset", "limit"), _NUMBER)
        return fields.complete_schema({**counts, "nodes": {"type": "array", "items": _ONE.schema(named)}})


class Sort(NamedTuple):
    """An order: a field, and which way."""

    key: str
    descending: bool


def _parse_sort(name: str, given: str) -> Sort:
    key = given.removeprefix("-")
    if key not in _SORTABLE:
        allowed = f"The fleet is sorted by one of these, with a - in front downwards: {', '.join(_SORTABLE)}."
        raise errors.Invalid(field=name, value=given, allowed=allowed)
    return Sort(key, key != given)


@operation(
    Param("filter", fleet_filter.parse),
    Param("sort", _parse_sort),
    Param("offset", operations.parse_offset),
    Param("limit", operations.parse_limit),
    answer=Answer(shows=_Rows()),
)
def index(call: Call) -> Reply:
    """Show a part of the fleet: the nodes that match, from ``offset`` on, and how many there are in all."""
    query = call.query
    asked: Filter = query.get("filter", Filter())
    sort: Sort = query.get("sort", Sort("name", False))
    offset = query.get("offset", 0)
    limit = min(query.get("limit", call.conf.api.max_limit), call.conf.api.max_limit)
    own = _limit_to_own(call)
    asked = _complete(call, own, asked)
    columns = _SELECTED.columns_of(node_lists.SOURCE)
    total, matching = fleet.count(call.db, own, asked.terms)
    if asked.owners or sort.key == _CONDUCTOR:
        ids = _find_by_owner(call, own, asked, sort)
        matching = len(ids)
        found = fleet.read_by_id(call.db, columns, ids[offset : offset + limit])
    else:
        part = fleet.Part(sort.key, sort.descending, offset, limit)
        found = fleet.read(call.db, columns, own, asked.terms, part)
    nodes.NODES.complete(call, found, _SELECTED)
    shown = [_SELECTED.render(node, call) for node in found]
    return Reply({"total": total, "matching": matching, "offset": offset, "limit": limit, "nodes": shown})


def _limit_to_own(call: Call) -> fleet.Own:
    """Return what limits the request to the nodes that it may see."""
    return collection.build_ownership_conditions(call, nodes.NODES)


def _complete(call: Call, own: fleet.Own, asked: Filter) -> Filter:
    return asked._replace(terms=fleet.complete(call.db, call.conf, own, asked.terms))


def _find_by_owner(call: Call, own: fleet.Own, asked: Filter, sort: Sort) -> list[int]:
    """Return the ids of all nodes that match, in order; the hash ring decides, which the database does not know."""
    by_ring = sort.key == _CONDUCTOR
    part = fleet.Part("name" if by_ring else sort.key, sort.descending)
    found = fleet.read(call.db, _KEYS_OF_RING, own, asked.terms, part)
    owners = call.client.owners(found)
    fits = {owner: asked.fits(owner) for owner in set(owners.values())}
    fitting = [node for node in found if fits[owners[node.uuid]]]
    if by_ring:
        fitting.sort(key=lambda node: owners[node.uuid] or "", reverse=sort.descending)
    return [node.id for node in fitting]


def find_matching(call: Call, asked: Filter, most: int) -> Sequence[ShownNode]:
    """Return uuid and name of the nodes that match a filter and that the request may see, by name.

    :param most: how many are returned at most.
    """
    own = _limit_to_own(call)
    asked = _complete(call, own, asked)
    if asked.owners:
        ids = _find_by_owner(call, own, asked, Sort("name", False))
        return fleet.read_by_id(call.db, ("uuid", "name"), ids[:most])
    return fleet.read(call.db, ("uuid", "name"), own, asked.terms, fleet.Part(limit=most))


_MOST_VALUES = 50

_VALUE = {"value": fields.TEXT_SCHEMA, "nodes": {"type": ["integer", "null"]}}
_KEY = {
    **dict.fromkeys(("key", "about"), fields.TEXT_SCHEMA),
    "values": {"type": "array", "items": fields.complete_schema(_VALUE)},
}
_LIMITS = {"characters": fleet_filter.LONGEST, "terms": fleet_filter.MOST_TERMS, "values": fleet_filter.MOST_VALUES}
_LANGUAGE = {
    "keys": {"type": "array", "items": fields.complete_schema(_KEY)},
    "sort": {"type": "array", "items": fields.TEXT_SCHEMA},
    "limits": fields.complete_schema(dict.fromkeys(_LIMITS, _NUMBER)),
}


@operation(answer=Answer(shows=Plain(fields.complete_schema(_LANGUAGE))))
def describe(call: Call) -> Reply:
    """Show what a filter can be made of: keys, and their values with the number of nodes that have each.

    Of a key with many values, those are shown that most nodes have; the number is null where none were counted.
    """
    columns = [key.column for key in KEYS.values() if key.column]
    counted = fleet.count_values(call.db, _limit_to_own(call), columns, _MOST_VALUES)
    hosts = _list_hosts(call) if call.access.permits("baremetal:conductor:get") else ()

    def list_values(key: fleet_filter.Key) -> list[Json]:
        counts = counted.get(key.column or "", {})
        names = hosts if key.name == _CONDUCTOR else (*key.values, *counts)
        return [{"value": name, "nodes": counts.get(name)} for name in dict.fromkeys(names)]

    keys = [{"key": key.name, "about": key.about, "values": list_values(key)} for key in KEYS.values()]
    return Reply({"keys": keys, "sort": list(_SORTABLE), "limits": _LIMITS})


def _list_hosts(call: Call) -> Sequence[str]:
    registered = conductors.list_all(call.db, call.conf.conductor.heartbeat_timeout)
    return [one.hostname for one in registered][:_MOST_VALUES]
