"""What users ask of one machine, through the API and a real conductor with fake hardware."""

import threading
import time
from typing import Any

import sqlalchemy as sa

from ingot.common import context, errors, states
from ingot.db import conductors, facts, inventory, nodes
from ingot.rpcapi import client, transport, versions
from tests import api_case, conductor_case, database, sql_counter

VIF = "2b4b0a4e-7bc3-4ed1-8a5b-2c1d3c7a9e55"


class HardwareCase(conductor_case.ConductorCase):
    def configure(self) -> None:
        self.conf.set_override("lock_wait_timeout", 0, group="api")
        self.conf.set_override("enabled_console_interfaces", ["fake", "fake-graphical", "no-console"])
        self.conf.set_override("enabled_bios_interfaces", ["fake", "no-bios"])
        self.conf.set_override("enabled_raid_interfaces", ["fake", "no-raid"])
        self.conf.set_override("enabled_management_interfaces", ["fake", "noop"])

    def setUp(self) -> None:
        super().setUp()
        self.bus = transport.LocalTransport()
        self.bus.serve(self.conf.host, self.conductor.endpoint)
        self.http = api_case.create_app(
            self.conf, self.db, client.ConductorClient(self.conf, self.db, self.bus)
        ).test_client()
        self.known = database.make_node(self.db, name="n", provision_state=states.MANAGEABLE)
        self.url = f"/v1/nodes/{self.known.uuid}"

    def api(self, method: str, path: str, body: Any = None, version: str = api_case.LATEST) -> api_case.Answer:
        headers = {"X-OpenStack-Ironic-API-Version": version}
        return api_case.Answer(self.http.open(f"{self.url}/{path}", method=method, json=body, headers=headers))

    def good(self, status: int, method: str, path: str, body: Any = None, version: str = api_case.LATEST) -> Any:
        answer = self.api(method, path, body, version)
        self.assertEqual(status, answer.status, answer)
        return answer.json if answer.text else None

    def refused(self, status: int, method: str, path: str, body: Any = None, version: str = api_case.LATEST) -> str:
        answer = self.api(method, path, body, version)
        self.assertEqual(status, answer.status, answer)
        return answer.message

    @property
    def node(self) -> Any:
        return nodes.get(self.db, self.known.uuid)

    def lock_elsewhere(self) -> None:
        """Lock the node in the name of a conductor that is alive: the first sweep takes over what the dead hold."""
        about = {"conductor_group": "", "release": "0.3", "rpc_version": versions.RPC_VERSION}
        conductors.register(self.db, "otherhost", about, [])
        self.change(reservation="otherhost", lock_purpose="work", locked_at=self.known.created_at)

    def change(self, **values: Any) -> None:
        with self.db.single() as connection:
            connection.execute(sa.update(nodes.NODES).values(values))


class Turns(HardwareCase):
    def test_an_abandoned_call_is_not_done_later(self) -> None:
        busy = threading.Event()
        self.addCleanup(busy.set)
        self.conductor.queues.submit(self.known.uuid, busy.wait)
        self.bus.patience = 0.1
        message = self.refused(503, "PUT", "states/console", {"enabled": True})
        self.assertIn("switching the console has not begun", message)
        self.bus.patience = transport.PATIENCE_S
        busy.set()
        self.good(202, "PUT", "states/boot_mode", {"target": "uefi"})
        self.assertEqual(("uefi", False), (self.node.boot_mode, self.node.console_enabled))

    def test_nor_what_a_conductor_reads_that_was_frozen(self) -> None:
        for late in ("arrive", "begin"):
            by = {"arrive": time.time() + 900, "begin": time.time() + 900, late: time.time() - 1}
            answer = self.conductor.endpoint.set_boot_mode(
                {**context.admin().to_dict(), "by": by}, node_uuid=self.known.uuid, target="uefi"
            )
            self.assertRaises(errors.ServiceUnavailable, transport.unpack, answer)
        self.assertIsNone(self.node.boot_mode)


