"""Traits of nodes: what schedulers choose by, and what names deploy templates."""

from ingot.api import call as calls
from ingot.api import nodes, trait_names
from ingot.api.call import Call, Reply, operation
from ingot.common import errors
from ingot.db import traits


@operation()
def index(call: Call, node: str) -> Reply:
    found = nodes.read(call, node, "id")
    return Reply({"traits": traits.of_nodes(call.db, [found.id]).get(found.id, [])})


@operation(body=trait_names.LIST)
def replace(call: Call, node: str) -> Reply:
    traits.change(call.db, nodes.read(call, node, "id", "uuid"), add=call.body["traits"], remove=None)
    return calls.NO_CONTENT


@operation()
def clear(call: Call, node: str) -> Reply:
    traits.change(call.db, nodes.read(call, node, "id", "uuid"), remove=None)
    return calls.NO_CONTENT


@operation(body=trait_names.NOTHING)
def add(call: Call, node: str, trait: str) -> Reply:
    name = trait_names.in_url(trait)
    found = nodes.read(call, node, "id", "uuid")
    traits.change(call.db, found, add=[name])
    return calls.NO_CONTENT._replace(headers={"Location": f"{call.base}/v1/nodes/{found.uuid}/traits/{name}"})


@operation()
def remove(call: Call, node: str, trait: str) -> Reply:
    found = nodes.read(call, node, "id", "uuid")
    if trait not in traits.of_nodes(call.db, [found.id]).get(found.id, []):
        raise errors.NotFound(f"Node {found.uuid} doesn't have a trait '{trait[:255]}'")
    traits.change(call.db, found, remove=[trait])
    return calls.NO_CONTENT
