"""Traits, wherever a client writes them: those of nodes and of runbooks, and as names of deploy templates."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from ingot.api.web import fields, operations
from ingot.api.web.call import NO_CONTENT, Call, Reply
from ingot.api.web.operations import Operation, operation
from ingot.common.trait_names import parse_trait

TYPE = fields.FieldType({"type": "string", "minLength": 1, "maxLength": 255}, parse_trait)

_IN_URL = fields.Schema("trait", TYPE.schema)
_TYPE_OF_LIST = fields.FieldType(
    {"type": "array", "items": TYPE.schema}, lambda name, value: [parse_trait(name, given) for given in value]
)
_LIST = fields.Body("traits", fields.Field("traits", type=_TYPE_OF_LIST, required=True))
_LISTED = operations.Answer(shows=operations.Plain(fields.list_schema("traits", TYPE.schema)))


class TraitOperations(NamedTuple):
    """The requests for the traits of something, by method: for all of them, and for one that the URL names."""

    every: Mapping[str, Operation]
    one: Mapping[str, Operation]


def build_operations(noun: str, show: Callable[..., Reply], change: Callable[..., str]) -> TraitOperations:
    """Return the requests for the traits of something.

    :param noun: its collection in URLs.
    :param show: answers with the list.
    :param change: adds the traits ``added`` and removes ``removed``, for None all others; returns the uuid of what has
        them.
    """

    @operation(body=_LIST, answer=operations.EMPTY_204)
    def replace(call: Call, **of: str) -> Reply:
        """Replace all traits."""
        change(call, added=call.body["traits"], removed=None, **of)
        return NO_CONTENT

    @operation(answer=operations.EMPTY_204)
    def clear(call: Call, **of: str) -> Reply:
        """Remove all traits."""
        change(call, added=(), removed=None, **of)
        return NO_CONTENT

    @operation(body=fields.Body("trait request"), answer=operations.EMPTY_204)
    def add(call: Call, trait: str, **of: str) -> Reply:
        """Add a trait."""
        _IN_URL.check(trait)
        name = parse_trait("trait", trait)
        uuid = change(call, added=(name,), removed=(), **of)
        return NO_CONTENT._replace(headers={"Location": f"{call.base}/v1/{noun}/{uuid}/traits/{name}"})

    @operation(answer=operations.EMPTY_204)
    def remove(call: Call, trait: str, **of: str) -> Reply:
        """Remove a trait."""
        change(call, added=(), removed=(trait,), **of)
        return NO_CONTENT

    return TraitOperations(
        {"GET": operation(answer=_LISTED)(show), "PUT": replace, "DELETE": clear}, {"PUT": add, "DELETE": remove}
    )
