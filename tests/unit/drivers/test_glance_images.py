"""Images of Glance are checked where they are named, and the machine gets links that end."""

import hashlib
import hmac
from typing import Any, ClassVar

import fixtures

from ingot.common import context, errors
from ingot.drivers.images import instance_image
from tests import image_service
from tests.unit.drivers import fakes
from tests.unit.drivers.file_server import SlowServer

SHA = hashlib.sha256(b"image").hexdigest()
UNKNOWN = "0e4b1a9c-3d52-4c6e-8a52-3f6de2bb1c58"


class GlanceCase(fakes.DriverTestCase):
    options: ClassVar[dict[str, Any]] = {"service_catalog__endpoint_override": "http://10.0.0.1:6385/"}

    def setUp(self) -> None:
        super().setUp()
        self.glance = self.useFixture(image_service.ImageService())

    def task(self, **columns: Any) -> fakes.MemoryTask:
        task = super().task(**columns)
        self.glance.configure(task.conf)
        return task

    def of(self, source: str, **more: Any) -> fakes.MemoryTask:
        return self.task(instance_info={"image_source": source, **more})

    def refused(self, source: str, **more: Any) -> str:
        return self.assertRaises(errors.Invalid, instance_image.read_requested_image, self.of(source, **more)).message


class CheckedTest(GlanceCase):
    def test_what_glance_knows_need_not_be_said(self) -> None:
        ident = self.glance.add(disk_format="qcow2")
        for source in (ident, f"glance://{ident}"):
            image = instance_image.read_requested_image(self.of(source))
            self.assertEqual(("qcow2", "ab" * 64, "sha512"), (image.disk_format, image.checksum, image.algorithm))

    def test_the_instance_may_say_what_glance_does_not_know(self) -> None:
        old = self.glance.add(os_hash_algo=None, os_hash_value=None, checksum="d" * 32)
        self.assertIn("image_checksum", self.refused(old))
        self.assertEqual(SHA, instance_image.read_requested_image(self.of(old, image_checksum=SHA)).checksum)
        odd = self.glance.add(os_hash_algo="sha3_256", os_hash_value=SHA)
        self.assertIn("'sha3_256'", self.refused(odd))
        own = {"image_os_hash_algo": "sha256", "image_os_hash_value": SHA}
        self.assertEqual(SHA, instance_image.read_requested_image(self.of(odd, **own)).checksum)

    def test_a_glance_that_never_ends_its_answer_is_away(self) -> None:
        for head in (b"HTTP/1.1 200 OK\r\nX-", b"HTTP/1.1 200 OK\r\nContent-Length: 999\r\n\r\n"):
            slow = SlowServer(head)
            self.addCleanup(slow.stop)
            task = self.of(UNKNOWN)
            for name, value in (("endpoint_override", slow.url), ("timeout", 1)):
                task.conf.set_override(name, value, group="glance")
            self.assertRaises(errors.ImageServiceUnavailable, instance_image.read_requested_image, task)

    def test_what_cannot_be_used_is_refused(self) -> None:
        for about, said in (
            ({"status": "queued"}, "In Glance the image is queued"),
            ({"container_format": "ovf"}, "container_format is ovf"),
            ({"disk_format": "vmdk"}, "'vmdk'"),
            ({"kernel_id": UNKNOWN}, "Whole-disk"),
            ({"img_type": "partition"}, "Whole-disk"),
        ):
            self.assertIn(said, self.refused(self.glance.add(**about)))
        self.assertIn(
            f"instance_info.image_source: '{UNKNOWN}'. Glance has no image with this id", self.refused(UNKNOWN)
        )
        self.assertIn("is a uuid", self.refused("glance://../../v2/users"))

    def test_what_glance_refuses_names_the_options(self) -> None:
        ident = self.glance.add()
        for status, said in ((401, "auth_type"), (403, "may not read")):
            self.glance.status = status
            message = self.refused(ident)
            self.assertIn(said, message)
            self.assertIn("[glance]", message)

    def test_a_glance_that_is_away_may_come_back(self) -> None:
        ident = self.glance.add()
        self.glance.status = 500
        away = self.assertRaises(errors.ImageServiceUnavailable, instance_image.read_requested_image, self.of(ident))
        self.assertEqual(503, away.code)
        self.assertIn(f"image {ident}", away.message)
        self.assertIn("HTTP 500", away.message)
        task = self.of(ident)
        task.conf.set_override("endpoint_override", "http://127.0.0.1:1", group="glance")
        self.assertRaises(errors.ImageServiceUnavailable, instance_image.read_requested_image, task)

    def test_without_glance_the_option_is_named(self) -> None:
        task = fakes.DriverTestCase.task(self, instance_info={"image_source": UNKNOWN})
        message = self.assertRaises(errors.Invalid, instance_image.read_requested_image, task).message
        self.assertIn(UNKNOWN, message)
        self.assertIn("[glance] auth_type", message)

    def test_options_that_cannot_be_used_are_no_secret(self) -> None:
        task = self.of(self.glance.add())
        task.conf.set_override("auth_type", "v3password", group="glance")
        self.assertIn("[glance]", self.assertRaises(errors.Invalid, instance_image.read_requested_image, task).message)


