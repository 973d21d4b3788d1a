"""A step that needs what a user's URL names polls until it is there: neither its worker nor the lock waits for it."""

import base64
import gzip
import socket
import threading
from typing import Any

from ingot.common import errors, states
from ingot.db import nodes
from ingot.drivers.images import configdrive, fetches, instance_image
from ingot.drivers.interfaces import results
from tests import conductor_case, database, http_handler
from tests.unit.drivers import fakes
from tests.unit.drivers.file_server import FileServer, HandledServer, SlowServer

SHA = "ab" * 32


class FetchesTest(fakes.DriverTestCase):
    def setUp(self) -> None:
        super().setUp()
        self.patch(fetches, "_PATIENCE", 0.05)

    def serve(self, files: dict[str, bytes]) -> str:
        server = FileServer(files)
        self.addCleanup(server.stop)
        return server.url

    def with_checksum(self, url: str, **options: Any) -> fakes.MemoryTask:
        task = self.task(instance_info={"image_source": "http://images/one.raw", "image_checksum": url})
        for name, value in options.items():
            task.conf.set_override(name, value)
        return task

    def test_a_slow_server_is_polled_and_asked_once(self) -> None:
        asked: list[str] = []
        answers = threading.Event()

        class Handler(http_handler.Handler):
            def do_GET(self) -> None:
                asked.append(self.path)
                answers.wait(30)
                self.answer(200, SHA.encode())

        server = HandledServer(Handler)
        self.addCleanup(server.stop)
        self.addCleanup(answers.set)
        task = self.with_checksum(f"{server.url}/SUM")
        for _ in range(3):
            answer = instance_image.examine(task)
            self.assertIsInstance(answer, results.PollAfter)
            self.assertTrue(answer.abortable)
        answers.set()
        image = conductor_case.eventually(
            lambda: isinstance(found := instance_image.examine(task), instance_image.ReadyImage) and found,
            "the checksum is there",
        )
        self.assertEqual(SHA, image.checksum)
        self.assertEqual("/SUM", asked[0])

    def failed(self, task: fakes.MemoryTask) -> str:
        def fails() -> str | None:
            try:
                instance_image.examine(task)
            except errors.IngotError as exc:
                return exc.message
            return None

        message: str = conductor_case.eventually(fails, "it fails")
        return message

    def test_a_name_that_is_never_resolved(self) -> None:
        ended = threading.Event()

        def resolve(*_given: Any, **_more: Any) -> None:
            ended.wait(60)
            raise socket.gaierror

        self.patch(socket, "getaddrinfo", resolve)
        self.addCleanup(ended.set)
        self.patch(fetches, "_GRACE", 0.0)
        message = self.failed(self.with_checksum("http://sums/SUM", webserver_connection_timeout=1))
        self.assertEqual("instance_info.image_checksum: http://sums/SUM: it was not there within 1 s", message)

    def test_one_that_never_ends_fails_in_time(self) -> None:
        server = SlowServer()
        self.addCleanup(server.stop)
        task = self.with_checksum(f"{server.url}/?X-Signature=hush", webserver_connection_timeout=1)

        message = self.failed(task)
        for part in ("instance_info.image_checksum", server.url, "not there within 1 s"):
            self.assertIn(part, message)
        self.assertNotIn("hush", message)

    def test_there_are_only_so_many_at_once(self) -> None:
        server = SlowServer()
        self.addCleanup(server.stop)
        for number in range(3):
            task = self.with_checksum(f"{server.url}/{number}", webserver_connection_timeout=2)
            task.conf.set_override("workers_pool_size", 8, group="conductor")
            self.assertIsInstance(instance_image.examine(task), results.PollAfter)
        self.assertEqual(2, sum(server.url in key[-1] for key in fetches._fetches))

    def test_a_file_of_checksums_that_is_no_text(self) -> None:
        self.patch(fetches, "_PATIENCE", 30)
        url = self.serve({"/SUM": b"\xff\xfe" + bytes(100)})
        error = self.assertRaises(errors.ImageError, instance_image.examine, self.with_checksum(f"{url}/SUM"))
        self.assertIn("not text", error.message)
        self.assertIn(f"{url}/SUM", error.message)

    def test_addresses_that_are_denied(self) -> None:
        self.patch(fetches, "_PATIENCE", 30)
        url = self.serve({"/SUM": SHA.encode()})
        for given, error_class in ((url, errors.Invalid), (url.replace("127.0.0.1", "localhost"), errors.ImageError)):
            task = self.with_checksum(f"{given}/SUM")
            task.conf.clear_override("url_denied_networks", group="deploy")
            error = self.assertRaises(error_class, instance_image.examine, task)
            self.assertIn("may not be reached", error.message)
        task = self.task(instance_info={"image_source": "http://169.254.169.254/a.raw", "image_checksum": SHA})
        task.conf.clear_override("url_denied_networks", group="deploy")
        error = self.assertRaises(errors.Invalid, instance_image.read_requested_image, task)
        self.assertIn("url_denied_networks", error.message)

    def test_a_config_drive_is_not_waited_for_either(self) -> None:
        packed = gzip.compress(b"iso")
        task = self.task()
        url = self.serve({"/drive": packed})
        built = conductor_case.eventually(
            lambda: isinstance(found := configdrive.build(task, f"{url}/drive"), str) and found, "it is built"
        )
        self.assertEqual(packed, base64.b64decode(built))


class AbortTest(conductor_case.ConductorCase):
    def test_a_deployment_whose_config_drive_drips_can_be_aborted(self) -> None:
        self.patch(fetches, "_PATIENCE", 0.05)
        self.conf.set_override("url_denied_networks", [], group="deploy")
        server = SlowServer()
        self.addCleanup(server.stop)
        node = database.make_node(self.db)
        self.accept(node, "deploy", states.DEPLOYING, configdrive=f"{server.url}/drive")
        self.notify(node)
        waiting = self.in_state(node, states.DEPLOYWAIT)
        self.assertIsNone(waiting.reservation)
        nodes.request_abort(self.db, node.uuid, "deploy")
        self.notify(node)
        failed = self.settled(node)
        self.assertEqual(states.DEPLOYFAIL, failed.provision_state)
        self.assertIn("aborted", failed.last_error)