class Console(HardwareCase):
    def test_is_switched_on_and_off_and_tells_where_it_is(self) -> None:
        off = {"console_enabled": False, "console_info": None}
        self.assertEqual(off, self.good(200, "GET", "states/console"))
        answer = self.api("PUT", "states/console", {"enabled": "true"})
        self.assertEqual(202, answer.status)
        self.assertTrue(answer.headers["Location"].endswith(f"{self.url}/states/console"))
        self.assertEqual("fake", self.good(200, "GET", "states/console")["console_info"]["type"])
        self.assertTrue(self.good(200, "GET", "states")["console_enabled"])
        self.good(202, "PUT", "states/console", {"enabled": None})
        self.assertEqual(off, self.good(200, "GET", "states/console"))

    def test_a_graphical_one_notes_its_address_while_it_is_on(self) -> None:
        self.change(console_interface="fake-graphical")
        self.good(202, "PUT", "states/console", {"enabled": True})
        console = self.good(200, "GET", "states/console")["console_info"]
        self.assertEqual("vnc", console["type"])
        self.assertIn(self.known.uuid, console["url"])
        self.assertGreater(self.node.driver_internal_info["vnc_port"], 0)
        self.good(202, "PUT", "states/console", {"enabled": False})
        self.assertNotIn("vnc_host", self.node.driver_internal_info)

    def test_a_machine_without_one_is_reported_as_such(self) -> None:
        self.change(console_interface="no-console")
        self.assertIn("no-console", self.refused(400, "GET", "states/console"))
        self.assertIn("no-console", self.refused(400, "PUT", "states/console", {"enabled": True}))
        self.assertFalse(self.node.console_enabled)


class BootMode(HardwareCase):
    def test_boot_mode_and_secure_boot_are_set_and_shown(self) -> None:
        for path, target in (("boot_mode", "uefi"), ("secure_boot", "on")):
            answer = self.api("PUT", f"states/{path}", {"target": target})
            self.assertEqual(202, answer.status, answer)
            self.assertTrue(answer.headers["Location"].endswith(f"{self.url}/states"))
        shown = self.good(200, "GET", "states")
        self.assertEqual(("uefi", True), (shown["boot_mode"], shown["secure_boot"]))
        self.assertIsNone(self.node.reservation)

    def test_not_while_a_flow_is_under_way(self) -> None:
        for state in sorted(states.ALL):
            self.change(provision_state=state)
            moving = state in states.WORKING | states.WAITING
            for path, target in (("boot_mode", "bios"), ("secure_boot", False)):
                answer = self.api("PUT", f"states/{path}", {"target": target})
                self.assertEqual(409 if moving else 202, answer.status, f"{state}: {answer}")
                if moving:
                    self.assertIn(state, answer.message)

    def test_unknown_to_old_versions_and_to_machines_without(self) -> None:
        self.assertIn("1.76", self.refused(404, "PUT", "states/boot_mode", {"target": "uefi"}, "1.75"))
        self.assertIn("'moon' is not one of", self.refused(400, "PUT", "states/boot_mode", {"target": "moon"}))
        self.assertIn("target", self.refused(400, "PUT", "states/secure_boot", {"target": None}))
        self.change(management_interface="noop")
        for path, target in (("boot_mode", "uefi"), ("secure_boot", True)):
            message = self.refused(400, "PUT", f"states/{path}", {"target": target})
            self.assertEqual(f"Driver interface noop (management) does not support set_{path}.", message)
        self.assertIsNone(self.node.boot_mode)


class InEveryState(HardwareCase):
    def test_what_no_state_refuses(self) -> None:
        """As measured: only a lock stands in the way."""
        requests: tuple[tuple[int, str, str, Any], ...] = (
            (202, "PUT", "states/console", {"enabled": True}),
            (202, "PUT", "states/console", {"enabled": False}),
            (204, "PUT", "management/boot_device", {"boot_device": "pxe"}),
            (200, "GET", "management/boot_device", None),
            (400, "PUT", "management/inject_nmi", None),
            (204, "POST", "vifs", {"id": VIF}),
            (200, "GET", "vifs", None),
            (204, "DELETE", f"vifs/{VIF}", None),
            (200, "GET", "vendor_passthru/methods", None),
            (400, "POST", "vendor_passthru?method=first_method", {}),
        )
        for state in sorted(states.ALL):
            self.change(provision_state=state)
            for status, method, path, body in requests:
                self.good(status, method, path, body)


