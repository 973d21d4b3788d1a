"""Random requests, made from the API's own description and beside it.

Whatever is sent: the answer is no 500, it comes soon, it is as the description says, and a refused request changes
nothing. The usual run is short and always the same. INGOT_TEST_FUZZ=N sends N times as many, other ones each time.
"""

import contextlib
import json
import logging
import os
import pathlib
import random
import re
import socket
import sqlite3
import time
import warnings
from collections.abc import Callable
from typing import Any
from urllib.parse import quote

import fixtures
import hypothesis
import schemathesis
from hypothesis import strategies as st

from ingot.api import routes
from ingot.api.web import description, tables
from tests import api_case, described, server_case, world

TIMES = int(os.environ.get("INGOT_TEST_FUZZ", "0"))
EACH = 2 * max(1, TIMES)
"""Requests for each operation and way to make them."""

SECONDS = 30
"""What no answer takes, on a machine that does other things too."""

SETTINGS = hypothesis.settings(
    derandomize=not TIMES,
    database=None,
    deadline=None,
    max_examples=EACH,
    phases=(hypothesis.Phase.generate,),
    suppress_health_check=list(hypothesis.HealthCheck),
)

MODES = tuple(schemathesis.GenerationMode)

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=10), inner, max_size=3),
    max_leaves=6,
)


CONDUCTOR: dict[str, Any] = {
    "call_driver_method": {},
    "call_node_method": {"result": {}, "tells": True},
    "get_console": {"console_enabled": False, "console_info": None},
    "get_driver_methods": {},
    "get_indicator_state": "ON",
    "get_indicators": [],
    "get_logical_disk_properties": {},
    "get_node_methods": {},
    "get_virtual_media": [],
    "list_vifs": [],
}
"""What the conductor answers."""


class Received:
    """An answer as :class:`api_case.Answer` takes it."""

    def __init__(self, response: Any) -> None:
        self.status_code: int = response.status_code
        self.headers = {name: values[0] for name, values in response.headers.items()}
        self._content: bytes = response.content

    def get_data(self, as_text: bool) -> str:
        return self._content.decode(errors="replace")


class FuzzCase(world.WorldCase):
    """``self.ask`` sends a request and looks at the answer; the world is put back after each that was served."""

    def setUp(self) -> None:
        super().setUp()
        path = pathlib.Path(str(self.db.url.database))
        self.raw = sqlite3.connect(path, isolation_level=None)
        self.kept = sqlite3.connect(":memory:")
        self.addCleanup(self.raw.close)
        self.addCleanup(self.kept.close)
        self.raw.backup(self.kept)
        self.written = self.version()
        self.asked = 0
        self.conductor.answers |= CONDUCTOR

    def version(self) -> int:
        """Return a number that changes whenever another connection wrote to the database."""
        return int(self.raw.execute("PRAGMA data_version").fetchone()[0])

    def ask(self, method: str, url: str, send: Callable[[], api_case.Answer], sent: object = "") -> api_case.Answer:
        """Send a request, which must not end in a server error.

        :param send: sends the request.
        :param sent: what of the request is not in the URL, for the message.
        """
        began = time.monotonic()
        answer = send()
        self.asked += 1
        about = f"{method} {url} {sent!r:.1000}: {answer}"
        self.assertLess(answer.status, 500, about)
        self.assertLess(time.monotonic() - began, SECONDS, about)
        self.assertIsNone(described.objection(self.http.application, method, url, answer), about)
        after = self.version()
        if answer.status >= 400:
            self.assertTrue(method == "HEAD" or answer.message, about)
            self.assertEqual(self.written, after, f"a refused request changed something: {about}")
        elif after != self.written:
            self.kept.backup(self.raw)
            after = self.version()
        self.written = after
        return answer

    def many(self, strategy: st.SearchStrategy[Any], body: Callable[[Any], None], times: int = 1) -> None:
        """Run a check on many examples."""
        settings = hypothesis.settings(SETTINGS, max_examples=EACH * times)
        settings(hypothesis.given(strategy)(body))()


