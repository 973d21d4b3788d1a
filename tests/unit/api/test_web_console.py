"""The files of the web console: which there are, how browsers may keep them, and what pages may do."""

import gzip
import json
import logging
import os
import pathlib
from typing import Any

import fixtures

from tests import api_case

PAGE = "<!doctype html><title>Ingot</title>"
SCRIPT = "console.log('a script that is long enough to be packed');\n" * 40
BROWSER = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"


class Files(api_case.ApiCase):
    def configure(self) -> None:
        self.folder = pathlib.Path(self.useFixture(fixtures.TempDir()).path) / "console"
        self.useFixture(fixtures.MonkeyPatch("ingot.api.web.web_console.FOLDER", self.folder))

    def build(self) -> None:
        (self.folder / "assets").mkdir(parents=True)
        (self.folder / "index.html").write_text(PAGE)
        (self.folder / "assets" / "app-0a1b.js").write_text(SCRIPT)
        (self.folder / "assets" / "pixel-0a1b.png").write_bytes(b"\x89PNG")
        (self.folder.parent / "secret").write_text("of the host")

    def file(self, path: str, method: str = "GET", status: int = 200, **headers: str) -> Any:
        answer = self.http.open(path, method=method, headers={k.replace("_", "-"): v for k, v in headers.items()})
        self.assertEqual(status, answer.status_code, (path, answer.data[:200]))
        return answer

    def test_without_a_build_the_answer_says_so(self) -> None:
        self.assertIn("not built", self.file("/console/", status=404).text)
        self.assertIn("versions", self.file("/", Accept=BROWSER).json)

    def test_a_console_that_is_off_is_not_there(self) -> None:
        self.build()
        self.conf.set_override("enabled", False, group="console")
        for path in ("/console", "/console/", "/console/assets/app-0a1b.js", "/console/csp"):
            self.assertIn("[console] enabled", self.file(path, status=404).text)
        self.assertIn("versions", self.file("/", Accept=BROWSER).json)

    def test_files_are_kept_as_long_as_they_are_good(self) -> None:
        self.build()
        first, script, image = (
            self.file(f"/console/{name}") for name in ("", "assets/app-0a1b.js", "assets/pixel-0a1b.png")
        )
        self.assertEqual((PAGE, "text/html; charset=utf-8", "no-cache"),
                         (first.text, first.content_type, first.headers["Cache-Control"]))  # fmt: skip
        self.assertEqual(("text/javascript; charset=utf-8", "public, max-age=31536000, immutable"),
                         (script.content_type, script.headers["Cache-Control"]))  # fmt: skip
        self.assertEqual(("image/png", SCRIPT), (image.content_type, script.text))
        again = self.file("/console/", status=304, If_None_Match=first.headers["ETag"])
        self.assertEqual((b"", first.headers["ETag"]), (again.data, again.headers["ETag"]))

    def test_texts_are_packed_for_those_who_take_it(self) -> None:
        self.build()
        path = "/console/assets/app-0a1b.js"
        packed = self.file(path, Accept_Encoding="br, gzip")
        self.assertEqual(SCRIPT, gzip.decompress(packed.data).decode())
        self.assertEqual(("gzip", "Accept-Encoding"), (packed.headers["Content-Encoding"], packed.headers["Vary"]))
        plain = self.file(path, Accept_Encoding="gzip;q=0")
        self.assertEqual(SCRIPT, plain.text)
        self.assertNotEqual(packed.headers["ETag"], plain.headers["ETag"])
        self.assertNotIn("Content-Encoding", self.file("/console/", Accept_Encoding="gzip").headers)
        head = self.file(path, "HEAD")
        self.assertEqual((b"", str(len(SCRIPT))), (head.data, head.headers["Content-Length"]))

    def test_places_of_the_console_get_its_first_page(self) -> None:
        self.build()
        for path in (
            "/console/nodes", "/console/nodes/rack.1/timeline", "/console/nodes/a..b", "/console/?filter=state:active",
        ):  # fmt: skip
            self.assertEqual(PAGE, self.file(path).text, path)
        self.assertEqual("console/", self.file("/console", status=302).headers["Location"])

    def test_nothing_else_can_be_read(self) -> None:
        self.build()
        for path in ("/console/assets/../../secret", "/console/assets/none.js", "/console/assets/app-0a1b.js%00.png"):
            self.assertNotIn("of the host", self.file(path, status=404).text)
        for path in (
            "/console/../secret", "/console/..%2fsecret", "/console/%2e%2e/secret", "/console/..%5csecret",
            f"/console/{self.folder.parent}/secret",
        ):  # fmt: skip
            self.assertEqual(PAGE, self.file(path).text)

    def test_files_are_only_read(self) -> None:
        self.build()
        for method in ("POST", "PUT", "DELETE", "PATCH"):
            self.file("/console/", method, 405)

    def test_a_page_may_do_little(self) -> None:
        self.build()
        for path, status in (("/console/", 200), ("/console/assets/none.js", 404), ("/console", 302)):
            headers = self.file(path, status=status).headers
            policy = dict(part.strip().split(" ", 1) for part in headers["Content-Security-Policy"].split(";"))
            self.assertEqual({"'none'", "'self'", "'self' data:", "/console/csp"}, set(policy.values()))
            self.assertEqual(("'none'", "'self'"), (policy["default-src"], policy["script-src"]))
            self.assertEqual(("nosniff", "no-referrer", "same-origin", "DENY"), tuple(
                headers[name] for name in ("X-Content-Type-Options", "Referrer-Policy", "Cross-Origin-Opener-Policy",
                                           "X-Frame-Options")))  # fmt: skip

    def test_browsers_find_the_console_and_clients_the_versions(self) -> None:
        self.build()
        self.assertEqual("console/", self.file("/", status=302, Accept=BROWSER).headers["Location"])
        for accept in ("application/json", "*/*"):
            self.assertIn("versions", self.file("/", Accept=accept).json)

    def test_files_that_were_built_anew_are_read_anew(self) -> None:
        self.build()
        self.assertEqual(PAGE, self.file("/console/").text)
        (self.folder / "index.html").write_text("newer")
        os.utime(self.folder / "index.html", ns=(1, 1))
        self.assertEqual("newer", self.file("/console/").text)

    def test_reports_of_browsers_are_logged_but_not_without_end(self) -> None:
        log = self.useFixture(fixtures.FakeLogger(level=logging.WARNING))
        report = {"csp-report": {"effective-directive": "script-src-elem", "blocked-uri": "inline\nforged"}}
        for body in (json.dumps(report).encode(), b"rubbish", b"[]", b'{"csp-report": 1}', b"x" * 100_000):
            answer = self.http.post("/console/csp", data=body, content_type="application/csp-report")
            self.assertEqual((204, b""), (answer.status_code, answer.data))
        self.assertIn("effective-directive 'script-src-elem', blocked-uri 'inline\\nforged'", log.output)
        self.assertEqual(4, log.output.count("cannot be read"))
        for _number in range(20):
            self.http.post("/console/csp", data=b"{}")
        self.assertEqual(10, log.output.count("A browser reports"))

    def test_requests_are_counted_as_one_route(self) -> None:
        self.build()
        log = self.useFixture(fixtures.FakeLogger("ingot.api.access", level=logging.INFO))
        self.file("/console/nodes")
        self.assertIn("GET /console/nodes 200", log.output)
