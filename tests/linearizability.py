"""Whether what several clients saw of one thing can be explained by a single order of what they did.

The search is that of Wing and Gong ("Testing and verifying concurrent objects", 1993), with the states that were tried
remembered, as Lowe proposed.
"""

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, NamedTuple


class Operation(NamedTuple):
    """What one client did.

    :param began: moment of the call.
    :param ended: moment of its return; by the same clock for all clients.
    :param done: what was called, with its arguments.
    :param seen: what came back.
    """

    began: int
    ended: int
    done: Any
    seen: Any


Model = Callable[[Any, Operation], Iterable[Any]]
"""Gives the states in which an operation may leave the thing, if in a state it can come back as it did; else none."""


def explains(model: Model, first: Hashable, last: Hashable, history: Sequence[Operation]) -> bool:
    """Return whether the model allows some order of a history.

    What had ended before something else began comes before it in that order.

    :param first: the state before all.
    :param last: the state after all.
    """
    tried: set[tuple[frozenset[int], Hashable]] = set()
    pending: list[tuple[frozenset[int], Hashable]] = [(frozenset(range(len(history))), first)]
    while pending:
        left, state = place = pending.pop()
        if not left:
            if state == last:
                return True
            continue
        if place in tried:
            continue
        tried.add(place)
        until = min(history[number].ended for number in left)
        for number in left:
            if history[number].began <= until:
                pending += [(left - {number}, after) for after in model(state, history[number])]
    return False
