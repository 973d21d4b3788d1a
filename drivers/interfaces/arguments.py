"""Arguments of steps: a declaration describes them, and the method that takes them says their types.

Sources: specifications 001 and 002, ``argsinfo``.
"""

import inspect
import types
import typing
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NotRequired, TypedDict

from ingot.common import errors


class Argument(TypedDict):
    """What is said of an argument.

    :ivar required: default: whether the method has no default for it.
    :ivar type: a type of JSON: boolean, integer, number, string, array, object. Default: by the method's annotation;
        without one, any value is taken.
    """

    description: str
    required: NotRequired[bool]
    type: NotRequired[str]


ArgsInfo = Mapping[str, Argument]
"""Of a step's arguments, by name."""

_FROM_JSON: Mapping[str, tuple[type, ...]] = {
    "boolean": (bool,),
    "integer": (int,),
    "number": (int, float),
    "string": (str,),
    "array": (list,),
    "object": (dict,),
}

_OF_ANNOTATION: Mapping[type, str] = {
    bool: "boolean",
    int: "integer",
    float: "number",
    str: "string",
    list: "array",
    dict: "object",
}

_OF_NAME: Mapping[str, str] = {one.__name__: name for one, name in _OF_ANNOTATION.items()}

_KEYS = frozenset(Argument.__annotations__)


def complete(function: Callable[..., object], argsinfo: ArgsInfo | None) -> ArgsInfo | None:
    """Return the declared arguments of a step with what its method says of them.

    :raises Invalid: a declaration is wrong, or method and declaration do not fit together.
    """
    for name, about in (argsinfo or {}).items():
        _check_declaration(name, about)
    taken = dict(_list_parameters(function))
    takes_any = any(one.kind is one.VAR_KEYWORD for one in taken.values())
    for name, one in taken.items():
        if one.kind is not one.VAR_KEYWORD and one.default is one.empty and name not in (argsinfo or {}):
            raise _misfit(function, name, "it is required, and argsinfo does not declare it")
    if argsinfo is None:
        return None
    for name in argsinfo:
        if name not in taken and not takes_any:
            raise _misfit(function, name, "argsinfo declares it, and the method does not take it")
    return {name: _complete(function, name, about, taken.get(name)) for name, about in argsinfo.items()}


def _check_declaration(name: str, about: Mapping[str, object]) -> None:
    known = set(about) <= _KEYS and about.get("type", "string") in _FROM_JSON
    if not known or not about.get("description") or not isinstance(about.get("required", False), bool):
        allowed = (
            f"It must have a description, and may have required (true or false) and type ({', '.join(_FROM_JSON)})."
        )
        raise errors.Invalid(field=f"argsinfo[{name}]", value=dict(about), allowed=allowed)


def _list_parameters(function: Callable[..., object]) -> Iterator[tuple[str, inspect.Parameter]]:
    """Yield what a step's method takes beside itself and the task."""
    for number, (name, one) in enumerate(inspect.signature(function).parameters.items()):
        if one.kind is one.VAR_KEYWORD or (number >= 2 and one.kind is not one.VAR_POSITIONAL):
            yield name, one


def _misfit(function: Callable[..., object], name: str, why: str) -> errors.Invalid:
    return errors.Invalid(f"Argument {name} of step {function.__qualname__}: {why}.")


def _complete(
    function: Callable[..., object], name: str, about: Argument, parameter: inspect.Parameter | None
) -> Argument:
    needed = (
        parameter is not None and parameter.kind is not parameter.VAR_KEYWORD and parameter.default is parameter.empty
    )
    if needed and not about.get("required", True):
        raise _misfit(function, name, "argsinfo says that it is not required, and the method has no default for it")
    full: Argument = {**about, "required": about.get("required", needed)}
    found = about.get("type") or _find_type(parameter.annotation if parameter is not None else None)
    if found is not None:
        full["type"] = found
    return full


def _find_type(annotation: object) -> str | None:
    """Return the type of JSON of an annotation, which may be a text (PEP 563); None: it does not say one."""
    if isinstance(annotation, str):
        return _OF_NAME.get(annotation.partition("[")[0].removesuffix(" | None"))
    if isinstance(annotation, types.UnionType) or typing.get_origin(annotation) is typing.Union:
        options = [one for one in typing.get_args(annotation) if one is not type(None)]
        return _find_type(options[0]) if len(options) == 1 else None
    found: Any = typing.get_origin(annotation) or annotation
    return _OF_ANNOTATION.get(found)


def read(step: str, args: Mapping[str, object], argsinfo: Mapping[str, Mapping[str, object]]) -> dict[str, object]:
    """Return the arguments that a step is to get, checked. Null leaves out one that is not required.

    :param step: as messages name it.
    :raises Invalid: one is unknown, or of another type; the message names step and argument.
    :raises MissingParameter: one is required and missing.
    """
    for name, value in args.items():
        if name not in argsinfo:
            raise errors.Invalid(
                field=f"argument of step {step}",
                value=name,
                allowed=f"It takes: {', '.join(sorted(argsinfo)) or 'no arguments'}.",
            )
        _check_type(f"argument {name} of step {step}", value, argsinfo[name])
    missing = sorted(name for name, about in argsinfo.items() if about.get("required") and name not in args)
    if missing:
        raise errors.MissingParameter(where=f"arguments of step {step}", names=", ".join(missing))
    return {name: value for name, value in args.items() if value is not None or argsinfo[name].get("required")}


def _check_type(field: str, value: object, about: Mapping[str, object]) -> None:
    allowed = _FROM_JSON.get(str(about.get("type")))
    if allowed is None or (value is None and not about.get("required")):
        return
    if not isinstance(value, allowed) or (isinstance(value, bool) and bool not in allowed):
        raise errors.Invalid(field=field, value=value, allowed=f"It must be of type {about['type']}.")
