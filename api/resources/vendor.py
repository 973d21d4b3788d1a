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
    """The methods that can be called for a driver, each with http_methods, description, async and attach."""
    host = drivers.read(call, name).hosts[0]
    return Reply(call.client.call_host(call.ctx, host, "get_driver_methods", driver=name))


@operation(answer=_METHODS)
def methods_of_node(call: Call, node: str) -> Reply:
    """The methods that can be called for a node; as those of a driver, with require_exclusive_lock."""
    return Reply(ask(call, node, "get_node_methods"))


def _call_driver(call: Call, method: str | None, verb: str, name: str) -> Reply:
    host = drivers.read(call, name).hosts[0]
    return Reply(
        call.client.call_host(call.ctx, host, "call_driver_method", driver=name, **_build_arguments(call, method, verb))
    )


def _call_node(call: Call, method: str | None, verb: str, node: str) -> Reply:
    answer = ask(call, node, "call_node_method", **_build_arguments(call, method, verb))
    return Reply(answer["result"]) if answer["tells"] else Reply(None, 202)


def _build_arguments(call: Call, method: str | None, verb: str) -> Json:
    if not method:
        raise errors.Invalid("Missing mandatory parameter: method. Name one of .../vendor_passthru/methods.")
    return {"vendor_method": method, "http_method": verb, "arguments": call.body}


_METHOD = Param("method", fields.parse_text)


def _declare_by_query(handler: Callable[..., Reply], verb: str, answer: Answer) -> Operation:
    """Return the operation where the parameter ``method`` says what is called."""

    @operation(_METHOD, body=_Arguments(), answer=answer)
    def call_method(call: Call, **of: str) -> Reply:
        return handler(call, call.query.get("method"), verb, **of)

    return call_method


def _declare_by_path(handler: Callable[..., Reply], verb: str, answer: Answer) -> Operation:
    """Return the operation where the URL says what is called."""

    @operation(body=_Arguments(), answer=answer)
    def call_method(call: Call, method: str, **of: str) -> Reply:
        return handler(call, method, verb, **of)

    return call_method


_RESULT = Answer(shows=Plain({}))
_OF_DRIVER = (_call_driver, _RESULT)
_OF_NODE = (_call_node, _RESULT._replace(also=202))

# Each method declares the HTTP verbs that it serves.
BY_QUERY, BY_PATH, NODE_BY_QUERY, NODE_BY_PATH = (
    {verb: declare(handler, verb, answer) for verb in ("GET", "POST", "PUT", "DELETE", "PATCH")}
    for handler, answer in (_OF_DRIVER, _OF_NODE)
    for declare in (_declare_by_query, _declare_by_path)
)
