"""Lists: pages, order, filters."""

import urllib.parse
from typing import Any

from ingot.common import states
from ingot.db import conductors
from tests import api_case, database


class Pages(api_case.ApiCase):
    def setUp(self) -> None:
        super().setUp()
        owners = ["b", None, "a", "b", None]
        self.uuids = [database.make_node(self.db, name=f"n{n}", owner=owner).uuid for n, owner in enumerate(owners)]

    def names(self, query: str) -> list[str]:
        return [node["name"] for node in self.good("GET", f"/v1/nodes?{query}")["nodes"]]

    def walk(self, query: str) -> list[str]:
        """Return all names, following the links from page to page."""
        names, url = [], f"/v1/nodes?limit=2&{query}"
        while url:
            page = self.good("GET", url)
            names += [node["name"] for node in page["nodes"]]
            url = page.get("next", "").removeprefix("http://localhost")
        return names

    def test_order_is_that_of_creation(self) -> None:
        self.assertEqual(["n0", "n1", "n2", "n3", "n4"], self.walk(""))

    def test_every_order_walks_through_all_pages(self) -> None:
        for query, expected in (
            ("sort_dir=desc", "43210"),
            ("sort_key=owner", "14203"),  # empty first, ties by age
            ("sort_key=owner&sort_dir=desc", "30241"),  # the reverse
            ("sort_key=name&sort_dir=desc", "43210"),
            ("sort_key=created_at", "01234"),
            ("sort_key=maintenance", "01234"),
            ("sort_key=maintenance&sort_dir=desc", "43210"),
            ("sort_key=updated_at", "01234"),
        ):
            self.assertEqual([f"n{number}" for number in expected], self.walk(query), query)

    def test_an_empty_text_is_a_value_like_any_other(self) -> None:
        database.make_node(self.db, name="n5", owner="", description="", resource_class="", conductor_group="g")
        for query, expected in (
            ("conductor_group=", "01234"),
            ("owner=", "5"),
            ("resource_class=", "5"),
            ("description_contains=", "5"),
            ("lessee=", ""),
            ("parent_node=", ""),
        ):
            self.assertEqual([f"n{number}" for number in expected], self.names(query), query)

    def test_next_is_there_only_when_the_page_is_full(self) -> None:
        self.assertNotIn("next", self.good("GET", "/v1/nodes?limit=6"))
        self.assertIn("next", self.good("GET", "/v1/nodes?limit=5"))

    def test_next_keeps_everything_that_was_asked(self) -> None:
        asked = "sort_key=name&sort_dir=asc&driver=fake-hardware&maintenance=false&fields=uuid,name&limit=2"
        url = urllib.parse.urlsplit(self.good("GET", f"/v1/nodes?{asked}")["next"])
        kept = dict(urllib.parse.parse_qsl(url.query))
        marker = {"marker": self.uuids[1], "maintenance": "False"}
        self.assertEqual({**dict(urllib.parse.parse_qsl(asked)), **marker}, kept)

    def test_the_configured_maximum_cuts_pages(self) -> None:
        self.conf.set_override("max_limit", 3, group="api")
        page = self.good("GET", "/v1/nodes?limit=100")
        self.assertEqual((3, True), (len(page["nodes"]), "limit=3" in page["next"]))
        self.assertEqual(3, len(self.good("GET", "/v1/nodes")["nodes"]))

    def test_an_unknown_marker_is_404(self) -> None:
        self.refused(404, "GET", f"/v1/nodes?marker={'0' * 8}-0000-0000-0000-{'0' * 12}")

    def test_wrong_paging_is_refused_with_what_is_allowed(self) -> None:
        for query, expected in (
            ("limit=0", "from 1 on"),
            ("limit=-3", "from 1 on"),
            ("limit=ten", "whole number"),
            ("limit=²", "whole number"),
            ("marker=abc", "UUID"),
            ("sort_dir=up", "asc or desc"),
            ("sort_key=extra", "can be sorted by"),
            ("sort_key=colour", "provision_state"),
            ("detail=true&fields=uuid", "leave one out"),
            ("detail=maybe", "true or false"),
        ):
            self.assertIn(expected, self.refused(400, "GET", f"/v1/nodes?{query}"), query)

    def test_detail_shows_everything(self) -> None:
        self.assertIn("driver_info", self.good("GET", "/v1/nodes/detail")["nodes"][0])
        self.assertIn("driver_info", self.good("GET", "/v1/nodes?detail=true")["nodes"][0])
        self.assertNotIn("driver_info", self.good("GET", "/v1/nodes?detail=false")["nodes"][0])


