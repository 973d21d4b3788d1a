"""What an image is, is found out before its machine is touched; what could do harm is refused, with the reason."""

import gzip
import pathlib
import shutil
import struct
import subprocess
import unittest
import uuid
from functools import partial
from typing import Any, ClassVar

import fixtures
from oslo_utils import units

from ingot.common import errors, states
from ingot.db import models
from ingot.drivers.images import fetches, instance_image
from ingot.drivers.interfaces import results
from tests import disk_images, image_service
from tests.unit.drivers import fakes
from tests.unit.drivers.file_server import FileServer, RangedServer, SlowServer

SHA = "ab" * 32
DESCRIPTOR = """# Disk DescriptorFile
version=1
CID=11111111
parentCID=ffffffff
createType="monolithicSparse"
{lines}
ddb.virtualHWVersion = "4"
"""
OWN = 'RW 20480 SPARSE "disk.vmdk"'


def qcow2(
    size: int = 10 * units.Mi, backing: int = 0, features: int = 0, version: int = 3, encrypted: int = 0
) -> bytes:
    """Return the header of a qcow2 image, and something after it."""
    header = struct.pack(">4sIQIIQI", b"QFI\xfb", version, backing, 9 if backing else 0, 16, size, encrypted)
    return (header + bytes(36) + struct.pack(">Q", features)).ljust(64 * 1024, b"\0")


def vmdk(lines: str = OWN, sectors: int = 20480, kind: str = "monolithicSparse") -> bytes:
    """Return a VMDK that is cut off after its descriptor."""
    header = struct.pack("<4sIIQQQQIQQ", b"KDMV", 1, 3, sectors, 128, 1, 20, 512, 21, 26)
    text = DESCRIPTOR.replace("monolithicSparse", kind).format(lines=lines).encode()
    return header.ljust(512, b"\0") + text.ljust(20 * 512, b"\0") + bytes(units.Mi)


def iso() -> bytes:
    volume = bytearray(2048)
    volume[:6] = b"\x01CD001"
    return bytes(32 * 1024) + bytes(volume) + bytes(64 * 1024)


class ImageCase(fakes.DriverTestCase):
    columns: ClassVar[dict[str, Any]] = {
        "deploy_interface": "direct",
        "boot_interface": "fake",
        "power_state": states.POWER_ON,
        "provision_state": states.DEPLOYING,
    }
    ranged = True

    def of(self, content: bytes, name: str = "image", **info: Any) -> fakes.MemoryTask:
        name = f"{uuid.uuid4()}/{name}"  # the next server may have this one's port
        server = (RangedServer if self.ranged else FileServer)({f"/{name}": content})
        self.addCleanup(server.stop)
        self.server = server
        return self.task(instance_info={"image_source": f"{server.url}/{name}", "image_checksum": SHA, **info})

    def permit(self, task: fakes.MemoryTask, *formats: str) -> fakes.MemoryTask:
        task.conf.set_override("permitted_image_formats", list(formats), group="conductor")
        return task

    def written_as(self, task: fakes.MemoryTask) -> object:
        """Return the format that the agent gets."""
        task.drive = None
        image = self.poll(lambda: instance_image.examine(task))
        return instance_image.build_image_info(task, image)["disk_format"]

    def refused(self, task: fakes.MemoryTask) -> str:
        """Return why a deployment ends before its machine is touched."""
        error = self.assertRaises(errors.ImageError, self.run_to_end, lambda: task.driver.deploy.prepare(task))
        self.assertEqual(states.POWER_ON, task.node.power_state)
        self.assertIn(task.node.instance_info["image_source"], error.message)
        return error.message


