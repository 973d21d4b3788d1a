"""Sessions of the web console: who gets a cookie, when it counts, and when it does not any more."""

import datetime
import json
import pathlib
import socket
import time
from typing import Any
from unittest import mock

import bcrypt
import fixtures
import requests
from keystoneauth1 import fixture as tokens
from keystonemiddleware import fixture

from ingot.api.auth import sessions
from tests import api_case, http_handler, identity_case, server_case
from tests.server_case import PATIENCE

PATH = sessions.PATH
CONSOLE = {"X_Ingot_Console": "1"}
LOGIN = {"user": "ada", "password": "secret"}
HOST = "localhost"


def line(name: str, password: str) -> str:
    return f"{name}:{bcrypt.hashpw(password.encode(), bcrypt.gensalt(rounds=4)).decode()}\n"


class SessionCase(api_case.ApiCase):
    """The client of werkzeug keeps cookies, as a browser does."""

    def log_in(self, **changed: Any) -> api_case.Answer:
        return self.api("POST", PATH, {**LOGIN, **changed}, **CONSOLE)

    def shown(self, **headers: str) -> Any:
        answer = self.api("GET", PATH, **(headers or CONSOLE))
        self.assertEqual(200, answer.status, answer)
        self.assertEqual("no-store", answer.headers["Cache-Control"])
        return answer.json

    def shake_hands(self, **headers: str) -> int:
        """Return the status of a request that the embedded server takes for the offer of a websocket."""
        offer = {sessions.OFFER: True}
        return int(self.http.get("/v1/nodes", headers=headers, environ_overrides=offer).status_code)

    def cookie(self) -> str:
        found = self.http.get_cookie(sessions.COOKIE)
        assert found
        return found.value


class WithoutAuthentication(SessionCase):
    def test_all_are_let_in(self) -> None:
        shown = self.shown()
        self.assertEqual(("noauth", True, None), (shown["strategy"], shown["authenticated"], shown["user"]))
        self.assertEqual(api_case.LATEST, shown["version"])
        self.assertTrue(shown["release"])

    def test_there_is_no_password_to_check(self) -> None:
        answer = self.log_in()
        self.assertEqual((201, True), (answer.status, answer.json["authenticated"]))
        self.assertNotIn("Set-Cookie", answer.headers)
        self.assertEqual(204, self.api("DELETE", PATH).status)

    def test_a_cookie_from_another_time_does_no_harm(self) -> None:
        self.http.set_cookie(sessions.COOKIE, "rubbish")
        self.assertEqual(200, self.api("GET", "/v1/nodes", **CONSOLE).status)
        self.assertEqual(204, self.api("DELETE", PATH, **CONSOLE).status)

    def test_no_page_of_another_site_opens_a_websocket(self) -> None:
        for origin, status in (
            (f"http://{HOST}", 200),
            ("http://localhost:8080", 403),
            ("null", 403),
            ("http://[", 403),
        ):
            self.assertEqual(status, self.shake_hands(Origin=origin), origin)

    def test_no_page_of_another_site_changes_anything(self) -> None:
        """A form can send what is JSON; whatever else it would need, browsers ask for first, and get no answer."""
        for method, headers, status in (
            ("POST", {"Origin": "http://evil.example"}, 403),
            ("POST", {"Origin": "null"}, 403),
            ("POST", {"Origin": f"http://{HOST}"}, 201),
            ("POST", {}, 201),
            ("POST", {"Origin": "http://evil.example", **CONSOLE}, 201),  # a proxy has changed the Host
            ("GET", {"Origin": "http://evil.example"}, 200),  # which the page cannot read
        ):
            answer = self.api(method, "/v1/nodes", api_case.NODE if method == "POST" else None, None, **headers)
            self.assertEqual(status, answer.status, (method, headers, answer))
        answer = self.api("OPTIONS", "/v1/nodes", Origin="http://evil.example")
        self.assertEqual([], [name for name in answer.headers.keys() if name.startswith("Access-Control")])

    def test_a_browser_comes_by_a_name_that_no_stranger_can_lead_here(self) -> None:
        browser = {"Accept_Language": "en"}
        self.conf.set_override("public_endpoint", "https://metal.example:6385", group="api")
        for host, status in (
            ("127.0.0.1:6385", 200),
            ("[::1]:6385", 200),
            ("ingot", 200),
            ("app.localhost:80", 200),
            ("metal.example", 200),
            (socket.gethostname().upper(), 200),
            ("evil.example:6385", 403),
            ("127.0.0.1.evil.example", 403),
            ("evil.example:99999", 403),
        ):
            self.assertEqual(status, self.api("GET", "/v1/nodes", Host=host, **browser).status, host)
        answer = self.api("GET", PATH, Host="evil.example", **CONSOLE)
        self.assertEqual(403, answer.status)
        self.assertIn("evil.example: without authentication, any page could. Set [api] public_endpoint", answer.message)
        self.assertEqual(200, self.api("GET", "/v1/nodes", Host="metal.internal").status)  # no browser