class Described(FuzzCase):
    """Requests that the description allows, and those that it forbids, for every operation."""

    def setUp(self) -> None:
        super().setUp()
        warnings.simplefilter("ignore")
        random.seed(0)  # what makes requests uses more than what hypothesis controls
        self.schema = schemathesis.openapi.from_wsgi(description.PATH, self.http.application)
        self.paths = {description.template_path(route.path): route for route in routes.ROUTES}

    def fuzz(self, tag: str) -> None:
        for found in self.schema.get_all_operations():
            operation = found.ok()
            route = self.paths[operation.path]
            if tag in operation.tags and route.operations[operation.method.upper()].answer.media != "text/event-stream":
                for mode in MODES:
                    for values in self.identifiers(route):
                        # Where an operation takes nothing there is nothing to get wrong.
                        with contextlib.suppress(hypothesis.errors.Unsatisfiable):
                            self.many(operation.as_strategy(generation_mode=mode, path_parameters=values), self.send)
        self.assertGreater(self.asked, 0)

    def identifiers(self, route: routes.Route) -> list[dict[str, str] | None]:
        """Return the identifiers of existing objects; in a long run any, too (None).

        The usual run has such requests in :meth:`Beside.test_identifiers`: each way to make them costs seconds.
        """
        parts, values = route.path.split("/"), self.url(route.path).partition("?")[0].split("/")
        known = {part.strip("<>"): value for part, value in zip(parts, values, strict=True) if part.startswith("<")}
        return [known, *([None] if TIMES else [])] if known else [None]

    def send(self, case: schemathesis.Case) -> None:
        def send() -> api_case.Answer:
            return api_case.Answer(Received(case.call()))

        self.ask(case.method.upper(), case.formatted_path, send, (case.query, case.headers, case.body))


def _fuzzing(tag: str) -> Callable[[Described], None]:
    def test(self: Described) -> None:
        self.fuzz(tag)

    return test


for _tag in described.document()["tags"]:
    if _tag["name"] == "openapi":
        continue  # where the description is got from is left out by what reads it
    setattr(Described, f"test_{_tag['name']}", _fuzzing(_tag["name"]))


class Patches(FuzzCase):
    """JSON patch: operations on what is there and what is not, with any value."""

    def patches(self, names: list[str]) -> st.SearchStrategy[list[dict[str, Any]]]:
        keys = st.sampled_from(["a", "0", "-", "a~1b", "~0", "é", "a b", "", "~2"])
        first = st.sampled_from([*names, "extra", "links", "nope"])
        deeper = st.lists(keys, max_size=3)
        path = st.builds(lambda name, rest: "/" + "/".join((name, *rest)), first, deeper) | st.text(max_size=8)
        operation = st.fixed_dictionaries(
            {"op": st.sampled_from(["add", "replace", "remove", "test", "move"]), "path": path},
            optional={"value": JSON | st.sampled_from([self.uuid, world.MAC, "CUSTOM_A", "x" * 300, "a\0b", {}, []])},
        )
        return st.lists(operation, max_size=3)

    def test_of_every_object(self) -> None:
        for route, method, operation in self.operations():
            if operation.body is not tables.PATCH_BODY:
                continue
            table = getattr(operation.answer.shows, "table", None)
            names = list(table.fields) if table else ["extra"]
            url = self.url(route.path)
            self.many(self.patches(names), self.patching(method, url), times=20)

    def patching(self, method: str, url: str) -> Callable[[list[dict[str, Any]]], None]:
        def check(sent: list[dict[str, Any]]) -> None:
            version = f"1.{len(json.dumps(sent)) % 115 + 1}" if len(sent) == 1 else api_case.LATEST
            self.ask(method, url, lambda: self.api(method, url, sent, version), sent)

        return check


