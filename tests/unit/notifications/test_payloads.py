"""Payloads have the names, versions and fields of Ironic 39, and nothing secret."""

import datetime
import json
import pathlib
from typing import Any

import testtools

from ingot.common import clock
from ingot.notifications import payloads

_RECORDED, _SENT = (pathlib.Path(__file__).with_name(name) for name in ("ironic39.json", "ironic39_sent.json"))
"""The payload objects of Ironic 39, and rows with what its classes make of them (oslo.versionedobjects 3)."""


def _without_masks(value: Any) -> Any:
    """Return a payload in which all masks are the same: oslo.utils has several."""
    if isinstance(value, dict):
        return {key: _without_masks(inner) for key, inner in value.items()}
    return "***" if isinstance(value, str) and set(value) == {"*"} else value


class PayloadsTest(testtools.TestCase):
    def test_they_are_those_that_were_recorded(self) -> None:
        recorded = json.loads(_RECORDED.read_text())
        single = (payloads.NODE, payloads.POWER_SET, payloads.POWER_CORRECTED, payloads.PROVISION_SET)
        ours = {
            one.name: {"version": one.version, "fields": " ".join(sorted(one.fields))}
            for one in (*payloads.CRUD.values(), *single)
        }
        self.assertEqual(recorded, ours)

    def test_the_same_rows_are_sent_as_ironic_sends_them(self) -> None:
        for case in json.loads(_SENT.read_text()):
            payload = payloads.PROVISION_SET if case["kind"] == "provision_set" else payloads.CRUD[case["kind"]]
            columns = {
                name: datetime.datetime.fromisoformat(value).replace(tzinfo=None) if value and "_at" in name else value
                for name, value in case["columns"].items()
            }
            self.assertEqual(_without_masks(case["sent"]), _without_masks(payload.build(columns)), case["kind"])

    def test_an_object_is_as_oslo_versionedobjects_sends_it(self) -> None:
        moment = clock.now().replace(2026, 1, 2, 3, 4, 5, 6)
        built = payloads.CRUD["chassis"].build({"uuid": "u", "created_at": moment, "extra": {"a": 1}, "id": 7})
        data = {"uuid": "u", "created_at": "2026-01-02T03:04:05Z", "extra": {"a": 1}}
        self.assertEqual(
            {
                "ironic_object.name": "ChassisCRUDPayload",
                "ironic_object.namespace": "ironic",
                "ironic_object.version": "1.0",
                "ironic_object.data": {**data, "description": None, "updated_at": None},
            },
            built,
        )

    def test_secrets_are_masked(self) -> None:
        info = {"ipmi_password": "hunter2", "ipmi_username": "admin", "url": "http://u:hunter2@h/"}
        for secret in ({"driver_info": info}, {"instance_info": {"image_url": "http://hunter2/"}}, {"extra": info}):
            self.assertNotIn("hunter2", json.dumps(payloads.CRUD["node"].build({"uuid": "u", **secret})))

    def test_what_a_policy_guards_is_not_sent(self) -> None:
        target = payloads.CRUD["volumetarget"].build({"properties": {"target_iqn": "iqn", "auth_username": "u"}})
        self.assertEqual(payloads.REDACTED, target["ironic_object.data"]["properties"])
        rule = {"sensitive": True, "actions": [{"op": "fail"}], "conditions": []}
        sent = payloads.CRUD["inspectionrule"].build(rule)["ironic_object.data"]
        self.assertEqual(([payloads.REDACTED],) * 2, (sent["actions"], sent["conditions"]))
        shown = payloads.CRUD["inspectionrule"].build({**rule, "sensitive": False})["ironic_object.data"]
        self.assertEqual([{"op": "fail"}], shown["actions"])
