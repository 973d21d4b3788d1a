"""The vendor interface: what only one vendor's machines can do, as steps and as methods that users call by name.

``GET /v1/nodes/<node>/vendor_passthru/methods`` lists those for a node, ``.../vendor_passthru?method=<method>`` calls
one. Those for no node are under ``/v1/drivers/<name>``; a hardware type has those of its default interface (004).
"""

import inspect
from collections.abc import Callable, Mapping
from typing import NamedTuple

from ingot.common import errors
from ingot.drivers.interfaces.base import BaseInterface, Function

HTTP_METHODS: tuple[str, ...] = ("GET", "POST", "PUT", "DELETE", "PATCH")


class VendorInterface(BaseInterface):
    """Implementations declare steps, and methods with :func:`driver_method` and :func:`node_method`."""

    interface_type = "vendor"


class VendorMethod(NamedTuple):
    """What a decorator says of a method.

    :param returns_result: whether its result is the answer; otherwise the request is answered 202 without one.
    :param exclusive: for a node's method, whether it needs the node's lock.
    """

    http_methods: tuple[str, ...]
    description: str
    returns_result: bool = True
    exclusive: bool = True


OF_DRIVER, OF_NODE = "ingot_driver_method", "ingot_node_method"


def driver_method(*http_methods: str, description: str) -> Callable[[Function], Function]:
    """Declare a method ``method(self, ctx, **arguments)`` of a vendor interface as one that users may call::

        @driver_method("GET", description="Firmware versions that the vendor has published.")
        def versions(self, ctx: RequestContext, model: str) -> list[str]: ...

    The arguments are the keys of the request's JSON object; the result is sent as JSON, a string as plain text. It runs
    in a thread that serves RPC: it must not wait for long.

    :param http_methods: those it answers to.
    """
    return _declare(OF_DRIVER, VendorMethod(http_methods, description))


def node_method(
    *http_methods: str, description: str, returns_result: bool = True, exclusive: bool = True
) -> Callable[[Function], Function]:
    """Declare a method ``method(self, task, **arguments)`` of a vendor interface as one that users may call for a node.

    It is as :func:`driver_method`; see :class:`VendorMethod` for ``returns_result`` and ``exclusive``. A request is
    answered when the method has ended, so that no failure goes unseen. Work that takes minutes is for a step.
    """
    return _declare(OF_NODE, VendorMethod(http_methods, description, returns_result, exclusive))


def _declare(mark: str, method: VendorMethod) -> Callable[[Function], Function]:
    http_methods = method.http_methods
    if set(http_methods) - set(HTTP_METHODS) or not http_methods:
        raise errors.Invalid(field="http_methods", value=http_methods, allowed=f"Some of {', '.join(HTTP_METHODS)}.")

    def declare(function: Function) -> Function:
        function.__dict__[mark] = method
        return function

    return declare


def describe_methods(interface: BaseInterface, mark: str) -> dict[str, dict[str, object]]:
    """Return the methods of an interface as the API shows them.

    :param mark: :data:`OF_DRIVER` or :data:`OF_NODE`, here and below.
    """
    return {name: _describe(method, mark) for name, method in _methods(interface, mark).items()}


def _describe(method: VendorMethod, mark: str) -> dict[str, object]:
    shown = {"http_methods": list(method.http_methods), "description": method.description}
    lock = {"require_exclusive_lock": method.exclusive} if mark == OF_NODE else {}
    return {**shown, "async": not method.returns_result, "attach": False, **lock}


class VendorCall(NamedTuple):
    """A call of a method by its name.

    :param http_method: that of the request.
    """

    name: str
    http_method: str
    arguments: Mapping[str, object]


def find_method(interface: BaseInterface, mark: str, first: object, call: VendorCall) -> VendorMethod:
    """Return what is declared of a method that can be called as requested.

    :param first: the method's first argument: the context of the request, or the task of the node.
    :raises Invalid: there is none of the name, it does not answer to the HTTP method, or the arguments are not its own.
    """
    methods = _methods(interface, mark)
    name, arguments = call.name, call.arguments
    if name not in methods:
        known = ", ".join(sorted(methods)) or "none"
        raise errors.Invalid(f"No handler for method {name[:80]}. Interface {interface.name} (vendor) has: {known}.")
    if call.http_method not in methods[name].http_methods:
        allowed = f"Method {name} answers to: {', '.join(methods[name].http_methods)}."
        raise errors.Invalid(field="HTTP method", value=call.http_method, allowed=allowed)
    try:
        inspect.signature(getattr(interface, name)).bind(first, **arguments)
    except TypeError as exc:
        raise errors.Invalid(field=f"arguments of method {name}", value=sorted(arguments), allowed=f"{exc}.") from exc
    return methods[name]


def call_method(interface: BaseInterface, mark: str, first: object, call: VendorCall) -> object:
    """Call a method and return its result; as :func:`find_method`."""
    find_method(interface, mark, first, call)
    return getattr(interface, call.name)(first, **call.arguments)


def _methods(interface: BaseInterface, mark: str) -> dict[str, VendorMethod]:
    marked = {name: getattr(getattr(type(interface), name), mark, None) for name in dir(type(interface))}
    return {name: method for name, method in marked.items() if method is not None}
