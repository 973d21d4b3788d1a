"""The boot script of a volume holds a password: the machine gets it with a ticket, and no other client does."""

from typing import Any

import fixtures
import sqlalchemy as sa

from ingot.common import clock, states
from ingot.db import models, nodes
from tests import api_case, database, sql_counter

MAC = "52:54:00:00:00:01"
MACHINE, STRANGER = "192.0.2.7", "192.0.2.66"
SECRET = "sesame"
RETRY = ["sleep 60", "reboot"]


class VolumeBoot(api_case.ApiCase):
    def setUp(self) -> None:
        super().setUp()
        self.log = self.useFixture(fixtures.FakeLogger("ingot.api.agents.boot"))
        self.known = database.make_node(
            self.db, name="n", provision_state=states.ACTIVE, power_state=states.POWER_OFF,
            boot_config={"target": "volume"},
        )  # fmt: skip
        uuid = self.known.uuid
        database.make_port(self.db, self.known, address=MAC)
        connector = {"node_uuid": uuid, "type": "iqn", "connector_id": "iqn.2026-01.org.example:m1"}
        self.good("POST", "/v1/volume/connectors", connector)
        properties = {
            "target_iqn": "iqn.2026-01.org.example:v1", "target_portal": "192.0.2.5",
            "auth_username": "chap", "auth_password": SECRET,
        }  # fmt: skip
        target = {"node_uuid": uuid, "volume_type": "iscsi", "volume_id": "v", "boot_index": 0}
        self.good("POST", "/v1/volume/targets", {**target, "properties": properties})

    def put(self, **values: Any) -> None:
        with self.db.single() as connection:
            connection.execute(sa.update(nodes.NODES).values(values))

    @property
    def row(self) -> models.Node:
        return nodes.get(self.db, self.known.uuid)

    def get(self, path: str, address: str = MACHINE) -> Any:
        return self.http.get(path, environ_overrides={"REMOTE_ADDR": address})

    def script(self, address: str = MACHINE) -> list[str]:
        """Return what the firmware is given first."""
        answer = self.get(f"/boot/ipxe/{MAC}", address)
        self.assertEqual(200, answer.status_code)
        self.assertEqual(RETRY, answer.text.splitlines()[-2:])
        self.assertNotIn(SECRET, answer.text)
        self.assertNotIn("--drive 0x80 ||", answer.text)  # never the disk
        return str(answer.text).splitlines()

    def link(self, address: str = MACHINE) -> str:
        """Return the URL that the first script leads to."""
        command, url, *rest = self.script(address)[1].split()
        self.assertEqual(("chain", "||"), (command, rest[0]))
        self.assertTrue(url.startswith("../volumes/"))
        return url.replace("..", "/boot", 1)


class Tickets(VolumeBoot):
    def test_the_machine_boots_at_each_of_its_starts(self) -> None:
        for _start in range(3):
            self.put(boot_script_at=None)
            answer = self.get(self.link())
            self.assertIsNotNone(self.row.boot_script_at)
            self.assertEqual((200, "text/plain; charset=utf-8"), (answer.status_code, answer.headers["Content-Type"]))
            self.assertIn(f"set password {SECRET}", answer.text)

    def test_a_mac_address_is_not_enough(self) -> None:
        self.get(self.link())
        script = self.script(STRANGER)
        self.assertNotIn("chain", "".join(script))
        self.assertIn("another address", script[1])
        for said in (self.known.uuid, MACHINE, STRANGER, "reboot"):
            self.assertIn(said, self.log.output)

    def test_a_ticket_is_good_once_and_not_from_elsewhere(self) -> None:
        link = self.link()
        self.assertEqual(404, self.get(link, STRANGER).status_code)
        self.assertEqual(200, self.get(link).status_code)
        self.assertEqual(404, self.get(link).status_code)
        self.assertEqual(0, self.log.output.count(link.rpartition("/")[2]))

    def test_it_is_good_for_a_minute_and_until_the_next_one(self) -> None:
        first, second = self.link(), self.link()
        self.assertEqual(404, self.get(first).status_code)
        self.put(boot_script_at=clock.after(-61))
        self.assertEqual(404, self.get(second).status_code)
        self.assertEqual(200, self.get(self.link()).status_code)  # the machine has tried again

    def test_it_is_good_for_its_node_as_long_as_that_boots_from_a_volume(self) -> None:
        link = self.link()
        other = database.make_node(self.db, boot_config={"target": "volume"})
        self.assertEqual(404, self.get(link.replace(self.known.uuid, other.uuid)).status_code)
        self.put(boot_config={"target": "disk"})
        answer = self.get(link)
        self.assertEqual(404, answer.status_code)
        self.assertNotIn(SECRET, answer.text)

    def test_none_is_guessed(self) -> None:
        self.link()
        for path in (f"{self.known.uuid}/x", f"{self.known.uuid}/None", "missing/x", f"{self.known.uuid}/%00"):
            self.assertIn(self.get(f"/boot/volumes/{path}").status_code, (400, 404), path)

    def test_a_boot_by_the_conductor_opens_it_for_another_address(self) -> None:
        self.link()
        self.put(boot_address=None)  # what a conductor writes when it boots a machine
        self.assertEqual(200, self.get(self.link(STRANGER), STRANGER).status_code)
        self.assertNotIn("chain", "".join(self.script(MACHINE)))

    def test_an_address_that_is_not_known_is_not_the_same_as_another(self) -> None:
        self.assertEqual(200, self.get(self.link(""), "").status_code)
        self.assertNotIn("chain", "".join(self.script("")))

    def test_addresses_that_change_are_an_option(self) -> None:
        self.conf.set_override("check_volume_address", False, group="api")
        self.link()
        self.assertEqual(200, self.get(self.link(STRANGER), MACHINE).status_code)

    def test_the_first_script_costs_two_statements_the_other_four(self) -> None:
        with sql_counter.counting(self.db) as counted:
            link = self.link()
        self.assertEqual(2, len(counted), counted)
        with sql_counter.counting(self.db) as counted:
            self.get(link)
        self.assertEqual(4, len(counted), counted)


