"""The storage interface cinder, on a small Cinder that can be made to fail."""

import json
from typing import Any

from ingot.common import context, errors, iscsi
from ingot.drivers.interfaces import results
from ingot.drivers.loading import factory
from tests import storage_service
from tests.unit.drivers import fakes
from tests.unit.drivers.test_volumes import IQN, connector, target

ISCSI = {"capabilities": "iscsi_boot:true"}
FIBRE = {"capabilities": "fibre_channel_boot:true"}


class CinderCase(fakes.DriverTestCase):
    def setUp(self) -> None:
        super().setUp()
        self.service = self.useFixture(storage_service.StorageService())

    def task(self, **columns: Any) -> fakes.MemoryTask:
        conf = fakes.configuration(
            enabled_hardware_types=["fake-hardware"],
            enabled_boot_interfaces=["ipxe", "pxe"],
            enabled_deploy_interfaces=["direct"],
            enabled_storage_interfaces=["noop", "cinder"],
            deploy__deploy_kernel="http://files/kernel",
            deploy__deploy_ramdisk="http://files/initrd",
        )
        self.service.configure(conf)
        node = fakes.node(**{"storage_interface": "cinder", "properties": ISCSI, **columns})
        task = fakes.MemoryTask(conf, node, factory.Hardware(conf))
        task.ports = [fakes.port()]
        task.volume_connectors = [connector(uuid="ip", type="ip", connector_id="192.0.2.9"), connector()]
        return task

    def volume_task(self, count: int = 1, **columns: Any) -> fakes.MemoryTask:
        """Return a task of a node with volumes; it boots from the first."""
        task = self.task(**columns)
        task.volume_targets = [
            target(uuid=f"t{index}", boot_index=index, volume_id=self.service.add(), properties={})
            for index in range(count)
        ]
        return task

    def fibre_task(self) -> fakes.MemoryTask:
        task = self.volume_task(properties=FIBRE)
        task.volume_targets[0].volume_type = "fibre_channel"
        names = (("wwpn", "10:00"), ("wwpn", "10:01"), ("wwnn", "20:00"), ("wwnn", "20:01"))
        task.volume_connectors = [connector(uuid=name, type=kind, connector_id=name) for kind, name in names]
        return task

    def assert_nothing_left(self, task: fakes.MemoryTask) -> None:
        self.assertEqual((0, {"available"}), self.service.count())
        self.assertNotIn("cinder_instance", task.node.driver_internal_info)

    def detach(self, task: fakes.MemoryTask) -> Any:
        return self.run_to_end(lambda: task.driver.storage.detach_volumes(task))


class Records(CinderCase):
    def refused(self, task: fakes.MemoryTask) -> str:
        return self.assertRaises(errors.Invalid, task.driver.storage.validate, task).message

    def test_good_records_need_no_answer_of_cinder(self) -> None:
        for task in (self.volume_task(2), self.fibre_task(), self.task()):
            task.driver.storage.validate(task)
        self.assertEqual([], self.service.asked)

    def test_what_does_not_fit_is_named(self) -> None:
        for change, part in (
            ({"volume_type": "nvme"}, "iscsi, fibre_channel"),
            ({"volume_type": "fibre_channel"}, "one of type wwpn or wwnn"),
            ({"volume_id": None}, "volume_id"),
        ):
            task = self.volume_task()
            vars(task.volume_targets[0]).update(change)
            self.assertIn(part, self.refused(task))
        self.assertIn("iscsi_boot:true", self.refused(self.volume_task(properties={})))
        self.assertIn("boot interface ipxe", self.refused(self.volume_task(boot_interface="pxe")))

    def test_connectors_that_are_missing_are_named(self) -> None:
        task = self.volume_task()
        task.volume_connectors = []
        self.assertIn("one of type iqn", self.refused(task))
        task = self.fibre_task()
        task.volume_connectors.pop()
        self.assertIn("2 wwpn, 1 wwnn", self.refused(task))
        task = self.volume_task()
        task.volume_connectors = [connector(type="mac", connector_id="52:54:00:00:00:01")]
        message = self.assertRaises(errors.Invalid, task.driver.storage.attach_volumes, task).message
        self.assertIn("one of type iqn", message)
        self.assertEqual((0, {"available"}), self.service.count())

    def test_users_get_their_own_volumes_only(self) -> None:
        for project, roles, may in (
            ("owner", ["member"], True), ("other", ["member"], False), ("other", ["admin"], True),
            ("nova", ["service"], True),
        ):  # fmt: skip
            task = self.volume_task()
            task.context = context.RequestContext(project_id=project, roles=roles, overwrite=False)
            if may:
                task.driver.storage.validate(task)
            else:
                self.assertIn("that you may use", self.refused(task))
            late = self.volume_task(request={"asked_by": {"project": project, "roles": roles}})
            if may:
                late.driver.storage.attach_volumes(late)
                self.detach(late)
            else:
                self.assertRaises(errors.Invalid, late.driver.storage.attach_volumes, late)
                self.assertEqual((0, {"available"}), self.service.count())


