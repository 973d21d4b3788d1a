"""What clients are answered while Keystone is away, slow, broken or refuses Ingot, and what is asked of it."""

import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

import fixtures
import flask
from keystoneauth1 import fixture as tokens

from ingot.api.auth import keystone_calls
from tests import api_case, http_handler, identity_case

USER, SERVICE = "a user's token", "Ingot's token"
HTML = b"<html>It works!</html>"

Fault = Callable[[http_handler.Handler, "Scripted"], bool]
"""Answers instead of Keystone, and returns whether it has."""


def answers(status: int, content: Any = b"", method: str = "") -> Fault:
    """Return the fault that requests for tokens, of one method perhaps, are answered so."""

    def answer(handler: http_handler.Handler, _scripted: "Scripted") -> bool:
        is_meant = handler.path.endswith("/auth/tokens") and method in ("", handler.command)
        if is_meant:
            handler.answer(status, content)
        return is_meant

    return answer


def silent(_handler: http_handler.Handler, scripted: "Scripted") -> bool:
    return scripted.goes_on.wait(30)


def hangs_up(handler: http_handler.Handler, _scripted: "Scripted") -> bool:
    handler.close_connection = True
    handler.connection.close()
    return True


REFUSED = {"error": {"code": 401, "title": "Unauthorized", "message": "The password is wrong."}}

FAULTS: Mapping[str, tuple[Fault, int]] = {
    "500": (answers(500, {"error": {"code": 500}}), 2),
    "502 of a proxy": (answers(502, HTML), 2),
    "503": (answers(503), 2),
    "429": (answers(429), 2),
    "Ingot's user is refused": (answers(401, REFUSED, "POST"), 4),
    "Ingot's token is refused": (answers(401, REFUSED, "GET"), 8),
    "Ingot's user may not ask": (answers(403, {"error": {"code": 403}}, "GET"), 4),
    "404 of a proxy to all": (answers(404, HTML), 2),
    "404 of a proxy to questions": (answers(404, HTML, "GET"), 4),
    "a page instead of a token": (answers(200, HTML, "GET"), 4),
    "something else instead of a token": (answers(200, {"a": 1}, "GET"), 4),
    "hangs up": (hangs_up, 4),
}
"""By name, the fault and how many requests Keystone may get at most while a client waits."""


class Scripted(fixtures.Fixture):
    """A Keystone that knows two tokens.

    :ivar asked: method and path of each request.
    :ivar fault: answers instead.
    """

    def _setUp(self) -> None:
        self.asked: list[str] = []
        self.fault: Fault | None = None
        self.goes_on = threading.Event()
        self.addCleanup(self.goes_on.set)
        self.url = self.useFixture(http_handler.FunctionServer(self._answer)).url.removesuffix("/file")

    def _answer(self, handler: http_handler.Handler) -> None:
        if handler.command == "POST":
            handler.body()
        self.asked.append(f"{handler.command} {handler.path.partition('?')[0]}")
        if self.fault is not None and self.fault(handler, self):
            return
        if not handler.path.partition("?")[0].endswith("/auth/tokens"):
            handler.answer(200, {"version": tokens.V3Discovery(f"{self.url}/v3")})
        elif handler.command == "POST":
            handler.answer(201, self._describe(tokens.V3Token()), **{"X-Subject-Token": SERVICE})
        elif handler.headers["X-Subject-Token"] == USER:
            handler.answer(200, self._describe(identity_case.token_of("system admin")))
        else:
            handler.answer(404, {"error": {"code": 404, "message": "Could not find token"}})

    def _describe(self, token: tokens.V3Token) -> tokens.V3Token:
        token.add_service("identity").add_standard_endpoints(
            public=f"{self.url}/v3", admin=f"{self.url}/v3", internal=f"{self.url}/v3"
        )
        return token


