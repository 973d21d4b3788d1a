"""Finds disks by hints, as ``properties`` of a node have them in ``root_device`` and ``skip_block_devices``.

A hint is a value, or operators with values: ``s== ST1000``, ``<or> a <or> b``, ``>= 100``. Texts are compared without
regard to case, sizes in GiB.
"""

import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence

from oslo_utils import strutils

from ingot.common import errors
from ingot.common.json_types import Json

_TEXTS = ("model", "vendor", "serial", "wwn", "wwn_with_extension", "wwn_vendor_extension", "name", "hctl", "by_path")
_SIZE, _ROTATIONAL = "size", "rotational"
_GIB = 1024**3

_OF_NUMBERS: Mapping[str, Callable[[float, float], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<=": operator.le,
    ">=": operator.ge,
    "<": operator.lt,
    ">": operator.gt,
    "=": operator.ge,  # as users of flavors know it
}
_OF_TEXTS: Mapping[str, Callable[[str, Sequence[str]], bool]] = {
    "s==": lambda found, expected: found == expected[0],
    "s!=": lambda found, expected: found != expected[0],
    "s<=": lambda found, expected: found <= expected[0],
    "s>=": lambda found, expected: found >= expected[0],
    "s<": lambda found, expected: found < expected[0],
    "s>": lambda found, expected: found > expected[0],
    "<in>": lambda found, expected: expected[0] in found,
    "<all-in>": lambda found, expected: all(one in found for one in expected),
    "<or>": lambda found, expected: found in expected,
}
_GIBS = r"([0-9]{1,12}(?:\.[0-9]{1,6})?)"
_RANGE = re.compile(rf"<range-in>\s*([\[(])\s*{_GIBS}\s+{_GIBS}\s*([\])])")
_NUMBER = re.compile(rf"(==|!=|<=|>=|<|>|=)?\s*{_GIBS}")

Test = Callable[[Json], bool]


def find(disks: Iterable[Json], hints: object, field: str) -> list[Json]:
    """Return the disks that all hints fit.

    :param field: where the hints are, for messages.
    :raises StepFailed: the hints cannot be understood.
    """
    if not isinstance(hints, Mapping):
        raise _refuse(field, hints, "an object with hints")
    tests = [_build_test(field, str(name), hints[name]) for name in hints]
    return [disk for disk in disks if all(test(disk) for test in tests)]


def _refuse(field: str, value: object, allowed: str) -> errors.StepFailed:
    return errors.StepFailed(f"{field} is {value!r}: expected {allowed}")


def _build_test(field: str, name: str, expression: object) -> Test:
    place = f"{field}.{name}"
    if name == _SIZE:
        return _build_size_test(place, str(expression).strip())
    if name == _ROTATIONAL:
        return _build_rotational_test(place, expression)
    if name not in _TEXTS:
        raise _refuse(field, name, f"hints of these names: {', '.join((*_TEXTS, _SIZE, _ROTATIONAL))}")
    if not isinstance(expression, str) or not expression.strip():
        raise _refuse(place, expression, "a text")
    return _build_text_test(name, expression.strip().lower())


def _build_text_test(name: str, expression: str) -> Test:
    sign = next((one for one in _OF_TEXTS if expression.startswith(one)), None)
    values = [part.strip() for part in expression.split(sign) if part.strip()] if sign else [expression]
    test = _OF_TEXTS[sign or "s=="]

    def fits(disk: Json) -> bool:
        found = disk.get(name)
        return isinstance(found, str) and bool(found.strip()) and test(found.strip().lower(), values or [""])

    return fits


def _build_size_test(place: str, expression: str) -> Test:
    if found := _RANGE.fullmatch(expression):
        opens, low, high, closes = found.groups()
        above = _OF_NUMBERS[">=" if opens == "[" else ">"]
        below = _OF_NUMBERS["<=" if closes == "]" else "<"]
        return lambda disk: above(_read_size(disk), float(low)) and below(_read_size(disk), float(high))
    number = _NUMBER.fullmatch(expression)
    if number is None or float(number[2]) <= 0:
        raise _refuse(place, expression, "GiB above 0, after an operator such as >= if need be")
    test, expected = _OF_NUMBERS[number[1] or "=="], float(number[2])
    return lambda disk: test(_read_size(disk), expected)


def _read_size(disk: Json) -> float:
    size = disk.get(_SIZE)
    return size / _GIB if isinstance(size, int) else 0.0


def _build_rotational_test(place: str, expression: object) -> Test:
    try:
        expected = strutils.bool_from_string(str(expression), strict=True)
    except ValueError as exc:
        raise _refuse(place, expression, "true or false") from exc
    return lambda disk: disk.get(_ROTATIONAL) is expected