class Attaching(CinderCase):
    def test_volumes_are_attached_and_detached(self) -> None:
        task = self.volume_task(2)
        task.driver.storage.attach_volumes(task)
        self.assertEqual((2, {"in-use"}), self.service.count())
        sent = next(iter(self.service.attachments.values()))["connector"]
        expected = {"initiator": IQN, "ip": "192.0.2.9", "host": task.node.uuid, "multipath": True,
                    "mountpoint": "ironic_mountpoint"}  # fmt: skip
        self.assertEqual(expected, sent)
        first = task.volume_targets[0]
        volume = iscsi.boot_volume(first, task.volume_connectors)
        self.assertEqual(("iscsi:192.0.2.5::3260:1:iqn.2010-10.org.openstack:volume", "sesame"), (
            volume.uri, volume.password))  # fmt: skip
        self.assertEqual((first.volume_id, first.volume_id), (
            first.properties["volume_id"], first.properties["ironic_volume_uuid"]))  # fmt: skip
        self.assertFalse(task.driver.storage.should_write_image(task))
        self.assertEqual(results.DONE, self.detach(task))
        self.assert_nothing_left(task)
        noted = json.loads(self.service.volumes[first.volume_id]["metadata"][f"ironic_node_{task.node.uuid}"])
        self.assertEqual("detached", noted["last_action"])
        task.remove_volume_targets()
        asked = len(self.service.asked)
        self.assertEqual(results.DONE, self.detach(task))
        self.assertEqual(asked, len(self.service.asked))

    def test_firmware_finds_a_volume_of_fibre_channel_itself(self) -> None:
        task = self.fibre_task()
        task.driver.storage.attach_volumes(task)
        sent = next(iter(self.service.attachments.values()))["connector"]
        self.assertEqual((["10:00", "10:01"], ["20:00", "20:01"]), (sent["wwpns"], sent["wwnns"]))
        task.driver.boot.prepare_instance(task)
        self.assertEqual({"target": "disk"}, task.node.boot_config)
        self.assertEqual({"boot_device": "disk", "persistent": True}, task.driver.management.get_boot_device(task))
        self.assertFalse(task.driver.storage.should_write_image(task))

    def test_what_is_attached_already_stays(self) -> None:
        task = self.volume_task(instance_uuid="0b0e1c8e-0000-4000-8000-000000000001")
        about = {"volume_uuid": task.volume_targets[0].volume_id, "instance_uuid": task.node.instance_uuid}
        self.service.attach({**about, "connector": {"host": "compute"}})
        task.driver.storage.attach_volumes(task)
        self.assertEqual((1, {"in-use"}), self.service.count())
        self.assertEqual("sesame", task.volume_targets[0].properties["auth_password"])
        self.detach(task)
        self.assert_nothing_left(task)

    def test_a_reservation_is_replaced(self) -> None:
        task = self.volume_task()
        about = {"volume_uuid": task.volume_targets[0].volume_id, "instance_uuid": task.node.uuid}
        self.service.attach(about)
        task.driver.storage.attach_volumes(task)
        self.assertEqual((1, {"in-use"}), self.service.count())


