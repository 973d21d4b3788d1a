"""What instance_info says of an image is checked and passed on, or refused with the key's name."""

import hashlib
from pathlib import Path
from typing import Any

import fixtures

from ingot.common import errors
from ingot.drivers.images import instance_image
from tests.unit.drivers import fakes
from tests.unit.drivers.file_server import FileServer

SHA = hashlib.sha256(b"image").hexdigest()
LONG = hashlib.sha512(b"image").hexdigest()
READY = instance_image.ReadyImage("http://images/one.raw", "raw", "sha256", SHA)
GOOD = {"image_source": "http://images/one.qcow2", "image_checksum": SHA}


class RequestedTest(fakes.DriverTestCase):
    def _refused(self, **changes: Any) -> str:
        info = {key: value for key, value in {**GOOD, **changes}.items() if value is not None}
        return self.assertRaises(
            errors.Invalid, instance_image.read_requested_image, self.task(instance_info=info)
        ).message

    def test_a_good_one(self) -> None:
        image = instance_image.read_requested_image(self.task(instance_info=GOOD))
        self.assertEqual((None, SHA, None), (image.disk_format, image.checksum, image.algorithm))

    def test_hash_algorithm_and_value(self) -> None:
        asked = {"image_source": "https://a/b.img", "image_os_hash_algo": "sha512", "image_os_hash_value": LONG.upper()}
        image = instance_image.read_requested_image(self.task(instance_info=asked))
        self.assertEqual((None, LONG, "sha512"), (image.disk_format, image.checksum, image.algorithm))

    def test_what_is_missing_is_named(self) -> None:
        self.assertIn("Missing instance_info: image_source", self._refused(image_source=None))
        self.assertIn("image_checksum", self._refused(image_checksum=None))

    def test_what_is_wrong_is_named(self) -> None:
        self.assertIn("instance_info.image_source: 'ftp://a/b.raw'", self._refused(image_source="ftp://a/b.raw"))
        self.assertIn("instance_info.image_source: 'http://[b'", self._refused(image_source="http://[b"))
        self.assertIn(
            "instance_info.image_source: 'http://a\\x00b/c.raw'", self._refused(image_source="http://a\0b/c.raw")
        )
        self.assertIn("instance_info.image_checksum: 'abc'", self._refused(image_checksum="abc"))
        self.assertIn("SHA-256", self._refused(image_checksum="d" * 32))
        self.assertIn("image_os_hash_algo: 'md5'", self._refused(image_os_hash_value=SHA, image_os_hash_algo="md5"))
        self.assertIn("image_os_hash_value", self._refused(image_os_hash_value=SHA, image_os_hash_algo="sha512"))
        for name in ("vmdk", "vhd", "pdf"):
            message = self._refused(image_disk_format=name)
            for part in (f"image_disk_format: {name!r}", "gpt, iso, qcow2, raw", "permitted_image_formats"):
                self.assertIn(part, message)
        self.assertIn("Whole-disk", self._refused(image_type="partition"))


class InfoTest(fakes.DriverTestCase):
    def _info(self, files: dict[str, str], **info: Any) -> dict[str, Any]:
        server = FileServer({"/one.raw": b"image", **{path: text.encode() for path, text in files.items()}})
        self.addCleanup(server.stop)
        asked = {"image_source": f"{server.url}/one.raw", "image_checksum": f"{server.url}/SUMS", **info}
        task = self.task(instance_info=asked)
        image = instance_image.examine(task)
        assert isinstance(image, instance_image.ReadyImage)
        return instance_image.build_image_info(task, image)

    def test_files_of_checksums_in_the_usual_forms(self) -> None:
        other = "0" * 64
        for text in (
            f"{other}  two.raw\n{SHA}  one.raw\n",
            f"{SHA} *./one.raw\n",
            f"# signed\nSHA256 (two.raw) = {other}\nSHA256 (one.raw) = {SHA}\n",
            f"{SHA}\n",
        ):
            self.assertEqual(("sha256", SHA), self._hash(self._info({"/SUMS": text})))
        self.assertEqual(("sha512", LONG), self._hash(self._info({"/SUMS": f"{SHA}  one.raw\n{LONG}  one.raw\n"})))

    @staticmethod
    def _hash(info: dict[str, Any]) -> tuple[str, str]:
        return info["os_hash_algo"], info["os_hash_value"]

    def test_a_file_without_the_image_or_no_file_fail_with_the_url(self) -> None:
        for files in ({"/SUMS": f"{SHA}  two.raw\n"}, {"/SUMS": "d41d8cd98f00b204e9800998ecf8427e  one.raw"}, {}):
            error = self.assertRaises(errors.ImageError, self._info, files)
            self.assertIn("/SUMS", error.message)
        gone = self.assertRaises(errors.ImageError, self._info, {}, image_checksum="http://user:hush@127.0.0.1:1/S")
        self.assertIn("cannot be fetched", gone.message)
        self.assertNotIn("hush", gone.message)

    def test_what_the_agent_is_sent(self) -> None:
        task = self.task(instance_info={**GOOD, "image_source": "http://images/one.raw"})
        info = instance_image.build_image_info(task, READY)
        self.assertEqual(["http://images/one.raw"], info["urls"])
        self.assertEqual(("one.raw", "raw", True), (info["id"], info["disk_format"], info["stream_raw_images"]))
        self.assertEqual(("uefi", task.node.uuid), (info["deploy_boot_mode"], info["node_uuid"]))

    def test_the_boot_mode_is_the_users_then_the_machines_then_the_default(self) -> None:
        for columns, expected in (
            ({"instance_info": {**GOOD, "capabilities": {"boot_mode": "bios"}}}, "bios"),
            ({"instance_info": GOOD, "properties": {"capabilities": "a:b,boot_mode:bios"}}, "bios"),
            ({"instance_info": GOOD}, "uefi"),
        ):
            self.assertEqual(expected, instance_image.build_image_info(self.task(**columns), READY)["deploy_boot_mode"])
        wrong = self.task(instance_info={**GOOD, "capabilities": "boot_mode:coal"})
        self.assertIn(
            "'coal'", self.assertRaises(errors.Invalid, instance_image.build_image_info, wrong, READY).message
        )


