"""Entity tags: what answers have, and what If-Match and If-None-Match do on every URL."""

import contextlib
import sqlite3
from collections.abc import Iterator
from typing import Any

import sqlalchemy as sa

from ingot.api import routes
from ingot.db import agents, node_crud, nodes
from tests import api_case, world

ADD = world.ADD
OLD = '"0.1-00"'


class Tagged(world.WorldCase):
    def objects(self) -> list[str]:
        """Return the URLs of objects that have the field ``extra``; the node is the first."""
        urls = [f"{collection}/{known}" for collection, known in self.made.items() if "-" not in collection]
        return [url for url in urls if "extra" in self.good("GET", url)]

    def tag(self, url: str = "/v1/nodes/n", version: str = api_case.LATEST) -> str:
        return str(self.api("GET", url, version=version).headers["ETag"])


class Answers(Tagged):
    def test_a_tag_stays_until_the_object_changes(self) -> None:
        for url in self.objects():
            before = self.tag(url)
            self.assertEqual(before, self.tag(url))
            patched = self.api("PATCH", url, ADD)
            self.assertNotEqual(before, patched.headers["ETag"], url)
            self.assertEqual(patched.headers["ETag"], self.tag(url))

    def test_each_representation_has_its_own(self) -> None:
        tags = {
            self.tag(url, version) for url in ("/v1/nodes/n", "/v1/nodes/n?fields=uuid") for version in ("1.30", "1.80")
        }
        self.assertEqual(3, len(tags))  # with fields= both versions show the same
        self.assertEqual(1, len({tag.partition("-")[0] for tag in tags}))

    def test_what_belongs_to_a_node_has_the_version_of_the_node(self) -> None:
        version = self.tag().partition("-")[0]
        for name in ("states", "traits"):
            self.assertEqual(version, self.tag(f"/v1/nodes/n/{name}").partition("-")[0])
        self.good("PUT", "/v1/nodes/n/traits/CUSTOM_A")
        self.assertNotEqual(version, self.tag().partition("-")[0])

    def test_a_heartbeat_changes_what_is_shown_but_no_version(self) -> None:
        nodes.set_always(self.db, self.uuid, {"agent_token": "a token"})
        before = self.tag()
        node = agents.read_for_heartbeat(self.db, self.uuid)
        agents.record_heartbeat(
            self.db, node, {"agent_url": "https://a", "agent_version": "9", "agent_verify_ca": None}
        )
        after = self.tag()
        self.assertNotEqual(before, after)
        self.assertEqual(before.partition("-")[0], after.partition("-")[0])
        self.assertEqual(200, self.api("PATCH", "/v1/nodes/n", ADD, If_Match=before).status)

    def test_what_is_no_object_is_tagged_by_its_content(self) -> None:
        for url in ("/", "/v1", "/v1/nodes", "/v1/drivers/fake-hardware", "/v1/nodes/n/volume"):
            self.assertEqual(304, self.api("GET", url, If_None_Match=self.tag(url)).status, url)

    def test_an_object_of_the_same_uuid_is_another(self) -> None:
        before = self.tag()
        self.good("DELETE", "/v1/nodes/n")
        self.good("POST", "/v1/nodes", {**api_case.NODE, "uuid": self.uuid, "name": "n"})
        self.assertEqual(412, self.api("DELETE", "/v1/nodes/n", If_Match=before).status)