class ProjectsTest(GlanceCase):
    def asks(self, ident: str, *roles: str) -> instance_image.Image:
        task = self.of(ident)
        task.context = context.RequestContext(project_id="mine", roles=list(roles), overwrite=False)
        return instance_image.read_requested_image(task)

    def test_a_project_gets_what_is_its_own_for_all_or_shared_with_it(self) -> None:
        shared = self.glance.add(visibility="shared", owner="theirs")
        self.glance.members[shared, "mine"] = {"status": "accepted"}
        mine = self.glance.add(visibility="private", owner="mine")
        for ident in (shared, mine, self.glance.add(visibility="community", owner="theirs")):
            self.assertEqual(ident, self.asks(ident, "member").source)

    def test_nothing_else(self) -> None:
        pending = self.glance.add(visibility="shared", owner="theirs")
        self.glance.members[pending, "mine"] = {"status": "pending"}
        for ident in (pending, self.glance.add(visibility="private", owner="theirs")):
            refused = self.assertRaises(errors.Invalid, self.asks, ident, "member")
            self.assertIn("another project's", refused.message)
            self.assertEqual(ident, self.asks(ident, "service").source)


class LinksTest(GlanceCase):
    columns: ClassVar[dict[str, Any]] = {"boot_interface": "ipxe"}

    def test_the_agent_gets_a_link_that_can_be_taken_back(self) -> None:
        ident = self.glance.add()
        task = self.of(f"glance://{ident}")
        image = instance_image.ReadyImage(f"glance://{ident}", "raw", "sha256", "0" * 64)
        first, url = (instance_image.build_image_info(task, image)["urls"][0] for _ in range(2))
        self.assertNotEqual(first, url)
        self.assertEqual(2, task.saved)
        ticket = task.node.boot_config["links"]["image"]
        self.assertEqual(f"http://10.0.0.1:6385/boot/images/{task.node.uuid}/{ticket}", url)
        self.assertTrue(ticket.endswith(f"/{ident}"))
        instance_image.withdraw(task)
        self.assertEqual({"links": {}}, task.node.boot_config)

    def test_kernel_and_ramdisk_have_links_while_they_may_be_booted(self) -> None:
        kernel, ramdisk = (self.glance.add(container_format=kind) for kind in ("aki", "ari"))
        task = self.task(driver_info={"deploy_kernel": kernel, "deploy_ramdisk": f"glance://{ramdisk}"})
        task.ports = [fakes.port()]
        task.driver.boot.validate(task)
        task.driver.boot.prepare_ramdisk(task, {})
        config = task.node.boot_config
        for name, ident in (("kernel", kernel), ("initrd", ramdisk)):
            self.assertTrue(config[name].endswith(f"/{config['links'][name]}"))
            self.assertTrue(config[name].endswith(f"/{ident}"))
        task.driver.boot.prepare_instance(task)
        self.assertEqual({"target": "disk"}, task.node.boot_config)

    def test_a_kernel_that_is_not_there_is_named(self) -> None:
        task = self.task(driver_info={"deploy_kernel": UNKNOWN, "deploy_ramdisk": "http://files/initrd"})
        refused = self.assertRaises(errors.Invalid, task.driver.boot.validate, task)
        self.assertIn(f"deploy_kernel: '{UNKNOWN}'", refused.message)

    def test_a_users_kernel_is_checked_too(self) -> None:
        driver_info = {"deploy_kernel": "http://files/kernel", "deploy_ramdisk": "http://files/initrd"}
        task = self.task(
            driver_info=driver_info,
            instance_info={"kernel": UNKNOWN, "ramdisk": "http://files/r"},
            deploy_interface="ramdisk",
        )
        task.ports = [fakes.port()]
        refused = self.assertRaises(errors.Invalid, task.driver.deploy.validate, task)
        self.assertIn(f"instance_info.kernel: '{UNKNOWN}'", refused.message)


