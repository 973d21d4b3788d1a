"""Audit events in CADF: what notifications say of requests, what they never say, and what a map may be."""

import configparser
import json
import pathlib
import types
from collections.abc import Mapping
from typing import Any

import fixtures
import flask
from keystoneauth1 import fixture as tokens
from keystonemiddleware import audit
from oslo_messaging.notify import _impl_test as drivers

from ingot.api import app, routes
from ingot.api.web import cadf
from ingot.common import errors
from ingot.common.conf import broker
from ingot.notifications import bus
from tests import api_case, identity_case

MAP = pathlib.Path(__file__).parents[3] / "etc" / "api_audit_map.conf"
_PASSWORD, _TICKET = "hunter2", "req-11111111-2222-3333-4444-555555555555"


def switch_on(conf: Any, **options: object) -> None:
    """Have events given to oslo.messaging's driver for tests."""
    broker.register_notifications(conf)
    conf.set_override("driver", ["test"], broker.NOTIFICATIONS)
    conf.set_override("transport_url", "fake://", broker.NOTIFICATIONS)
    for name, value in {"enabled": True, "audit_map_file": str(MAP), **options}.items():
        conf.set_override(name, value, group="audit")
    drivers.reset()


class CadfCase(identity_case.IdentityCase):
    OPTIONS: Mapping[str, object] = types.MappingProxyType({})

    def configure(self) -> None:
        super().configure()
        switch_on(self.conf, **self.OPTIONS)

    def application(self) -> flask.Flask:
        made: flask.Flask = super().application()
        self.addCleanup(lambda: [made.extensions[name].close() for name in (app.TRAIL, app.CADF)])
        return made

    def take(self) -> list[dict[str, Any]]:
        """Return the messages that were sent; no more are."""
        self.http.application.extensions[app.CADF].close()
        return [message for _ctx, message, _priority, _retry in drivers.NOTIFICATIONS]


