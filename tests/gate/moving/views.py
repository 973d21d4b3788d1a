"""What a user of openstacksdk sees of a site, and the differences between two such views."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import openstack.connection

Rows = dict[str, dict[str, Any]]
View = dict[str, Rows]
"""By kind of resource, what is shown of each, by its id."""

_LISTS: Mapping[str, Mapping[str, Any]] = {
    "nodes": {"details": True},
    "ports": {"details": True},
    "port_groups": {"details": True},
    "chassis": {"details": True},
    "volume_connectors": {"details": True},
    "volume_targets": {"details": True},
    "allocations": {},
    "deploy_templates": {"details": True},
    "runbooks": {"details": True},
    "inspection_rules": {"details": True},
}
"""By name of the function that lists, its arguments."""

_OF_NODES = ("bios?detail=true", "firmware", "history?detail=true", "inventory", "traits")
"""What is below a node, of which the client has a function for some only."""


def look(url: str, nodes: list[str]) -> View:
    """Return all that the API lists, and what is below some nodes."""
    connection = openstack.connection.Connection(
        auth_type="none", baremetal_endpoint_override=url, baremetal_api_version="1.115"
    )
    sdk = connection.baremetal
    view: View = {}
    for name, arguments in _LISTS.items():
        listed = getattr(sdk, name)(**arguments)
        view[name] = {one.id: one.to_dict(computed=False) for one in listed}
    for name in _OF_NODES:
        found = {uuid: sdk.get(f"/nodes/{uuid}/{name}", microversion="1.115") for uuid in nodes}
        view[name] = {uuid: {"status": answer.status_code, **answer.json()} for uuid, answer in found.items()}
    connection.close()
    return view


class Found(NamedTuple):
    """A field that two views show differently.

    :param kind: of resource. :param before: its value on one side. :param after: its value on the other.
    :param row: all of the resource on the first side.
    """

    kind: str
    ident: str
    field: str
    before: Any
    after: Any
    row: Mapping[str, Any]


class Difference(NamedTuple):
    """A difference that is intended.

    :param kind: of resource.
    :param meets: whether it is this difference.
    :param why: what an operator is to know about it.
    """

    kind: str
    fields: tuple[str, ...]
    meets: Callable[[Found], bool]
    why: str

    def explains(self, found: Found) -> bool:
        """Return whether this is why a field is different."""
        return found.kind == self.kind and found.field in self.fields and self.meets(found)


def compare(before: View, after: View) -> Iterator[Found]:
    """Yield all differences between two views."""
    for kind in before:
        for ident in before[kind].keys() | after[kind].keys():
            row, other = before[kind].get(ident, {}), after[kind].get(ident, {})
            for field in sorted(row.keys() | other.keys()):
                if row.get(field) != other.get(field):
                    yield Found(kind, ident, field, row.get(field), other.get(field), row)
