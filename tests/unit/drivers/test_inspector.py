"""The inspect interface inspector, where its service does not behave: silence, refusals, answers of any form.

tests.gate.test_inspector has a real ironic-inspector.
"""

import contextlib
import http.server
import threading
import time
from collections.abc import Callable
from typing import Any

from keystoneauth1 import loading
from oslo_config import cfg

from ingot.common import errors
from ingot.common.conf import opts
from ingot.drivers.agent import introspection_service
from ingot.drivers.interfaces import results
from tests import patience
from tests.unit.drivers import fakes

NODE = "3f5b9b2e-6a0d-4f3a-8c1b-0d7e4e2a9c11"
PASSWORD = "hush hush"

Answer = tuple[int, bytes] | Callable[[Any], None]


class InspectorCase(fakes.DriverTestCase):
    """Has a server in place of the service, whose answer to every request is set."""

    def setUp(self) -> None:
        super().setUp()
        self.answer: Answer = (200, b"{}")
        self.asked: list[str] = []
        case = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                case.asked.append(f"{self.command} {self.path}")
                with contextlib.suppress(ConnectionError):  # the client does not wait for all of it
                    if callable(case.answer):
                        case.answer(self)
                        return
                    status, content = case.answer
                    self.send_response(status)
                    self.send_header("Content-Length", str(len(content)))
                    self.end_headers()
                    self.wfile.write(content)

            do_POST = do_GET

            def log_message(self, format: str, *args: Any) -> None:
                """Drop what is not read."""

        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        self.url = f"http://127.0.0.1:{server.server_address[1]}"

    def configure(self, **options: Any) -> cfg.ConfigOpts:
        conf = fakes.configuration(
            enabled_hardware_types=["fake-hardware"], enabled_inspect_interfaces=["inspector", "no-inspect"], **options
        )
        opts.use_service(conf, "inspector")
        own = {"auth_type": "http_basic", "username": "u", "password": PASSWORD}
        conf.register_opts(loading.get_auth_plugin_conf_options("http_basic"), "inspector")
        for name, value in {**own, "endpoint_override": self.url}.items():
            conf.set_override(name, value, group="inspector")
        return conf

    def service(self, timeout: int = 20) -> introspection_service.Service:
        conf = self.configure()
        conf.set_override("timeout", timeout, group="inspector")
        return introspection_service.Service(conf)


class ServiceTest(InspectorCase):
    def test_one_that_is_not_configured_is_named(self) -> None:
        conf = fakes.configuration(enabled_hardware_types=["fake-hardware"])
        error = self.assertRaises(errors.Invalid, introspection_service.Service, conf)
        self.assertIn("[inspector] auth_type", error.message)

    def test_silence_and_dripping_end_in_time(self) -> None:
        def drip(handler: Any) -> None:
            handler.send_response(200)
            handler.end_headers()
            for _ in range(200):
                handler.wfile.write(b" ")
                handler.wfile.flush()
                time.sleep(0.1)

        for answer in (lambda _handler: time.sleep(20), drip):
            self.answer = answer
            began = time.monotonic()
            error = self.assertRaises(introspection_service.Away, self.service(timeout=1).progress, NODE)
            self.assertLess(time.monotonic() - began, patience.seconds(8))
            self.assertNotIn(PASSWORD, error.message)

    def test_its_words_reach_the_user(self) -> None:
        self.answer = (400, b'{"error": {"message": "no such node"}}')
        error = self.assertRaises(introspection_service.Refused, self.service().start, NODE, False)
        self.assertEqual("the inspection service answers HTTP 400: no such node", error.message)
        self.answer = (503, b"<html>")
        self.assertRaises(introspection_service.Away, self.service().start, NODE, False)

    def test_what_is_no_answer(self) -> None:
        for content in (b"<html>", b"[]", b"1", b"\xff", b'{"a": ' * 300 + b"1" + b"}" * 300):
            self.answer = (200, content)
            error = self.assertRaises(introspection_service.Refused, self.service().progress, NODE)
            self.assertIn("no JSON object", error.message)
        self.answer = (200, b" " * (17 * 1024**2))
        self.assertIn("more than", self.assertRaises(introspection_service.Refused, self.service().data, NODE).message)

    def test_one_that_keeps_no_data(self) -> None:
        self.answer = (404, b'{"error": {"message": "Set the [processing]store_data configuration option"}}')
        self.assertEqual({}, self.service().data(NODE))
        self.answer = (404, b'{"error": {"message": "never heard of it"}}')
        self.assertRaises(introspection_service.Refused, self.service().data, NODE)

    def test_where_agents_send_what_they_find(self) -> None:
        conf = self.configure()
        self.assertEqual(f"{self.url}/v1/continue", introspection_service.Service(conf).find_callback())
        conf.set_override("callback_endpoint_override", "http://10.0.0.1:5050/v1/", group="inspector")
        self.assertEqual("http://10.0.0.1:5050/v1/continue", introspection_service.Service(conf).find_callback())


