"""What does not carry over as it is, gathered while rows are translated, and written for an operator."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from typing import NamedTuple

_EXAMPLES = 5


class Kind(NamedTuple):
    """A kind of finding.

    :param what: what was found.
    :param then: what becomes of it, and what to do.
    """

    what: str
    then: str


KINDS: Mapping[str, Kind] = {
    "source running": Kind(
        "Ironic is running",
        "What it writes from now on is not seen. Stop its APIs and conductors before the real import.",
    ),
    "driver": Kind(
        "Hardware types that this configuration does not have",
        "The nodes are taken over and nothing works on them. Enable the type, or name another one: "
        "--replace driver=OLD:NEW.",
    ),
    "interface": Kind(
        "Interfaces that this configuration does not have",
        "The nodes are taken over and nothing works on them. Enable the interface, or name another one: "
        "--replace FIELD=OLD:NEW.",
    ),
    "replaced": Kind("Replaced as you asked", "The export writes the former value back."),
    "state": Kind(
        "Nodes in the middle of something",
        "They enter the state that a failure leads to, with the reason in last_error, as when a conductor of Ironic "
        "dies. Request it again. No machine is switched on or off.",
    ),
    "agent": Kind(
        "Agents that run and have a token",
        "The token stays valid, so the agent's heartbeats are accepted at the same address. Its flow is not continued.",
    ),
    "power change": Kind("Power changes that had not ended", "They are dropped. Request them again."),
    "lock": Kind("Nodes that a conductor of Ironic had locked", "The lock is dropped, as its conductor is stopped."),
    "console": Kind(
        "Consoles that are switched on",
        "They are off here. Switch them on where the console interface is ipmitool-sol.",
    ),
    "config drive": Kind(
        "Config drives that Ironic keeps as a link",
        "They are not taken over. The machine keeps its own; give a config drive with the next rebuild.",
    ),
    "network boot": Kind(
        "Machines that boot from the network at each start",
        "Volumes are served at once. A user's image or kernel is not: rebuild the node before its machine reboots. "
        "Until then a machine that asks for its boot script waits, and never boots from its disk.",
    ),
    "scope": Kind("Inspection rules with a scope", "The scope is dropped: no release of Ironic uses it."),
    "no node": Kind("Rows of nodes that do not exist", "They are left out."),
    "allocation": Kind("Allocations whose node is not theirs", "The node is that which names the allocation, or none."),
    "no place": Kind("Columns that this release of Ironic does not have", "They are not written."),
}
"""In the order in which they are written."""


class Report:
    """Findings, by kind and detail.

    :ivar rows: how many rows each table has.
    """

    def __init__(self) -> None:
        self.rows: Counter[str] = Counter()
        self._found: defaultdict[str, defaultdict[str, list[str]]] = defaultdict(lambda: defaultdict(list))

    def add(self, kind: str, detail: str, subject: str) -> None:
        """Add a finding.

        :param kind: a key of ``KINDS``.
        :param detail: what is the same for many.
        :param subject: the row: a uuid, or what else names it.
        """
        self._found[kind][detail].append(subject)

    def count(self, kind: str) -> int:
        """Return how many findings of a kind there are."""
        return sum(map(len, self._found.get(kind, {}).values()))

    def render(self) -> Iterator[str]:
        """Yield the lines of the text for an operator; some examples stand for all."""
        yield "Rows: " + ", ".join(f"{table} {count}" for table, count in self.rows.items() if count) + "."
        for name, kind in KINDS.items():
            if details := self._found.get(name):
                yield f"\n{kind.what} ({self.count(name)}). {kind.then}"
                for detail, subjects in sorted(details.items()):
                    more = f" and {len(subjects) - _EXAMPLES} more" if len(subjects) > _EXAMPLES else ""
                    yield f"  {detail} ({len(subjects)}): {', '.join(subjects[:_EXAMPLES])}{more}"

    def as_dict(self) -> dict[str, object]:
        """Return all of it, for a file."""
        found = [
            {"kind": name, "what": kind.what, "then": kind.then, "details": {**self._found[name]}}
            for name, kind in KINDS.items()
            if name in self._found
        ]
        return {"rows": dict(self.rows), "findings": found}
