"""The API's description: that it is one, and that it says what the tables say."""

import contextlib
import io
import pathlib

import fixtures
import openapi_spec_validator
import testtools

from ingot.api import openapi, routes
from ingot.api.nodes import node_fields
from ingot.api.web import description
from tests import api_case, described


class Document(testtools.TestCase):
    def test_is_openapi(self) -> None:
        openapi_spec_validator.validate(described.document())

    def test_has_every_route_and_method(self) -> None:
        documented = {
            (path, method.upper()) for path, methods in described.document()["paths"].items() for method in methods
        }
        served = {
            (description.template_path(route.path), method) for route in routes.ROUTES for method in route.operations
        }
        self.assertEqual(served, documented)

    def test_every_method_says_what_it_does(self) -> None:
        names = set()
        for path, methods in described.document()["paths"].items():
            for method, about in methods.items():
                self.assertTrue(about["summary"], f"{method} {path}")
                names.add(about["operationId"])
        self.assertEqual(sum(len(methods) for methods in described.document()["paths"].values()), len(names))

    def test_says_of_every_answer_what_it_is(self) -> None:
        """All but what methods of vendors answer, of which only they know."""
        vague = [
            f"{method} {path}"
            for path, methods in described.document()["paths"].items()
            for method, about in methods.items()
            for answer in about["responses"].values()
            for content in answer.get("content", {}).values()
            if not {"type", "$ref"} & content["schema"].keys() or isinstance(content["schema"].get("type"), list)
        ]
        self.assertEqual([], [text for text in vague if "vendor_passthru" not in text])

    def test_tells_the_version_that_brought_something(self) -> None:
        paths, known = described.document()["paths"], described.document()["components"]["schemas"]
        self.assertEqual({"min-ver": "1.92"}, paths["/v1/runbooks"]["get"]["x-openstack"])
        self.assertEqual({"min-ver": "1.51"}, known["Node"]["properties"]["description"]["x-openstack"])
        created = paths["/v1/nodes"]["post"]["requestBody"]["content"]["application/json"]["schema"]
        self.assertEqual({"min-ver": "1.51"}, created["properties"]["description"]["x-openstack"])
        filters = {parameter.get("name"): parameter for parameter in paths["/v1/nodes"]["get"]["parameters"]}
        self.assertEqual({"min-ver": "1.65"}, filters["lessee"]["x-openstack"])

    def test_knows_the_fields_of_a_node_and_their_types(self) -> None:
        properties = described.document()["components"]["schemas"]["Node"]["properties"]
        self.assertEqual(set(node_fields.TABLE.fields), set(properties))
        self.assertEqual(["string", "null"], properties["name"]["type"])
        self.assertEqual("boolean", properties["maintenance"]["type"])
        self.assertEqual("object", properties["driver_info"]["type"])

    def test_public_urls_need_no_credentials(self) -> None:
        paths = described.document()["paths"]
        self.assertEqual([], paths["/v1/lookup"]["get"]["security"])
        self.assertNotIn("security", paths["/v1/nodes"]["get"])


class Served(api_case.ApiCase):
    def test_at_its_own_url_whatever_the_version(self) -> None:
        for version in (None, "1.1", api_case.LATEST):
            answer = self.api("GET", description.PATH, version=version)
            self.assertEqual((200, "3.1.0"), (answer.status, answer.json["openapi"]))
        self.assertEqual(described.document(), answer.json)
        self.assertEqual(304, self.api("GET", description.PATH, If_None_Match=answer.headers["ETag"]).status)


class Command(testtools.TestCase):
    def run_with(self, *arguments: str) -> tuple[int, str]:
        self.useFixture(fixtures.MonkeyPatch("sys.argv", ["openapi", *arguments]))
        errors = io.StringIO()
        with contextlib.redirect_stderr(errors):
            return openapi.main(), errors.getvalue()

    def test_writes_a_file_and_compares_it(self) -> None:
        path = pathlib.Path(self.useFixture(fixtures.TempDir()).path) / "openapi.json"
        status, errors = self.run_with("--check", str(path))
        self.assertEqual((1, True), (status, f"python -m ingot.api.openapi {path}" in errors))
        self.assertEqual((0, ""), self.run_with(str(path)))
        self.assertEqual((0, ""), self.run_with("--check", str(path)))
        path.write_text(path.read_text().replace("/v1/nodes", "/v1/machines"))
        self.assertEqual(1, self.run_with("--check", str(path))[0])