class Sent(CadfCase):
    def test_a_change_has_two_events(self) -> None:
        """Compared with Ironic 39: the same keys, the same words."""
        node = self.own_node(name="n", driver_info={"ipmi_password": _PASSWORD})
        path = f"/v1/nodes/{node.uuid}/states/power"
        sent = {"X_Auth_Token": "owner member", "X_OpenStack_Request_ID": _TICKET, "User_Agent": "sdk"}
        answer = self.api("PUT", path, {"target": "power on"}, **sent)
        self.assertEqual(202, answer.status)
        before, after = self.take()
        self.assertEqual(("audit.http.request", "audit.http.response"), (before["event_type"], after["event_type"]))
        self.assertEqual(("pending", "success"), (before["payload"]["outcome"], after["payload"]["outcome"]))
        event = after["payload"]
        self.assertEqual(before["payload"]["id"], event["id"])
        self.assertEqual("update/power", event["action"])
        self.assertEqual({"reasonType": "HTTP", "reasonCode": "202"}, event["reason"])
        self.assertEqual(path, event["requestPath"])
        self.assertEqual("service/compute/baremetal/nodes/node/states/power", event["target"]["typeURI"])
        initiator = event["initiator"]
        self.assertEqual(
            ("user-owner-member", "owner member", "owner"),
            (initiator["id"], initiator["name"], initiator["project_id"]),
        )
        self.assertEqual({"address": "127.0.0.1", "agent": "sdk"}, initiator["host"])
        self.assertEqual(answer.headers["X-OpenStack-Request-Id"], initiator["request_id"])
        self.assertEqual(_TICKET, initiator["global_request_id"])
        self.assertEqual("Confirmed", initiator["credential"]["identity_status"])

    def test_nothing_secret_is_in_them(self) -> None:
        body = {**api_case.NODE, "driver_info": {"ipmi_password": _PASSWORD}}
        self.ask("system admin", "POST", f"/v1/nodes?api_key={_PASSWORD}", body)
        self.ask("system admin", "POST", "/v1/nodes", {**body, "name": "not a name!"})
        messages = json.dumps(self.take())
        self.assertEqual(4, messages.count("requestPath"))
        self.assertNotIn(_PASSWORD, messages)
        token = self.take()[0]["payload"]["initiator"]["credential"]["token"]
        self.assertNotIn("system admin", token)

    def test_refusals_say_why(self) -> None:
        self.own_node(name="n")
        asked = (
            ("owner reader", "DELETE", "/v1/nodes/n", "403"),
            ("system admin", "GET", "/v1/nodes/none", "404"),
            ("system admin", "GET", "/v1/nodes?limit=x", "400"),
        )
        for person, method, path, _code in asked:
            self.ask(person, method, path)
        payloads = [message["payload"] for message in self.take()[1::2]]
        found = [(payload["outcome"], payload["reason"]["reasonCode"]) for payload in payloads]
        self.assertEqual([("failure", code) for _person, _method, _path, code in asked], found)

    def test_names_may_be_of_any_script(self) -> None:
        names = ("%E8%8A%82", "%C3%BC", "%FF")
        for name in names:
            self.assertEqual(400, self.ask("system admin", "GET", f"/v1/nodes/{name}").status, name)
        paths = [message["payload"]["requestPath"].rpartition("/")[2] for message in self.take()[::2]]
        self.assertEqual(["%E8%8A%82", "%C3%BC", "%EF%BF%BD"], paths, "what is no UTF-8 is a mark")

    def test_a_defect_is_a_failure(self) -> None:
        def fail(*_given: object) -> None:
            raise ZeroDivisionError

        self.useFixture(fixtures.MonkeyPatch("ingot.api.web.preconditions.read", fail))
        answer = self.api("GET", "/v1/nodes", X_Auth_Token="system admin", If_None_Match='"tag"')
        _before, after = self.take()
        self.assertEqual((500, "failure"), (answer.status, after["payload"]["outcome"]))
        self.assertEqual("500", after["payload"]["reason"]["reasonCode"])

    def test_who_is_refused_a_login_and_what_machines_boot_from_is_not_in_them(self) -> None:
        self.ask("made up", "GET", "/v1/nodes")
        self.api("GET", "/v1/nodes")
        self.unchecked("GET", "/healthcheck")
        self.unchecked("GET", "/boot/ipxe/52-54-00-00-00-01")
        self.assertEqual([], self.take())

    def test_no_option_is_called_unknown_that_the_library_reads(self) -> None:
        log = self.useFixture(fixtures.FakeLogger("keystonemiddleware._common.config"))
        cadf.Events(self.conf)
        self.assertEqual("", log.output)

    def test_requests_of_agents_are_events_of_an_unknown_user(self) -> None:
        self.unchecked("GET", "/v1/lookup?addresses=52:54:00:00:00:99")
        _before, after = self.take()
        self.assertEqual("unknown", after["payload"]["initiator"]["id"])
        self.assertEqual("service/compute/baremetal/lookup", after["payload"]["target"]["typeURI"])


class Catalog(CadfCase):
    def application(self) -> flask.Flask:
        describe = identity_case.token_of

        def describe_with_services(person: str) -> tokens.V3Token:
            token = describe(person)
            endpoints = dict.fromkeys(("public", "internal", "admin"), "http://192.0.2.1:6385")
            token.add_service("baremetal", name="of Keystone").add_standard_endpoints(**endpoints)
            return token

        self.useFixture(fixtures.MonkeyPatch("tests.identity_case.token_of", describe_with_services))
        return super().application()

    def test_the_target_is_what_keystone_calls_it_and_no_catalog_waits_for_the_broker(self) -> None:
        waiting: list[bus.Message] = []
        outbound = self.http.application.extensions[app.CADF].outbound
        self.useFixture(fixtures.MockPatchObject(outbound, "add", waiting.append))
        self.ask("system admin", "GET", "/v1/nodes")
        self.assertEqual(["of Keystone"] * 2, [message.payload["target"]["name"] for message in waiting])
        self.assertEqual([None] * 2, [message.ctx.catalog for message in waiting])


