"""What a vendor's interface can do for no node in particular: its driver methods, which users call by name.

``GET /v1/drivers/<name>/vendor_passthru/methods`` tells them, ``.../vendor_passthru?method=<method>`` calls one. A
hardware type is represented by its default vendor interface (specification 004).
"""

import inspect
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeVar

from ingot.common import context, errors
from ingot.drivers.interfaces.base import BaseInterface

Function = TypeVar("Function", bound=Callable[..., Any])

HTTP_METHODS: tuple[str, ...] = ("GET", "POST", "PUT", "DELETE", "PATCH")


class Declared(NamedTuple):
    """What a decorator says of a driver method."""

    http_methods: tuple[str, ...]
    description: str


def driver_method(*http_methods: str, description: str) -> Callable[[Function], Function]:
    """Declares a method ``method(self, ctx, **arguments)`` of a vendor interface as one that users may call::

        @driver_method("GET", description="Firmware versions that the vendor has published.")
        def versions(self, ctx: RequestContext, model: str) -> list[str]: ...

    The arguments are the keys of the request's JSON object; the result is sent as JSON, a string as plain text. It runs
    in a thread that serves RPC: it must not wait for long.

    :param http_methods: those it answers to.
    """
    unknown = set(http_methods) - set(HTTP_METHODS)
    if unknown or not http_methods:
        raise errors.Invalid(field="http_methods", value=http_methods, allowed=f"Some of {', '.join(HTTP_METHODS)}.")

    def mark(function: Function) -> Function:
        function.__dict__["ingot_driver_method"] = Declared(http_methods, description)
        return function

    return mark


def told(interface: BaseInterface) -> dict[str, dict[str, Any]]:
    """The driver methods of an interface as the API tells them."""
    return {
        name: {
            "http_methods": list(declared.http_methods),
            "description": declared.description,
            "async": False,
            "attach": False,
        }
        for name, declared in _declared(interface).items()
    }


def call(
    interface: BaseInterface, ctx: context.RequestContext, name: str, http_method: str, arguments: Mapping[str, Any]
) -> Any:
    """Calls a driver method.

    :raises Invalid: there is none of the name, it does not answer to the HTTP method, or the arguments are not its own.
    """
    declared = _declared(interface)
    if name not in declared:
        known = ", ".join(sorted(declared)) or "none"
        raise errors.Invalid(f"No handler for method {name[:80]}. Interface {interface.name} (vendor) has: {known}.")
    if http_method not in declared[name].http_methods:
        allowed = f"Method {name} answers to: {', '.join(declared[name].http_methods)}."
        raise errors.Invalid(field="HTTP method", value=http_method, allowed=allowed)
    method = getattr(interface, name)
    try:
        inspect.signature(method).bind(ctx, **arguments)
    except TypeError as exc:
        raise errors.Invalid(field=f"arguments of method {name}", value=sorted(arguments), allowed=f"{exc}.") from exc
    return method(ctx, **arguments)


def _declared(interface: BaseInterface) -> dict[str, Declared]:
    found = {
        name: getattr(getattr(type(interface), name), "ingot_driver_method", None) for name in dir(type(interface))
    }
    return {name: declared for name, declared in found.items() if declared is not None}