class Doors(VolumeBoot):
    """Who may ask at all, and what may become of an answer."""

    PATHS = (
        *("/boot/ipxe/{mac}", "/boot/volumes/{uuid}/x", "/boot/images/{uuid}/x/y", "/v1/lookup?node_uuid={uuid}"),
        *(
            "/boot/grub/grub.cfg-01-{mac}",
            "/boot/pxelinux/pxelinux.cfg/01-{mac}",
            "/boot/petitboot/pxelinux.cfg/01-{mac}",
        ),
    )
    POSTS = ("/v1/heartbeat", "/v1/heartbeat/{uuid}", "/v1/continue_inspection")

    def ask(self, address: str) -> set[int]:
        """Return the statuses of all that machines ask for."""
        seen = {"REMOTE_ADDR": address}
        version = {"X-OpenStack-Ironic-API-Version": "1.115"}
        asked = [*(("GET", path) for path in self.PATHS), *(("POST", path) for path in self.POSTS)]
        return {
            self.http.open(
                path.format(mac=MAC, uuid=self.known.uuid), method=method, json={}, headers=version,
                environ_overrides=seen,
            ).status_code
            for method, path in asked
        }  # fmt: skip

    def test_only_from_the_networks_of_machines_if_they_are_known(self) -> None:
        self.assertNotIn(403, self.ask(STRANGER))
        self.conf.set_override("machine_networks", ["192.0.2.0/28", "2001:db8::/64"], group="api")
        self.http = self.application().test_client()
        log = self.useFixture(fixtures.FakeLogger("ingot.api.web.proxies"))
        self.assertEqual({403}, self.ask(STRANGER))
        self.assertEqual({403}, self.ask(""))
        self.assertIn(STRANGER, log.output)
        self.assertIn("[api] machine_networks", log.output)
        for address in (MACHINE, "2001:db8::7", "::ffff:192.0.2.7"):
            self.assertNotIn(403, self.ask(address))
        self.assertEqual(200, self.get("/v1", STRANGER).status_code)
        self.assertEqual(200, self.get("/v1/nodes", STRANGER).status_code)

    def test_answers_are_neither_kept_nor_guessed_at(self) -> None:
        link = self.link()
        self.put(provision_state=states.DEPLOYWAIT)
        for path, kept in (
            (f"/boot/ipxe/{MAC}", False), ("/boot/ipxe/00:00:00:00:00:00", False), (link, False), (link, False),
            (f"/boot/grub/grub.cfg-01-{MAC}", False), (f"/boot/petitboot/pxelinux.cfg/01-{MAC}", False),
            (f"/v1/lookup?node_uuid={self.known.uuid}", False), ("/v1/lookup", False),
            ("/v1/nodes", True), ("/x", True),
        ):  # fmt: skip
            headers = self.get(path).headers
            self.assertEqual("nosniff", headers["X-Content-Type-Options"], path)
            self.assertEqual(None if kept else "no-store", headers.get("Cache-Control"), path)
