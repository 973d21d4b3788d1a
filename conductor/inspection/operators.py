"""The operators of inspection rules, in two tables: conditions are functions of their arguments, actions also of the
draft (source of their meaning: the measured contract, and the public description of inspection rules)."""

import ipaddress
import itertools
import logging
import operator
from collections.abc import Callable, Mapping
from typing import Any

import requests
import urllib3
from oslo_log import log

from ingot.common import errors, fetching, patterns, trait_names
from ingot.common.json_types import Json
from ingot.conductor.inspection.draft import NODE, PORT, Columns, Draft

LOG = log.getLogger(__name__)

_LEVELS = {name: getattr(logging, name.upper()) for name in ("debug", "info", "warning", "error")}
_LONGEST_TIMEOUT, _MOST_RETRIES, _LONGEST_BACKOFF = 30.0, 5, 1.0
_LONGEST_CALL = 60.0  # seconds, all attempts together

_ANY: Columns = {}
"""Of plugin data: every name is allowed, with every value."""


# Conditions


def _number(value: Any) -> object:
    """Return a number as such, whatever the ramdisk made of it; anything else as it is."""
    try:
        return value if isinstance(value, bool) else float(value)
    except (TypeError, ValueError):
        return value


def _compare_pairwise(compare: Callable[[Any, Any], bool]) -> Callable[..., bool]:
    """Return a test whether each value and the next one compare so. Texts that are numbers count as numbers."""

    def test(values: object, force_strings: bool = False) -> bool:
        listed = values if isinstance(values, list) else [values]
        compared = [str(value) if force_strings else _number(value) for value in listed]
        return all(compare(one, other) for one, other in itertools.pairwise(compared))

    return test


def _in_net(address: object, subnet: object) -> bool:
    return ipaddress.ip_address(str(address)) in ipaddress.ip_network(str(subnet), strict=False)


TESTS: dict[str, Callable[..., bool]] = {
    "eq": _compare_pairwise(operator.eq),
    "lt": _compare_pairwise(operator.lt),
    "gt": _compare_pairwise(operator.gt),
    "is-empty": lambda value: value is None or value in ("", [], {}),
    "in-net": _in_net,
    "matches": lambda value, regex: patterns.match("regex", regex, value, whole=True),
    "contains": lambda value, regex: patterns.match("regex", regex, value, whole=False),
    "one-of": lambda value, values=(): _number(value) in [_number(one) for one in values],
    "is-none": lambda value: value is None,
    "is-true": lambda value: value.lower() in ("yes", "true") if isinstance(value, str) else bool(value),
    "is-false": lambda value: value.lower() in ("no", "false") if isinstance(value, str) else not value,
}

COMBINED: dict[str, Callable[[list[bool]], bool]] = {
    "any": any,
    "all": all,
    "first": lambda outcomes: bool(outcomes) and outcomes[0],
    "last": lambda outcomes: bool(outcomes) and outcomes[-1],
}
"""By ``multiple``: what the outcomes of a loop come to."""


# Changes at a path such as /properties/a, properties/a or properties.a. It begins with one of the columns.


def _put(tree: Json, columns: Columns, path: str, value: object) -> None:
    """Set what is at a path."""
    place = _parse_path(path, columns)
    _find_parent(tree, place)[place[-1]] = value
    _check_type(tree, place[0], columns)


def _extend(tree: Json, columns: Columns, path: str, value: object, unique: bool) -> None:
    """Append to the list at a path, which is made."""
    place = _parse_path(path, columns)
    parent = _find_parent(tree, place)
    found = parent.get(place[-1])
    if found is not None and not isinstance(found, list):
        raise errors.Invalid(field="path", value="/".join(place), allowed="There must be a list, or nothing.")
    parent[place[-1]] = [*(found or []), *([] if unique and value in (found or []) else [value])]
    _check_type(tree, place[0], columns)


def _remove(tree: Json, columns: Columns, path: str) -> None:
    """Remove what is at a path, if it is there; a column becomes empty."""
    place = _parse_path(path, columns)
    if columns and len(place) == 1:
        tree[place[0]] = {} if dict in columns[place[0]] else None
    else:
        _find_parent(tree, place).pop(place[-1], None)
    _check_type(tree, place[0], columns)


def _parse_path(path: str, columns: Columns) -> list[str]:
    found = path.strip("/").split("/") if "/" in path else path.split(".")
    if not all(found):
        raise errors.Invalid(field="path", value=path, allowed="Names with slashes between them, such as /extra/rack.")
    found = [part.replace("~1", "/").replace("~0", "~") for part in found]
    if columns and found[0] not in columns:
        raise errors.Invalid(field="path", value=path, allowed=f"It begins with one of: {', '.join(sorted(columns))}.")
    return found


