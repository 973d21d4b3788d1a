"""The API on a real database, with a scripted conductor: for tests of the API through HTTP."""

import base64
import gzip
import json
import logging
import os
from typing import Any

import fixtures
import flask
from oslo_config import cfg
from werkzeug import routing

from ingot.api import app as api_app
from ingot.common import interfaces
from ingot.db import conductors
from ingot.db.engine import Database
from ingot.rpcapi import client, transport, versions
from tests import database, described

HOST = "conductor-1"
LATEST = "1.115"
NODE = {"driver": "fake-hardware"}
DRIVE = base64.b64encode(gzip.compress(b"drive", mtime=0)).decode()
"""A config drive that is taken."""


class FakeConductor:
    """An RPC endpoint: remembers what it was asked, and answers (or raises) what a test has set.

    :ivar answers: by method, a value or an exception.
    :ivar asked: (method, arguments) of each call and cast.
    :ivar contexts: who asked, of each call and cast.
    """

    def __init__(self) -> None:
        self.answers: dict[str, Any] = {
            "call_node_method": {"tells": False, "result": None},
            "get_boot_device": {"boot_device": "pxe", "persistent": False},
            "get_console": {"console_enabled": False, "console_info": None},
            "get_driver_methods": {},
            "get_driver_properties": {"ipmi_address": "address of the BMC"},
            "get_indicator_state": "on",
            "get_indicators": [],
            "get_load": {
                **{"threads_busy": 1, "threads_most": 4, "pools": [], "working": 1, "queue": 2},
                "breakers": [{"address": "192.0.2.7:623", "since": "2026-01-31T12:00:00+00:00", "reason": "silence"}],
            },
            "get_logical_disk_properties": {},
            "get_node_methods": {},
            "get_offered_steps": [],
            "get_plan": {"steps": [], "in_band_steps_known": True, "errors": []},
            "get_sensors": [],
            "get_steps": [],
            "get_supported_boot_devices": ["pxe", "disk"],
            "get_virtual_media": [],
            "list_vifs": [],
            "validate_node": {},
        }
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self.contexts: list[dict[str, Any]] = []

    def __getattr__(self, method: str) -> Any:
        if method not in versions.METHODS:
            raise AttributeError(method)
        return lambda ctx, **arguments: transport.answer(ctx, self._answer, ctx, method, arguments)

    def _answer(self, ctx: dict[str, Any], method: str, arguments: dict[str, Any]) -> Any:
        self.contexts.append(ctx)
        self.asked.append((method, arguments))
        answer = self.answers.get(method)
        if isinstance(answer, Exception):
            raise answer
        return answer

    @property
    def wakeups(self) -> list[str]:
        """The reasons of the wake-ups."""
        return [arguments["why"] for method, arguments in self.asked if method == "advance"]


def enabled(hardware_type: str, **names: list[str]) -> list[conductors.EnabledInterface]:
    """Return the interfaces of a hardware type, ``fake`` of each type by default; the first is the default."""
    return [
        conductors.EnabledInterface(hardware_type, kind, name, name == offered[0])
        for kind in interfaces.TYPES
        for offered in [names.get(kind, ["fake"])]
        for name in offered
    ]


PLAIN = {"network": ["noop"], "storage": ["noop"]}


class Answer:
    """What came back."""

    def __init__(self, response: Any) -> None:
        self.status: int = response.status_code
        self.headers = response.headers
        self.text: str = response.get_data(as_text=True)

    @property
    def json(self) -> Any:
        return json.loads(self.text)

    @property
    def message(self) -> str:
        """The message of an error, in whichever of its shapes."""
        body = self.json
        inner = json.loads(body["error_message"]) if "error_message" in body else body
        return str(inner.get("faultstring", inner.get("description")))

    def __repr__(self) -> str:
        return f"{self.status} {self.text[:500]}"


_builders: dict[tuple[str, bool], Any] = {}
_compile_anew = routing.Rule._compile_builder