class Beside(FuzzCase):
    """What the description does not speak of: headers, identifiers, raw bodies, query strings."""

    def every(self) -> st.SearchStrategy[tuple[routes.Route, str, Any]]:
        served = [found for found in self.operations() if found[2].answer.media != "text/event-stream"]
        return st.sampled_from(served)

    def test_headers(self) -> None:
        tags = st.sampled_from(["*", '"a"', 'W/"a"', '"', "a", ",", '"a", "b"', '"' + "x" * 3000 + '"'])
        numbers = st.sampled_from(
            ["1.1", "1.50", "1.115", "1.116", "0.1", "latest", "1", "-1.1", "1.1.1", "٣.٣", "1." + "9" * 50]
        )
        anything = st.text(st.characters(min_codepoint=32, max_codepoint=255), max_size=30)
        values: dict[str, st.SearchStrategy[str]] = {
            "Accept": st.sampled_from(["*/*", "text/html", "application/json;q=0", ",", "a/b/c", ";;"]) | anything,
            "Content-Type": st.sampled_from(["", "text/plain", "multipart/form-data", "application/json; charset=x"]),
            "Content-Encoding": st.sampled_from(["gzip", "x"]),
            "Authorization": st.sampled_from(["Basic", "Basic YTpi", "Basic ///", "Bearer x"]) | anything,
            "If-Match": tags | anything,
            "If-None-Match": tags | anything,
            "OpenStack-API-Version": numbers.map("baremetal {}".format) | anything,
            "X-OpenStack-Ironic-API-Version": numbers | anything,
            "X-OpenStack-Request-ID": anything,
            "X-Project-Id": anything,
            "X-User-Id": st.text(st.characters(min_codepoint=33, max_codepoint=126), max_size=2000),
            "X-Roles": anything,
            "Last-Event-ID": anything,
        }

        def check(drawn: tuple[tuple[routes.Route, str, Any], dict[str, str]]) -> None:
            (route, method, _operation), headers = drawn
            url = self.url(route.path)
            body = json.dumps(self.body(route.path, method)).encode()
            sent = {name: value.encode("latin-1", "replace").decode("latin-1") for name, value in headers.items()}

            def send() -> api_case.Answer:
                return api_case.Answer(self.http.open(url, method=method, data=body, headers=sent))

            self.ask(method, url, send, headers)

        self.many(st.tuples(self.every(), st.fixed_dictionaries({}, optional=values)), check, times=100)

    def test_identifiers(self) -> None:
        odd = st.sampled_from(
            ["", ".", "..", "%00", "%FF", "%2F", "a%0Ab", "'", '"', ";", "x" * 300, "0" * 36, "detail", "é"]
        )
        ident = odd.map(lambda text: quote(text, safe="%")) | st.text(max_size=40).map(
            lambda text: quote(text, safe="")
        )

        def check(drawn: tuple[tuple[routes.Route, str, Any], str]) -> None:
            (route, method, _operation), given = drawn
            url = re.sub(r"<\w+>", lambda _found: given, route.path)
            self.ask(method, url, lambda: self.api(method, url, self.body(route.path, method)))

        self.many(st.tuples(self.every(), ident), check, times=100)

    def test_query_strings(self) -> None:
        value = st.sampled_from(["", "0", "-1", "true", "%00", "%FF", "a,b", "links", "1e9", "%C2%B2", "9" * 30, "%"])
        values = value | st.text(max_size=20).map(quote)

        def check(drawn: tuple[tuple[routes.Route, str, Any], list[tuple[int, str]], str]) -> None:
            (route, method, operation), pairs, rest = drawn
            names = [*operation.query, "limit", "x"]
            query = "&".join(f"{names[number % len(names)]}={given}" for number, given in pairs)
            url = f"{self.url(route.path)}?{query}{quote(rest, safe='&=%+;')}"
            self.ask(method, url, lambda: self.api(method, url, self.body(route.path, method)))

        pairs = st.lists(st.tuples(st.integers(0, 40), values), max_size=3)
        self.many(st.tuples(self.every(), pairs, st.just("") | st.text(max_size=10)), check, times=100)

    def test_bodies(self) -> None:
        taking = st.sampled_from([found for found in self.operations() if found[2].body is not None])
        odd = st.sampled_from(
            [b"", b"null", b"[]", b"\xff", b'{"a": ' * 50 + b"1" + b"}" * 50, b"[" * 50 + b"]" * 50, b"1e999"]
        )
        raw = odd | st.binary(max_size=60) | JSON.map(lambda value: json.dumps(value).encode())

        def check(drawn: tuple[tuple[routes.Route, str, Any], bytes]) -> None:
            (route, method, _operation), body = drawn
            self.ask(method, self.url(route.path), lambda: self.api(method, self.url(route.path), body), body)

        self.many(st.tuples(taking, raw), check, times=100)