class AwayCase(api_case.ApiCase):
    RETRIES = 1

    def configure(self) -> None:
        self.keystone = self.useFixture(Scripted())
        identity_case.configure(self.conf)
        for name, value in (
            ("auth_url", f"{self.keystone.url}/v3"),
            ("http_request_max_retries", self.RETRIES),
        ):
            self.conf.set_override(name, value, group="keystone_authtoken")

    def application(self) -> flask.Flask:
        self.useFixture(fixtures.MonkeyPatch("keystoneauth1.session._Retries", lambda *_given: iter([0.0] * 10)))
        return super().application()

    def ask(self, token: str = USER, method: str = "GET", body: Any = None) -> api_case.Answer:
        return self.api(method, "/v1/nodes", body, X_Auth_Token=token)


class Away(AwayCase):
    def test_no_fault_of_keystones_is_the_clients(self) -> None:
        for name, (fault, most) in FAULTS.items():
            self.keystone.fault, self.keystone.asked = fault, []
            answer = self.ask(method="POST", body=api_case.NODE)
            self.assertEqual(503, answer.status, (name, answer))
            self.assertIn("Keystone does not answer, or refuses Ingot's own user", answer.message, name)
            self.assertEqual("5", answer.headers["Retry-After"], name)
            self.assertLessEqual(len(self.keystone.asked), most, (name, self.keystone.asked))
        self.keystone.fault = None
        self.assertEqual([], self.ask().json["nodes"], "nothing was changed, and no restart is needed")

    def test_a_token_that_keystone_does_not_know_is_the_clients(self) -> None:
        self.assertEqual((401, 200), (self.ask("made up").status, self.ask().status))

    def test_a_token_is_asked_for_once(self) -> None:
        self.assertEqual({200}, {self.ask().status for _ in range(10)})
        self.assertEqual(1, self.keystone.asked.count("GET /v3/auth/tokens"))
        self.assertEqual(1, self.keystone.asked.count("POST /v3/auth/tokens"))

    def test_who_was_let_in_stays_in(self) -> None:
        self.assertEqual(200, self.ask().status)
        self.keystone.fault = hangs_up
        self.assertEqual((200, 503), (self.ask().status, self.ask("another").status))


class Silent(AwayCase):
    def configure(self) -> None:
        super().configure()
        self.useFixture(fixtures.MonkeyPatch("ingot.api.auth.keystone_calls.DEADLINE_S", 1.0))

    def test_no_client_waits_for_long_and_others_do_not_wait(self) -> None:
        self.keystone.fault = silent
        began = time.monotonic()
        self.assertEqual(503, self.ask().status)
        self.assertLess(time.monotonic() - began, 10)
        asked = len(self.keystone.asked)
        self.assertEqual({503}, {self.ask(f"token {number}").status for number in range(5)})
        self.assertEqual(asked, len(self.keystone.asked), "while it is silent it is not asked")
        self.keystone.fault = None
        self.useFixture(fixtures.MonkeyPatch("ingot.api.auth.keystone_calls.time.monotonic", later_clock()))
        self.assertEqual(200, self.ask().status)

    def test_one_client_finds_out_whether_it_is_still_silent(self) -> None:
        """Whether Ingot's own token is known, or has to be had first: others would wait for the one who asks for it."""
        for begin in (lambda: None, self.ask):
            begin()
            self.keystone.fault = silent
            self.ask("unknown")
            with fixtures.MonkeyPatch("ingot.api.auth.keystone_calls.time.monotonic", later_clock()):
                self.check_one_waits()
                self.keystone.fault = None
            with fixtures.MonkeyPatch("ingot.api.auth.keystone_calls.time.monotonic", later_clock(2)):
                self.assertEqual(200, self.ask().status)

    def check_one_waits(self) -> None:
        asked, waited = len(self.keystone.asked), []

        def ask(number: int) -> None:
            began = time.perf_counter()
            self.assertEqual(503, self.ask(f"token {number}").status)
            waited.append(time.perf_counter() - began)

        clients = [threading.Thread(target=ask, args=(number,)) for number in range(5)]
        for client in clients:
            client.start()
        for client in clients:
            client.join()
        self.assertEqual(asked + 1, len(self.keystone.asked))
        self.assertEqual(1, sum(seconds >= keystone_calls.DEADLINE_S for seconds in waited), waited)


def later_clock(times: int = 1) -> Callable[[], float]:
    """Return a clock on which the silence is over."""
    now = time.monotonic
    return lambda: now() + times * keystone_calls.SILENCE_S
