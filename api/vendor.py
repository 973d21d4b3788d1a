"""Calls of what a driver's vendor interface can do, by name, for no node in particular (specification 004)."""

from collections.abc import Mapping
from typing import Any

from ingot.api import drivers, params, schemas
from ingot.api.call import Call, Operation, Reply, operation
from ingot.api.params import Param
from ingot.common import errors


class _Arguments:
    """A body that only the called method understands: any object."""

    schema = schemas.Schema("arguments", {"type": "object"})

    def check(self, value: Any, minor: int) -> dict[str, Any]:
        body = {} if value is None else value
        if not isinstance(body, dict):
            raise errors.Invalid(field="body", value=type(body).__name__, allowed="Send a JSON object of arguments.")
        return body


@operation()
def methods(call: Call, name: str) -> Reply:
    """The methods that can be called, each with http_methods, description, async and attach."""
    host = drivers.one(call, name).hosts[0]
    return Reply(call.client.call_host(call.ctx, host, "get_driver_methods", driver=name))


def _call(call: Call, driver: str, method: str | None, verb: str) -> Reply:
    if not method:
        raise errors.Invalid("Missing mandatory parameter: method. Name one of .../vendor_passthru/methods.")
    host = drivers.one(call, driver).hosts[0]
    about = {"driver": driver, "vendor_method": method, "http_method": verb, "arguments": call.body}
    return Reply(call.client.call_host(call.ctx, host, "call_driver_method", **about))


def _by_query(verb: str) -> Operation:
    @operation(Param("method", params.text), body=_Arguments())
    def passthru(call: Call, name: str) -> Reply:
        return _call(call, name, call.query.get("method"), verb)

    return passthru


def _by_path(verb: str) -> Operation:
    @operation(body=_Arguments())
    def passthru(call: Call, name: str, method: str) -> Reply:
        return _call(call, name, method, verb)

    return passthru


_VERBS = ("GET", "POST", "PUT", "DELETE", "PATCH")

# A method itself says which of the verbs it answers to.
BY_QUERY: Mapping[str, Operation] = {verb: _by_query(verb) for verb in _VERBS}
BY_PATH: Mapping[str, Operation] = {verb: _by_path(verb) for verb in _VERBS}
