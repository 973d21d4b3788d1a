"""Downloading and checking images, from a real HTTP server."""

import hashlib
import os
import tempfile
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import fixtures
import testtools

from ingot.rack import images
from ingot.rack.config import DiskSpec
from ingot.rack.disks import Disk
from tests import disk_images


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        """Stay silent."""


class _Server(ThreadingHTTPServer):
    def handle_error(self, request: Any, client_address: Any) -> None:
        """Stay silent when a download is broken off."""


class DownloadTest(testtools.TestCase):
    def setUp(self) -> None:
        super().setUp()
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.root = Path(directory.name)
        server = _Server(("127.0.0.1", 0), partial(_Quiet, directory=str(self.root)))
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        self.url = f"http://127.0.0.1:{server.server_address[1]}"
        self.disk = Disk(DiskSpec("/dev/sda", 16 * 2**20, "s", "w"), self.root / "disk")
        self.image = disk_images.mbr_image()
        (self.root / "image").write_bytes(self.image)
        self.digest = hashlib.sha256(self.image).hexdigest()

    def write(self, size: int | None = None, stopped: bool = False, **info: Any) -> int:
        known = {"id": "img", "urls": [f"{self.url}/image"], "disk_format": "raw", "os_hash_algo": "sha256",
                 "os_hash_value": self.digest}  # fmt: skip
        event = threading.Event()
        if stopped:
            event.set()
        download = images.Download({**known, **info}, self.root, event)
        return download.write_to(self.disk, size or self.disk.size)

    def refused(self, kind: str, text: str, **how: Any) -> None:
        error = self.assertRaises(images.ImageError, self.write, **how)
        self.assertEqual(kind, error.kind)
        self.assertIn(text, str(error))

    def test_the_disk_holds_the_image(self) -> None:
        self.assertEqual(len(self.image), self.write())
        self.assertEqual(self.image, self.disk.read(0, len(self.image)))

    def test_the_first_url_that_works(self) -> None:
        self.assertEqual(len(self.image), self.write(urls=[f"{self.url}/none", f"{self.url}/image"]))

    def test_checksums_by_length_and_from_files(self) -> None:
        sha512 = hashlib.sha512(self.image).hexdigest()
        self.write(os_hash_algo="sha512", os_hash_value=sha512)
        self.write(os_hash_value=None, checksum=sha512)
        (self.root / "SUMS").write_text(f"{'0' * 64}  other\n{self.digest} *image\n")
        self.write(os_hash_value=None, checksum=f"{self.url}/SUMS")
        (self.root / "SUM").write_text(self.digest)
        self.write(os_hash_value=None, checksum=f"{self.url}/SUM")

    def test_refusals(self) -> None:
        self.refused("ImageChecksumError", "but should be 00", os_hash_value="00")
        self.refused("ImageChecksumError", "no usable checksum", os_hash_value=None)
        self.refused("ImageChecksumError", "no usable checksum", os_hash_algo="md5")
        self.refused("ImageDownloadError", "/none: HTTP 404", urls=[f"{self.url}/none"])
        self.refused("ImageDownloadError", "no URL", urls=[])
        self.refused("ImageWriteError", "the disk has 4096", size=4096)
        self.refused("ImageWriteError", "lost its power", stopped=True)
        self.refused("InvalidImage", "disk_format 'vhd'", disk_format="vhd")

    def test_formats_must_be_what_they_are_called(self) -> None:
        qcow2 = b"QFI\xfb" + bytes(508)
        (self.root / "image").write_bytes(qcow2)
        self.refused("InvalidImage", "it is a qcow2 image", os_hash_value=hashlib.sha256(qcow2).hexdigest())

    def test_qcow2_without_qemu_img(self) -> None:
        self.useFixture(fixtures.EnvironmentVariable("PATH", os.devnull))
        self.refused("ImageWriteError", "qcow2 needs qemu-img", disk_format="qcow2")
