"""What happens around every request: routing, body, errors."""

import inspect
import json
import re
import threading
import time
from typing import Any, ClassVar

from ingot.api import routes
from ingot.common import clock, errors, states
from ingot.db import nodes
from tests import api_case, conductor_case


class Routing(api_case.ApiCase):
    def test_an_unknown_url_is_404_in_the_shape_of_routing_errors(self) -> None:
        answer = self.api("GET", "/v1/nope")
        inner = json.loads(answer.json["error_message"])
        self.assertEqual((404, 404, "Not Found"), (answer.status, inner["code"], inner["title"]))
        self.assertNotIn("X-OpenStack-Ironic-API-Version", answer.headers)

    def test_what_a_nodes_states_do_not_have_is_not_there_and_cannot_be_set(self) -> None:
        for path in ("/v1/nodes/n/states/target_raid_config", "/v1/nodes/missing/states/nope"):
            self.assertIn("boot_mode", self.refused(404, "GET", path))
            answer = self.api("PUT", path, {"target": "x"})
            self.assertEqual((405, ""), (answer.status, answer.headers["Allow"]))

    def test_a_refusal_of_a_handler_has_a_faultstring(self) -> None:
        answer = self.api("GET", "/v1/nodes/missing")
        inner = json.loads(answer.json["error_message"])
        self.assertEqual({"faultcode": "Client", "faultstring": answer.message, "debuginfo": None}, inner)
        self.assertEqual("application/json", answer.headers["Content-Type"])

    def test_a_trailing_slash_is_fine(self) -> None:
        self.assertEqual([], self.good("GET", "/v1/nodes/")["nodes"])

    def test_every_route_has_handlers_that_take_its_identifiers(self) -> None:
        for route in routes.ROUTES:
            expected = set(re.findall("<(.*?)>", route.path))
            for method, operation in route.operations.items():
                code = getattr(operation.handler, "__wrapped__", operation.handler).__code__
                taken = set(code.co_varnames[: code.co_argcount]) - {"self", "call", "_call"}
                optional = len(getattr(operation.handler, "__defaults__", None) or ())
                required = taken - set(code.co_varnames[code.co_argcount - optional : code.co_argcount])
                if code.co_flags & inspect.CO_VARKEYWORDS:  # it passes them on
                    taken |= expected
                self.assertTrue(required <= expected <= taken, f"{method} {route.path}")

    def test_a_request_id_is_on_every_answer(self) -> None:
        for path in ("/", "/v1/nodes", "/v1/nodes/missing", "/nope"):
            headers = self.api("GET", path).headers
            self.assertRegex(headers["OpenStack-Request-Id"], r"^req-[0-9a-f-]{36}$")
            self.assertEqual(headers["OpenStack-Request-Id"], headers["X-OpenStack-Request-Id"])

    def test_an_answer_that_cannot_be_accepted_is_406(self) -> None:
        for requested in (
            "text/html",
            "application/xml, text/*;q=0.9",
            "application/json;q=0",
            "application/json; q=0.000, */*",
            "application/*;q=0, */*",
            'text/plain;a="application/json, */*"',
        ):
            self.assertEqual(406, self.api("GET", "/v1/nodes", Accept=requested).status, requested)
        for requested in (
            "*/*",
            "application/*",
            "text/html, application/json;q=0.5",
            "application/json; charset=utf-8",
            "Application/JSON;charset=UTF-8;q=0.1, text/html",
            "application/vnd.openstack+json, x/unknown;v=1, */*;q=0.1",
            "text/html, image/gif, *; q=.2, */*; q=.2",
            "*",
            "text/html;q=0, */*",
            "application/json;q=0, application/json;charset=utf-8",
            "",
            ",",
            ";;, a/b/c",
        ):
            self.assertEqual(200, self.api("GET", "/v1/nodes", Accept=requested).status, requested)

    def test_an_empty_answer_has_no_type(self) -> None:
        uuid = self.node()["uuid"]
        for method, path, body in (
            ("PUT", f"/v1/nodes/{uuid}/maintenance", {}),
            ("PUT", f"/v1/nodes/{uuid}/states/power", {"target": "power on"}),
            ("DELETE", f"/v1/nodes/{uuid}/maintenance", None),
            ("OPTIONS", "/v1/nodes", None),
        ):
            answer = self.api(method, path, body)
            self.assertEqual(("", False), (answer.text, "Content-Type" in answer.headers), path)
            self.assertLess(answer.status, 300, answer)

    def test_head_is_where_get_is(self) -> None:
        got, head = self.api("GET", "/v1/nodes"), self.api("HEAD", "/v1/nodes")
        self.assertEqual(
            (200, "", got.headers["Content-Length"]), (head.status, head.text, head.headers["Content-Length"])
        )
        known = head.headers["ETag"]
        self.assertEqual(304, self.api("HEAD", "/v1/nodes", If_None_Match=known).status)
        self.assertEqual(404, self.api("HEAD", "/v1/nodes/missing").status)
        self.assertEqual(200, self.api("HEAD", "/ingot/v1/events").status)
        self.assertEqual(405, self.api("HEAD", "/v1/nodes/n/states/power").status)

    def test_a_whole_collection_cannot_be_deleted(self) -> None:
        self.assertIn("/v1/ports/<port_uuid>", self.refused(400, "DELETE", "/v1/ports"))


