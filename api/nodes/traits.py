"""Traits of nodes: what schedulers choose by, and what names deploy templates."""

from collections.abc import Collection

from ingot.api.nodes import nodes
from ingot.api.web import call as calls
from ingot.api.web import operations, preconditions, trait_names
from ingot.api.web.call import Call, Reply
from ingot.api.web.operations import operation
from ingot.common import errors
from ingot.db import node_crud
from ingot.db import nodes as nodes_db

_READ = ("id", "uuid", "revision")


@operation(answer=trait_names.LISTED)
def index(call: Call, node: str) -> Reply:
    found = nodes.read(call, node, "id", *preconditions.NODE)
    return Reply({"traits": nodes_db.traits_by_node(call.db, [found.id]).get(found.id, [])}, version=found.version)


@operation(body=trait_names.LIST, answer=operations.EMPTY_204)
def replace(call: Call, node: str) -> Reply:
    _change(call, node, add=call.body["traits"], remove=None)
    return calls.NO_CONTENT


@operation(answer=operations.EMPTY_204)
def clear(call: Call, node: str) -> Reply:
    _change(call, node, remove=None)
    return calls.NO_CONTENT


@operation(body=trait_names.NOTHING, answer=operations.EMPTY_204)
def add(call: Call, node: str, trait: str) -> Reply:
    name = trait_names.parse_trait_in_url(trait)
    uuid = _change(call, node, add=[name])
    return calls.NO_CONTENT._replace(headers={"Location": f"{call.base}/v1/nodes/{uuid}/traits/{name}"})


@operation(answer=operations.EMPTY_204)
def remove(call: Call, node: str, trait: str) -> Reply:
    found = nodes.read(call, node, *_READ)
    if trait not in nodes_db.traits_by_node(call.db, [found.id]).get(found.id, []):
        raise errors.NotFound(f"Node {found.uuid} doesn't have a trait '{trait[:255]}'")
    _change(call, node, remove=[trait])
    return calls.NO_CONTENT


def _change(call: Call, given: str, add: Collection[str] = (), remove: Collection[str] | None = ()) -> str:
    """Change the traits as :func:`ingot.db.node_crud.change_traits` does, and return the node's uuid."""

    def attempt() -> str:
        # Requests that add and that remove do not undo each other's work: only conditions compare the revision.
        node = nodes.read(call, given, *_READ)
        node_crud.change_traits(call.db, node, add, remove, node.revision if call.preconditions else None)
        return node.uuid

    return calls.retry_if_changed(attempt)