class Ignored(CadfCase):
    OPTIONS = types.MappingProxyType({"ignore_req_list": "get, PATCH"})

    def test_methods_can_be_left_out(self) -> None:
        self.own_node(name="n")
        self.ask("system admin", "GET", "/v1/nodes")
        self.ask("system admin", "PATCH", "/v1/nodes/n", [{"op": "add", "path": "/extra/a", "value": 1}])
        self.ask("system admin", "DELETE", "/v1/nodes/n")
        self.assertEqual({"delete"}, {message["payload"]["action"] for message in self.take()})


class Logged(CadfCase):
    def configure(self) -> None:
        super().configure()
        for group, options in audit.list_opts():
            self.conf.register_opts(options, group=group)
        self.conf.set_override("use_oslo_messaging", False, group=cadf.GROUP)

    def test_they_can_be_lines_of_the_log_instead(self) -> None:
        log = self.useFixture(fixtures.FakeLogger("ingot.audit.cadf"))
        self.ask("system admin", "GET", "/v1/nodes")
        self.assertIn("audit.http.response", log.output)
        self.assertEqual([], self.take())


class Off(api_case.ApiCase):
    def test_nothing_is_made_for_them(self) -> None:
        for enabled, file in ((False, str(MAP)), (True, None)):
            self.conf.set_override("enabled", enabled, group="audit")
            self.conf.set_override("audit_map_file", file, group="audit")
            events = cadf.Events(self.conf)
            self.assertEqual((False, None), (events.is_on, events.outbound))


class Maps(api_case.ApiCase):
    def refuse(self, text: str | bytes | None, **options: object) -> str:
        file = pathlib.Path(self.useFixture(fixtures.TempDir()).path, "map.conf")
        if text is not None:
            file.write_bytes(text if isinstance(text, bytes) else text.encode())
        switch_on(self.conf, audit_map_file=str(file), **options)
        return self.assertRaises(errors.ConfigurationError, cadf.check, self.conf).message

    def test_what_cannot_be_a_map_is_refused_by_name(self) -> None:
        for text, part in (
            (None, "cannot be read: No such file"),
            ("nodes = node\n", "cannot be used"),
            (b"[path_keywords]\nnodes = \xff\n", "cannot be used"),
            ("[path_keywords]\nnodes = %s\n", "cannot be used"),
            ("[path_keywords]\na = b\na = c\n", "cannot be used"),
            ("[path_words]\nnodes = node\n", "Nothing reads its section [path_words]"),
            ("[DEFAULT]\ntarget_endpoint_type = baremetal\n", "has no section [path_keywords]"),
        ):
            message = self.refuse(text)
            self.assertIn("[audit] audit_map_file", message)
            self.assertIn(part, message)

    def test_events_that_nothing_sends_are_refused(self) -> None:
        switch_on(self.conf)
        self.conf.set_override("driver", [], broker.NOTIFICATIONS)
        refusal = self.assertRaises(errors.ConfigurationError, cadf.check, self.conf)
        self.assertIn("[audit_middleware_notifications] driver", refusal.message)
        self.conf.set_override("driver", "log", cadf.GROUP)
        cadf.check(self.conf)

    def test_the_one_that_is_shipped_has_every_part_of_every_url(self) -> None:
        parser = configparser.ConfigParser()
        parser.read_string(MAP.read_text())
        parts = {
            part
            for route in routes.ROUTES
            if route.path.startswith(("/v1/", "/ingot/v1/"))
            for part in route.path.split("/")
            if part and not part.startswith("<") and part not in ("v1", "ingot")
        }
        known = set(parser["path_keywords"]) - {"target_endpoint_type"}
        self.assertEqual(parts, known)
        self.assertLessEqual({name.partition("/")[0] for name in parser["custom_actions"]} - {"target_endpoint_type"},
                             known)  # fmt: skip