class LockedNodes(api_case.ApiCase):
    PATCH: ClassVar[list[dict[str, Any]]] = [{"op": "add", "path": "/extra/a", "value": 1}]

    def setUp(self) -> None:
        super().setUp()
        self.uuid = self.node(name="n")["uuid"]
        self.lock("conductor-9")

    def lock(self, host: str | None) -> None:
        nodes.set_always(
            self.db, self.uuid, {"reservation": host, "lock_purpose": "power off", "locked_at": clock.now()}
        )

    def test_are_waited_for(self) -> None:
        self.conf.set_override("lock_wait_timeout", 30, group="api")
        release = threading.Timer(0.2, self.lock, (None,))
        release.start()
        self.addCleanup(release.join)
        self.assertEqual({"a": 1}, self.good("PATCH", "/v1/nodes/n", self.PATCH)["extra"])

    def test_are_not_waited_for_any_longer_than_is_configured(self) -> None:
        for patience in (0, 0.2):
            self.conf.set_override("lock_wait_timeout", patience, group="api")
            began = time.monotonic()
            self.assertIn("conductor-9 for power off", self.refused(409, "PATCH", "/v1/nodes/n", self.PATCH))
            self.assertLess(time.monotonic() - began, 10)

    def test_leave_threads_for_others(self) -> None:
        self.conf.set_override("lock_wait_timeout", 30, group="api")
        refused: list[Any] = []
        ask = lambda: refused.append(self.api("PATCH", "/v1/nodes/n", self.PATCH))  # noqa: E731
        waiting = [threading.Thread(target=ask) for _ in range(self.conf.api.api_threads // 4 + 1)]
        for thread in waiting:
            thread.start()
        conductor_case.eventually(lambda: refused, "one is refused at once")
        self.assertEqual(409, refused[0].status)
        self.assertEqual(1, len(refused))
        self.lock(None)
        for thread in waiting:
            thread.join()

    def test_can_be_read(self) -> None:
        self.assertEqual("conductor-9", self.good("GET", "/v1/nodes/n")["reservation"])


class SlowConductors(api_case.ApiCase):
    """A conductor that has not answered yet."""

    def setUp(self) -> None:
        super().setUp()
        self.uuid = self.node(name="n")["uuid"]
        nodes.set_always(self.db, self.uuid, {"provision_state": states.AVAILABLE})
        self.asked, self.answers = threading.Semaphore(0), threading.Event()
        self.addCleanup(self.answers.set)
        self.conductor.get_boot_device = self.answer_late

    def answer_late(self, _ctx: Any, node_uuid: str) -> Any:
        self.asked.release()
        self.answers.wait(conductor_case.PATIENCE)
        return {"result": {"boot_device": "pxe", "persistent": False}}

    def test_are_waited_for_by_a_quarter_of_the_threads(self) -> None:
        path = "/v1/nodes/n/management/boot_device"
        got: list[Any] = []
        ask = lambda: got.append(self.api("GET", path).status)  # noqa: E731
        waiting = [threading.Thread(target=ask) for _ in range(self.conf.api.api_threads // 4)]
        for thread in waiting:
            thread.start()
            self.assertTrue(self.asked.acquire(timeout=conductor_case.PATIENCE))
        self.assertIn("too many requests", self.refused(503, "GET", path))
        # A verb is accepted all the same, and checked when its flow begins.
        self.assertEqual(202, self.api("PUT", "/v1/nodes/n/states/provision", {"target": "active"}).status)
        self.assertIn("unchecked", nodes.get(self.db, self.uuid).request)
        self.assertEqual([], got)
        self.answers.set()
        for thread in waiting:
            thread.join()
        self.assertEqual({200}, set(got))


class Bodies(api_case.ApiCase):
    def test_malformed_json_names_the_place(self) -> None:
        message = self.refused(400, "POST", "/v1/nodes", b'{"driver": "fake')
        self.assertIn("line 1 column 17", message)

    def test_what_is_no_json_is_refused(self) -> None:
        for body in (b"hello", b"<a/>", b'{"a":\xff}', b"null", b'{"extra": {"a": NaN}}', b"{" * 5000):
            self.refused(400, "POST", "/v1/chassis", body)

    def test_a_body_of_the_wrong_type_is_refused(self) -> None:
        for body in (b"[]", b'"x"', b"5", b"true"):
            self.assertIn("is not of type 'object'", self.refused(400, "POST", "/v1/nodes", body))

    def test_bodies_with_a_config_drive_or_logs_may_be_larger(self) -> None:
        large = {"configdrive": "x" * 2**21}
        for path, status in (
            ("/v1/nodes/none/states/provision", 400),
            ("/v1/continue_inspection", 400),
            ("/v1/nodes/none/states/power", 413),
        ):
            method = "POST" if path.endswith("inspection") else "PUT"
            answer = self.api(method, path, {"target": "active", **large})
            self.assertEqual(status, answer.status, (path, answer.json))

    def test_too_large_and_too_deep_are_not_wrapped(self) -> None:
        large = self.api("POST", "/v1/chassis", {"description": "x" * 2**20})
        self.assertEqual((413, "Client"), (large.status, large.json["faultcode"]))
        deep: Any = 1
        for _level in range(25):
            deep = {"a": deep}
        too_deep = self.api("POST", "/v1/chassis", {"extra": deep})
        self.assertEqual((400, "Client"), (too_deep.status, too_deep.json["faultcode"]))
        self.good("POST", "/v1/chassis", {"extra": deep["a"]})

    def test_an_unknown_key_is_named_with_what_is_allowed(self) -> None:
        message = self.refused(400, "POST", "/v1/chassis", {"colour": "red"})
        self.assertIn("colour", message)
        self.assertIn("description, extra, uuid", message)

    def test_a_wrong_value_is_named_with_its_field(self) -> None:
        self.assertIn("name: 7 is not of type", self.refused(400, "POST", "/v1/nodes", {**api_case.NODE, "name": 7}))

    def test_an_unknown_parameter_is_named_with_what_is_allowed(self) -> None:
        message = self.refused(400, "GET", "/v1/nodes/x?colour=red&size=3")
        self.assertIn("colour, size", message)
        self.assertIn("fields", message)

    def test_a_parameter_given_twice_is_refused(self) -> None:
        self.assertIn("only once", self.refused(400, "GET", "/v1/nodes?limit=1&limit=2"))


class Identifiers(api_case.ApiCase):
    def test_what_no_database_keeps_names_nothing(self) -> None:
        self.node(name="n")
        for path in ("conductors/%00", "drivers/a%00b", "nodes/n/history/%00", "nodes/%00/states", "ports/%00"):
            self.assertIn("NUL", self.refused(400, "GET", f"/v1/{path}"))


class WhoAsks(api_case.ApiCase):
    def test_goes_along_no_longer_than_the_history_of_a_node_takes_it(self) -> None:
        self.node(name="n")
        self.api("GET", "/v1/nodes/n/management/boot_device", X_User_Id="u" * 5000, X_Project_Id="p" * 5000)
        ctx = self.conductor.contexts[-1]
        self.assertEqual(("u" * 255, "p" * 255), (ctx["user"], ctx["project_id"]))


class Trouble(api_case.ApiCase):
    def test_a_defect_is_500_tells_nothing_and_is_logged(self) -> None:
        self.node(name="n")
        self.conductor.answers["get_boot_device"] = ZeroDivisionError("secret detail")
        answer = self.api("GET", "/v1/nodes/n/management/boot_device")
        self.assertEqual(500, answer.status)
        self.assertNotIn("secret detail", answer.text)

    def test_what_is_not_available_may_be_tried_again(self) -> None:
        self.node(name="n")
        self.conductor.answers["get_boot_device"] = errors.ServiceUnavailable(what="The BMC", reason="it sleeps")
        answer = self.api("GET", "/v1/nodes/n/management/boot_device")
        self.assertEqual((503, "5"), (answer.status, answer.headers["Retry-After"]))

    def test_an_error_of_the_conductor_keeps_its_status(self) -> None:
        self.node(name="n")
        self.conductor.answers["set_boot_device"] = errors.Invalid(field="boot_device", value="moon", allowed="disk.")
        message = self.refused(400, "PUT", "/v1/nodes/n/management/boot_device", {"boot_device": "moon"})
        self.assertIn("moon", message)
