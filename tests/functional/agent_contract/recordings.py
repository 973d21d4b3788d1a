"""Recordings: each kind of exchange with its shape, and the order in which the agents of an act did things."""

import dataclasses
import fnmatch
import json
import pathlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Self

from tests.functional.agent_contract import shapes

STORED = pathlib.Path(__file__).parent / "recordings"
"""What the real agent said and heard: a file by act. ``devstack/real-machine.sh --record`` makes them anew."""

COMMANDS = "/v1/commands/"

_LAST_WORDS = ("POST standby.power_off", "POST rescue.finalize_rescue", "POST /v1/continue_inspection")
"""After these the agent ends or its machine is switched off; what else it says until then is chance."""

_BY_CHANCE = ("* RUNNING", "standby.power_off *", f"GET {COMMANDS} *")
"""Kinds that may be missing: it depends on how fast who asks and who answers are."""

_ASKED_AGAIN = (0, 409)
"""Statuses (0: no answer) after which the same is asked again; whether that is necessary is chance, too."""


@dataclasses.dataclass
class Exchange:
    """A request and its answer; ``status`` 0: there was none.

    :param path: with ``{uuid}`` for what differs from node to node.
    :param query: values by parameter.
    :param headers: of the request, those that matter.
    """

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: Any
    status: int = 0
    answer_headers: Mapping[str, str] = dataclasses.field(default_factory=dict)
    answer: Any = None

    @property
    def opens(self) -> bool:
        """Whether an agent that has just been started says so. A later lookup has the node's UUID."""
        is_first_lookup = self.path == "/v1/lookup" and "node_uuid" not in self.query
        return is_first_lookup or self.path == "/v1/continue_inspection"

    def document(self) -> dict[str, Any]:
        """Return the part that a shape is taken of."""
        request = {"query": self.query, "headers": self.headers, "body": self.body}
        return {"request": request, "answer": {"headers": self.answer_headers, "body": self.answer}}


class Recording:
    """What was said in an act.

    :ivar kinds: the shape of each kind of exchange, and of each command in each of its states.
    :ivar lives: of each agent, from its start to its end, what happened in order, but for what comes at any time:
        heartbeats after the first one, and questions about commands that run.
    """

    def __init__(self) -> None:
        self.kinds: dict[str, shapes.Shape] = {}
        self.lives: list[list[str]] = []
        self._greeting: list[Exchange] = []
        self._names: dict[str, str] = {}
        self._ended: set[str] = set()

    @classmethod
    def of(cls, exchanges: Iterable[Exchange]) -> Self:
        """Make a recording of exchanges.

        :param exchanges: in the order in which they began.
        """
        found = cls()
        for exchange in exchanges:
            if exchange.status not in _ASKED_AGAIN:
                found._add(exchange)
        return found

    def _add(self, exchange: Exchange) -> None:
        if exchange.path == "/":  # whose question it was shows the next one
            self._greeting = [exchange]
            return
        if exchange.opens or not self.lives:
            self.lives.append([])
            for greeting in self._greeting:
                self._note(greeting)
        self._greeting = []
        if not self._over():
            self._note(exchange)

    def _note(self, exchange: Exchange) -> None:
        what = _command(exchange.body) if exchange.path == COMMANDS and exchange.body else exchange.path
        kind = f"{exchange.method} {what} {exchange.status}"
        if (exchange.method, exchange.path) != ("GET", COMMANDS):
            self._happened(kind)
        if exchange.path == COMMANDS and exchange.status == 200:
            if exchange.method == "POST":
                self._names[exchange.answer["id"]] = what
            for command in exchange.answer.get("commands", [exchange.answer]):
                self._see(command)
            seen = {"commands": "seen"} if "commands" in exchange.answer else "seen"
            exchange = dataclasses.replace(exchange, answer=seen)
        self._join(kind, exchange.document())

    def _see(self, command: Mapping[str, Any]) -> None:
        """Record what an agent reports about a command."""
        name, status = self._names.get(command["id"], command["command_name"]), command["command_status"]
        self._join(f"{name} {status}", command)
        if status != "RUNNING" and command["id"] not in self._ended:
            self._ended.add(command["id"])
            self._happened(f"{name} {status}")

    def _join(self, kind: str, document: Any) -> None:
        fresh = shapes.of(document)
        self.kinds[kind] = shapes.union([self.kinds[kind], fresh]) if kind in self.kinds else fresh

    def _happened(self, what: str) -> None:
        life = self.lives[-1]
        comes_any_time = what.startswith("POST /v1/heartbeat") and what in life
        if not (self._over() or comes_any_time or life[-1:] == [what]):
            life.append(what)

    def _over(self) -> bool:
        return any(one.startswith(_LAST_WORDS) for one in self.lives[-1])

    def differences(self, other: Self) -> Iterator[tuple[str, str, str, str]]:
        """Yield (kind, place, what is there here, what is there in the other one).

        The order is a kind of its own.
        """
        for kind in [*self.kinds, *(kind for kind in other.kinds if kind not in self.kinds)]:
            if kind in self.kinds and kind in other.kinds:
                for difference in shapes.differences(self.kinds[kind], other.kinds[kind]):
                    yield kind, *difference
            elif not any(fnmatch.fnmatchcase(kind, pattern) for pattern in _BY_CHANCE):
                here, there = ["said" if kind in one.kinds else "never said" for one in (self, other)]
                yield kind, "", here, there
        if self.lives != other.lives:
            yield "order", "", json.dumps(self.lives), json.dumps(other.lives)

    # Files

    def save(self, path: pathlib.Path) -> None:
        kinds = {
            kind: {place: shapes.join_types(types) for place, types in shape.items()}
            for kind, shape in self.kinds.items()
        }
        path.write_text(json.dumps({"lives": self.lives, "kinds": kinds}, indent=1) + "\n")

    @classmethod
    def load(cls, path: pathlib.Path) -> Self:
        """Load what :meth:`save` wrote."""
        found, stored = cls(), json.loads(path.read_text())
        found.lives = stored["lives"]
        found.kinds = {
            kind: {place: frozenset(shape_text.split("|")) for place, shape_text in shape.items()}
            for kind, shape in stored["kinds"].items()
        }
        return found


def _command(body: Mapping[str, Any]) -> str:
    """Return a command's name, with that of the step that it is to run."""
    step = body["params"].get("step")
    return f"{body['name']}({step['interface']}.{step['step']})" if step else str(body["name"])


def stored(act: str) -> Recording:
    """Load what the real agent said in an act."""
    return Recording.load(STORED / f"{act}.json")
