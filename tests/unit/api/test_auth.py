"""Identity: HTTP basic authentication, and none at all."""

import base64
import logging
import pathlib

import bcrypt
import fixtures

from ingot.api import routes
from ingot.api.auth import failed_logins, identity
from ingot.common import errors
from tests import api_case


def line(name: str, password: str) -> str:
    return f"{name}:{bcrypt.hashpw(password.encode(), bcrypt.gensalt(rounds=4)).decode()}\n"


def basic(name: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{name}:{password}".encode()).decode()


class NoAuth(api_case.ApiCase):
    def test_a_new_node_belongs_to_the_project_in_the_headers(self) -> None:
        project = {"X_Project_Id": "mine"}
        self.assertEqual("mine", self.api("POST", "/v1/nodes", api_case.NODE, **project).json["owner"])
        for headers in (project, {}):
            answer = self.api("POST", "/v1/nodes", {**api_case.NODE, "owner": "other"}, **headers)
            self.assertEqual(400, answer.status)
            self.assertIn("owner", answer.message)


class HttpBasic(api_case.ApiCase):
    def configure(self) -> None:
        self.file = pathlib.Path(self.useFixture(fixtures.TempDir()).path) / "htpasswd"
        self.file.write_text("# operators\n\n" + line("ada", "secret"))
        self.conf.set_override("auth_strategy", "http_basic")
        self.conf.set_override("http_basic_auth_user_file", str(self.file))

    def status(self, path: str = "/v1/nodes", **headers: str) -> int:
        return self.api("GET", path, **headers).status

    def test_the_right_password_opens_again_and_again(self) -> None:
        for _time in range(2):
            self.assertEqual(200, self.status(Authorization=basic("ada", "secret")))

    def test_users_are_administrators_of_the_system(self) -> None:
        body = {**api_case.NODE, "owner": "any project"}
        answer = self.api("POST", "/v1/nodes", body, Authorization=basic("ada", "secret"), X_Project_Id="mine")
        self.assertEqual((201, "any project"), (answer.status, answer.json["owner"]))

    def test_anything_else_is_challenged(self) -> None:
        for header in (
            "",
            "Bearer x",
            "Basic rubbish",
            basic("ada", "wrong"),
            basic("bob", "secret"),
            basic("ada", "x" * 100),
        ):
            answer = self.api("GET", "/v1/nodes", Authorization=header)
            self.assertEqual(401, answer.status, header)
            self.assertIn("Basic realm=", answer.headers["WWW-Authenticate"])

    def test_each_failure_is_one_line_of_the_log(self) -> None:
        log = self.useFixture(fixtures.FakeLogger(level=logging.WARNING))  # beside the line of each request
        self.assertEqual(401, self.status(Authorization=basic("ada\nadmin", "wrong")))
        self.assertEqual("Failed log-in of user 'ada\\nadmin' from 127.0.0.1\n", log.output)

    def test_guessing_is_slowed_down_and_those_who_are_in_stay(self) -> None:
        self.conf.set_override("max_failed_logins", 3, group="api")
        self.http = self.application().test_client()
        log = self.useFixture(fixtures.FakeLogger(level=logging.INFO))
        self.assertEqual(200, self.status(Authorization=basic("ada", "secret")))
        for number in range(3):
            self.assertEqual(401, self.status(Authorization=basic("ada", str(number))))
        answer = self.api("GET", "/v1/nodes", Authorization=basic("eve", "secret"))
        self.assertEqual(429, answer.status)
        self.assertIn("max_failed_logins", answer.message)
        self.assertIn("Retry-After", answer.headers)
        self.assertEqual(200, self.status(Authorization=basic("ada", "secret")))
        self.assertEqual(3, log.output.count("Failed log-in"))
        self.assertEqual(1, log.output.count("no more are checked"))
        elsewhere = {"REMOTE_ADDR": "192.0.2.7"}
        headers = {"Authorization": basic("eve", "secret")}
        self.assertEqual(401, self.http.get("/v1/nodes", headers=headers, environ_base=elsewhere).status_code)

    def test_a_minute_later_it_begins_anew(self) -> None:
        found = failed_logins.FailedLogins(1)
        for address in ("192.0.2.1", "2001:db8::1"):
            found.note(address, "eve")
            self.assertRaises(failed_logins.TooManyLogins, found.check, address)
        self.assertRaises(failed_logins.TooManyLogins, found.check, "2001:db8::2")
        found.check("2001:db8:0:1::1")
        with fixtures.MonkeyPatch("ingot.api.auth.failed_logins._SECONDS", 0):
            found.check("192.0.2.1")
            found.note("192.0.2.1", "eve")
        with fixtures.MonkeyPatch("ingot.api.auth.failed_logins._MOST_PLACES", 2):
            for number in range(5):
                found.note(f"192.0.2.{number}", "eve")
        self.assertTrue(len(found._places) < 9)
        failed_logins.FailedLogins(0).check("192.0.2.1")

    def test_every_route_needs_it_but_those_of_agents_machines_and_versions(self) -> None:
        public = set()
        for route in routes.ROUTES:
            path = route.path.replace("<", "").replace(">", "")
            for method in route.operations:
                answer = self.api(method, path)
                if answer.status != 401:
                    public.add(route.path)
        self.assertEqual(
            {"/", "/v1", "/healthcheck", "/boot.ipxe", "/boot/loaders/<name>", "/boot/settings.cpio"}
            | {"/boot/ipxe/<mac>", "/v1/lookup", "/v1/heartbeat", "/v1/heartbeat/<node>"}
            | {"/v1/continue_inspection", "/boot/images/<node>/<ticket>/<image>", "/boot/volumes/<node>/<ticket>"}
            | {f"/boot/media/<node>/<ticket>/{name}" for name in ("boot.iso", "config.img")}
            | {f"/boot/{name}/pxelinux.cfg/01-<mac>" for name in ("pxelinux", "petitboot")}
            | {"/boot/grub/grub.cfg-01-<mac>", "/ingot/v1/session"},
            public,
        )

    def test_agents_machines_and_version_documents_need_none(self) -> None:
        self.assertEqual([200, 200, 200], [self.status(path) for path in ("/", "/v1", "/boot/ipxe/52-54-00-00-00-01")])
        self.assertEqual(404, self.status("/v1/lookup?addresses=52:54:00:00:00:01"))
        self.assertEqual(404, self.api("POST", "/v1/heartbeat/n", {"callback_url": "https://x", "agent_version": "1",
                                                                  "agent_token": "x"}).status)  # fmt: skip

    def test_the_file_is_read_again_when_it_changes(self) -> None:
        self.assertEqual(200, self.status(Authorization=basic("ada", "secret")))
        self.file.write_text(line("eve", "other password"))
        self.assertEqual(401, self.status(Authorization=basic("ada", "secret")))
        self.assertEqual(200, self.status(Authorization=basic("eve", "other password")))

    def test_a_file_that_gets_lost_is_reported_in_the_log_only(self) -> None:
        self.file.unlink()
        answer = self.api("GET", "/v1/nodes", Authorization=basic("ada", "secret"))
        self.assertEqual(503, answer.status)
        self.assertNotIn(str(self.file), answer.text)

    def test_an_unusable_file_is_reported_at_the_start(self) -> None:
        for text in ("ada:plain", "ada", "ada:$2y$05$cut short", "ada:$2y$99$" + "a" * 53):
            self.file.write_text(text + "\n")
            refusal = self.assertRaises(errors.ConfigurationError, identity.load_strategy, self.conf)
            self.assertIn("line 1", refusal.message)
        self.file.unlink()
        self.assertRaises(errors.ConfigurationError, identity.load_strategy, self.conf)