class Indicators(HardwareCase):
    def test_are_listed_read_and_set_by_either_of_their_names(self) -> None:
        listed = self.good(200, "GET", "management/indicators", version="1.1")["indicators"]
        self.assertEqual(["led-0@chassis", "led@system"], [one["name"] for one in listed])
        self.assertEqual({"name", "component", "readonly", "states", "links"}, set(listed[0]))
        self.assertTrue(listed[0]["links"][0]["href"].endswith(f"{self.url}/management/indicators/led-0@chassis"))
        for path in ("led@system", "system/led"):
            url = f"management/indicators/{path}"
            for state in ("BLINKING", "off", "On"):
                self.good(204, "PUT", url, {"state": state})
                self.assertEqual({"state": state.lower()}, self.good(200, "GET", url))

    def test_what_cannot_be_is_refused(self) -> None:
        self.assertIn("name@component", self.refused(400, "GET", "management/indicators/system"))
        for path in ("y@zz", "zz/y"):
            self.assertIn("led@system", self.refused(404, "GET", f"management/indicators/{path}"))
            self.refused(404, "PUT", f"management/indicators/{path}", {"state": "on"})
        self.assertIn("read only", self.refused(400, "PUT", "management/indicators/chassis/led-0", {"state": "on"}))
        message = self.refused(400, "PUT", "management/indicators/system/led", {"state": "pink"})
        self.assertIn("blinking, off, on", message)

    def test_a_machine_without_any(self) -> None:
        self.change(management_interface="noop")
        self.assertIn("does not support", self.refused(400, "GET", "management/indicators"))


class Interrupt(HardwareCase):
    def test_is_not_for_fakes(self) -> None:
        self.assertIn("inject_nmi", self.refused(400, "PUT", "management/inject_nmi", {}))
        self.refused(404, "PUT", "management/inject_nmi", {}, "1.28")

    def test_needs_the_lock(self) -> None:
        self.lock_elsewhere()
        self.assertIn("otherhost", self.refused(409, "PUT", "management/inject_nmi", {}))


class VirtualMedia(HardwareCase):
    def test_an_image_is_put_in_and_taken_out(self) -> None:
        image = {"device_type": "cdrom", "image_url": "http://files/a.iso"}
        self.good(204, "POST", "vmedia", image)
        self.good(204, "POST", "vmedia", {**image, "device_type": "disk", "image_download_source": "http"})
        inside = self.node.driver_internal_info["fake_virtual_media"]
        self.assertEqual({"cdrom", "disk"}, set(inside))
        self.good(204, "DELETE", "vmedia?device_types=disk,floppy")
        self.assertEqual({"cdrom": "http://files/a.iso"}, self.node.driver_internal_info["fake_virtual_media"])
        self.good(204, "DELETE", "vmedia")
        self.assertEqual({}, self.node.driver_internal_info["fake_virtual_media"])

    def test_each_method_has_its_version(self) -> None:
        self.assertIn("get_virtual_media", self.refused(400, "GET", "vmedia", version="1.93"))
        self.assertIn("1.93", self.refused(404, "GET", "vmedia", version="1.92"))
        for method in ("POST", "PUT", "DELETE"):
            self.refused(404, method, "vmedia", {}, "1.88")
        self.refused(405, "PUT", "vmedia", {}, "1.89")

    def test_what_cannot_be_is_refused(self) -> None:
        image = {"device_type": "cdrom", "image_url": "ftp://files/a.iso"}
        self.assertIn("https", self.refused(400, "POST", "vmedia", image))
        self.assertIn("image_url", self.refused(400, "POST", "vmedia", {"device_type": "cdrom"}))
        self.assertIn("disk, cdrom, floppy", self.refused(400, "DELETE", "vmedia?device_types=zz"))