class Raw(server_case.ServerCase):
    """Bytes on the socket: requests in which something is cut, doubled, exchanged or made up."""

    WHOLE = (
        b"GET /v1/nodes?limit=5 HTTP/1.1\r\nHost: x\r\nAccept: */*\r\n\r\n",
        b'POST /v1/chassis HTTP/1.1\r\nHost: x\r\nContent-Length: 17\r\n\r\n{"extra": {"a":1}}',
        b"POST /v1/chassis HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n2;a=b\r\n{}\r\n0\r\nA: b\r\n\r\n",
        b"PUT /v1/nodes/%00/vifs HTTP/1.1\r\nHost: [::1]\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n{}",
        b"HEAD http://x:80/v1/nodes/%zz%c3 HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
        b"OPTIONS * HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n",
        b'GET /v1/lookup HTTP/1.1\r\nHost: x\r\nX-Forwarded-For: ,1.2.3.4\r\nForwarded: for="[::1]";host=a\r\n\r\n',
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    )
    PARTS = (
        *(b"\r\n", b"\n", b"\r\n\r\n", b"\0", b" ", b"\t", b":", b"%", b"/", b"?", b"#", b"*", b"\xff", b"-1", b"0"),
        *(
            b"99999999999999999999",
            b"Content-Length: 3\r\n",
            b"Transfer-Encoding: chunked\r\n",
            b"Connection: close\r\n",
        ),
        *(b"Upgrade: websocket\r\nConnection: Upgrade\r\n", b"Host: y\r\n", b"Accept: ,;q=", b"X" * 70_000),
        *(
            b"Range: bytes=0-\r\n",
            b'If-Match: "\r\n',
            b"OpenStack-API-Version: baremetal 9.9\r\n",
            b"http://",
            b"CONNECT ",
        ),
    )

    def mutate(self, rng: random.Random) -> bytes:
        sent = bytearray(b"".join(rng.choices(self.WHOLE, k=rng.choice((1, 1, 2, 3)))))
        for _ in range(rng.randrange(6)):
            start = rng.randrange(len(sent) + 1)
            end = min(len(sent), start + rng.choice((0, 0, 1, 2, 20)))
            sent[start:end] = rng.choice((b"", bytes(sent[start:end]) * 2, rng.choice(self.PARTS), rng.randbytes(2)))
        return bytes(sent)

    def test_requests_that_were_damaged(self) -> None:
        log = self.useFixture(fixtures.FakeLogger(level=logging.WARNING))
        self.serve(api_threads=4)
        rng = random.Random(TIMES)  # noqa: S311 - the same each time
        for _ in range(100 * EACH):
            sent = self.mutate(rng)
            connection = self.connect()
            answer = b""
            half = rng.randrange(len(sent) + 1)
            try:
                for part in (sent[:half], sent[half:]):
                    connection.sendall(part)
                connection.shutdown(socket.SHUT_WR)
                while more := connection.recv(65536):
                    answer += more
            except OSError as exc:  # the server has closed it before it has read all
                self.assertNotIsInstance(exc, TimeoutError, repr(sent))
            connection.close()
            self.assertNotRegex(answer, rb"HTTP/1\.1 5", repr(sent))
        self.assertIn(" 200 OK", self.read_head(self.connect(server_case.ASK)))
        self.assertNotIn("Traceback", log.output)