class FoundTest(ImageCase):
    """What is found in an image decides, whatever its name says."""

    def test_what_needs_no_conversion_is_written_as_it_is(self) -> None:
        hybrid = disk_images.gpt_image()[:512] + iso()[512:]
        for content in (disk_images.gpt_image(), iso(), bytes(units.Mi), hybrid):
            for declared in (None, "raw"):
                info = {"image_disk_format": declared} if declared else {}
                self.assertEqual("raw", self.written_as(self.of(content, "image.qcow2", **info)))

    def test_what_needs_conversion_is_called_as_it_is_found(self) -> None:
        for permitted, content in (("qcow2", qcow2()), ("vmdk", vmdk())):
            self.assertEqual(permitted, self.written_as(self.permit(self.of(content, "image.img"), permitted)))

    def test_little_of_it_is_read(self) -> None:
        task = self.of(bytes(30 * units.Mi))
        self.assertEqual("raw", self.written_as(task))
        ((_path, part, authorization),) = self.server.asked
        self.assertEqual((f"bytes=0-{8 * units.Mi - 1}", None), (part, authorization))

    def test_all_nodes_share_an_answer(self) -> None:
        task = self.of(qcow2())
        other = self.task(instance_info=task.node.instance_info)
        self.assertEqual(["qcow2", "qcow2"], [self.written_as(one) for one in (task, other)])
        self.assertEqual(1, len(self.server.asked))

    def test_what_is_called_something_else_is_refused(self) -> None:
        for content, declared, said in (
            (qcow2(), "raw", "it is qcow2, and is called raw (image_disk_format)"),
            (disk_images.gpt_image(), "qcow2", "it is gpt, and is called qcow2"),
            (bytes(units.Mi), "gpt", "it is raw, and is called gpt"),
            (b"<html>no image</html>" + bytes(1000), "qcow2", "and is called qcow2"),
        ):
            self.assertIn(said, self.refused(self.of(content, image_disk_format=declared)))

    def test_what_the_operator_does_not_permit_is_refused(self) -> None:
        self.assertIn(
            "it is vmdk; [conductor] permitted_image_formats has raw, gpt, qcow2, iso", self.refused(self.of(vmdk()))
        )
        self.assertIn("it is gpt;", self.refused(self.permit(self.of(disk_images.gpt_image()), "qcow2")))

    def test_raw_permits_partitions(self) -> None:
        self.assertEqual("raw", self.written_as(self.permit(self.of(disk_images.gpt_image()), "raw")))


class HostileTest(ImageCase):
    def test_an_image_that_would_read_other_files_is_refused(self) -> None:
        for content, said in (
            (qcow2(backing=200), "Image has a backing file"),
            (qcow2(features=1 << 2), "Image has data_file set"),
            (qcow2(features=1 << 9), "Unknown QCOW2 features"),
            (qcow2(version=1), "Unsupported qcow2 version"),
            (qcow2(encrypted=2), "encrypted"),
            (vmdk('RW 20480 FLAT "disk-flat.vmdk" 0'), "its descriptor names other files"),
            (vmdk('RW 20480 SPARSE "/etc/shadow"'), "Invalid extent filenames"),
            (vmdk(f'{OWN}\nRW 20480 SPARSE "other.vmdk"'), "its descriptor names other files"),
            (vmdk(f'parentFileNameHint="/etc/shadow"\n{OWN}'), "it has a parent"),
            (vmdk(kind="monolithicFlat"), "Unsupported subformat"),
            (vmdk("what is this"), "Invalid VMDK descriptor"),
            (DESCRIPTOR.format(lines=OWN).encode(), "it describes a disk in other files"),
            (b"QED\0" + bytes(4096), "QED is out of use"),
            (b"conectix" + bytes(4096), "agents cannot convert VHD"),
        ):
            message = self.refused(self.permit(self.of(content), "qcow2", "vmdk", "raw", "vhd"))
            self.assertIn(said, message)

    def test_two_formats_in_one_file_are_refused(self) -> None:
        both = bytearray(qcow2())
        both[510:512] = b"\x55\xaa"
        self.assertIn("it looks like gpt and qcow2 at once", self.refused(self.of(bytes(both))))

    def test_bombs(self) -> None:
        for size in (units.Ei * 4, 65537 * units.Gi):
            self.assertIn("[deploy] max_image_size allows 65536", self.refused(self.of(qcow2(size))))
        for content, said in (
            (qcow2(0), "says nothing of its size"),
            (vmdk(sectors=0), "says nothing of its size"),
            (gzip.compress(b"x"), "it is compressed (gzip)"),
            (b"\x28\xb5\x2f\xfd" + bytes(100), "it is compressed (zstd)"),
            (b"", "it is empty"),
            (qcow2()[:100], "it is raw, and is called qcow2"),
            (b"vhdxfile" + bytes(9 * units.Mi), "says nothing of its size"),
        ):
            task = self.permit(self.of(content, image_disk_format="qcow2"), "raw", "qcow2", "vmdk", "vhdx")
            self.assertIn(said, self.refused(task))

    def test_what_does_not_fit_into_the_machine(self) -> None:
        task = self.of(qcow2(20 * units.Gi))
        disks = [{"name": "/dev/sda", "size": 16 * units.Gi}, {"name": "/dev/sdb", "size": units.Gi}, {"size": None}, 7]
        task.inspected = models.NodeInventory(node_id=1, inventory={"disks": disks}, plugin_data={}, inspected_at=None)
        message = self.refused(task)
        self.assertIn("it makes a disk of 20.0 GiB, and the largest that was found in the machine has 16.0", message)
        task.set(raid_config={"logical_disks": []})  # arrays may be larger than any disk
        self.assertEqual("qcow2", self.written_as(task))
        self.assertEqual(results.DONE, self.poll(lambda: instance_image.check(task)))


