"""The conditions of inspection rules: a table of functions of their arguments (source of their meaning: the measured
contract, and the public description of inspection rules)."""

import ipaddress
import itertools
import operator
import re
from collections.abc import Callable, Iterable
from typing import Any

Test = Callable[..., bool]


def _number(value: Any) -> object:
    """Return a number as such, whatever the ramdisk made of it; anything else as it is."""
    try:
        return value if isinstance(value, bool) else float(value)
    except (TypeError, ValueError):
        return value


def _compare_pairwise(compare: Callable[[Any, Any], bool]) -> Test:
    """Whether each value and the next one compare so. Texts that are numbers count as numbers."""

    def test(values: object, force_strings: bool = False) -> bool:
        listed = values if isinstance(values, list) else [values]
        compared = [str(value) if force_strings else _number(value) for value in listed]
        return all(compare(one, other) for one, other in itertools.pairwise(compared))

    return test


def _is_empty(value: object) -> bool:
    return value is None or value in ("", [], {})


def _in_net(address: object, subnet: object) -> bool:
    return ipaddress.ip_address(str(address)) in ipaddress.ip_network(str(subnet), strict=False)


def _matches(value: object, regex: str) -> bool:
    return re.fullmatch(regex, str(value)) is not None


def _contains(value: object, regex: str) -> bool:
    return re.search(regex, str(value)) is not None


def _one_of(value: object, values: Iterable[object] = ()) -> bool:
    return _number(value) in [_number(one) for one in values]


def _is_none(value: object) -> bool:
    return value is None


def _is_true(value: object) -> bool:
    return value.lower() in ("yes", "true") if isinstance(value, str) else bool(value)


def _is_false(value: object) -> bool:
    return value.lower() in ("no", "false") if isinstance(value, str) else not value


TESTS: dict[str, Test] = {
    "eq": _compare_pairwise(operator.eq),
    "lt": _compare_pairwise(operator.lt),
    "gt": _compare_pairwise(operator.gt),
    "is-empty": _is_empty,
    "in-net": _in_net,
    "matches": _matches,
    "contains": _contains,
    "one-of": _one_of,
    "is-none": _is_none,
    "is-true": _is_true,
    "is-false": _is_false,
}

COMBINED: dict[str, Callable[[list[bool]], bool]] = {
    "any": any,
    "all": all,
    "first": lambda outcomes: bool(outcomes) and outcomes[0],
    "last": lambda outcomes: bool(outcomes) and outcomes[-1],
}
"""By ``multiple``: what the outcomes of a loop come to."""
