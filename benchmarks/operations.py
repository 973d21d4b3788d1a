"""The operations that are measured, and how far ahead of Ironic each is to be."""

from typing import NamedTuple


class Operation(NamedTuple):
    """What is compared.

    :param factor: how many times less than Ironic it is to use.
    :param path: what is read.
    :param metric: by which it is judged.
    :param most: how much it may use in any case; None: no more than the factor allows.
    """

    factor: float = 0.0
    path: str = ""
    metric: str = "server_cpu_per_op_ms"
    most: float | None = None


OPERATIONS = {
    "list of 1000": Operation(20, "/v1/nodes?limit=1000"),
    "list page by marker": Operation(20, "/v1/nodes?limit=1000&marker={first}"),
    "list with fields": Operation(20, "/v1/nodes?limit=1000&fields=uuid,name,provision_state,power_state,traits"),
    "filter 100 rows": Operation(15, "/v1/nodes?limit=100&maintenance=false&driver=fake-hardware"),
    "detail of 1000": Operation(8, "/v1/nodes/detail?limit=1000"),
    "detail of 25 by class": Operation(8, "/v1/nodes/detail?resource_class={group}&limit=25"),
    "node": Operation(6, "/v1/nodes/{uuid}"),
    "node with fields": Operation(8, "/v1/nodes/{uuid}?fields=uuid,provision_state,power_state"),
    "node states": Operation(8, "/v1/nodes/{uuid}/states"),
    "filter none found": Operation(6, "/v1/nodes?provision_state=active&limit=1000"),
    "GET /": Operation(5, "/"),
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
    "memory": Operation(metric="rss_mib", most=220),
}


def choose(words: str | None) -> list[str]:
    """Return the operations whose names have one of these words in them, parted by commas; all without words.

    :raises ValueError: a word is in none.
    """
    parts = [word.strip().lower() for word in (words or "").split(",")]
    for part in parts:
        if not any(part in name.lower() for name in OPERATIONS):
            raise ValueError(f"no operation has {part!r} in its name: there are {', '.join(OPERATIONS)}")
    return [name for name in OPERATIONS if any(part in name.lower() for part in parts)]