class UnrangedTest(HostileTest):
    """The same from a server that always sends all."""

    ranged = False


class UnreachedTest(ImageCase):
    """An image that the conductor cannot read."""

    def test_it_is_left_to_the_agent_if_it_is_known_how_to_write_it(self) -> None:
        for name, info, expected in (
            ("one.qcow2", {}, "qcow2"),
            ("one.img", {}, "raw"),
            ("one", {"image_disk_format": "gpt"}, "raw"),
        ):
            source = {"image_source": f"http://127.0.0.1:1/{name}", "image_checksum": SHA, **info}
            self.assertEqual(expected, self.written_as(self.task(instance_info=source)))

    def test_otherwise_it_is_refused(self) -> None:
        source = {"image_source": "http://127.0.0.1:1/one", "image_checksum": SHA}
        self.assertIn("Say what it is: image_disk_format", self.refused(self.task(instance_info=source)))

    def test_an_operator_may_want_all_to_be_read(self) -> None:
        source = {"image_source": "http://127.0.0.1:1/one.raw", "image_checksum": SHA}
        task = self.task(instance_info=source)
        task.conf.set_override("conductor_always_validates_images", True, group="conductor")
        self.assertIn("its host takes no connection", self.refused(task))

    def test_nothing_there_is_found_out_at_once(self) -> None:
        task = self.of(b"x")
        task.node.instance_info["image_source"] += "-gone"
        self.assertIn("it answers HTTP 404; check instance_info.image_source", self.refused(task))

    def test_a_server_that_never_ends_is_not_waited_for(self) -> None:
        self.patch(fetches, "_PATIENCE", 0.05)
        for head in (b"HTTP/1.1 200 OK\r\nX-", b"HTTP/1.1 200 OK\r\nContent-Length: 9999999\r\n\r\n"):
            server = SlowServer(head)
            self.addCleanup(server.stop)
            task = self.task(instance_info={"image_source": f"{server.url}/one", "image_checksum": SHA})
            task.conf.set_override("webserver_connection_timeout", 1)
            self.assertIsInstance(task.driver.deploy.prepare(task), results.PollAfter)
            self.assertIn("Say what it is", self.refused(task))

    def test_where_it_may_not_read(self) -> None:
        task = self.of(qcow2())
        task.node.instance_info["image_source"] = task.node.instance_info["image_source"].replace(
            "127.0.0.1", "localhost"
        )
        task.conf.clear_override("url_denied_networks", group="deploy")
        self.assertIn("which may not be reached", self.refused(task))
        self.assertEqual([], self.server.asked)

    def test_an_operator_may_turn_all_of_it_off(self) -> None:
        task = self.of(qcow2(backing=5), "one.qcow2")
        task.conf.set_override("disable_deep_image_inspection", True, group="conductor")
        self.assertEqual(("qcow2", []), (self.written_as(task), self.server.asked))


