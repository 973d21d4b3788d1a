"""Traits of nodes: what schedulers choose by, and what names deploy templates."""

from ingot.api import call as calls
from ingot.api import fields, nodes, schemas
from ingot.api.call import Call, Reply, operation
from ingot.api.deploy_templates import TRAIT
from ingot.api.deploy_templates import trait as parsed
from ingot.api.fields import Field
from ingot.api.kinds import Kind
from ingot.common import errors
from ingot.db import traits

_NAME = schemas.Schema("trait", TRAIT.schema)


def _names(name: str, value: list[str]) -> list[str]:
    return [parsed(name, given) for given in value]


_TRAITS = Field("traits", kind=Kind({"type": "array", "items": TRAIT.schema}, _names), required=True)


@operation()
def index(call: Call, node: str) -> Reply:
    found = nodes.read(call, node, "id")
    return Reply({"traits": traits.of_nodes(call.db, [found.id]).get(found.id, [])})


@operation(body=fields.Body("traits", (_TRAITS,)))
def replace(call: Call, node: str) -> Reply:
    traits.change(call.db, nodes.read(call, node, "id", "uuid"), add=call.body["traits"], remove=None)
    return calls.NO_CONTENT


@operation()
def clear(call: Call, node: str) -> Reply:
    traits.change(call.db, nodes.read(call, node, "id", "uuid"), remove=None)
    return calls.NO_CONTENT


@operation(body=fields.Body("trait request", ()))
def add(call: Call, node: str, trait: str) -> Reply:
    _NAME.check(trait)
    found = nodes.read(call, node, "id", "uuid")
    traits.change(call.db, found, add=[parsed("trait", trait)])
    return calls.NO_CONTENT._replace(headers={"Location": f"{call.base}/v1/nodes/{found.uuid}/traits/{trait}"})


@operation()
def remove(call: Call, node: str, trait: str) -> Reply:
    found = nodes.read(call, node, "id", "uuid")
    if trait not in traits.of_nodes(call.db, [found.id]).get(found.id, []):
        raise errors.NotFound(f"Node {found.uuid} doesn't have a trait '{trait[:255]}'")
    traits.change(call.db, found, remove=[trait])
    return calls.NO_CONTENT
