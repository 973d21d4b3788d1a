"""What a vendor's interface can do beyond the common interfaces: methods that users call by name.

``GET /v1/nodes/<node>/vendor_passthru/methods`` tells those for a node, ``.../vendor_passthru?method=<method>`` calls
one. Those for no node in particular are under ``/v1/drivers/<name>``; a hardware type is represented by its default
vendor interface (specification 004).
"""

import inspect
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeVar

from ingot.common import context, errors
from ingot.drivers.interfaces.base import BaseInterface
from ingot.drivers.task import Task

Function = TypeVar("Function", bound=Callable[..., Any])

HTTP_METHODS: tuple[str, ...] = ("GET", "POST", "PUT", "DELETE", "PATCH")


class Declared(NamedTuple):
    """What a decorator says of a method.

    :param tells: whether its result is the answer; otherwise the request is answered 202 without one.
    :param exclusive: for a node's method, whether it needs the node's lock.
    """

    http_methods: tuple[str, ...]
    description: str
    tells: bool = True
    exclusive: bool = True


_OF_DRIVER, _OF_NODE = "ingot_driver_method", "ingot_node_method"


def driver_method(*http_methods: str, description: str) -> Callable[[Function], Function]:
    """Declares a method ``method(self, ctx, **arguments)`` of a vendor interface as one that users may call::

        @driver_method("GET", description="Firmware versions that the vendor has published.")
        def versions(self, ctx: RequestContext, model: str) -> list[str]: ...

    The arguments are the keys of the request's JSON object; the result is sent as JSON, a string as plain text. It runs
    in a thread that serves RPC: it must not wait for long.

    :param http_methods: those it answers to.
    """
    return _declare(_OF_DRIVER, Declared(http_methods, description))


def node_method(
    *http_methods: str, description: str, tells: bool = True, exclusive: bool = True
) -> Callable[[Function], Function]:
    """Declares a method ``method(self, task, **arguments)`` of a vendor interface as one that users may call for a
    node; otherwise as :func:`driver_method`. See :class:`Declared` for ``tells`` and ``exclusive``.

    A request is answered when the method has ended, so that nobody is told of work that then fails unseen. Work that
    takes minutes is for a step.
    """
    return _declare(_OF_NODE, Declared(http_methods, description, tells, exclusive))


def _declare(mark: str, declared: Declared) -> Callable[[Function], Function]:
    http_methods = declared.http_methods
    if set(http_methods) - set(HTTP_METHODS) or not http_methods:
        raise errors.Invalid(field="http_methods", value=http_methods, allowed=f"Some of {', '.join(HTTP_METHODS)}.")

    def declare(function: Function) -> Function:
        function.__dict__[mark] = declared
        return function

    return declare


def told(interface: BaseInterface) -> dict[str, dict[str, Any]]:
    """The driver methods of an interface as the API tells them."""
    return {name: _told(declared) for name, declared in _declared(interface, _OF_DRIVER).items()}


def told_of_node(interface: BaseInterface) -> dict[str, dict[str, Any]]:
    """The methods of an interface for a node as the API tells them."""
    return {
        name: {**_told(declared), "require_exclusive_lock": declared.exclusive}
        for name, declared in _declared(interface, _OF_NODE).items()
    }


def _told(declared: Declared) -> dict[str, Any]:
    return {
        "http_methods": list(declared.http_methods),
        "description": declared.description,
        "async": not declared.tells,
        "attach": False,
    }


class Asked(NamedTuple):
    """A call of a method by its name.

    :param http_method: by which it was asked for.
    """

    name: str
    http_method: str
    arguments: Mapping[str, Any]


def call(interface: BaseInterface, ctx: context.RequestContext, asked: Asked) -> Any:
    """Calls a driver method.

    :raises Invalid: there is none of the name, it does not answer to the HTTP method, or the arguments are not its own.
    """
    _check(interface, _OF_DRIVER, ctx, asked)
    return getattr(interface, asked.name)(ctx, **asked.arguments)


def of_node(interface: BaseInterface, task: Task, asked: Asked) -> Declared:
    """What is declared of a method for a node that can be called as is asked.

    :raises Invalid: as in :func:`call`.
    """
    return _check(interface, _OF_NODE, task, asked)


def call_for_node(interface: BaseInterface, task: Task, asked: Asked) -> Any:
    """Calls a method for a node.

    :raises Invalid: as in :func:`call`.
    """
    _check(interface, _OF_NODE, task, asked)
    return getattr(interface, asked.name)(task, **asked.arguments)


def _check(interface: BaseInterface, mark: str, first: Any, asked: Asked) -> Declared:
    declared = _declared(interface, mark)
    name, arguments = asked.name, asked.arguments
    if name not in declared:
        known = ", ".join(sorted(declared)) or "none"
        raise errors.Invalid(f"No handler for method {name[:80]}. Interface {interface.name} (vendor) has: {known}.")
    if asked.http_method not in declared[name].http_methods:
        allowed = f"Method {name} answers to: {', '.join(declared[name].http_methods)}."
        raise errors.Invalid(field="HTTP method", value=asked.http_method, allowed=allowed)
    try:
        inspect.signature(getattr(interface, name)).bind(first, **arguments)
    except TypeError as exc:
        raise errors.Invalid(field=f"arguments of method {name}", value=sorted(arguments), allowed=f"{exc}.") from exc
    return declared[name]


def _declared(interface: BaseInterface, mark: str) -> dict[str, Declared]:
    found = {name: getattr(getattr(type(interface), name), mark, None) for name in dir(type(interface))}
    return {name: declared for name, declared in found.items() if declared is not None}
