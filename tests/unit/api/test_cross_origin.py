"""Pages of other sites (CORS), by oslo.middleware: who may ask, what browsers learn, and the order of things."""

from typing import Any

from oslo_middleware import cors

from ingot.api.web import cross_origin
from ingot.common import errors
from ingot.common.conf import cors as options
from tests import api_case, identity_case

SITE, OTHER = "https://horizon.example.com", "https://evil.example"
ALLOWS = "Access-Control-Allow-"


class CorsCase(api_case.ApiCase):
    def configure(self) -> None:
        self.conf.set_override("allowed_origin", [SITE], group="cors")

    def preflight(self, method: str, headers: str = "", origin: str = SITE, path: str = "/v1/nodes") -> Any:
        sent = {"Origin": origin, f"{ALLOWS.replace('Allow', 'Request')}Method": method}
        sent |= {f"{ALLOWS.replace('Allow', 'Request')}Headers": headers} if headers else {}
        return self.http.open(path, method="OPTIONS", headers=sent)


class Sites(CorsCase):
    def test_pages_of_a_site_may_read_answers_and_those_of_others_not(self) -> None:
        for origin, allowed in ((SITE, SITE), (OTHER, None), (f"{SITE}:8443", None), (None, None)):
            answer = self.unchecked("GET", "/v1/nodes", **({"Origin": origin} if origin else {}))
            self.assertEqual((200, allowed), (answer.status, answer.headers.get(f"{ALLOWS}Origin")), origin)
        answer = self.unchecked("GET", "/v1/nodes", Origin=SITE)
        self.assertEqual("true", answer.headers[f"{ALLOWS}Credentials"])
        self.assertIn("Origin", answer.headers["Vary"])
        self.assertIn("X-OpenStack-Ironic-API-Version", answer.headers["Vary"])
        self.assertIn("X-OpenStack-Request-ID", answer.headers["Access-Control-Expose-Headers"])

    def test_refusals_are_for_pages_too(self) -> None:
        for path, status in (("/v1/nodes/none", 404), ("/none", 404), ("/v1/nodes?limit=x", 400)):
            answer = self.unchecked("GET", path, Origin=SITE)
            self.assertEqual((status, SITE), (answer.status, answer.headers[f"{ALLOWS}Origin"]))
            self.assertIn("X-OpenStack-Request-Id", answer.headers)

    def test_what_browsers_ask_before(self) -> None:
        """Measured with Ironic 39, which allows TRACE, too."""
        for method, headers, allowed in (
            ("PATCH", "x-auth-token,content-type,X-OpenStack-Ironic-API-Version", True),
            ("DELETE", "", True),
            ("TRACE", "", False),
            ("GET", "x-other", False),
            ("PUT", "X-Ingot-Console", False),  # the cookie of the console is no door for other sites
        ):
            answer = self.preflight(method, headers)
            self.assertEqual(200, answer.status_code, (method, headers))
            self.assertEqual(SITE if allowed else None, answer.headers.get(f"{ALLOWS}Origin"), (method, headers))
            if allowed:
                self.assertEqual((method, "3600"), (
                    answer.headers[f"{ALLOWS}Methods"], answer.headers["Access-Control-Max-Age"]))  # fmt: skip
        self.assertNotIn(f"{ALLOWS}Origin", self.preflight("GET", origin=OTHER).headers)
        self.assertEqual(SITE, self.preflight("GET", path="/none").headers[f"{ALLOWS}Origin"])

    def test_pages_of_a_site_may_change_things_without_a_header_of_the_api(self) -> None:
        for origin, status in ((SITE, 201), (OTHER, 403)):
            answer = self.http.post("/v1/nodes", json=api_case.NODE, headers={"Origin": origin})
            self.assertEqual(status, answer.status_code, answer.text)

    def test_bodies_and_streams_pass_unchanged(self) -> None:
        created = self.unchecked("POST", "/v1/nodes", {**api_case.NODE, "extra": {"a": "b" * 100_000}}, Origin=SITE)
        self.assertEqual(201, created.status)
        plain = self.unchecked("GET", f"/v1/nodes/{created.json['uuid']}")
        self.assertEqual(plain.text, self.unchecked("GET", f"/v1/nodes/{created.json['uuid']}", Origin=SITE).text)
        head = self.unchecked("HEAD", "/v1/nodes", Origin=SITE)
        self.assertEqual((200, ""), (head.status, head.text))


class WithKeystone(identity_case.IdentityCase):
    def configure(self) -> None:
        super().configure()
        self.conf.set_override("allowed_origin", [SITE], group="cors")

    def test_a_page_learns_that_it_needs_a_token_and_preflight_needs_none(self) -> None:
        """It stands before authentication, as in Ironic."""
        answer = self.unchecked("GET", "/v1/nodes", Origin=SITE)
        self.assertEqual((401, SITE), (answer.status, answer.headers[f"{ALLOWS}Origin"]))
        asked = {"Origin": SITE, "Access-Control-Request-Method": "GET"}
        self.assertEqual(200, self.http.open("/v1/nodes", method="OPTIONS", headers=asked).status_code)


class Options(api_case.ApiCase):
    def test_without_a_site_there_is_nothing_around_the_application(self) -> None:
        self.assertEqual(print, cross_origin.wrap(self.conf, print))
        self.assertNotIn(f"{ALLOWS}Origin", self.unchecked("GET", "/v1/nodes", Origin=SITE).headers)

    def test_they_are_those_of_the_library(self) -> None:
        self.assertEqual({opt.dest for opt in cors.OPTS}, {opt.dest for opt in options.CORS})

    def test_a_site_that_no_browser_writes_so_is_refused(self) -> None:
        for origin in (f"{SITE}/", f"{SITE}/dashboard", "horizon.example.com", "https://"):
            self.conf.set_override("allowed_origin", [SITE, origin], group="cors")
            refusal = self.assertRaises(errors.ConfigurationError, cross_origin.check, self.conf)
            self.assertIn(f"[cors] allowed_origin: {origin!r}", refusal.message)
        self.conf.set_override("allowed_origin", ["*"], group="cors")
        cross_origin.check(self.conf)