class Vifs(HardwareCase):
    def test_the_noop_network_takes_any_and_keeps_none(self) -> None:
        self.good(204, "POST", "vifs", {"id": VIF, "port_uuid": VIF, "colour": "blue"})
        self.assertEqual({"vifs": []}, self.good(200, "GET", "vifs", version="1.28"))
        self.good(204, "DELETE", f"vifs/{VIF}")
        self.good(204, "DELETE", "vifs/by-name")

    def test_a_place_for_it_is_newer(self) -> None:
        self.refused(406, "POST", "vifs", {"id": VIF, "port_uuid": VIF}, "1.66")
        self.good(204, "POST", "vifs", {"id": VIF, "portgroup_uuid": VIF}, "1.67")
        self.refused(404, "GET", "vifs", version="1.27")

    def test_attaching_needs_the_lock_and_reading_does_not(self) -> None:
        self.lock_elsewhere()
        self.refused(409, "POST", "vifs", {"id": VIF})
        self.refused(409, "DELETE", f"vifs/{VIF}")
        self.good(200, "GET", "vifs")


VIRTUALIZATION = {"name": "virtualization", "value": "on", "attribute_type": "Enumeration", "read_only": False,
                  "allowable_values": ["on", "off"]}  # fmt: skip
BOOT_TIMEOUT = {"name": "boot_timeout", "value": "5", "attribute_type": "Integer", "lower_bound": 0, "upper_bound": 60}


class Bios(HardwareCase):
    def settings(self, query: str = "", version: str = api_case.LATEST) -> dict[str, dict[str, Any]]:
        listed = self.good(200, "GET", f"bios{query}", version=version)["bios"]
        return {setting.get("name"): setting for setting in listed}

    def clean(self, *steps: dict[str, Any]) -> None:
        self.assertIsNone(
            self.run_flow(self.known, "manual_clean", states.CLEANING, clean_steps=list(steps)).last_error
        )

    def apply(self, **settings: Any) -> dict[str, Any]:
        """Apply settings; return the values that the node shows after it."""
        listed = [{"name": name, "value": value} for name, value in settings.items()]
        self.clean({"interface": "bios", "step": "apply_configuration", "args": {"settings": listed}})
        return {name: one["value"] for name, one in self.settings().items()}

    def read(self, *reading: dict[str, Any]) -> None:
        """Let a driver have read these settings, with what it knows of them."""
        nodes.set_always(self.db, self.known.uuid, {"reservation": "conductor-1", "lock_purpose": "work"})
        nodes.write_locked(self.db, self.node, {}, extra_writes=[facts.BIOS.build_write(self.node.id, reading)])
        nodes.set_always(self.db, self.known.uuid, {"reservation": None, "lock_purpose": None})

    def test_a_fake_has_none_until_some_are_applied_which_replace_those_before(self) -> None:
        self.run_flow(self.known, "verify", states.VERIFYING)
        self.assertEqual({}, self.settings())
        self.assertEqual({"virtualization": "on", "colour": "5"}, self.apply(virtualization="on", colour=5))
        before = self.settings()["virtualization"]
        self.assertIsNone(before["updated_at"])
        self.assertEqual({"virtualization": "off"}, self.apply(virtualization="off"))
        now = self.settings()["virtualization"]
        self.assertIsNotNone(now["updated_at"])
        self.assertEqual(before["created_at"], now["created_at"])
        self.run_flow(self.known, "verify", states.VERIFYING)
        self.assertEqual({"virtualization"}, set(self.settings()))
        self.clean({"interface": "bios", "step": "factory_reset"})
        self.assertEqual({}, self.settings())

    def test_details_and_fields_since_1_74(self) -> None:
        self.read(VIRTUALIZATION, BOOT_TIMEOUT)
        plain = {"created_at", "updated_at", "name", "value", "links"}
        detail = self.settings("?detail=true", "1.74")["virtualization"]
        self.assertEqual(plain, set(self.settings(version="1.73")["virtualization"]))
        self.assertEqual(plain, set(self.settings()["virtualization"]))
        self.assertEqual(14, len(detail))
        self.assertEqual(("Enumeration", ["on", "off"]), (detail["attribute_type"], detail["allowable_values"]))
        self.assertEqual(
            {"name", "upper_bound", "links"}, set(self.settings("?fields=name,upper_bound")["boot_timeout"])
        )
        for query in ("?detail=true", "?fields=name"):
            self.assertIn("1.74", self.refused(400, "GET", f"bios{query}", version="1.73"))
        self.refused(400, "GET", "bios?detail=true&fields=name")
        self.refused(404, "GET", "bios", version="1.39")

    def test_one_setting(self) -> None:
        self.read(BOOT_TIMEOUT)
        shown = self.good(200, "GET", "bios/boot_timeout")
        self.assertEqual(["boot_timeout"], list(shown))
        self.assertEqual((0, 60), (shown["boot_timeout"]["lower_bound"], shown["boot_timeout"]["upper_bound"]))
        self.assertTrue(shown["boot_timeout"]["links"][0]["href"].endswith(f"{self.url}/bios/boot_timeout"))
        self.assertNotIn("lower_bound", self.good(200, "GET", "bios/boot_timeout", version="1.73")["boot_timeout"])
        self.assertIn("'nope'", self.refused(404, "GET", "bios/nope"))

    def test_go_with_their_node(self) -> None:
        self.apply(virtualization="on")
        self.good(204, "DELETE", "")
        self.refused(404, "GET", "bios")


