"""Which fault comes when, drawn from a seed: the same seed, the same schedule."""

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from tests.gate.faults.kinds import KINDS

_RECOVERY_S = 10.0
"""How long a victim is left alone after a fault."""


@dataclass(frozen=True)
class Fault:
    """One fault: when it begins, in seconds, what it is, whom it befalls, how long it lasts."""

    at: float
    kind: str
    victim: str
    seconds: float

    def __str__(self) -> str:
        return f"{self.at:7.1f} s  {self.kind:28} {self.victim:12} for {self.seconds:4.1f} s"


def draw(
    seed: int, count: int, every: float, victims: Mapping[str, Sequence[str]], weights: Mapping[str, int]
) -> list[Fault]:
    """Draw faults from a pack of cards, shuffled again when used up, so that no kind is left out for long.

    No fault hits a victim that has one or had one just now.

    :param every: seconds between two faults, more while no process is well enough.
    :param victims: the names of conductors, apis, ..., as kinds of faults call them.
    :param weights: how many cards of a pack are of a kind.
    """
    chance = random.Random(seed)  # noqa: S311 - it must be repeatable, not secret
    well_from: dict[str, float] = {}
    pack: list[str] = []
    drawn: list[Fault] = []
    at = every
    while len(drawn) < count:
        if not pack:
            pack = [name for name, weight in weights.items() for _ in range(weight)]
            chance.shuffle(pack)
        possible = _possible(pack, victims, {name for name, moment in well_from.items() if moment > at})
        if found := next(possible, None):
            name, well = found
            pack.remove(name)
            victim, lasts = chance.choice(well), round(chance.uniform(*KINDS[name].seconds), 1)
            drawn.append(Fault(at, name, victim, lasts))
            well_from[victim] = at + lasts + _RECOVERY_S
        at += every
    return drawn


def _possible(
    pack: Sequence[str], victims: Mapping[str, Sequence[str]], unwell: set[str]
) -> Iterator[tuple[str, list[str]]]:
    """Yield the kinds of which there are victims, with those."""
    for name in pack:
        if well := [victim for victim in victims[KINDS[name].victims] if victim not in unwell]:
            yield name, well
