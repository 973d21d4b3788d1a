"""Volume connectors and targets: created, changed, listed, deleted, refused; and what no user is shown."""

import uuid
from typing import Any

import sqlalchemy as sa

from ingot.common import clock, errors, states
from ingot.db import listing, nodes, volumes
from tests import api_case

MAC = "52:54:00:00:00:01"
IQN = "iqn.2026-01.org.example:m1"
PROPERTIES = {
    "target_iqn": "iqn.2026-01.org.example:v1",
    "target_portal": "192.0.2.5:3260",
    "auth_username": "chap",
    "auth_password": "sesame",
}


def replace(path: str, value: Any) -> list[dict[str, Any]]:
    return [{"op": "replace", "path": path, "value": value}]


class VolumeCase(api_case.ApiCase):
    def setUp(self) -> None:
        super().setUp()
        self.uuid = self.node(name="n")["uuid"]
        self.put(power_state=states.POWER_OFF)

    def put(self, **values: Any) -> None:
        with self.db.single() as connection:
            connection.execute(sa.update(nodes.NODES).where(nodes.NODES.c.uuid == self.uuid).values(values))

    def connector(self, **values: Any) -> Any:
        body = {"node_uuid": self.uuid, "type": "iqn", "connector_id": IQN, **values}
        return self.good("POST", "/v1/volume/connectors", body)

    def target(self, **values: Any) -> Any:
        body = {"node_uuid": self.uuid, "volume_type": "iscsi", "volume_id": "v1", "boot_index": 0, **values}
        return self.good("POST", "/v1/volume/targets", body)


class CreatingVolumes(VolumeCase):
    def test_a_connector_has_its_defaults_and_says_where_it_is(self) -> None:
        answer = self.api("POST", "/v1/volume/connectors", {"node_uuid": self.uuid, "type": "iqn", "connector_id": IQN})
        made = answer.json
        self.assertEqual(201, answer.status)
        self.assertEqual(f"http://localhost/v1/volume/connectors/{made['uuid']}", answer.headers["Location"])
        self.assertEqual((self.uuid, "iqn", IQN, {}, None), tuple(
            made[name] for name in ("node_uuid", "type", "connector_id", "extra", "updated_at")))  # fmt: skip

    def test_what_is_missing_is_named(self) -> None:
        body = {"node_uuid": self.uuid, "volume_type": "iscsi", "volume_id": "v1", "boot_index": 0}
        for name in body:
            rest = {key: value for key, value in body.items() if key != name}
            self.assertIn(name, self.refused(400, "POST", "/v1/volume/targets", rest))

    def test_a_node_that_is_not_there_is_named(self) -> None:
        gone = str(uuid.uuid4())
        body = {"node_uuid": gone, "type": "iqn", "connector_id": IQN}
        self.assertIn(gone, self.refused(400, "POST", "/v1/volume/connectors", body))

    def test_a_boot_index_is_a_number(self) -> None:
        for index in ("0", None, True, 2**40):
            body = {"node_uuid": self.uuid, "volume_type": "iscsi", "volume_id": "v1", "boot_index": index}
            self.refused(400, "POST", "/v1/volume/targets", body)

    def test_what_is_taken_is_named(self) -> None:
        made = self.connector()
        self.target()
        message = self.refused(
            409, "POST", "/v1/volume/connectors", {"node_uuid": self.uuid, "type": "iqn", "connector_id": IQN}
        )
        self.assertEqual(f"A volume connector with type iqn and connector_id {IQN} already exists.", message)
        body = {"node_uuid": self.uuid, "volume_type": "iscsi", "volume_id": "v2", "boot_index": 0}
        message = self.refused(409, "POST", "/v1/volume/targets", body)
        self.assertEqual("A volume target with boot_index 0 of the same node already exists.", message)
        body = {"uuid": made["uuid"], "node_uuid": self.uuid, "type": "wwpn", "connector_id": "x"}
        message = self.refused(409, "POST", "/v1/volume/connectors", body)
        self.assertEqual(f"A volume connector with UUID {made['uuid']} already exists.", message)

    def test_before_1_32_there_are_no_volumes(self) -> None:
        for path in ("/v1/volume", "/v1/volume/targets", f"/v1/nodes/{self.uuid}/volume"):
            self.refused(404, "GET", path, version="1.31")
        self.assertNotIn("volume", self.good("GET", "/v1", version="1.31"))
        self.assertIn("volume", self.good("GET", "/v1", version="1.32"))