class FileTest(fakes.DriverTestCase):
    """An image that is a file of the conductor's host."""

    def setUp(self) -> None:
        super().setUp()
        self.root = Path(self.useFixture(fixtures.TempDir()).path)
        for folder in ("images", "www"):
            (self.root / folder).mkdir()
        (self.root / "images" / "one.raw").write_bytes(b"image")
        (self.root / "secret.raw").write_bytes(b"secret")

    def _task(self, path: str, **options: Any) -> fakes.MemoryTask:
        options = {"http_root": str(self.root / "www"), "http_url": "http://files:8080/", **options}
        conf = fakes.configuration(
            enabled_hardware_types=["fake-hardware"],
            deploy__file_url_allowed_paths=[str(self.root / "images")],
            **{f"deploy__{name}": value for name, value in options.items()},
        )
        info = {"image_source": f"file://{self.root}/{path}", "image_checksum": SHA}
        return fakes.MemoryTask(conf, fakes.node(instance_info=info))

    @staticmethod
    def _offer(task: fakes.MemoryTask) -> dict[str, Any]:
        source = task.node.instance_info["image_source"]
        return instance_image.build_image_info(task, instance_image.ReadyImage(source, "raw", "sha256", SHA))

    def test_it_is_published_for_the_machine_and_withdrawn(self) -> None:
        task = self._task("images/one.raw")
        for _ in range(2):
            url = self._offer(task)["urls"][0]
        self.assertEqual(f"http://files:8080/ingot-images/{task.node.uuid}/one.raw", url)
        served = self.root / "www" / url.removeprefix("http://files:8080/")
        self.assertEqual(b"image", served.read_bytes())
        for _ in range(2):
            instance_image.withdraw(task)
        self.assertEqual([], list((self.root / "www" / "ingot-images").iterdir()))

    def test_what_cannot_be_withdrawn_is_named(self) -> None:
        task = self._task("images/one.raw")
        self._offer(task)
        (self.root / "www" / "ingot-images").rename(self.root / "www" / "moved")
        (self.root / "www" / "ingot-images").touch()  # whose files cannot be removed
        error = self.assertRaises(errors.ImageError, instance_image.withdraw, task)
        for part in (task.node.uuid, "http_root"):
            self.assertIn(part, error.message)

    def test_other_files_of_the_host_stay_private(self) -> None:
        (self.root / "images" / "link.raw").symlink_to(self.root / "secret.raw")
        for path in ("secret.raw", "images/../secret.raw", "images/link.raw"):
            error = self.assertRaises(errors.Invalid, self._offer, self._task(path))
            self.assertIn("file_url_allowed_paths", error.message)

    def test_names_that_no_file_has(self) -> None:
        for path, error_class, named in (
            ("images/one%00.raw", errors.Invalid, "%00"),
            ("images/%00/../../secret.raw", errors.Invalid, "%00"),
            (f"images/{'a' * 300}.raw", errors.ImageError, "cannot be published"),
        ):
            task = self._task(path)
            task.node.instance_info["image_checksum"] = SHA
            error = self.assertRaises(error_class, self._offer, task)
            self.assertIn(named, error.message)

    def test_what_is_missing_is_named(self) -> None:
        self.assertIn(
            "gone.raw",
            self.assertRaises(errors.ImageError, self._offer, self._task("images/gone.raw")).message,
        )
        unserved = self._task("images/one.raw", http_url=None)
        self.assertIn(
            "[deploy] http_root and http_url",
            self.assertRaises(errors.Invalid, self._offer, unserved).message,
        )
