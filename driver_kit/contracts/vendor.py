"""The contract of vendor interfaces: methods that users call by name."""

import functools
import json
from typing import Any

from ingot.common import errors
from ingot.driver_kit.bench import service
from ingot.driver_kit.contracts.base import ContractTest
from ingot.drivers.interfaces.vendor import OF_NODE, VendorCall, call_method, describe_methods

_ARGUMENTS: dict[str, dict[str, Any]] = {
    "create_subscription": {"Destination": "https://192.0.2.1/events", "Context": "mine"},
    "send_raw": {"raw_bytes": "0x00 0x04 0 1"},
    "second_method": {"bar": "kazoo"},
    "third_method_sync": {"bar": "meow"},
    "fourth_method_shared_lock": {"bar": "woof"},
    "get_subscription": {"id": "1"},
    "delete_subscription": {"id": "1"},
}
"""Arguments with which methods of Ingot's drivers work; a bench has those of others, and the rest needs none."""

_LAST = ("get_subscription", "delete_subscription", "bmc_reset")
"""What needs what others have made, or makes the BMC go away: called in this order, after the others."""


class VendorCase(ContractTest):
    def setUp(self) -> None:
        super().setUp()
        self.methods = describe_methods(self.task.driver.vendor, OF_NODE)

    def arguments_of(self, name: str) -> dict[str, Any]:
        return self.bench.vendor_arguments.get(name) or _ARGUMENTS.get(name, {})

    def call(self, name: str, http_method: str, **arguments: Any) -> Any:
        return call_method(self.task.driver.vendor, OF_NODE, self.task, VendorCall(name, http_method, arguments))


class VendorContract(VendorCase):
    def test_each_method_is_described_and_answers_json(self) -> None:
        self.assertTrue(self.methods)
        for name in sorted(self.methods, key=lambda name: (name in _LAST, _LAST.index(name) if name in _LAST else 0)):
            about = self.methods[name]
            self.assertTrue(about["description"], name)
            for http_method in about["http_methods"]:  # type: ignore[attr-defined]
                json.dumps(self.call(name, http_method, **self.arguments_of(name)))

    def test_what_there_is_not_is_refused_with_what_is(self) -> None:
        self.assert_refused(lambda: self.call("brew", "POST"), "brew", *self.methods)
        for name, about in self.methods.items():
            allowed: list[str] = about["http_methods"]  # type: ignore[assignment]
            self.assert_refused(functools.partial(self.call, name, "PATCH"), "HTTP method", name, *allowed)

    def test_arguments_that_are_wrong_are_refused(self) -> None:
        for name, about in self.methods.items():
            if name == "log_passthrough":  # it takes any
                continue
            http_method = about["http_methods"][0]  # type: ignore[index]
            self.assert_refused(
                functools.partial(self.call, name, http_method, nothing=1),
                f"arguments of method {name}",
            )

    def test_a_bmc_that_is_silent_is_reported_in_time(self) -> None:
        reading = [name for name, about in self.methods.items() if about["http_methods"] == ["GET"]]
        self.assert_silence_ends(
            *(functools.partial(self.call, name, "GET", **self.arguments_of(name)) for name in reading[:2])
        )


class SubscriptionsContract(VendorCase):
    """What those of Redfish have besides."""

    def test_subscriptions_come_and_go(self) -> None:
        made = self.call("create_subscription", "POST", **_ARGUMENTS["create_subscription"])
        self.assertEqual(
            ("https://192.0.2.1/events", "mine", "Redfish"),
            tuple(made[key] for key in ("Destination", "Context", "Protocol")),
        )
        self.assertEqual(made, self.call("get_subscription", "GET", id=made["Id"]))
        self.assertEqual(1, len(self.call("get_all_subscriptions", "GET")["Members"]))
        self.call("delete_subscription", "DELETE", id=made["Id"])
        self.assertEqual([], self.call("get_all_subscriptions", "GET")["Members"])
        for name in ("get_subscription", "delete_subscription"):
            http_method = self.methods[name]["http_methods"][0]  # type: ignore[index]
            self.assertRaises(errors.HardwareError, self.call, name, http_method, id=made["Id"])

    def test_subscriptions_that_cannot_be_are_refused(self) -> None:
        good = _ARGUMENTS["create_subscription"]
        for key, wrong in (
            ("Destination", "nowhere"),
            ("Protocol", "smoke"),
            ("Context", 7),
            ("EventTypes", "Alert"),
            ("HttpHeaders", "x"),
        ):
            self.assert_refused(
                functools.partial(self.call, "create_subscription", "POST", **{**good, key: wrong}), key
            )
        self.assertEqual([], self.call("get_all_subscriptions", "GET")["Members"])

    def test_media_are_ejected(self) -> None:
        management = self.task.driver.management
        management.attach_virtual_media(self.task, "cdrom", f"{service().url}/image.iso", None)
        for device in ("cdrom", "cd"):  # as the API calls it, and as Ironic does
            self.call("eject_vmedia", "POST", boot_device=device)
            self.assertEqual({False}, {bool(one["inserted"]) for one in management.get_virtual_media(self.task)})
        self.assert_refused(lambda: self.call("eject_vmedia", "POST", boot_device="tape"), "cdrom, floppy, disk")