class FileTest(ImageCase):
    def setUp(self) -> None:
        super().setUp()
        self.root = pathlib.Path(self.useFixture(fixtures.TempDir()).path)

    def file(self, content: bytes, **info: Any) -> fakes.MemoryTask:
        (self.root / "image").write_bytes(content)
        task = self.task(instance_info={"image_source": f"file://{self.root}/image", **info})
        for name, value in (
            ("http_root", str(self.root)),
            ("http_url", "http://files"),
            ("file_url_allowed_paths", [str(self.root)]),
        ):
            task.conf.set_override(name, value, group="deploy")
        return task

    def test_neither_format_nor_checksum_need_be_given(self) -> None:
        task = self.file(qcow2())
        image = self.poll(lambda: instance_image.examine(task))
        info = instance_image.build_image_info(task, image)
        digest = subprocess.run(["sha256sum", self.root / "image"], capture_output=True, check=True).stdout.split()[0]
        self.assertEqual(
            ("qcow2", "sha256", digest.decode()),
            tuple(info[key] for key in ("disk_format", "os_hash_algo", "os_hash_value")),
        )

    def test_a_file_that_changes_is_read_again(self) -> None:
        sums = set()
        for content in (b"1" * 512, b"23" * 512):
            task = self.file(content)
            sums.add(self.poll(partial(instance_image.examine, task)).checksum)
        self.assertEqual(2, len(sums))

    def test_one_that_is_given_is_used(self) -> None:
        self.assertEqual(
            SHA, self.poll(lambda: instance_image.examine(self.file(qcow2(), image_checksum=SHA))).checksum
        )

    def test_the_same_is_refused(self) -> None:
        self.assertIn("backing file", self.refused(self.file(qcow2(backing=1))))
        task = self.file(b"x")
        (self.root / "image").unlink()
        self.assertIn("there is no file", self.refused(task))


class GlanceTest(ImageCase):
    def test_what_glance_says_is_compared_with_what_is_found(self) -> None:
        glance = self.useFixture(image_service.ImageService())
        good = glance.add(qcow2(), disk_format="qcow2")
        for ident, said in (
            (glance.add(qcow2(), disk_format="raw"), "it is qcow2, and is called raw"),
            (glance.add(qcow2(backing=1), disk_format="qcow2"), "backing file"),
        ):
            task = self.task(instance_info={"image_source": ident})
            glance.configure(task.conf)
            self.assertIn(said, self.refused(task))
        task = self.task(instance_info={"image_source": good})
        glance.configure(task.conf)
        self.assertEqual("qcow2", self.written_as(task))


@unittest.skipUnless(shutil.which("qemu-img"), "qemu-img is not installed")
class MadeByQemuTest(ImageCase):
    """Images as the tool makes them that agents convert with."""

    def make(self, form: str, *options: str) -> bytes:
        root = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        (root / "base").write_bytes(bytes(4 * units.Mi))
        subprocess.run(["qemu-img", "create", "-q", "-f", form, *options, "image", "4M"], cwd=root, check=True)
        return (root / "image").read_bytes()

    def test_all_formats(self) -> None:
        for form, *options in (
            ("qcow2",), ("qcow2", "-o", "compat=0.10"), ("vmdk",), ("vdi",), ("vdi", "-o", "static=on"), ("vhdx",),
            ("vmdk", "-o", "subformat=streamOptimized"),
        ):  # fmt: skip
            for ranged in (True, False):
                self.ranged = ranged
                task = self.permit(self.of(self.make(form, *options)), "qcow2", "vmdk", "vdi", "vhdx")
                self.assertEqual(form, self.written_as(task))

    def test_what_is_cut_off(self) -> None:
        task = self.permit(self.of(self.make("vhdx")[: 2 * units.Mi]), "vhdx")
        self.assertIn("it is cut off, or what describes it is not in its first 8 MiB", self.refused(task))

    def test_what_names_other_files(self) -> None:
        for form, *options in (
            ("qcow2", "-b", "base", "-F", "raw"),
            ("qcow2", "-o", "data_file=external"),
            ("vmdk", "-o", "subformat=monolithicFlat"),
            ("vmdk", "-o", "subformat=twoGbMaxExtentSparse"),
        ):
            task = self.permit(self.of(self.make(form, *options)), "qcow2", "vmdk")
            self.assertIn("not safe" if form == "qcow2" else "vmdk", self.refused(task))