class SwiftTest(GlanceCase):
    options: ClassVar[dict[str, Any]] = {**GlanceCase.options, "agent__image_download_source": "swift"}
    signing: ClassVar[dict[str, Any]] = {
        "swift_endpoint_url": "https://swift.example.org/",
        "swift_account": "AUTH_images",
        "swift_temp_url_key": "key",
    }

    def signed(self, **options: Any) -> tuple[str, str]:
        """Return the id of an image, and the URL by which the agent gets it."""
        ident = self.glance.add()
        task = self.of(ident)
        for name, value in {**self.signing, **options}.items():
            task.conf.set_override(name, value, group="glance")
        image = instance_image.read_requested_image(task)
        ready = instance_image.ReadyImage(image.source, "raw", "sha512", "0" * 128)
        (url,) = instance_image.build_image_info(task, ready)["urls"]
        return ident, url

    def test_the_agent_gets_a_url_that_swift_knows(self) -> None:
        self.useFixture(fixtures.MonkeyPatch("time.time", lambda: 1_800_000_000.5))
        ident, url = self.signed()
        path = f"/v1/AUTH_images/glance/{ident}"
        signature = hmac.new(b"key", f"GET\n1800001200\n{path}".encode(), hashlib.sha256).hexdigest()
        self.assertEqual(f"https://swift.example.org{path}?temp_url_sig={signature}&temp_url_expires=1800001200", url)

    def test_an_endpoint_may_have_version_and_account_as_catalogs_have(self) -> None:
        for end in ("/v1/AUTH_images", "/v1/AUTH_images/", "/v1"):
            ident, url = self.signed(swift_endpoint_url=f"https://swift.example.org/swift{end}")
            self.assertTrue(url.startswith(f"https://swift.example.org/swift/v1/AUTH_images/glance/{ident}?"), url)

    def test_of_several_containers_the_id_says_which(self) -> None:
        ident, url = self.signed(swift_store_multiple_containers_seed=10)
        self.assertIn(f"/glance_{ident[:11]}/{ident}?", url)

    def test_a_cache_before_swift_sees_the_same_url_again(self) -> None:
        ends = set()
        for moment in (1_200_000, 1_200_600, 1_201_199):
            self.useFixture(fixtures.MonkeyPatch("time.time", lambda moment=moment: moment))
            ends.add(self.signed(swift_temp_url_cache_enabled=True)[1].rpartition("=")[2])
        self.assertEqual({"1202400"}, ends)

    def test_what_is_missing_is_named(self) -> None:
        for about, said in (
            (
                {"swift_temp_url_key": None, "swift_account": None},
                "[glance] swift_temp_url_key, [glance] swift_account",
            ),
            ({"swift_temp_url_expected_download_start_delay": 1201}, "swift_temp_url_duration (1200)"),
        ):
            refused = self.assertRaises(errors.Invalid, self.signed, **about)
            self.assertIn(said, refused.message)
            self.assertIn("[agent] image_download_source: 'swift'", refused.message)

    def test_nodes_and_instances_say_otherwise(self) -> None:
        for holder in ("driver_info", "instance_info"):
            task = self.of(self.glance.add())
            info = {**getattr(task.node, holder), "image_download_source": "http"}
            setattr(task.node, holder, info)
            source = instance_image.read_requested_image(task).source
            (url,) = instance_image.build_image_info(
                task, instance_image.ReadyImage(source, "raw", "sha512", "0" * 128)
            )["urls"]
            self.assertTrue(url.startswith("http://10.0.0.1:6385/boot/images/"), url)
            info["image_download_source"] = "ftp"
            refused = self.assertRaises(errors.Invalid, instance_image.read_requested_image, task)
            self.assertIn(f"{holder}.image_download_source: 'ftp'. One of http, local, swift", refused.message)
