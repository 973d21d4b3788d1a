"""Which API version a request speaks."""

import testtools

from ingot.api.web import versions
from ingot.common import errors
from tests import api_case


class Negotiation(testtools.TestCase):
    def test_nothing_asked_for_is_the_first_version(self) -> None:
        for own, common in ((None, None), ("", ""), (None, "compute 2.1"), (None, "baremetal"), (None, "rubbish")):
            self.assertEqual(1, versions.negotiate(own, common))

    def test_a_number_with_blanks_or_zeros_is_read(self) -> None:
        for asked in ("1.50", " 1.50", "1.50 ", "1.050"):
            self.assertEqual(50, versions.negotiate(asked, None))

    def test_latest_in_any_case_is_the_newest(self) -> None:
        self.assertEqual(versions.MAX, versions.negotiate("LaTest", None))
        self.assertEqual(versions.MAX, versions.negotiate(None, "baremetal latest"))

    def test_the_common_header_wins_and_may_name_several_services(self) -> None:
        self.assertEqual(20, versions.negotiate("1.10", "baremetal 1.20"))
        self.assertEqual(80, versions.negotiate(None, "compute 2.1, baremetal 1.80"))

    def test_what_is_not_served_is_refused_with_the_range(self) -> None:
        for asked in ("1.0", "1.116", "2.1", "0.9", "-1.5", "1", "1.x", "1.5.0", "\u0661.\u0665"):
            refusal = self.assertRaises(errors.VersionRefused, versions.negotiate, asked, None)
            self.assertIn("1.115", refusal.message)

    def test_every_version_says_what_it_brought(self) -> None:
        self.assertEqual(list(range(1, versions.MAX + 1)), sorted(versions.HISTORY))
        self.assertTrue(all(versions.HISTORY.values()))


class Headers(api_case.ApiCase):
    def test_an_answer_names_range_and_version(self) -> None:
        headers = self.api("GET", "/v1/chassis", version="1.20").headers
        self.assertEqual(("1.1", "1.115", "1.20"), tuple(headers[name] for name in (
            versions.MIN_HEADER, versions.MAX_HEADER, versions.HEADER)))  # fmt: skip

    def test_a_version_that_is_not_served_tells_the_range_only(self) -> None:
        answer = self.api("GET", "/v1/chassis", version="1.200")
        self.assertEqual((406, "1.1"), (answer.status, answer.headers[versions.MIN_HEADER]))
        self.assertNotIn(versions.HEADER, answer.headers)

    def test_the_versions_document_does_not_care(self) -> None:
        document = self.good("GET", "/", version="9.99")
        self.assertEqual("1.115", document["default_version"]["version"])

    def test_the_document_of_version_1_links_what_the_version_has(self) -> None:
        self.assertNotIn("deploy_templates", self.good("GET", "/v1", version="1.54"))
        self.assertIn("deploy_templates", self.good("GET", "/v1/", version="1.55"))

    def test_a_url_without_a_version_means_version_1(self) -> None:
        self.node(name="n")
        self.assertEqual("n", self.good("GET", "/nodes/n")["name"])
        self.assertEqual("n", self.good("GET", "/nodes/n.json", version="1.90")["name"])
        self.assertEqual(self.good("GET", "/v1/nodes"), self.good("GET", "/nodes"))
        self.assertIn("/v1/nodes?", self.good("GET", "/nodes?limit=1")["next"])
        for elsewhere in ("/ingot/nodes", "/boot/nodes", "/v2/nodes", "/v1nodes"):
            self.assertEqual(404, self.api("GET", elsewhere).status, elsewhere)

    def test_json_at_the_end_of_a_url_is_ignored_before_1_91(self) -> None:
        self.node(name="n")
        self.assertEqual("n", self.good("GET", "/v1/nodes/n.json", version="1.90")["name"])
        self.refused(404, "GET", "/v1/nodes/n.json", version="1.91")
