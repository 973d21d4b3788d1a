"""Recordings notice what changed on the wire, and nothing that is chance."""

import pathlib
import re
import tempfile
from typing import Any

import testtools

from ingot.rack.config import RackConfig
from tests.functional.agent_contract import recordings
from tests.functional.agent_contract.recordings import COMMANDS, Exchange, Recording

ACTS = [path.stem for path in recordings.STORED.glob("*.json")]
AGENT_VERSION = "request/body/agent_version"
ROOT = pathlib.Path(__file__).parents[3]


def asked(method: str, path: str, answer: Any, *, status: int = 200, body: Any = None, **query: str) -> Exchange:
    return Exchange(method, path, query, {"accept": "application/json"}, body, status, {}, answer)


def command(name: str, status: str, result: Any = None) -> dict[str, Any]:
    return {"id": name, "command_name": name.partition(".")[2], "command_status": status, "command_result": result}


def posted(name: str, status: str, result: Any = None, http: int = 200) -> Exchange:
    return asked("POST", COMMANDS, command(name, status, result), status=http, body={"name": name, "params": {}})


def listed(*commands: dict[str, Any]) -> Exchange:
    return asked("GET", COMMANDS, {"commands": list(commands)})


GREETING = asked("GET", "/", {"name": "Ingot"})
LOOKUP = asked("GET", "/v1/lookup", {"node": {"uuid": "1", "properties": {}}, "config": {"agent_token": "t"}})
LATER_LOOKUP = asked("GET", "/v1/lookup", LOOKUP.answer, node_uuid="1")
HEARTBEAT = asked("POST", "/v1/heartbeat/{uuid}", None, status=202, body={"agent_token": "t", "agent_version": "1"})
STARTED, ENDED = posted("standby.sync", "RUNNING"), listed(command("standby.sync", "SUCCEEDED", {"result": "text"}))
LIFE = (GREETING, LOOKUP, HEARTBEAT, STARTED, ENDED)
SYNCED = ["POST standby.sync 200", "standby.sync SUCCEEDED"]
BEGIN = ["GET / 200", "GET /v1/lookup 200", "POST /v1/heartbeat/{uuid} 202"]


class RecordingsTest(testtools.TestCase):
    def different(self, *exchanges: Exchange) -> list[tuple[str, str]]:
        """Return the kinds and places in which exchanges differ from :data:`LIFE`."""
        found = Recording.of(LIFE).differences(Recording.of(exchanges))
        return [(kind, place) for kind, place, _here, _there in found]

    def test_a_key_and_a_type(self) -> None:
        bare = asked("GET", "/v1/lookup", {"node": {"uuid": "1"}, "config": {"agent_token": 1}})
        self.assertEqual(
            [
                ("GET /v1/lookup 200", "answer/body/config/agent_token"),
                ("GET /v1/lookup 200", "answer/body/node/properties"),
            ],
            self.different(GREETING, bare, *LIFE[2:]),
        )

    def test_a_value_of_the_protocol(self) -> None:
        newer = asked("POST", "/v1/heartbeat/{uuid}", None, status=202, body={**HEARTBEAT.body, "agent_version": "2"})
        self.assertEqual(
            [("POST /v1/heartbeat/{uuid} 202", "request/body/agent_version")],
            self.different(GREETING, LOOKUP, newer, STARTED, ENDED),
        )

    def test_a_result(self) -> None:
        self.assertEqual(
            [("standby.sync SUCCEEDED", "command_result")],
            self.different(*LIFE[:4], listed(command("standby.sync", "SUCCEEDED", "text"))),
        )

    def test_what_is_left_out_and_the_order(self) -> None:
        self.assertEqual([("GET / 200", ""), ("order", "")], self.different(*LIFE[1:]))
        self.assertEqual([("order", "")], self.different(GREETING, LOOKUP, STARTED, HEARTBEAT, ENDED))

    def test_chance(self) -> None:
        refused = asked("POST", "/v1/heartbeat/{uuid}", {}, status=409, body={})
        unanswered = asked("GET", "/v1/lookup", None, status=0)
        running = listed(command("standby.sync", "RUNNING"))
        at_once = posted("standby.sync", "SUCCEEDED", {"result": "text"})
        self.assertEqual([], self.different(GREETING, unanswered, LOOKUP, refused, HEARTBEAT, STARTED, running, ENDED))
        self.assertEqual([], self.different(*LIFE[:4], HEARTBEAT, ENDED, HEARTBEAT, ENDED))
        self.assertEqual([], self.different(*LIFE[:3], at_once))

    def test_lives(self) -> None:
        restarted = Recording.of((*LIFE[:3], LATER_LOOKUP, *LIFE))
        self.assertEqual([[*BEGIN, "GET /v1/lookup 200"], BEGIN + SYNCED], restarted.lives)
        asked_its_version = Recording.of((LOOKUP, HEARTBEAT, LOOKUP, HEARTBEAT))
        self.assertEqual([BEGIN[1:], BEGIN[1:]], asked_its_version.lives)

    def test_after_its_last_word_an_agent_is_not_listened_to(self) -> None:
        off, ended = posted("standby.power_off", "RUNNING"), listed(command("standby.power_off", "SUCCEEDED"))
        inspected = asked("POST", "/v1/continue_inspection", {}, status=202)
        found = Recording.of((inspected, GREETING, LATER_LOOKUP, HEARTBEAT, *LIFE, off, HEARTBEAT, ended, *LIFE[:3]))
        self.assertEqual(
            [
                ["POST /v1/continue_inspection 202"],
                [*BEGIN, *SYNCED, "POST standby.power_off 200"],
                BEGIN,
            ],
            found.lives,
        )

    def test_files(self) -> None:
        place = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()), "act.json")
        Recording.of(LIFE).save(place)
        stored = Recording.load(place)
        self.assertEqual(([BEGIN + SYNCED], []), (stored.lives, list(stored.differences(Recording.of(LIFE)))))

    def test_what_is_stored_is_of_the_agent_in_the_ramdisk(self) -> None:
        """A new release of it is recorded before the simulated one is said to be like it."""
        requirements = (ROOT / "image" / "agent-requirements.txt").read_text()
        (version,) = re.findall(r"^ironic-python-agent==(\S+)", requirements, re.MULTILINE)
        self.assertEqual(version, RackConfig().agent_version)
        shapes = [shape for act in ACTS for shape in recordings.stored(act).kinds.values()]
        self.assertEqual(
            {f"={version}"}, {version_text for shape in shapes for version_text in shape.get(AGENT_VERSION, ())}
        )