class NodeFilters(api_case.ApiCase):
    def setUp(self) -> None:
        super().setUp()
        chassis = self.good("POST", "/v1/chassis", {})["uuid"]
        self.parent = self.node(name="plain", chassis_uuid=chassis)["uuid"]
        self.instance = "4d8b9f0c-6d3c-4c55-8d76-5b9fd0f4b2a1"
        database.make_node(
            self.db, name="busy", instance_uuid=self.instance, provision_state=states.ACTIVE, owner="p1", lessee="p2",
            resource_class="large", conductor_group="far", fault="power failure", maintenance=True, retired=True,
            shard="s1", description="100% steel_frame", instance_name="web", driver="ipmi",
        )  # fmt: skip
        database.make_node(self.db, name="child", parent_node=self.parent, shard="s2")
        self.chassis = chassis

    def found(self, query: str) -> str:
        return " ".join(node["name"] for node in self.good("GET", f"/v1/nodes?{query}")["nodes"])

    def test_each_filter_finds_what_it_should(self) -> None:
        for query, expected in (
            ("", "plain busy"),
            ("associated=true", "busy"),
            ("associated=false", "plain"),
            (f"instance_uuid={self.instance}", "busy"),
            ("maintenance=yes", "busy"),
            ("provision_state=active", "busy"),
            ("driver=ipmi", "busy"),
            ("resource_class=large", "busy"),
            ("fault=power%20failure", "busy"),
            ("conductor_group=FAR", "busy"),
            ("conductor_group=", "plain"),
            (f"conductor={api_case.HOST}", "plain"),
            ("conductor=missing", ""),
            ("owner=p1", "busy"),
            ("lessee=p2", "busy"),
            ("project=p2", "busy"),
            ("description_contains=100%25", "busy"),
            ("description_contains=l_f", "busy"),
            ("description_contains=l%25f", ""),
            ("retired=true", "busy"),
            ("shard=s1", "busy"),
            ("shard=s1,s2&include_children=true", "busy child"),
            ("sharded=false", "plain"),
            ("include_children=true", "plain busy child"),
            ("parent_node=plain", "child"),
            (f"parent_node={self.parent}", "child"),
            ("instance_name=web", "busy"),
            (f"chassis_uuid={self.chassis}", "plain"),
            ("driver=ipmi&owner=p3", ""),
        ):
            self.assertEqual(expected, self.found(query), query)

    def test_a_wrong_value_is_refused_with_what_is_allowed(self) -> None:
        for query, expected in (
            ("provision_state=asleep", "deploy failed"),
            ("fault=boredom", "clean failure"),
            ("maintenance=maybe", "true or false"),
            ("instance_uuid=x", "UUID"),
            ("driver=%00", "NUL"),
        ):
            self.assertIn(expected, self.refused(400, "GET", f"/v1/nodes?{query}"), query)

    def test_a_filter_is_406_before_its_version(self) -> None:
        self.assertIn("1.21", self.refused(406, "GET", "/v1/nodes?resource_class=x", version="1.20"))


class OtherLists(api_case.ApiCase):
    def setUp(self) -> None:
        super().setUp()
        self.one, self.two = self.node(name="one", shard="s1"), self.node(name="two")
        for number, node in enumerate((self.one, self.one, self.two)):
            body = {"node_uuid": node["uuid"], "address": f"52:54:00:00:00:0{number}", "name": f"p{number}"}
            self.good("POST", "/v1/ports", body)

    def addresses(self, url: str) -> list[str]:
        return [port["address"][-1] for port in self.good("GET", url)["ports"]]

    def test_ports_are_found_by_their_node(self) -> None:
        for query, expected in (
            ("?node=one", ["0", "1"]),
            (f"?node_uuid={self.two['uuid']}", ["2"]),
            ("?address=52:54:00:00:00:02", ["2"]),
            ("?shard=s1", ["0", "1"]),
            ("?conductor_groups=x", []),
        ):
            self.assertEqual(expected, self.addresses(f"/v1/ports{query}"), query)
        self.assertEqual(["0", "1"], self.addresses("/v1/nodes/one/ports"))
        self.assertEqual(["0", "1"], self.addresses("/v1/nodes/one/ports/detail"))
        self.refused(404, "GET", "/v1/ports?node=missing")

    def test_what_a_node_or_a_portgroup_has_is_shown_in_detail(self) -> None:
        group = self.good("POST", "/v1/portgroups", {"node_uuid": self.two["uuid"], "name": "g"})
        port = {"node_uuid": self.two["uuid"], "address": "52:54:00:00:00:09", "portgroup_uuid": group["uuid"]}
        made = self.good("POST", "/v1/ports", port)
        [shown] = self.good("GET", "/v1/nodes/two/portgroups/detail")["portgroups"]
        self.assertEqual(self.good("GET", "/v1/portgroups/g"), shown)
        [shown] = self.good("GET", "/v1/portgroups/g/ports/detail")["ports"]
        self.assertEqual(self.good("GET", f"/v1/ports/{made['uuid']}"), shown)

    def test_pages_of_conductors_are_marked_by_hostname(self) -> None:
        self.register("conductor-2", api_case.enabled("ipmi", **api_case.PLAIN))
        page: Any = self.good("GET", "/v1/conductors?limit=1")
        self.assertIn(f"marker={api_case.HOST}", page["next"])
        rest = self.good("GET", page["next"].removeprefix("http://localhost"))
        self.assertEqual(["conductor-2"], [conductor["hostname"] for conductor in rest["conductors"]])

    def test_a_conductor_that_stopped_is_not_alive(self) -> None:
        about = {"conductor_group": "", "release": "0.1", "rpc_version": "1.0"}
        conductors.unregister(self.db, conductors.register(self.db, "gone", about, []))
        self.assertFalse(self.good("GET", "/v1/conductors/gone")["alive"])
        self.assertEqual(["fake-hardware"], self.good("GET", f"/v1/conductors/{api_case.HOST}")["drivers"])
