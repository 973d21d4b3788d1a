"""Calls of the methods of vendor interfaces, by name: for a node, or for a driver and no node in particular."""

from collections.abc import Callable

from ingot.api.nodes.management import ask
from ingot.api.resources import drivers
from ingot.api.web import fields
from ingot.api.web.call import Call, Reply
from ingot.api.web.operations import Answer, Operation, Param, Plain, operation
from ingot.common import errors
from ingot.common.json_types import Json


class _Arguments:
    """A body that only the called method understands: any object."""

    schema = fields.Schema("arguments", {"type": "object"})

    def check(self, value: object, minor: int) -> Json:
        body = {} if value is None else value
        if not isinstance(body, dict):
            raise errors.Invalid(field="body", value=type(body).__name__, allowed="Send a JSON object of arguments.")
        return body


_METHODS = Answer(shows=Plain({"type": "object", "additionalProperties": {"type": "object"}}))


@operation(answer=_METHODS)
def methods(call: Call, name: str) -> Reply:
    """List the methods that can be called for a driver, each with http_methods, description, async and attach."""
    return Reply(drivers.ask(call, name, "get_driver_methods", driver=name))


@operation(answer=_METHODS)
def methods_of_node(call: Call, node: str) -> Reply:
    """List the methods that can be called for a node; as those of a driver, with require_exclusive_lock."""
    return Reply(ask(call, node, "get_node_methods"))


def _call_driver(call: Call, arguments: Json, name: str) -> Reply:
    return Reply(drivers.ask(call, name, "call_driver_method", driver=name, **arguments))


def _call_node(call: Call, arguments: Json, node: str) -> Reply:
    answer = ask(call, node, "call_node_method", **arguments)
    return Reply(answer["result"]) if answer["tells"] else Reply(None, 202)


def _declare(handler: Callable[..., Reply], verb: str, answer: Answer, *query: Param) -> Operation:
    """Return the operation that calls a method; the URL or the parameter ``method`` says which."""

    @operation(*query, body=_Arguments(), answer=answer)
    def call_method(call: Call, method: str | None = None, **of: str) -> Reply:
        named = method or call.query.get("method")
        if not named:
            raise errors.Invalid("Missing mandatory parameter: method. Name one of .../vendor_passthru/methods.")
        return handler(call, {"vendor_method": named, "http_method": verb, "arguments": call.body}, **of)

    return call_method


_RESULT = Answer(shows=Plain({}))

# Each method declares the HTTP verbs that it serves.
BY_QUERY, BY_PATH, NODE_BY_QUERY, NODE_BY_PATH = (
    {verb: _declare(handler, verb, answer, *query) for verb in ("GET", "POST", "PUT", "DELETE", "PATCH")}
    for handler, answer in ((_call_driver, _RESULT), (_call_node, _RESULT._replace(also=202)))
    for query in ((Param("method", fields.parse_text),), ())
)