class Firmware(HardwareCase):
    def components(self, version: str = api_case.LATEST) -> dict[str, Any]:
        listed = self.good(200, "GET", "firmware", version=version)["firmware"]
        return {component["component"]: component for component in listed}

    def test_versions_are_read_when_a_node_is_verified_and_after_an_update(self) -> None:
        self.assertEqual({}, self.components())
        self.run_flow(self.known, "verify", states.VERIFYING)
        bmc = self.components()["bmc"]
        self.assertEqual(
            ("v1", "v1", None), (bmc["initial_version"], bmc["current_version"], bmc["last_version_flashed"])
        )
        update = {"settings": [{"component": "bmc", "url": "http://files/bmc.bin"}]}
        steps = [{"interface": "firmware", "step": "update", "args": update}]
        self.run_flow(self.known, "manual_clean", states.CLEANING, clean_steps=steps)
        bmc = self.components()["bmc"]
        self.assertEqual(
            ("v1", "v2", "v2"), (bmc["initial_version"], bmc["current_version"], bmc["last_version_flashed"])
        )
        self.assertIsNone(self.components()["bios"]["updated_at"])

    def test_fields_by_version(self) -> None:
        self.run_flow(self.known, "verify", states.VERIFYING)
        newer = {"vendor", "model", "serial_number"}
        self.assertEqual(newer, newer & set(self.components("1.114")["bmc"]))
        self.assertEqual(set(), newer & set(self.components("1.113")["bmc"]))
        self.refused(404, "GET", "firmware", version="1.85")


class InventoryAndChildren(HardwareCase):
    def test_the_inventory_of_the_last_inspection(self) -> None:
        self.assertIn(self.known.uuid, self.refused(404, "GET", "inventory"))
        for cores in (4, 8):
            inventory.save(self.db, self.known.id, {"cpu": {"count": cores}}, {"logs": "x"})
        expected = {"inventory": {"cpu": {"count": 8}}, "plugin_data": {"logs": "x"}}
        self.assertEqual(expected, self.good(200, "GET", "inventory", version="1.81"))
        self.refused(404, "GET", "inventory", version="1.80")

    def test_children(self) -> None:
        child = database.make_node(self.db, parent_node=self.known.uuid)
        shown = self.good(200, "GET", "children", version="1.83")
        self.assertEqual([child.uuid], shown["children"])
        self.assertTrue(shown["links"]["href"].endswith(f"/v1/nodes?parent_node={self.known.uuid}"))
        self.assertEqual("children", shown["links"]["rel"])
        self.refused(404, "GET", "children", version="1.82")


