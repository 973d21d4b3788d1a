"""Config drives are built, taken over, fetched, and refused when they cannot be used."""

import base64
import gzip
import io
import json
from typing import Any, ClassVar

import pycdlib

from ingot.common import errors
from ingot.drivers.images import configdrive
from tests.unit.drivers import fakes
from tests.unit.drivers.file_server import FileServer


class ConfigDriveTest(fakes.DriverTestCase):
    options: ClassVar[dict[str, Any]] = {"deploy__configdrive_max_size": 1}

    def setUp(self) -> None:
        super().setUp()
        self.of_node = self.task(name="metal", network_data={"links": []})
        self.node = self.of_node.node

    def _build(self, value: Any) -> bytes:
        built = configdrive.build(self.of_node, value)
        assert isinstance(built, str)
        return gzip.decompress(base64.b64decode(built))

    def _refused(self, value: Any, error: type[errors.IngotError] = errors.ImageError) -> str:
        return self.assertRaises(error, configdrive.build, self.of_node, value).message

    def test_an_object_becomes_a_labelled_file_system(self) -> None:
        parts = {"meta_data": {"a": 1}, "user_data": "#!/bin/sh\n", "vendor_data": {"v": 2}}
        iso = pycdlib.PyCdlib()
        iso.open_fp(io.BytesIO(self._build(parts)))
        self.addCleanup(iso.close)
        self.assertEqual(b"config-2", iso.pvd.volume_identifier.strip())
        self.assertEqual(
            {"a": 1, "uuid": self.node.uuid, "name": "metal"}, json.loads(self._read(iso, "meta_data.json"))
        )
        self.assertEqual(b"#!/bin/sh\n", self._read(iso, "user_data"))
        self.assertEqual({"links": []}, json.loads(self._read(iso, "network_data.json")))
        self.assertEqual({"v": 2}, json.loads(self._read(iso, "vendor_data.json")))

    @staticmethod
    def _read(iso: Any, name: str) -> bytes:
        content = io.BytesIO()
        iso.get_file_from_iso_fp(content, joliet_path=f"/openstack/latest/{name}")
        return content.getvalue()

    def test_a_finished_one_is_taken_as_it_is(self) -> None:
        packed = gzip.compress(b"iso")
        wrapped = base64.encodebytes(packed).decode()
        self.assertEqual(b"iso", self._build(wrapped))

    def test_a_url_is_fetched_in_either_form(self) -> None:
        packed = gzip.compress(b"iso")
        server = FileServer({"/packed": packed, "/text": base64.b64encode(packed)})
        self.addCleanup(server.stop)
        for path in ("/packed", "/text"):
            self.assertEqual(b"iso", self._build(server.url + path))
        self.assertIn("HTTP 404", self._refused(server.url + "/gone"))

    def test_what_cannot_be_used_is_refused(self) -> None:
        self.assertIn("base64", self._refused("not base64!"))
        self.assertIn("not gzip", self._refused(base64.b64encode(b"plain").decode()))
        self.assertIn("cut off", self._refused(base64.b64encode(gzip.compress(b"iso")[:-6]).decode()))
        self.assertIn("'colour'", self._refused({"colour": 1}, errors.Invalid))
        self.assertIn("user_data in configdrive: 'int'", self._refused({"user_data": 1}, errors.Invalid))
        self.assertIn("'int'", self._refused(5, errors.Invalid))

    def test_one_that_grows_too_large_when_unpacked_is_refused(self) -> None:
        bomb = base64.b64encode(gzip.compress(bytes(2**20 + 1))).decode()
        self.assertIn("configdrive_max_size", self._refused(bomb))
        self.assertIn("configdrive_max_size", self._refused({"user_data": "x" * 2**20}))
