"""Traits of nodes: what schedulers choose by, and what names deploy templates."""

from collections.abc import Collection

from ingot.api import call as calls
from ingot.api import nodes, preconditions, trait_names
from ingot.api.call import Call, Reply, operation
from ingot.common import errors
from ingot.db import records, traits

_READ = ("id", "uuid", "revision")


@operation()
def index(call: Call, node: str) -> Reply:
    found = nodes.read(call, node, "id", *preconditions.NODE)
    return Reply({"traits": traits.of_nodes(call.db, [found.id]).get(found.id, [])}, version=found.version)


@operation(body=trait_names.LIST)
def replace(call: Call, node: str) -> Reply:
    _change(call, node, add=call.body["traits"], remove=None)
    return calls.NO_CONTENT


@operation()
def clear(call: Call, node: str) -> Reply:
    _change(call, node, remove=None)
    return calls.NO_CONTENT


@operation(body=trait_names.NOTHING)
def add(call: Call, node: str, trait: str) -> Reply:
    name = trait_names.in_url(trait)
    uuid = _change(call, node, add=[name])
    return calls.NO_CONTENT._replace(headers={"Location": f"{call.base}/v1/nodes/{uuid}/traits/{name}"})


@operation()
def remove(call: Call, node: str, trait: str) -> Reply:
    calls.retried(lambda: _remove(call, nodes.read(call, node, *_READ), trait))
    return calls.NO_CONTENT


def _remove(call: Call, node: records.Record, trait: str) -> None:
    if trait not in traits.of_nodes(call.db, [node.id]).get(node.id, []):
        raise errors.NotFound(f"Node {node.uuid} doesn't have a trait '{trait[:255]}'")
    traits.change(call.db, node, remove=[trait])


def _change(call: Call, given: str, add: Collection[str] = (), remove: Collection[str] | None = ()) -> str:
    """See :func:`ingot.db.traits.change`; gives the node's uuid."""

    def attempt() -> str:
        node = nodes.read(call, given, *_READ)
        traits.change(call.db, node, add, remove)
        return str(node.uuid)

    return calls.retried(attempt)