class Faults(CinderCase):
    """Each request fails in each way; then all is attached, or nothing."""

    def outcome(self, task: fakes.MemoryTask, method: str, number: int, status: int) -> errors.IngotError | None:
        """Attach with one request failing; return the error."""
        self.service.refusals[method] = [*[None] * number, status]
        try:
            task.driver.storage.attach_volumes(task)
        except errors.IngotError as exc:
            return exc
        finally:
            self.service.refusals.clear()
        return None

    def test_at_each_request_of_attaching(self) -> None:
        # GET: attachments; POST: attach and complete the first, then the second
        points = [("GET", 0), *(("POST", number) for number in range(4))]
        for method, number in points:
            for status in (0, 400, 401, 403, 404, 409, 500, 503):
                with self.subTest(method=method, number=number, status=status):
                    self.service.volumes.clear()
                    task = self.volume_task(2)
                    error = self.outcome(task, method, number, status)
                    away = status in (0, 500, 503)
                    expected = errors.StorageServiceUnavailable if away else errors.StorageError
                    self.assertIsInstance(error, expected)
                    self.assertEqual((0, {"available"}), self.service.count())
                    task.driver.storage.attach_volumes(task)
                    self.assertEqual((2, {"in-use"}), self.service.count())
                    self.detach(task)
                    self.assert_nothing_left(task)

    def test_metadata_that_cannot_be_written_matters_not(self) -> None:
        task = self.volume_task()
        self.assertIsNone(self.outcome(task, "POST", 2, 503))
        self.assertEqual((1, {"in-use"}), self.service.count())

    def test_cinder_is_asked_again_to_let_volumes_go(self) -> None:
        for status in (409, 400, 404):
            task = self.volume_task(2)
            task.driver.storage.attach_volumes(task)
            self.service.refusals["DELETE"] = [status] * 3
            self.assertEqual(results.DONE, self.detach(task), status)
            self.service.refusals.clear()
        task = self.volume_task()
        task.driver.storage.attach_volumes(task)
        self.service.refusals["DELETE"] = [409] * 4
        self.assertIn("the fake says no", self.assertRaises(errors.StorageError, self.detach, task).message)
        self.assertIn("cinder_instance", task.node.driver_internal_info)
        self.assertEqual(results.DONE, self.detach(task))

    def test_a_cinder_that_is_away_is_one_to_try_again(self) -> None:
        task = self.volume_task()
        task.driver.storage.attach_volumes(task)
        for method in ("GET", "DELETE"):
            self.service.refusals[method] = [503]
            self.assertRaises(errors.StorageServiceUnavailable, self.detach, task)
        self.detach(task)
        self.assert_nothing_left(task)

    def test_a_volume_that_is_gone_is_no_fault(self) -> None:
        task = self.volume_task()
        task.driver.storage.attach_volumes(task)
        self.service.attachments.clear()
        self.service.volumes.clear()
        self.assertEqual(results.DONE, self.detach(task))

    def test_a_cinder_without_keystone_may_want_a_password(self) -> None:
        task = self.volume_task()
        self.service.login = "Basic YWRtaW46c2VzYW1l"
        self.service.configure(task.conf, auth_type="http_basic", username="admin", password="sesame")
        task.driver.storage.attach_volumes(task)
        self.assertEqual((1, {"in-use"}), self.service.count())

    def test_a_configuration_without_cinder_is_refused(self) -> None:
        task = self.task()
        task.conf.set_override("auth_type", None, group="cinder")
        storage = task.driver.storage
        message = self.assertRaises(errors.ConfigurationError, storage.check_enabled, {}).message
        self.assertIn("[cinder] auth_type", message)