class Reading(Tagged):
    def test_what_the_client_has_is_not_sent_again(self) -> None:
        tag = self.tag()
        for known in (tag, f"W/{tag}", f'"x", {tag}', "*"):
            answer = self.api("GET", "/v1/nodes/n", If_None_Match=known)
            self.assertEqual((304, "", tag), (answer.status, answer.text, answer.headers["ETag"]))
            self.assertIn("OpenStack-Request-Id", answer.headers)
        for unknown in (OLD, '""', tag.replace("-", "-0")):
            self.assertEqual(200, self.api("GET", "/v1/nodes/n", If_None_Match=unknown).status)

    def test_an_answer_that_must_be_the_known_one(self) -> None:
        self.assertEqual(200, self.api("GET", "/v1/nodes/n", If_Match=self.tag()).status)
        self.assertEqual(412, self.api("GET", "/v1/nodes/n", If_Match=OLD).status)
        self.assertEqual(404, self.api("GET", "/v1/nodes/missing", If_Match=OLD).status)

    def test_a_header_that_is_none_is_refused_with_its_form(self) -> None:
        for name in ("If-Match", "If-None-Match"):
            for wrong in ("abc", '"a', '"a" "b"', "", ",", '*, "a"', '"' + "a" * 3000 + '"', '"a"' + ", " * 2000):
                answer = self.api("GET", "/v1/nodes/n", **{name: wrong})
                self.assertEqual(400, answer.status, wrong[:40])
                self.assertIn(name, answer.message)
                self.assertIn("double quotes", answer.message)


class Writing(Tagged):
    def test_of_what_was_read_succeeds_whatever_part_of_it_was(self) -> None:
        for url, version in (
            ("/v1/nodes/n?fields=uuid", "1.9"),
            ("/v1/nodes/n/states", "1.80"),
            ("/v1/nodes/n", "1.30"),
        ):
            known = f'"x", {self.tag(url, version)}'
            self.assertEqual(200, self.api("PATCH", "/v1/nodes/n", ADD, If_Match=known).status)
            self.assertEqual(412, self.api("PATCH", "/v1/nodes/n", ADD, If_Match=known).status)
        self.assertEqual(200, self.api("PATCH", "/v1/nodes/n", ADD, If_Match="*").status)

    def test_a_refusal_names_the_current_and_the_given_tag(self) -> None:
        answer = self.api("PATCH", "/v1/nodes/n", ADD, If_Match=OLD)
        self.assertEqual(412, answer.status)
        for part in (self.uuid, OLD, self.tag().partition("-")[0].strip('"'), "If-Match"):
            self.assertIn(part, answer.message)
        self.assertEqual({}, self.good("GET", "/v1/nodes/n")["extra"])

    def test_a_weak_tag_fits_nothing(self) -> None:
        self.assertEqual(412, self.api("PATCH", "/v1/nodes/n", ADD, If_Match=f"W/{self.tag()}").status)

    def test_only_of_what_is_unlike_the_known(self) -> None:
        self.assertEqual(412, self.api("PATCH", "/v1/nodes/n", ADD, If_None_Match=self.tag()).status)
        self.assertEqual(412, self.api("PATCH", "/v1/nodes/n", ADD, If_None_Match="*").status)
        self.assertEqual(200, self.api("PATCH", "/v1/nodes/n", ADD, If_None_Match=OLD).status)

    def test_a_condition_for_what_has_no_tag_is_refused(self) -> None:
        for method, url, body in (
            ("POST", "/v1/chassis", {}),
            ("POST", f"/v1/heartbeat/{self.uuid}", {"callback_url": "https://a"}),
            ("PUT", "/v1/drivers/fake-hardware/vendor_passthru/x", {}),
        ):
            answer = self.api(method, url, body, If_Match=OLD)
            self.assertEqual((412, True), (answer.status, "no entity tag" in answer.message), answer)
        self.assertEqual(201, self.api("POST", "/v1/chassis", {}, If_Match="*").status)

    def test_every_url_that_is_about_an_object_compares(self) -> None:
        """A handler that forgets to compare with what it reads is found here."""
        for route in routes.ROUTES:
            for method in route.operations:
                if route.tagged and method != "GET":
                    before = len(self.conductor.asked)
                    answer = self.api(method, self.url(route.path), self.body(route.path, method), If_Match=OLD)
                    self.assertEqual(
                        (412, True), (answer.status, OLD in answer.message), f"{method} {route.path}: {answer}"
                    )
                    self.assertEqual(before, len(self.conductor.asked), "a conductor was asked before")

    def test_every_object_is_deleted_if_it_is_the_known_one(self) -> None:
        for url in reversed(self.objects()):
            tag = self.tag(url)
            self.good("PATCH", url, ADD)
            self.assertEqual(412, self.api("DELETE", url, If_Match=tag).status, url)
            self.assertEqual(204, self.api("DELETE", url, If_Match=self.tag(url)).status, url)

    def test_parts_of_a_node_are_written_if_the_node_is_the_known_one(self) -> None:
        requests = (
            ("PUT", "traits", {"traits": ["CUSTOM_A"]}),
            ("PUT", "traits/CUSTOM_B", None),
            ("DELETE", "traits/CUSTOM_B", None),
            ("PUT", "maintenance", {"reason": "hot"}),
            ("DELETE", "maintenance", None),
            ("PUT", "states/raid", {}),
            ("PUT", "states/power", {"target": "power on"}),
            ("PUT", "states/provision", {"target": "provide"}),
        )
        for method, name, body in requests:
            tag = self.tag()
            first = self.api(method, f"/v1/nodes/n/{name}", body, If_Match=tag)
            self.assertIn(first.status, (202, 204), f"{name}: {first}")
            again = self.api(method, f"/v1/nodes/n/{name}", body, If_Match=tag)
            self.assertEqual(412, again.status, f"{name}: {again}")