class HttpBasic(SessionCase):
    def configure(self) -> None:
        self.file = pathlib.Path(self.useFixture(fixtures.TempDir()).path) / "htpasswd"
        self.file.write_text(line("ada", "secret") + line("bob", "other"))
        self.conf.set_override("auth_strategy", "http_basic")
        self.conf.set_override("http_basic_auth_user_file", str(self.file))
        self.conf.set_override("max_failed_logins", 3, group="api")

    def status(self, **headers: str) -> int:
        return self.api("GET", "/v1/nodes", **headers).status

    def test_from_log_in_to_log_out(self) -> None:
        self.assertEqual(
            (False, None, None), tuple(self.shown()[name] for name in ("authenticated", "user", "release"))
        )
        answer = self.log_in()
        self.assertEqual((201, True, "ada"), (answer.status, answer.json["authenticated"], answer.json["user"]))
        self.assertEqual(answer.json, self.shown())
        self.assertEqual(200, self.status(**CONSOLE))
        answer = self.api("DELETE", PATH, **CONSOLE)
        self.assertEqual((204, ""), (answer.status, answer.text))
        self.assertIsNone(self.http.get_cookie(sessions.COOKIE))
        self.assertFalse(self.shown()["authenticated"])
        self.assertEqual(401, self.status(**CONSOLE))

    def test_no_script_reads_the_cookie_and_no_other_site_sends_it(self) -> None:
        about = self.log_in().headers["Set-Cookie"]
        for part in ("HttpOnly", "SameSite=Strict", "Path=/", "Max-Age=28"):
            self.assertIn(part, about)
        self.assertNotIn("Secure", about)
        for text in ("ada", "secret", self.file.read_text().split(":")[1][:20]):
            self.assertNotIn(text, about)

    def test_the_cookie_is_for_tls_where_there_is_tls(self) -> None:
        self.conf.set_override("public_endpoint", "https://metal.example", group="api")
        self.http = self.application().test_client()
        about = self.log_in().headers["Set-Cookie"]
        self.assertTrue(about.startswith("__Host-ingot_session="), about)
        self.assertIn("Secure", about)
        value = about.partition("=")[2].partition(";")[0]
        self.http = self.application().test_client(use_cookies=False)
        for name, status in ((sessions.COOKIE, 401), (sessions.COOKIE_OVER_TLS, 200)):  # another host may set the first
            self.assertEqual(status, self.status(**CONSOLE, Cookie=f"{name}={value}"), name)

    def test_the_cookie_counts_only_with_the_header(self) -> None:
        self.log_in()
        self.assertEqual([401, 401, 200], [self.status(), self.status(X_Ingot_Console="0"), self.status(**CONSOLE)])
        self.assertFalse(self.shown(X_Other="1")["authenticated"])

    def test_on_a_websocket_the_cookie_counts_for_pages_of_this_host(self) -> None:
        self.log_in()
        for headers, status in (
            ({"Origin": f"http://{HOST}"}, 200),
            ({"Origin": f"https://{HOST.upper()}"}, 200),
            ({"Origin": f"https://{HOST}", "Host": f"{HOST}:443"}, 200),  # browsers leave out the usual port
            ({"Origin": "http://evil.example"}, 403),
            ({"Origin": f"http://{HOST}.evil.example"}, 403),
            ({"Origin": "null"}, 403),
            ({}, 401),  # no browser: it sends its credentials
            ({"Authorization": "Basic YWRhOnNlY3JldA=="}, 200),
            ({"Authorization": "Basic YWRhOnNlY3JldA==", "Origin": "http://evil.example"}, 403),
        ):
            self.assertEqual(status, self.shake_hands(**headers), headers)
        self.assertEqual(401, self.status(Upgrade="websocket", Origin=f"http://{HOST}"))  # not of this server's

    def test_what_another_site_could_send_logs_no_one_in_or_out(self) -> None:
        for method, body in (("POST", LOGIN), ("DELETE", None)):
            answer = self.api(method, PATH, body)
            self.assertEqual(400, answer.status)
            self.assertIn("X-Ingot-Console: 1", answer.message)

    def test_wrong_passwords_are_refused_and_slowed_down(self) -> None:
        for name, password in (("ada", "letmein"), ("eve", "secret"), ("ada", "x" * 100)):
            answer = self.log_in(user=name, password=password)
            self.assertEqual(401, answer.status)
            self.assertIn("user name or password is wrong", answer.message)
            self.assertNotIn(password, answer.text)
            self.assertNotIn("Set-Cookie", answer.headers)
        answer = self.log_in(password="wrong")
        self.assertEqual(429, answer.status)
        self.assertIn("max_failed_logins", answer.message)

    def test_no_browser_asks_for_a_password_itself(self) -> None:
        for answer in (
            self.api("GET", "/v1/nodes", **CONSOLE),
            self.log_in(password="wrong"),
        ):
            self.assertEqual(
                (401, 'Session realm="Baremetal API"'), (answer.status, answer.headers["WWW-Authenticate"])
            )
        self.assertIn("Basic", self.api("GET", "/v1/nodes").headers["WWW-Authenticate"])

    def test_what_is_sent_is_checked(self) -> None:
        for body in ({}, {"user": "ada"}, {"user": "", "password": "x"}, {**LOGIN, "more": 1}):
            self.assertEqual(400, self.api("POST", PATH, body, **CONSOLE).status, body)
        answer = self.log_in(password=["hunter2"])
        self.assertEqual(400, answer.status)
        self.assertNotIn("hunter2", answer.text)

    def test_a_session_ends_with_the_password(self) -> None:
        for text in (line("ada", "secret"), line("bob", "secret")):  # the same password anew, too
            self.file.write_text(line("ada", "secret"))
            self.assertEqual(201, self.log_in().status)
            self.assertEqual(200, self.status(**CONSOLE))
            self.file.write_text(text)
            answer = self.api("GET", "/v1/nodes", **CONSOLE)
            self.assertEqual(401, answer.status)
            self.assertIn("since the log-in", answer.message)

    def test_a_change_of_another_user_ends_nothing(self) -> None:
        self.log_in()
        self.file.write_text(self.file.read_text().splitlines()[0] + "\n")
        self.assertEqual(200, self.status(**CONSOLE))

    def test_a_session_ends_in_time(self) -> None:
        self.log_in()
        later = time.time() + 28800
        for moment, status in ((later - 60, 200), (later + 1, 401)):
            with mock.patch("time.time", lambda moment=moment: moment):
                self.assertEqual(status, self.status(**CONSOLE))
        self.conf.set_override("session_lifetime", 60, group="console")
        with mock.patch("time.time", lambda: later - 28800 + 90):
            self.assertEqual(401, self.status(**CONSOLE))

    def test_what_is_no_cookie_of_this_deployment_opens_nothing(self) -> None:
        self.log_in()
        good = self.cookie()
        for value in ("", "x", good[:-2], "A" + good[1:], good.swapcase()):
            self.http.set_cookie(sessions.COOKIE, value)
            self.assertEqual(401, self.status(**CONSOLE), value)
            self.assertFalse(self.shown()["authenticated"])
        sealed = self.db.keyring.seal({"password": "http_basic"})["password"].rpartition("$")[2]
        self.http.set_cookie(sessions.COOKIE, sealed)
        self.assertEqual(401, self.status(**CONSOLE))

    def test_another_process_knows_it(self) -> None:
        self.log_in()
        cookie = self.cookie()
        self.http = self.application().test_client()
        self.http.set_cookie(sessions.COOKIE, cookie)
        self.assertEqual(200, self.status(**CONSOLE))

    def test_another_strategy_does_not(self) -> None:
        self.log_in()
        cookie = self.cookie()
        identity_case.configure(self.conf)
        self.http = self.application().test_client()
        self.http.set_cookie(sessions.COOKIE, cookie)
        self.assertEqual(401, self.status(**CONSOLE))

    def test_without_a_key_there_is_no_session(self) -> None:
        self.conf.set_override("key_file", "/nowhere", group="secrets")
        for encrypts, text in ((False, "ingot-dbsync add_key"), (True, "log")):
            self.conf.set_override("encrypt", encrypts, group="secrets")
            self.http = self.application().test_client()
            answer = self.log_in()
            self.assertEqual(503, answer.status)
            self.assertIn(text, answer.message)

    def test_a_console_that_is_off_has_no_sessions(self) -> None:
        self.log_in()
        self.conf.set_override("enabled", False, group="console")
        for method, body in (("GET", None), ("POST", LOGIN), ("DELETE", None)):
            answer = self.api(method, PATH, body, **CONSOLE)
            self.assertEqual(404, answer.status)
            self.assertIn("[console] enabled", answer.message)
        self.assertEqual(401, self.status(**CONSOLE))

    def test_credentials_count_beside_the_header(self) -> None:
        self.assertEqual(200, self.status(**CONSOLE, Authorization="Basic YWRhOnNlY3JldA=="))
        shown = self.shown(**CONSOLE, Authorization="Basic YWRhOnNlY3JldA==")
        self.assertEqual(("ada", None), (shown["user"], shown["expires_at"]))

    def test_the_trail_has_who_logged_in_and_out_and_who_was_refused(self) -> None:
        self.conf.set_override("enabled", True, group="audit")
        self.http = self.application().test_client()
        log = self.useFixture(fixtures.FakeLogger("ingot.audit"))
        self.log_in(password="wrong")
        self.log_in()
        self.api("DELETE", PATH, **CONSOLE)
        self.api("DELETE", PATH, **CONSOLE)  # of no session
        events = [json.loads(text) for text in log.output.splitlines()]
        self.assertEqual(
            [
                ("ingot:session:create", "failure", None, "ada"),
                ("ingot:session:create", "success", "ada", "ada"),
                ("ingot:session:delete", "success", "ada", None),
            ],
            [(one["action"], one["outcome"], one["initiator"]["id"], one["target"]["id"]) for one in events],
        )
        self.assertNotIn("secret", log.output)
        self.assertNotIn('wrong"', log.output.replace("is wrong", ""))

    def test_no_log_has_a_secret(self) -> None:
        log = self.useFixture(fixtures.FakeLogger(level=0))
        self.log_in()
        self.api("GET", "/v1/nodes", **CONSOLE)
        for text in (self.cookie(), LOGIN["password"]):
            self.assertNotIn(text, log.output)