class ChangingVolumes(VolumeCase):
    def test_while_the_machine_is_off(self) -> None:
        path = f"/v1/volume/targets/{self.target()['uuid']}"
        self.assertEqual(3, self.good("PATCH", path, replace("/boot_index", 3))["boot_index"])
        self.assertEqual(self.uuid, self.good("PATCH", path, [{"op": "remove", "path": "/node_uuid"}])["node_uuid"])

    def test_a_machine_that_is_on_or_in_an_unknown_state_is_left_alone(self) -> None:
        path = f"/v1/volume/connectors/{self.connector()['uuid']}"
        for power, shown in ((states.POWER_ON, "power on"), (None, "unknown")):
            self.put(power_state=power)
            message = self.refused(400, "PATCH", path, replace("/connector_id", "other"))
            asked = 'The requested action "volume connector update" can not be performed on node'
            self.assertIn(f'{asked} "{self.uuid}" while it is in state "{shown}"', message)

    def test_nothing_is_taken_from_a_machine_that_runs(self) -> None:
        path = f"/v1/volume/targets/{self.target()['uuid']}"
        self.put(power_state=states.POWER_ON, provision_state=states.ACTIVE)
        self.assertIn('action "volume target deletion" can not', self.refused(400, "DELETE", path))
        self.put(power_state=states.POWER_OFF)
        self.good("DELETE", path)

    def test_an_unused_node_is_deleted_whether_it_is_on_or_not(self) -> None:
        for state in (states.ENROLL, states.MANAGEABLE, states.ADOPTFAIL):
            self.put(power_state=states.POWER_ON, provision_state=state)
            self.good("DELETE", f"/v1/volume/targets/{self.target()['uuid']}")

    def test_what_counts_is_the_power_state_that_is_asked_for(self) -> None:
        path = f"/v1/volume/connectors/{self.connector()['uuid']}"
        self.put(power_state=states.POWER_OFF, target_power_state=states.POWER_ON, provision_state=states.AVAILABLE)
        self.assertIn("power on", self.refused(400, "PATCH", path, replace("/connector_id", "other")))
        self.assertIn("power on", self.refused(400, "DELETE", path))
        self.put(power_state=states.POWER_ON, target_power_state=states.POWER_OFF)
        self.good("PATCH", path, replace("/connector_id", "other"))
        self.good("DELETE", path)

    def test_a_machine_that_is_switched_on_meanwhile_is_left_alone(self) -> None:
        connector = listing.get(self.db, volumes.CONNECTORS.source, self.connector()["uuid"])
        self.put(power_state=states.POWER_ON)
        change = {"connector_id": "other"}
        raised = self.assertRaises(errors.StateTransitionRefused, volumes.CONNECTORS.update, self.db, connector, change)
        self.assertIn("power on", raised.message)

    def test_a_locked_node_is_not_changed_under_its_conductor(self) -> None:
        path = f"/v1/volume/connectors/{self.connector()['uuid']}"
        self.put(reservation="conductor-9", lock_purpose="work", locked_at=clock.now())
        self.assertIn("conductor-9", self.refused(409, "PATCH", path, replace("/connector_id", "other")))

    def test_a_change_that_meets_another_row_names_both_values(self) -> None:
        self.connector()
        path = f"/v1/volume/connectors/{self.connector(type='ip')['uuid']}"
        message = self.refused(409, "PATCH", path, replace("/type", "iqn"))
        self.assertIn(f"type iqn and connector_id {IQN}", message)


