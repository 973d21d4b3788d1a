"""The operations that are measured, and how far ahead of Ironic each is to be."""

import re
from typing import NamedTuple

CPU = "server_cpu_per_op_ms"
MEMORY = "rss_mib"


class Operation(NamedTuple):
    """What is compared.

    :param factor: how many times less than Ironic it is to use.
    :param metric: by which it is judged.
    :param most: how much it may use in any case; None: no more than the factor allows.
    """

    factor: float = 0.0
    metric: str = CPU
    most: float | None = None


OPERATIONS = {
    "list of 1000": Operation(20),
    "list page by marker": Operation(20),
    "list with fields": Operation(20),
    "filter 100 rows": Operation(15),
    "detail of 1000": Operation(8),
    "detail of 25 by class": Operation(8),
    "node": Operation(6),
    "node with fields": Operation(8),
    "node states": Operation(8),
    "filter none found": Operation(6),
    "GET /": Operation(5),
    "enrol": Operation(8),
    "fake manage": Operation(10),
    "fake provide": Operation(10),
    "fake deploy": Operation(10),
    "fake undeploy": Operation(10),
    "delete": Operation(8),
    "agent clean": Operation(12),
    "agent deploy": Operation(12),
    "agent undeploy": Operation(12),
    "heartbeat": Operation(12),
    "lookup": Operation(8),
    "memory": Operation(metric=MEMORY, most=220),
}


def choose(words: str | None) -> list[str]:
    """Return the operations that have the names, or words in them that begin so, parted by commas; all without words.

    :raises ValueError: a word is in none.
    """
    if words is None:
        return list(OPERATIONS)
    found: set[str] = set()
    for part in (word.strip() for word in words.lower().split(",")):
        exact = [name for name in OPERATIONS if name.lower() == part]
        having = exact or [name for name in OPERATIONS if re.search(rf"\b{re.escape(part)}", name.lower())]
        if not having:
            raise ValueError(f"no operation has a word like {part!r} in its name: there are {', '.join(OPERATIONS)}")
        found |= set(having)
    return [name for name in OPERATIONS if name in found]