class OverTheNetwork(server_case.ServerCase):
    """A browser before the embedded server: what offers a websocket is known there only."""

    def configure(self) -> None:
        super().configure()
        file = self.directory / "htpasswd"
        file.write_text(line("ada", "secret"))
        self.conf.set_override("auth_strategy", "http_basic")
        self.conf.set_override("http_basic_auth_user_file", str(file))

    def test_a_session_opens_websockets_of_its_own_pages(self) -> None:
        self.serve()
        browser = requests.Session()
        self.addCleanup(browser.close)
        answer = browser.post(self.url + PATH, json=LOGIN, headers={"X-Ingot-Console": "1"}, timeout=PATIENCE)
        self.assertEqual(201, answer.status_code, answer.text)
        offer = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Key": "x" * 24}
        for origin, status in ((self.url, 404), ("http://127.0.0.1:1", 403), (None, 401)):
            answer = browser.get(
                f"{self.url}/ingot/v1/nodes/none/console", headers={**offer, "Origin": origin}, timeout=PATIENCE
            )
            self.assertEqual(status, answer.status_code, (origin, answer.text))


class FakeKeystone:
    """Knows passwords; the middleware's own fixture knows the tokens. The gate has a real Keystone.

    :ivar asked: bodies of log-ins.
    :ivar revoked: tokens.
    :ivar status: of answers; 201: what it should be.
    :ivar seconds: for which tokens are good.
    """

    def __init__(self, known: fixture.AuthTokenFixture) -> None:
        self._known = known
        self.asked: list[Any] = []
        self.revoked: list[str] = []
        self.status = 201
        self.seconds = 3600.0

    def answer(self, handler: http_handler.Handler) -> None:
        host = f"http://{handler.headers['Host']}"
        if handler.command == "DELETE":
            self.revoked.append(handler.headers["X-Subject-Token"])
            handler.answer(204 if self.status == 201 else self.status)
        elif handler.command == "POST":
            self._log_in(handler, handler.body()["auth"])
        else:
            handler.answer(300, tokens.DiscoveryList(href=host, v2=False))

    def _log_in(self, handler: http_handler.Handler, auth: Any) -> None:
        self.asked.append(auth)
        user, where = auth["identity"]["password"]["user"], auth["scope"].get("project", {}).get("name", "system")
        person = f"{where} {user['name']}"
        if self.status != 201 or user["password"] != LOGIN["password"] or person not in identity_case.PERSONS:
            handler.answer(self.status if self.status != 201 else 401, {"error": {"message": "no", "code": 401}})
            return
        token = identity_case.token_of(person)
        token.expires = datetime.datetime.now(datetime.UTC).replace(tzinfo=None) + datetime.timedelta(0, self.seconds)
        ident = f"token of {person}"
        self._known.add_token(token, ident)
        handler.answer(201, token, **{"X-Subject-Token": ident})