class ReadingVolumes(VolumeCase):
    def test_the_documents_lead_to_both_lists(self) -> None:
        for path in ("/v1/volume", "/v1/nodes/n/volume"):
            found = self.good("GET", path)
            self.assertEqual({"connectors", "links", "targets"}, set(found))
            self.assertEqual({"connectors": []}, self.good("GET", found["connectors"][0]["href"]))

    def test_of_one_node(self) -> None:
        self.target()
        other = self.node(name="other")["uuid"]
        self.target(node_uuid=other, volume_id="v2")
        for path in ("/v1/volume/targets?node=other", "/v1/nodes/other/volume/targets"):
            self.assertEqual(["v2"], [target["volume_id"] for target in self.good("GET", path)["targets"]])
        self.assertEqual([], self.good("GET", "/v1/nodes/other/volume/connectors")["connectors"])

    def test_secrets_are_masked_and_stay_when_they_come_back_masked(self) -> None:
        made = self.target(properties=PROPERTIES)
        path = f"/v1/volume/targets/{made['uuid']}"
        for shown in (made, self.good("GET", path), self.good("GET", "/v1/volume/targets?detail=1")["targets"][0]):
            self.assertEqual({**PROPERTIES, "auth_password": "******"}, shown["properties"])
        self.good("PATCH", path, replace("/properties", {**made["properties"], "target_lun": 2}))
        stored = volumes.TARGETS.list_of_node(self.db, nodes.get(self.db, self.uuid).id)[0].properties
        self.assertEqual({**PROPERTIES, "target_lun": 2}, stored)


class DeletingVolumes(VolumeCase):
    def test_one(self) -> None:
        path = f"/v1/volume/targets/{self.target()['uuid']}"
        self.good("DELETE", path)
        self.refused(404, "DELETE", path)

    def test_with_their_node(self) -> None:
        paths = [
            f"/v1/volume/targets/{self.target()['uuid']}",
            f"/v1/volume/connectors/{self.connector()['uuid']}",
        ]
        self.good("DELETE", "/v1/nodes/n")
        for path in paths:
            self.refused(404, "GET", path)


class BootingFromVolumes(VolumeCase):
    """What the machine is given when it asks."""

    def setUp(self) -> None:
        super().setUp()
        self.good("POST", "/v1/ports", {"node_uuid": self.uuid, "address": MAC})
        self.put(boot_config={"target": "volume"})

    def script(self) -> list[str]:
        """Return the script that the firmware ends with: the first, or that which it leads to."""
        script: list[str] = []
        url = f"/boot/ipxe/{MAC}"
        while url:
            answer = self.api("GET", url, version=None, Accept="text/plain")
            self.assertEqual(200, answer.status)
            script = answer.text.splitlines()
            command, _, rest = script[1].partition(" ")
            url = rest.partition(" ")[0].replace("..", "/boot", 1) if command == "chain" else ""
        return script

    def test_the_machine_gets_the_volume_and_its_secrets(self) -> None:
        self.connector()
        self.target(properties=PROPERTIES)
        self.assertEqual(
            [
                "#!ipxe",
                f"set initiator-iqn {IQN}",
                "set username chap",
                "set password sesame",
                "sanboot --drive 0x80 iscsi:192.0.2.5::3260:0:iqn.2026-01.org.example:v1 || "
                "echo The volume cannot be started. The machine tries again in a minute.",
                "sleep 60",
                "reboot",
            ],
            self.script(),
        )

    def test_a_volume_that_has_moved_is_found_at_the_next_boot(self) -> None:
        self.connector()
        path = f"/v1/volume/targets/{self.target(properties=PROPERTIES)['uuid']}"
        self.good("PATCH", path, replace("/properties/target_portal", "192.0.2.6"))
        self.assertIn("sanboot --drive 0x80 iscsi:192.0.2.6::3260", self.script()[4])

    def test_a_machine_without_its_volume_never_boots_its_disk(self) -> None:
        for made in (lambda: None, self.connector, self.target):
            made()
            script = self.script()
            self.assertEqual(("sleep 60", "reboot"), tuple(script[-2:]))
            self.assertNotIn("sanboot", "".join(script))

    def test_others_see_nothing(self) -> None:
        self.connector()
        self.target(properties=PROPERTIES)
        self.put(boot_config={"target": "disk"})
        self.assertEqual("#!ipxe\nsanboot --no-describe --drive 0x80 || exit".splitlines(), self.script())
