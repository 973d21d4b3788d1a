"""Boot media: what BMCs fetch, read back by programs that know the formats."""

import base64
import gzip
import io
import json
import os
import pathlib
import subprocess
from typing import Any
from unittest import mock

import fixtures
import pycdlib
from oslo_config import cfg

from ingot.api.agents import boot_media
from ingot.common import fetching
from ingot.common.media import fat
from ingot.db import nodes
from ingot.rack import fat as rack_fat
from tests import api_case, database, image_service
from tests.functional.deployment import lab

KERNEL, RAMDISK = os.urandom(300_001), os.urandom(3_000_000)
LOADERS = {
    "shim/shimx64.efi.signed": os.urandom(900_000),
    "grub/x86_64-efi-signed/grubx64.efi.signed": os.urandom(2_500_001),
}
TICKET = "a-ticket-that-is-not-guessed"
NETWORK_DATA = {"links": [], "networks": [], "services": []}


def read_file(image: bytes, path: str) -> bytes:
    """Return a file of an ISO image."""
    disk = pycdlib.PyCdlib()
    disk.open_fp(io.BytesIO(image))
    content = io.BytesIO()
    disk.get_file_from_iso_fp(content, rr_path=path)
    disk.close()
    return content.getvalue()


class MediaCase(api_case.ApiCase):
    def configure(self) -> None:
        self.directory = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        for name, content in (LOADERS | {"files/kernel": KERNEL, "files/ramdisk": RAMDISK}).items():
            (self.directory / name).parent.mkdir(parents=True, exist_ok=True)
            (self.directory / name).write_bytes(content)
        self.glance = self.useFixture(image_service.ImageService())
        self.glance.configure(self.conf)
        self.files = self.useFixture(lab.FileServer(self.directory / "files")).url
        self.conf.set_override("signed_loader_path", str(self.directory), group="deploy")
        self.conf.set_override("file_url_allowed_paths", [str(self.directory / "files")], group="deploy")
        self.addCleanup(boot_media._images.clear)

    def link(
        self, network_data: Any = None, target: str = "ramdisk", configdrive: str | None = None, **given: Any
    ) -> str:
        """Return the link to a medium.

        :param given: what is on it, beside kernel and ramdisk.
        """
        files = {"kernel": f"{self.files}/kernel", "ramdisk": f"{self.files}/ramdisk", "arguments": "a=b c"}
        media = {"ticket": TICKET, **files, **given}
        node = database.make_node(
            self.db,
            boot_config={"target": target, "media": media},
            network_data=network_data or {},
            configdrive=configdrive,
        )
        boot_media._images.clear()
        return f"/boot/media/{node.uuid}/{TICKET}/boot.iso"

    def fetch(self, path: str, **headers: str) -> Any:
        answer = self.http.get(path, headers=headers)
        self.addCleanup(answer.close)
        return answer

    def read(self, path: str) -> bytes:
        answer = self.fetch(path)
        self.assertEqual(200, answer.status_code, answer.get_data()[:500])
        content: bytes = answer.get_data()
        self.assertEqual(str(len(content)), answer.headers["Content-Length"])
        return content