class InspectTest(InspectorCase):
    def begin(self, **options: Any) -> fakes.MemoryTask:
        """Return a task on a node that the service has to boot, as it has no port."""
        conf = self.configure(enabled_boot_interfaces=["ipxe"], **options)
        return fakes.MemoryTask(conf, fakes.node(inspect_interface="inspector", boot_interface="ipxe"))

    def call(self, task: fakes.MemoryTask) -> results.Result:
        return results.parse_result(task.driver.inspect.inspect_hardware(task), "inspect_hardware")

    def wait_for_failure(self, task: fakes.MemoryTask) -> str:
        deadline = time.monotonic() + patience.seconds(30)
        while time.monotonic() < deadline:
            try:
                answer = self.call(task)
            except errors.StepFailed as exc:
                return exc.message
            assert isinstance(answer, results.PollAfter), answer
            time.sleep(0.1)
        raise AssertionError("it never failed")

    def test_the_service_boots_what_cannot_be_booted_here(self) -> None:
        self.answer = (200, b'{"finished": false, "error": null}')
        task = self.begin(conductor__inspect_wait_timeout=600)
        answer = self.call(task)
        assert isinstance(answer, results.PollAfter)
        self.assertTrue(answer.abortable)
        self.assertEqual("inspection service", answer.waits_for)
        self.assertLessEqual(answer.until or 0, time.time() + 600)
        self.assertEqual(
            [f"POST /v1/introspection/{task.node.uuid}?manage_boot=True", f"GET /v1/introspection/{task.node.uuid}"],
            self.asked,
        )

    def test_data_become_the_inventory(self) -> None:
        task = self.begin()
        self.answer = (
            200,
            b'{"finished": true, "inventory": {"cpu": {"count": 4}}, "root_disk": {"name": "/dev/sda"}}',
        )
        self.assertEqual(results.DONE, self.call(task))
        found, rest = task.found
        self.assertEqual({"cpu": {"count": 4}}, found)
        self.assertEqual({"name": "/dev/sda"}, rest["root_disk"])

    def test_it_has_to_be_booted_here_where_that_is_required(self) -> None:
        task = self.begin(inspector__require_managed_boot=True)
        for call in (task.driver.inspect.validate, task.driver.inspect.inspect_hardware):
            self.assertIn("deploy_kernel", self.assertRaises(errors.Invalid, call, task).message)
        self.assertEqual([], self.asked)

    def test_one_that_is_never_done(self) -> None:
        self.answer = (200, b'{"finished": false}')
        task = self.begin(conductor__inspect_wait_timeout=2, inspector__status_check_period=1)
        self.assertIn("[conductor] inspect_wait_timeout, which is 2 s", self.wait_for_failure(task))

    def test_one_that_falls_silent(self) -> None:
        self.answer = (200, b'{"finished": false}')
        task = self.begin(conductor__inspect_wait_timeout=2)
        self.call(task)
        self.answer = (502, b"")
        self.assertIn("the inspection service answers HTTP 502", self.wait_for_failure(task))

    def test_an_abort_that_it_refuses_harms_nothing(self) -> None:
        self.answer = (409, b'{"error": {"message": "locked"}}')
        task = self.begin()
        task.driver.inspect.clean_up(task)
        deadline = time.monotonic() + patience.seconds(10)
        while len(self.asked) < 3 and time.monotonic() < deadline:
            time.sleep(0.05)
        self.assertEqual([f"POST /v1/introspection/{task.node.uuid}/abort"] * 3, self.asked)
