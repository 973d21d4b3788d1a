"""``GET /healthcheck``, which balancers and probes ask."""

import errno
import ipaddress
import pathlib
import threading

import fixtures
import sqlalchemy as sa
import testtools
from oslo_middleware import opts

from ingot.api.web import health_backends
from ingot.common import errors, probes, telemetry
from ingot.common.conf import healthcheck
from tests import api_case, patience


class Healthcheck(api_case.ApiCase):
    def configure(self) -> None:
        super().configure()
        self.useFixture(fixtures.MonkeyPatch("ingot.common.telemetry._checks", {}))  # what other tests have left

    def ask(self, method: str = "GET") -> api_case.Answer:
        """Ask as a balancer does: it knows no versions and no password."""
        return api_case.Answer(self.http.open("/healthcheck", method=method))

    def set(self, **options: object) -> None:
        for name, value in options.items():
            self.conf.set_override(name, value, group="healthcheck")

    def fail_statements(self) -> None:
        def fail(*_about: object) -> None:
            raise sa.exc.OperationalError("a statement", {}, Exception("connection to 10.0.0.7 refused"))

        sa.event.listen(self.db.engine, "before_cursor_execute", fail)
        self.addCleanup(sa.event.remove, self.db.engine, "before_cursor_execute", fail)

    def test_it_answers_ok(self) -> None:
        answer = self.ask()
        self.assertEqual((200, "OK\n"), (answer.status, answer.text))
        self.assertIn("text/plain", answer.headers["Content-Type"])
        self.assertEqual((200, ""), (self.ask("HEAD").status, self.ask("HEAD").text))

    def test_it_needs_no_login(self) -> None:
        self.conf.set_override("auth_strategy", "http_basic")
        users = pathlib.Path(self.useFixture(fixtures.TempDir()).path, "htpasswd")
        users.write_text("")
        self.conf.set_override("http_basic_auth_user_file", str(users))
        http = self.application().test_client()
        self.assertEqual([401, 200], [http.get(path).status_code for path in ("/v1/nodes", "/healthcheck")])

    def test_without_database_it_is_unavailable_and_names_no_host(self) -> None:
        self.fail_statements()
        answer = self.ask()
        self.assertEqual(503, answer.status)
        self.assertIn("not ready: database", answer.message)
        self.assertNotIn("10.0.0.7", answer.text)

    def test_details_name_each_part(self) -> None:
        self.set(detailed=True)
        self.assertEqual(["OK", "database: OK", "message bus: OK"], self.ask().text.splitlines())
        self.fail_statements()
        self.db.probe = probes.Probe(self.db.dispose)
        self.assertEqual(200, self.ask().status)

    def test_a_part_of_the_process_that_is_not_ready_is_named(self) -> None:
        telemetry.add_check("conductor", lambda: "it is not registered")
        self.assertEqual((503, True), (self.ask().status, "not ready: conductor" in self.ask().message))

    def test_a_file_takes_it_out_of_service(self) -> None:
        file = pathlib.Path(self.useFixture(fixtures.TempDir()).path, "away")
        self.set(disable_by_file_path=str(file))
        self.assertEqual(200, self.ask().status)
        file.touch()
        self.assertEqual(503, self.ask().status)
        file.unlink()
        self.assertEqual(200, self.ask().status)

    def test_a_directory_that_it_may_not_enter_is_no_failure(self) -> None:
        def refuse(path: object, *_about: object, **_more: object) -> None:
            raise PermissionError(errno.EACCES, "Permission denied", path)

        self.set(disable_by_file_path="/root/away")
        self.useFixture(fixtures.MonkeyPatch("os.stat", refuse))
        self.assertEqual(200, self.ask().status)

    def test_it_can_be_switched_off(self) -> None:
        self.set(enabled=False)
        self.assertEqual(404, self.ask().status)

    def test_backends_of_oslo_middleware_are_asked(self) -> None:
        file = pathlib.Path(self.useFixture(fixtures.TempDir()).path, "file")
        self.conf.set_override("port", 6385, group="api")
        for backend, options, there, gone in (
            ("disable_by_file", {"disable_by_file_path": str(file)}, 503, 200),
            ("disable_by_files_ports", {"disable_by_file_paths": [f"6385:{file}"]}, 503, 200),
            ("disable_by_files_ports", {"disable_by_file_paths": [f"1:{file}"]}, 200, 200),
            ("enable_by_files", {"enable_by_file_paths": [str(file)]}, 200, 503),
        ):
            self.set(**{"backends": [backend], "disable_by_file_path": None, **options})
            file.touch()
            self.assertEqual(there, self.ask().status, backend)
            file.unlink()
            answer = self.ask()
            self.assertEqual(gone, answer.status, backend)
        self.assertIn("not ready: enable_by_files", answer.message)

    def test_a_backend_is_looked_for_once(self) -> None:
        self.conf.set_override("port", 6385, group="api")
        self.set(backends=["disable_by_file"])
        self.assertEqual(200, self.ask().status)
        with fixtures.MonkeyPatch("importlib.metadata.entry_points", None):
            self.assertEqual(200, self.ask().status)

    def test_backends_that_there_are_not_are_refused(self) -> None:
        for names, part in (
            (["redis"], "'redis'. There are: disable_by_file, disable_by_files_ports, enable_by_files."),
            (["disable_by_file", "enable_by_files"], "not both"),
        ):
            self.set(backends=names)
            refusal = self.assertRaises(errors.ConfigurationError, health_backends.check, self.conf)
            self.assertIn(part, refusal.message)

    def test_options_of_the_library_are_ours_too(self) -> None:
        library = {opt.dest for _group, options in opts.list_opts_healthcheck() for opt in options}
        self.assertLessEqual(library - {"path"}, {opt.dest for opt in healthcheck.HEALTHCHECK})

    def test_only_some_may_ask(self) -> None:
        for ranges, status in ((["127.0.0.0/8"], 200), (["192.0.2.0/24", "2001:db8::/32"], 404), ([], 200)):
            self.set(allowed_source_ranges=[ipaddress.ip_network(one) for one in ranges])
            self.assertEqual(status, self.ask().status, ranges)

    def test_not_by_way_of_a_proxy(self) -> None:
        for ignores, status in ((False, 200), (True, 404)):
            self.set(ignore_proxied_requests=ignores)
            for name in ("X-Forwarded-For", "X-Forwarded-Proto"):
                asked = self.http.get("/healthcheck", headers={name: "192.0.2.1"})
                self.assertEqual(status, asked.status_code, name)
            self.assertEqual(200, self.ask().status)


class Probes(testtools.TestCase):
    def test_many_who_ask_at_once_take_one_thread(self) -> None:
        asked, go_on, began = [], threading.Event(), threading.Event()

        def ask() -> None:
            asked.append(1)
            began.set()
            go_on.wait(patience.seconds(60))
            raise errors.ServiceUnavailable(what="The database", reason="it is away")

        probe = probes.Probe(ask)
        first = threading.Thread(target=probe.read)
        first.start()
        began.wait(patience.seconds(60))
        self.assertEqual(["it was not asked yet"] * 5, [probe.read() for _ in range(5)], "what was known last")
        go_on.set()
        first.join()
        self.assertEqual(1, len(asked))
        self.assertIn("it is away", str(probe.read()))

    def test_an_unexpected_error_ends_no_probe(self) -> None:
        probe = probes.Probe(lambda: 1 // 0)
        self.assertRaises(ZeroDivisionError, probe.read)
        self.assertIn("unexpectedly", str(probe.read()))