class BootMedia(MediaCase):
    def test_an_image_has_what_boots_the_agent_and_where_its_loader_finds_it(self) -> None:
        authorities = self.directory / "ca.pem"
        authorities.write_text("an authority")
        self.conf.set_override("api_ca_file", str(authorities), group="agent")
        image = self.read(self.link(NETWORK_DATA, arguments='ipa-api-url=http://api:1 x=$y a="b c"'))
        self.assertEqual((KERNEL, RAMDISK), tuple(read_file(image, f"/boot/{name}") for name in ("kernel", "ramdisk")))
        self.assertEqual(NETWORK_DATA, json.loads(read_file(image, "/openstack/latest/network_data.json")))
        self.assertEqual(b"an authority", read_file(image, "/etc/ironic-python-agent/ironic.crt"))
        for place in ("/EFI/debian", "/EFI/BOOT", "/boot/grub"):
            script = read_file(image, f"{place}/grub.cfg").decode()
            self.assertIn("linux /boot/kernel 'ipa-api-url=http://api:1' 'x=$y' 'a=b c'\n", script)
            self.assertIn("initrd /boot/ramdisk\n", script)
        found = self.run_program("isoinfo", "-d", "-i", self.write("boot.iso", image)).decode()
        self.assertIn("Volume id: config-2\n", found)
        self.assertIn("Boot media 0 (No Emulation Boot)", found)
        self.assertNotIn(b"config-2", self.read(self.link())[:40960])

    def test_the_agent_learns_its_token_and_whom_to_trust_from_its_medium(self) -> None:
        authorities = self.directory / "ca.pem"
        authorities.write_text("an authority")
        self.conf.set_override("api_ca_file", str(authorities), group="agent")
        image = self.read(self.link(arguments="a=b", token="a-token"))
        self.assertIn("linux /boot/kernel 'a=b'\n", read_file(image, "/boot/grub/grub.cfg").decode())
        options = read_file(image, "/etc/ironic-python-agent.d/ingot.conf")
        expected = {"agent_token": "a-token", "cafile": "/etc/ironic-python-agent/ironic.crt"}
        self.assertEqual(expected, self.parse(options))

    def parse(self, content: bytes) -> dict[str, str]:
        """Return what the agent's options are, as it reads them."""
        conf = cfg.ConfigOpts()
        names = ("agent_token", "api_url", "cafile", "debug", "inspection_callback_url")
        conf.register_opts([cfg.StrOpt(name) for name in names])
        conf([], project="agent", default_config_files=[self.write("agent.conf", content)], default_config_dirs=[])
        return {name: conf[name] for name in names if conf[name] is not None}

    def read_second(self, network_data: Any = None, **given: Any) -> str:
        arguments = "console=ttyS0 ipa-api-url=http://api:1 ipa-inspection-callback-url=http://api:1/v1?a=$b ipa-debug"
        media = {"image": f"{self.files}/kernel", "second": "settings", "arguments": arguments, "token": "a-token"}
        path = self.link(network_data, **(media | given))
        return self.write("second.img", self.read(path.replace("boot.iso", "config.img")))

    def test_settings_of_a_finished_image_are_in_a_second_drive(self) -> None:
        stick = self.read_second()
        self.assertIn(b"IR-VFD-DEV", self.run_program("mlabel", "-s", "-i", stick, "::").upper())
        words = self.run_program("mtype", "-i", stick, "::parameters.txt").decode().split()
        self.assertEqual(["console=ttyS0", "ipa-api-url=http://api:1"], words[:2])
        self.assertEqual("ipa-agent-token=a-token", words[-1])
        of_rack = rack_fat.read_file(pathlib.Path(stick).read_bytes(), "parameters.txt") or b""
        self.assertEqual(words, of_rack.decode().split(), "the rack's machines read it as others do")

    def test_with_network_data_they_are_where_networks_are_set_up_from(self) -> None:
        stick = self.read_second(NETWORK_DATA)
        self.assertIn(b"CONFIG-2", self.run_program("mlabel", "-s", "-i", stick, "::").upper())
        data = self.run_program("mtype", "-i", stick, "::openstack/latest/network_data.json")
        self.assertEqual(NETWORK_DATA, json.loads(data))
        options = self.run_program("mtype", "-i", stick, "::etc/ironic-python-agent.d/ingot.conf")
        expected = {"api_url": "http://api:1", "inspection_callback_url": "http://api:1/v1?a=$b", "debug": "1"}
        self.assertEqual({**expected, "agent_token": "a-token"}, self.parse(options))

    def test_a_config_drive_is_in_a_second_drive_as_it_is(self) -> None:
        for size in (700_000, 5_000_000):  # the second is too large to be kept
            drive = os.urandom(size)
            packed = base64.b64encode(gzip.compress(drive)).decode()
            path = self.link(None, "instance", packed, image=f"{self.files}/kernel", second="configdrive")
            path = path.replace("boot.iso", "config.img")
            self.assertEqual(drive, self.read(path))
            part = self.fetch(path, Range="bytes=512-1023")
            self.assertEqual((206, drive[512:1024]), (part.status_code, part.get_data()))

    def test_there_is_no_second_medium_unless_one_was_offered(self) -> None:
        path = self.link().replace("boot.iso", "config.img")
        self.assertEqual(404, self.fetch(path).status_code)
        self.assertEqual(404, self.fetch(path.replace(TICKET, "guessed")).status_code)

    def test_its_loader_is_on_a_file_system_that_firmware_reads(self) -> None:
        esp = self.write("esp.img", read_file(self.read(self.link()), "/boot/esp.img"))
        for name, source in (("BOOTX64.EFI", "shim"), ("grubx64.efi", "grub")):
            expected = next(content for path, content in LOADERS.items() if path.startswith(source))
            self.assertEqual(expected, self.run_program("mtype", "-i", esp, f"::EFI/BOOT/{name}"))

    def write(self, name: str, content: bytes) -> str:
        path = self.directory / name
        path.write_bytes(content)
        return str(path)

    def run_program(self, *command: str) -> bytes:
        try:
            return subprocess.run(command, check=True, capture_output=True).stdout
        except FileNotFoundError:
            self.skipTest(f"this host has no {command[0]}")

    def test_ranges_and_head_are_answered_as_bmcs_use_them(self) -> None:
        path = self.link()
        image = self.read(path)
        size = len(image)
        head = self.http.head(path)
        self.assertEqual((200, str(size), "bytes"), (
            head.status_code, head.headers["Content-Length"], head.headers["Accept-Ranges"]))  # fmt: skip
        for asked, first, last in (
            ("0-0", 0, 0),
            ("32768-34815", 32768, 34815),
            (f"{size - 700_000}-", size - 700_000, size - 1),
            ("-2048", size - 2048, size - 1),
            (f"100000-{size * 2}", 100_000, size - 1),
        ):
            answer = self.fetch(path, Range=f"bytes={asked}")
            self.assertEqual((206, f"bytes {first}-{last}/{size}"), (
                answer.status_code, answer.headers["Content-Range"]))  # fmt: skip
            self.assertEqual(image[first : last + 1], answer.get_data())
        beyond = self.fetch(path, Range=f"bytes={size}-")
        self.assertEqual((416, f"bytes */{size}"), (beyond.status_code, beyond.headers["Content-Range"]))

    def test_files_come_from_glance_and_from_this_host_too(self) -> None:
        ident = self.glance.add(KERNEL)
        image = self.read(self.link(kernel=ident, ramdisk=f"file://{self.directory}/files/ramdisk"))
        self.assertEqual((KERNEL, RAMDISK), tuple(read_file(image, f"/boot/{name}") for name in ("kernel", "ramdisk")))

    def test_an_image_that_is_finished_is_passed_on_and_a_loader_may_be_the_operators(self) -> None:
        path = self.link(image=f"{self.files}/ramdisk")
        self.assertEqual(RAMDISK, self.read(path))
        self.assertEqual(RAMDISK[1000:2000], self.fetch(path, Range="bytes=1000-1999").get_data())
        esp = fat.build({"EFI/BOOT/BOOTAA64.EFI": b"a loader"}, "OWN")
        self.write("files/esp.img", esp)
        image = self.read(self.link(architecture="aarch64", bootloader=f"{self.files}/esp.img"))
        self.assertEqual(esp, read_file(image, "/boot/esp.img"))

    def test_small_blocks_do_not_each_ask_the_web_server(self) -> None:
        path = self.link()
        image = self.read(path)
        place = image.index(RAMDISK[:4096])
        with mock.patch.object(fetching, "open_stream", side_effect=fetching.open_stream) as opened:
            for at in range(place, place + len(RAMDISK), 65536):
                part = self.fetch(path, Range=f"bytes={at}-{at + 65535}").get_data()
                self.assertEqual(image[at : at + 65536], part)
        self.assertEqual(3, opened.call_count, "for 3 MB in 46 blocks")

    def test_a_boot_is_noted_but_no_trial(self) -> None:
        for target, is_noted in (("trial", False), ("ramdisk", True)):
            path = self.link(target=target)
            self.read(path)
            found = nodes.get(self.db, path.split("/")[3], ("boot_script_at",))
            self.assertIs(is_noted, found.boot_script_at is not None, target)

    def test_nothing_is_there_for_others(self) -> None:
        path = self.link()
        self.read(path)
        for tried in (path.replace(TICKET, TICKET[:-1]), path.replace(TICKET, "x"), "/boot/media/missing/x/boot.iso"):
            answer = self.api("GET", tried)
            self.assertEqual(404, answer.status, tried)
        bare = database.make_node(self.db)
        self.assertEqual(404, self.api("GET", f"/boot/media/{bare.uuid}//boot.iso").status)

    def test_what_is_missing_is_named(self) -> None:
        for given, expected in (
            ({"kernel": f"{self.files}/missing"}, "kernel: http://127.0.0.1"),
            ({"kernel": f"{self.files}/kernel", "of_user": ["kernel"]}, "may not be reached"),
            ({"ramdisk": "file:///etc/passwd"}, "file_url_allowed_paths"),
            ({"architecture": "riscv64"}, "[deploy] bootloader_by_arch"),
            ({"architecture": "aarch64"}, "grub-efi-amd64-signed"),
        ):
            answer = self.api("GET", self.link(**given))
            self.assertEqual(503, answer.status, given)
            self.assertIn(expected, answer.message)
