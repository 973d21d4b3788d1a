"""What machines of the rack make of a volume."""

import asyncio
from typing import Any

import testtools

from ingot.rack import boot, volumes

URI = "iscsi:192.0.2.5::3260:1a:iqn.2026-01.org.example:v1"
INITIATOR = {"initiator-iqn": "iqn.2026-01.org.example:m1"}


def run(*lines: str) -> Any:
    async def nothing(_url: str) -> str:
        return ""

    script = boot.ScriptRun({}, nothing, nothing)  # type: ignore[arg-type]
    return asyncio.run(script.boot("http://boot/", "\n".join(["#!ipxe", *lines])))


class Volumes(testtools.TestCase):
    def test_sanboot_starts_from_the_volume_with_what_was_set(self) -> None:
        lines = ("set initiator-iqn iqn.2026-01.org.example:m1", "set username u", "set password p")
        started = self.assertRaises(volumes.StartVolume, run, *lines, f"sanboot --drive 0x80 {URI} || exit 1")
        expected = volumes.Volume(URI, "iqn.2026-01.org.example:v1", "192.0.2.5:3260", INITIATOR["initiator-iqn"], "u")
        self.assertEqual(expected, started.volume)

    def test_without_a_volume_it_starts_from_the_disk(self) -> None:
        self.assertRaises(boot.LocalBoot, run, "sanboot --no-describe --drive 0x80")

    def test_an_image_of_a_web_server_is_started_too(self) -> None:
        started = self.assertRaises(boot.StartImage, run, "sanboot http://server/live.iso || reboot")
        self.assertEqual("http://server/live.iso", started.url)

    def test_what_an_initiator_cannot_use_fails_and_the_script_goes_on(self) -> None:
        self.assertRaises(boot.CommandFailed, run, f"sanboot --drive 0x80 {URI}")
        self.assertRaises(boot.Reboot, run, f"sanboot --drive 0x80 {URI} || echo no", "sleep 0", "reboot")
        for uri, settings in (
            ("iscsi:host", INITIATOR),
            (URI, {**INITIATOR, "username": "u"}),
            ("http://x", INITIATOR),
        ):
            self.assertRaises(volumes.VolumeError, volumes.volume, uri, settings)

    def test_a_portal_may_be_an_ipv6_address_without_port(self) -> None:
        found = volumes.volume("iscsi:[2001:db8::1]::::iqn.2026-01.org.example:v1", INITIATOR)
        self.assertEqual("[2001:db8::1]:3260", found.portal)
