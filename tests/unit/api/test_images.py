"""Images of Glance go through the API to the machine that has a link to them, and to no other client."""

from tests import api_case, database, image_service

TICKET = "a-ticket-that-is-not-guessed"
CONTENT = bytes(range(256)) * 4096


class Images(api_case.ApiCase):
    def configure(self) -> None:
        self.glance = self.useFixture(image_service.ImageService())
        self.glance.configure(self.conf)
        self.conf.set_override("max_image_downloads", 1, group="api")

    def linked(self, name: str = "image") -> tuple[str, str]:
        """Return the path of a link, and the id of the image."""
        ident = self.glance.add(CONTENT)
        node = database.make_node(self.db, boot_config={"links": {name: f"{TICKET}/{ident}"}})
        return f"/boot/images/{node.uuid}/{TICKET}/{ident}", ident

    def test_every_client_with_the_link_gets_the_image(self) -> None:
        for name in ("kernel", "initrd", "image"):
            path, _ident = self.linked(name)
            answer = self.http.get(path)
            self.assertEqual((200, CONTENT), (answer.status_code, answer.get_data()))
            self.assertEqual(
                ("application/octet-stream", str(len(CONTENT))),
                (answer.headers["Content-Type"], answer.headers["Content-Length"]),
            )
            answer.close()

    def test_a_range_is_passed_on(self) -> None:
        path, _ident = self.linked()
        answer = self.http.get(path, headers={"Range": "bytes=256-511"})
        self.assertEqual((206, CONTENT[:256]), (answer.status_code, answer.get_data()))
        self.assertEqual(f"bytes 256-511/{len(CONTENT)}", answer.headers["Content-Range"])
        answer.close()

    def test_nothing_is_there_for_others(self) -> None:
        path, ident = self.linked()
        other, _ident = self.linked()
        _, _, _, node, ticket, image = other.split("/")
        bare = database.make_node(self.db)
        # What a user has the machine boot may look like a link, and is none.
        forged = database.make_node(self.db, boot_config={"kernel": f"http://api{path}"})
        for tried in (
            f"/boot/images/{node}/{ticket}/{ident}",
            f"/boot/images/{node}/{ticket[:-1]}/{image}",
            f"/boot/images/{bare.uuid}/{ticket}/{image}",
            f"/boot/images/{forged.uuid}/{ticket}/{ident}",
            f"/boot/images/missing/{ticket}/{image}",
        ):
            answer = self.api("GET", tried)
            self.assertEqual(404, answer.status, tried)
            self.assertIn("There is no image here", answer.message)
        self.assertEqual([], self.glance.asked)

    def test_an_unavailable_glance_is_reported_and_its_slot_is_released(self) -> None:
        path, _ident = self.linked()
        for status, expected in ((500, 503), (404, 400), (None, 200)):
            self.glance.status = status
            answer = self.http.get(path)
            self.assertEqual(expected, answer.status_code, answer.get_data()[:300])
            answer.close()

    def test_more_machines_than_there_are_places_come_again(self) -> None:
        path, _ident = self.linked()
        first = self.http.get(path)
        self.assertEqual(CONTENT, first.get_data())
        late = self.api("GET", path)
        self.assertEqual((503, "5"), (late.status, late.headers["Retry-After"]))
        self.assertIn("[api] max_image_downloads", late.message)
        first.close()
        again = self.http.get(path)
        self.assertEqual((200, CONTENT), (again.status_code, again.get_data()))
        again.close()