def _compile_builder(rule: routing.Rule, append_unknown: bool = True) -> Any:
    """Compile what builds the URLs of a rule, once a process: it is the same in every application."""
    key = rule.rule, append_unknown
    if key not in _builders:
        _builders[key] = _compile_anew(rule, append_unknown)
    return _builders[key]


def create_app(conf: cfg.ConfigOpts, db: Database, rpc_client: client.ConductorClient) -> flask.Flask:
    """Return a new application.

    Werkzeug writes and compiles code for each rule of each application, which takes longer than most tests.
    """
    with fixtures.MonkeyPatch("werkzeug.routing.Rule._compile_builder", _compile_builder):
        return api_app.create_app(conf, db, rpc_client)


class ApiCase(database.TestCase):
    """``self.api(method, path, body)`` is a request; ``self.conductor`` is what it notifies and calls."""

    def setUp(self) -> None:
        server = database.SERVERS.get(self.backend)
        if server and not os.environ.get(server):
            self.skipTest(f"{server} names no server")
        super().setUp()
        self.useFixture(fixtures.FakeLogger(level=logging.WARNING))  # a failing test shows what was logged
        self.conf = self.database.conf
        self.conf.set_override("lock_wait_timeout", 0, group="api")
        # What is registered here writes no heartbeats: it stays online however long a test takes.
        self.conf.set_override("heartbeat_timeout", 24 * 3600, group="conductor")
        # The ring is not read again, which on a slow machine would be one more statement in some request.
        self.conf.set_override("hash_ring_reset_interval", 24 * 3600)
        self.configure()
        self.conductor = FakeConductor()
        self.bus = transport.LocalTransport()
        self.bus.serve(HOST, self.conductor)
        self.register(HOST, enabled("fake-hardware", boot=["fake", "ipxe"], **PLAIN))
        self.client = client.ConductorClient(self.conf, self.db, self.bus)
        self.http = self.application().test_client()

    def configure(self) -> None:
        """Override to set options before the application is made."""

    def application(self) -> flask.Flask:
        """Make a new application with the current configuration."""
        return create_app(self.conf, self.db, self.client)

    def register(self, host: str, offered: list[conductors.EnabledInterface], group: str = "") -> None:
        """Add an online conductor."""
        about = {"conductor_group": group, "release": "0.1", "rpc_version": versions.RPC_VERSION}
        conductors.register(self.db, host, about, offered)

    def api(self, method: str, path: str, body: Any = None, version: str | None = LATEST, **headers: str) -> Answer:
        """Send a request and compare the answer with the API's description.

        :param body: sent as JSON; bytes are sent as they are.
        """
        answer = self.unchecked(method, path, body, version, **headers)
        self.assertIsNone(described.objection(self.http.application, method, path, answer))
        return answer

    def unchecked(
        self, method: str, path: str, body: Any = None, version: str | None = LATEST, **headers: str
    ) -> Answer:
        """Send a request like :meth:`api`, but compare nothing."""
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        if version is not None:
            sent["X-OpenStack-Ironic-API-Version"] = version
        data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        return Answer(self.http.open(path, method=method, data=data, headers=sent, content_type="application/json"))

    def good(self, method: str, path: str, body: Any = None, version: str | None = LATEST) -> Any:
        """Send a request that must succeed.

        :returns: the JSON of the answer; None for an empty one.
        """
        answer = self.api(method, path, body, version)
        self.assertIn(answer.status, (200, 201, 202, 204), answer)
        return answer.json if answer.text else None

    def refused(self, status: int, method: str, path: str, body: Any = None, version: str | None = LATEST) -> str:
        """Send a request that must be refused.

        :returns: the message.
        """
        answer = self.api(method, path, body, version)
        self.assertEqual(status, answer.status, answer)
        return answer.message

    def node(self, **values: Any) -> dict[str, Any]:
        """Create a node through the API."""
        created: dict[str, Any] = self.good("POST", "/v1/nodes", {**NODE, **values})
        return created