class Overtaken(Tagged):
    """Another request writes between what this one reads and what it writes."""

    @contextlib.contextmanager
    def overtaken(self) -> Iterator[list[str]]:
        waiting = [f"UPDATE nodes SET revision = revision + 1 WHERE uuid = '{self.uuid}'"]  # noqa: S608 - our own

        def write(_c: Any, _cursor: Any, text: str, *_rest: Any) -> None:
            if waiting and text.startswith("SELECT") and "FROM nodes" in text:
                with contextlib.closing(sqlite3.connect(str(self.db.url.database), isolation_level=None)) as other:
                    other.execute(waiting.pop())

        sa.event.listen(self.db.engine, "after_cursor_execute", write)
        try:
            yield waiting
        finally:
            sa.event.remove(self.db.engine, "after_cursor_execute", write)

    def test_what_the_api_writes_itself_is_refused(self) -> None:
        self.good("PUT", "/v1/nodes/n/traits/CUSTOM_A")
        for method, name, body in (
            ("PATCH", "", ADD),
            ("PUT", "/traits", {"traits": ["CUSTOM_B"]}),
            ("PUT", "/traits/CUSTOM_B", None),
            ("DELETE", "/traits/CUSTOM_A", None),
            ("PUT", "/maintenance", {"reason": "hot"}),
            ("DELETE", "/maintenance", None),
            ("PUT", "/states/raid", {}),
            ("PUT", "/states/power", {"target": "power on"}),
            ("PUT", "/states/provision", {"target": "provide"}),
            ("DELETE", "", None),
        ):
            before, shown = self.tag(), self.good("GET", "/v1/nodes/n")
            with self.overtaken() as waiting:
                answer = self.api(method, f"/v1/nodes/n{name}", body, If_Match=before)
            self.assertEqual((412, []), (answer.status, waiting), f"{method} {name}: {answer}")
            self.assertEqual(shown, self.good("GET", "/v1/nodes/n"), f"{method} {name}")
            self.assertEqual([], self.conductor.wakeups)

    def test_without_a_condition_the_write_is_made_on_what_is_there(self) -> None:
        with self.overtaken():
            self.good("PATCH", "/v1/nodes/n", ADD)
        self.assertEqual({"a": 1}, self.good("GET", "/v1/nodes/n")["extra"])


class Traits(Tagged):
    def test_are_changed_as_they_were_read(self) -> None:
        read = nodes.get(self.db, self.uuid, ("id", "uuid", "revision"))
        node_crud.change_traits(self.db, read, add=["CUSTOM_A"])
        self.good("PUT", "/v1/nodes/n/traits/CUSTOM_B")  # a request reads what is there now
        self.assertEqual(["CUSTOM_A", "CUSTOM_B"], self.good("GET", "/v1/nodes/n/traits")["traits"])