class WithoutConductor(HardwareCase):
    def test_what_is_in_the_database_is_read_with_two_statements(self) -> None:
        settings = {"settings": [{"name": "virtualization", "value": "on"}]}
        requested = [{"interface": "bios", "step": "apply_configuration", "args": settings}]
        self.run_flow(self.known, "manual_clean", states.CLEANING, clean_steps=requested)
        inventory.save(self.db, self.known.id, {}, {})
        self.bus.stop(self.conf.host)
        self.refused(503, "GET", "states/console")
        self.conductor.stop()  # its heartbeats would be counted
        for path in ("bios", "bios?detail=true", "bios/virtualization", "firmware", "inventory", "children"):
            with sql_counter.counting(self.db) as counted:
                self.good(200, "GET", path)
            self.assertEqual(2, len(counted), f"{path}: {counted}")


class VendorMethods(HardwareCase):
    def call(self, method: str, **arguments: Any) -> api_case.Answer:
        return self.api("POST", f"vendor_passthru?method={method}", arguments)

    def test_are_listed_with_what_they_need(self) -> None:
        methods = self.good(200, "GET", "vendor_passthru/methods", version="1.1")
        self.assertEqual(
            {"second_method", "third_method_sync", "fourth_method_shared_lock", "log_passthrough"}, set(methods)
        )
        asynchronous = {name: about["async"] for name, about in methods.items()}
        self.assertEqual({"third_method_sync"}, {name for name, later in asynchronous.items() if not later})
        locked = {name for name, about in methods.items() if about["require_exclusive_lock"]}
        self.assertEqual(set(methods) - {"fourth_method_shared_lock"}, locked)

    def test_one_that_tells_is_200_and_one_that_does_not_is_202(self) -> None:
        answer = self.call("third_method_sync", bar="meow")
        self.assertEqual((200, True), (answer.status, answer.json))
        self.assertIs(False, self.call("third_method_sync", bar="woof").json)
        for method in ("second_method", "fourth_method_shared_lock", "log_passthrough"):
            answer = self.call(method, bar="meow")
            self.assertEqual((202, ""), (answer.status, answer.text), method)
        self.assertIs(True, self.good(200, "POST", "vendor_passthru/third_method_sync", {"bar": "meow"}))

    def test_the_lock_is_needed_only_where_it_is_declared(self) -> None:
        self.lock_elsewhere()
        self.assertEqual(409, self.call("second_method", bar="x").status)
        self.assertEqual(202, self.call("fourth_method_shared_lock", bar="x").status)
        self.assertEqual(400, self.call("first_method", bar="x").status)

    def test_what_cannot_be_called_is_refused(self) -> None:
        self.assertIn("third_method_sync", self.call("first_method").message)
        self.assertIn("'bar'", self.call("second_method").message)
        self.assertIn("POST", self.refused(400, "GET", "vendor_passthru?method=second_method"))
        self.assertIn("Missing mandatory parameter: method", self.refused(400, "POST", "vendor_passthru", {}))


class Drivers(HardwareCase):
    def setUp(self) -> None:
        super().setUp()
        self.url = "/v1/drivers/fake-hardware"

    def test_logical_disks_are_described(self) -> None:
        properties = self.good(200, "GET", "raid/logical_disk_properties", version="1.12")
        self.assertEqual(10, len(properties))
        self.assertIn("JBOD", properties["raid_level"])
        self.refused(406, "GET", "raid/logical_disk_properties", version="1.11")


class DriversWithoutRaid(HardwareCase):
    """Hardware types whose default interface has no arrays, as ipmi: their nodes may have another one."""

    def configure(self) -> None:
        super().configure()
        self.conf.set_override("default_raid_interface", "no-raid")

    def test_logical_disks_are_described(self) -> None:
        self.url = "/v1/drivers/fake-hardware"
        self.assertIn("JBOD", self.good(200, "GET", "raid/logical_disk_properties")["raid_level"])
