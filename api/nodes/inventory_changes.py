"""What is different between two inventories, in a form that a person reads.

The order of a list means nothing: a kernel finds cards and disks in another one at each boot. So what is in a list is
known by what it has of its own, such as its MAC address or its serial number.
"""

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import NamedTuple

import orjson

from ingot.common.json_types import Json

_OWN_NAMES = ("mac_address", "serial", "serial_number", "wwn", "uuid", "address", "name", "id")
"""By which of its keys a part is known, best first."""


class Change(NamedTuple):
    """One difference.

    :param path: where it is: ``disks[S3Z9NX0K].size``.
    :param before: null: it was not there.
    :param after: null: it is gone.
    """

    path: str
    before: object
    after: object


def compare(before: object, after: object, path: str = "") -> Iterator[Change]:
    """Yield the differences of two documents."""
    if before == after:
        return
    if isinstance(before, dict) and isinstance(after, dict):
        for key in dict.fromkeys((*before, *after)):
            yield from compare(before.get(key), after.get(key), f"{path}.{key}" if path else str(key))
    elif isinstance(before, list) and isinstance(after, list):
        yield from _compare_lists(before, after, path)
    else:
        yield Change(path, before, after)


def _compare_lists(before: list[object], after: list[object], path: str) -> Iterator[Change]:
    own = _find_own_name(before, after)
    if own is None:
        left, come = _leave_out(before, after), _leave_out(after, before)
        if left or come:
            yield Change(path, left or None, come or None)
        return
    earlier, later = _map_parts(before, own), _map_parts(after, own)
    for name in dict.fromkeys((*earlier, *later)):
        yield from compare(earlier.get(name), later.get(name), f"{path}[{name}]")


def _find_own_name(*lists: Sequence[object]) -> str | None:
    """Return the key by which all parts of some lists are known; None: there is none."""
    for name in _OWN_NAMES:
        if all(_is_known_by(name, parts) for parts in lists):
            return name
    return None


def _is_known_by(name: str, parts: Sequence[object]) -> bool:
    values = [part.get(name) for part in parts if isinstance(part, dict)]
    found = {value for value in values if isinstance(value, str | int) and value != ""}
    return len(found) == len(parts)


def _map_parts(parts: Iterable[object], own: str) -> dict[Hashable, Json]:
    return {part[own]: part for part in parts if isinstance(part, dict)}


def _leave_out(parts: Iterable[object], others: Iterable[object]) -> list[object]:
    """Return what is in a list more often than in another."""
    known = Counter(map(_write, others))
    left = []
    for part in parts:
        text = _write(part)
        known[text] -= 1
        if known[text] < 0:
            left.append(part)
    return left


def _write(part: object) -> bytes:
    return orjson.dumps(part, option=orjson.OPT_SORT_KEYS)
