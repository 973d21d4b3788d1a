"""The access log: who asked for what, from where, and what the answer was."""

import logging
import pathlib
import urllib.parse

import fixtures

from tests import api_case, database, server_case


class AccessLog(api_case.ApiCase):
    def setUp(self) -> None:
        super().setUp()
        self.log = self.useFixture(fixtures.FakeLogger("ingot.api.access", level=logging.INFO, format="%(message)s"))
        self._seen = 0

    @property
    def lines(self) -> list[str]:
        """The lines since they were last read."""
        seen, self._seen = self._seen, len(self.log.output.splitlines())
        lines: list[str] = self.log.output.splitlines()[seen:]
        return lines

    def test_a_request_is_one_line_with_all_that_is_asked_for(self) -> None:
        answer = self.api("GET", "/v1/nodes?limit=7", X_User_Id="ada")
        (line,) = self.lines
        ident = answer.headers["OpenStack-Request-Id"]
        self.assertRegex(line, rf"^GET /v1/nodes 200 \d+\.\d ms, user ada, from 127\.0\.0\.1, {ident}$")

    def test_refused_requests_are_there_too(self) -> None:
        for method, path, status in (
            ("GET", "/v1/nodes/missing", 404),
            ("GET", "/nope", 404),
            ("DELETE", "/v1", 405),
            ("POST", "/v1/nodes", 400),
        ):
            self.api(method, path)
            (line,) = self.lines
            self.assertTrue(line.startswith(f"{method} ") and f" {status} " in line, line)

    def test_probes_and_heartbeats_are_debug_unless_they_are_refused(self) -> None:
        node = database.make_node(self.db)
        for path in ("/", "/v1", "/v1/"):
            self.api("GET", path)
            self.api("HEAD", path)
        self.assertEqual([], self.lines)
        self.api("POST", f"/v1/heartbeat/{node.uuid}", {"callback_url": "http://192.0.2.1"})
        (line,) = self.lines
        self.assertIn(" 400 ", line)

    def test_no_client_writes_lines_of_its_own(self) -> None:
        self.api("GET", "/v1/nodes/" + urllib.parse.quote("a\nDELETE /v1/nodes 204"))
        self.api("GET", "/v1/nodes", X_User_Id="ada from me")
        path, line = self.lines
        self.assertIn("/v1/nodes/a%0ADELETE%20", path)
        self.assertIn("user ada%20from%20me,", line)

    def test_tickets_are_masked(self) -> None:
        node = database.make_node(self.db)
        self.api("GET", f"/boot/images/{node.uuid}/the-ticket/{node.uuid}")
        (line,) = self.lines
        self.assertIn(" 404 ", line)
        self.assertNotIn("the-ticket", line)


class FailedLogins(api_case.ApiCase):
    def configure(self) -> None:
        users = pathlib.Path(self.useFixture(fixtures.TempDir()).path) / "users"
        users.write_text("")
        self.conf.set_override("auth_strategy", "http_basic")
        self.conf.set_override("http_basic_auth_user_file", str(users))

    def test_are_logged(self) -> None:
        logged = self.useFixture(fixtures.FakeLogger("ingot.api.access", level=logging.INFO, format="%(message)s"))
        self.assertEqual(401, self.http.get("/v1/nodes").status_code)
        self.assertRegex(logged.output, r"^GET /v1/nodes 401 .* user -, from 127\.0\.0\.1, req-")


class RefusedByTheServer(server_case.ServerCase):
    def test_are_logged(self) -> None:
        logged = self.useFixture(fixtures.FakeLogger("ingot.api.access", level=logging.INFO, format="%(message)s"))
        self.serve()
        for sent, expected in (
            (b"GET /v1/nodes?a=b HTTP/1.1\r\nContent-Length: -1\r\n\r\n", "- /v1/nodes 400"),
            (b"\x16\x03\x01\x02\x00", "- - 400"),
        ):
            self.read(self.connect(sent))
            self.assertIn(f"{expected} 0.0 ms, user -, from 127.0.0.1, -", logged.output)