class Keystone(SessionCase):
    def configure(self) -> None:
        identity_case.configure(self.conf)

    def application(self) -> Any:
        self.keystone = FakeKeystone(self.useFixture(fixture.AuthTokenFixture()))
        server = self.useFixture(http_handler.FunctionServer(self.keystone.answer))
        self.conf.set_override("auth_url", server.url.rpartition("/")[0], group="keystone_authtoken")
        return super().application()

    def as_reader(self, **more: str) -> api_case.Answer:
        return self.log_in(user="reader", **more)

    def test_the_session_has_the_rights_of_its_token(self) -> None:
        answer = self.as_reader(project="owner")
        self.assertEqual(201, answer.status, answer)
        about = {name: answer.json[name] for name in ("strategy", "authenticated", "user", "project", "roles")}
        self.assertEqual({"strategy": "keystone", "authenticated": True, "user": "owner reader", "project": "owner",
                          "roles": ["reader"]}, about)  # fmt: skip
        self.assertEqual({**answer.json, "user": "owner reader"}, self.shown())
        self.assertEqual(200, self.api("GET", "/v1/nodes", **CONSOLE).status)
        answer = self.api("POST", "/v1/nodes", api_case.NODE, **CONSOLE)
        self.assertEqual(403, answer.status)
        self.assertEqual(401, self.api("GET", "/v1/nodes").status)
        self.assertNotIn("token of", self.cookie())

    def test_without_a_project_it_is_for_the_system(self) -> None:
        answer = self.as_reader()
        self.assertEqual((201, None), (answer.status, answer.json["project"]))
        self.assertEqual({"system": {"all": True}}, self.keystone.asked[0]["scope"])
        self.assertEqual({"id": "default"}, self.keystone.asked[0]["identity"]["password"]["user"]["domain"])

    def test_domains_are_passed_on(self) -> None:
        self.as_reader(user_domain="here", project="owner", project_domain="there")
        self.as_reader(user_domain="here", project="owner")
        first, second = self.keystone.asked
        self.assertEqual({"name": "here"}, first["identity"]["password"]["user"]["domain"])
        self.assertEqual({"name": "owner", "domain": {"name": "there"}}, first["scope"]["project"])
        self.assertEqual({"name": "here"}, second["scope"]["project"]["domain"])

    def test_it_ends_with_its_token(self) -> None:
        self.keystone.seconds = 600.0
        answer = self.as_reader()
        ends = datetime.datetime.fromisoformat(answer.json["expires_at"]).timestamp()
        self.assertTrue(500 < ends - time.time() <= 600, answer.json)
        self.assertRegex(answer.headers["Set-Cookie"], "Max-Age=5[0-9][0-9]")
        with mock.patch("time.time", lambda: ends + 1):
            self.assertEqual(401, self.api("GET", "/v1/nodes", **CONSOLE).status)

    def test_a_log_out_revokes_the_token(self) -> None:
        self.as_reader()
        stolen = self.cookie()
        self.assertEqual(204, self.api("DELETE", PATH, **CONSOLE).status)
        self.assertEqual(["token of system reader"], self.keystone.revoked)
        self.http.set_cookie(sessions.COOKIE, stolen)
        answer = self.api("GET", "/v1/nodes", **CONSOLE)
        self.assertEqual(401, answer.status)
        self.assertIn("logged out", answer.message)

    def test_what_keystone_refuses_is_said_and_slowed_down(self) -> None:
        self.conf.set_override("max_failed_logins", 3, group="api")
        self.http = self.application().test_client()
        for changed, text in (({"password": "hunter2"}, "the system; name a project"), ({"project": "none"}, "'none'")):
            answer = self.as_reader(**changed)
            self.assertEqual(
                (401, 'Session realm="Baremetal API"'), (answer.status, answer.headers["WWW-Authenticate"])
            )
            self.assertIn(text, answer.message)
            self.assertNotIn("hunter2", answer.text)
        self.assertEqual([401, 429], [self.as_reader(project="none").status for _again in range(2)])

    def test_a_keystone_that_fails_refuses_no_one(self) -> None:
        self.keystone.status = 500
        answer = self.as_reader()
        self.assertEqual(503, answer.status)
        self.assertIn("Retry-After", answer.headers)

    def test_a_keystone_that_fails_keeps_no_one_from_logging_out(self) -> None:
        self.as_reader()
        self.keystone.status = 500
        self.assertEqual(204, self.api("DELETE", PATH, **CONSOLE).status)
        self.assertEqual(401, self.api("GET", "/v1/nodes", **CONSOLE).status)

    def test_no_log_has_a_secret(self) -> None:
        log = self.useFixture(fixtures.FakeLogger(level=0))
        self.as_reader()
        self.as_reader(password="hunter2")
        for text in (self.cookie(), LOGIN["password"], "hunter2"):
            self.assertNotIn(f'"{text}"', log.output)
            self.assertNotIn(f"'{text}'", log.output)
        self.assertNotIn(self.cookie(), log.output)