def _find_parent(tree: Json, place: list[str]) -> Json:
    """Return the object that a place is in; objects on the way are made."""
    for part in place[:-1]:
        tree = tree.setdefault(part, {})
        if not isinstance(tree, dict):
            raise errors.Invalid(field="path", value="/".join(place), allowed=f"{part} is no object.")
    return tree


def _check_type(tree: Json, name: str, columns: Columns) -> None:
    if name not in columns:
        return
    value, types = tree[name], columns[name]
    if not isinstance(value, types) or (isinstance(value, str) and (len(value) > 255 or "\0" in value)):
        names = {dict: "an object", bool: "true or false", str: "a text of 255 characters at most, without NUL"}
        choices = " or ".join(names[one] for one in types if one in names)
        raise errors.Invalid(field=name, value=value, allowed=f"It must be {choices}.")


# Other actions


def _fail(_draft: Draft, msg: str) -> None:
    raise errors.StepFailed(str(msg))


def _log(draft: Draft, msg: str, level: str = "info") -> None:
    if level not in _LEVELS:
        raise errors.Invalid(field="level", value=level, allowed=f"One of {', '.join(_LEVELS)}.")
    LOG.log(_LEVELS[level], "Node %s: %s", draft.node["uuid"], msg)


def _add_trait(draft: Draft, name: str) -> None:
    draft.traits.add(trait_names.parse_trait("name", name))


def _api_call(
    _draft: Draft,
    url: str,
    headers: Mapping[str, str] | None = None,
    proxies: dict[str, str] | None = None,
    timeout: float = 5,
    retries: int = 3,
    backoff_factor: float = 0.3,
) -> None:
    """Send GET.

    All times have limits, whatever the server says: a worker of the conductor waits for the answer, of which only the
    status is read.
    """
    for name, value, most in (
        ("timeout", timeout, _LONGEST_TIMEOUT),
        ("retries", retries, _MOST_RETRIES),
        ("backoff_factor", backoff_factor, _LONGEST_BACKOFF),
    ):
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= most:
            raise errors.Invalid(field=name, value=value, allowed=f"A number from 0 to {most}.")
    again = urllib3.Retry(
        total=int(retries),
        backoff_factor=backoff_factor,
        status_forcelist=(500, 502, 503, 504),
        respect_retry_after_header=False,
    )
    with fetching.limit(_LONGEST_CALL), fetching.open_session(fetching.Adapter(retries=again)) as session:
        try:
            answer = fetching.request(session, "GET", url, None, headers=headers, proxies=proxies, timeout=timeout)
        except (requests.RequestException, ValueError) as exc:
            raise errors.StepFailed(f"GET {url}: {exc}") from exc
    if answer.status >= requests.codes.bad:
        raise errors.StepFailed(f"GET {url}: it answers HTTP {answer.status} {answer.reason}")
    if "Location" in answer.headers and answer.status >= requests.codes.multiple_choices:
        # the headers may be for that server only
        raise errors.StepFailed(f"GET {url}: it leads to {answer.headers['Location']}. Give that URL.")


ACTIONS: dict[str, Callable[..., None]] = {
    "fail": _fail,
    "log": _log,
    "set-attribute": lambda draft, path, value: _put(draft.node, NODE, path, value),
    "extend-attribute": lambda draft, path, value, unique=False: _extend(draft.node, NODE, path, value, unique),
    "del-attribute": lambda draft, path: _remove(draft.node, NODE, path),
    "set-capability": lambda draft, name, value: draft.set_capability(name, str(value)),
    "unset-capability": lambda draft, name: draft.set_capability(name, None),
    "add-trait": _add_trait,
    "remove-trait": lambda draft, name: draft.traits.discard(name),
    "set-plugin-data": lambda draft, path, value: _put(draft.plugin_data, _ANY, path, value),
    "extend-plugin-data": lambda draft, path, value, unique=False: _extend(
        draft.plugin_data, _ANY, path, value, unique
    ),
    "unset-plugin-data": lambda draft, path: _remove(draft.plugin_data, _ANY, path),
    "set-port-attribute": lambda draft, port_id, path, value: _put(draft.port(port_id), PORT, path, value),
    "extend-port-attribute": lambda draft, port_id, path, value, unique=False: _extend(
        draft.port(port_id), PORT, path, value, unique
    ),
    "del-port-attribute": lambda draft, port_id, path: _remove(draft.port(port_id), PORT, path),
    "api-call": _api_call,
}
