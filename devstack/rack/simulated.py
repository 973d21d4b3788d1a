"""Simulated machines: a firmware that runs iPXE scripts, an agent that writes to sparse files, a system in name only.

They cost next to nothing: thousands fit into one process.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import asdict
from typing import Any

from ingot.rack import boot, boot_files, fat, iso, partitions, volumes
from ingot.rack.agent import Agent
from ingot.rack.config import MachineSpec
from ingot.rack.disks import Disk
from ingot.rack.loop import Site, in_thread
from ingot.rack.machine import Hang, Machine
from ingot.rack.media import MediaError, Medium, fetch
from ingot.rack.raid import block_devices

_SETTINGS_LABEL = "ir-vfd-dev"
"""By which the real agent finds a medium with its settings."""


class SimulatedMachine(Machine):
    """A machine of which only the BMC is real.

    Its states are ``off``, ``firmware``, ``network boot``, ``media boot``, ``agent``, ``rescue``, ``os``,
    ``shutting down``, ``hung``.

    :ivar rescue_password: the password of a rescued machine, and whether it is a hash; None: it is not rescued.
    """

    def __init__(self, spec: MachineSpec, site: Site) -> None:
        super().__init__(spec, site)
        self.agent: Agent | None = None
        self.agent_version = site.config.agent_version
        self.boot_volume: volumes.Volume | None = None
        self.rescue_password: dict[str, Any] | None = None
        self.commands: deque[dict[str, Any]] = deque(maxlen=1000)

    # Console

    def enter(self, state: str, reason: str = "") -> None:
        super().enter(state, reason)
        self.say(f"{self.name}: {state}\r\n".encode())

    def feed(self, data: bytes) -> bool:
        """Echo what is typed, and ask for a login at each new line, as systems do."""
        if self.state not in ("agent", "os", "rescue"):
            return False
        self.say(data.replace(b"\r", f"\r\n{self.name} login: ".encode()))
        return True

    # Power

    def _begin(self) -> None:
        self.run(self._boot())

    def _cut(self) -> None:
        if self.agent is not None:
            self.agent.kill()
            self.agent = None
        self.boot_volume = None
        self.rescue_password = None

    def _button(self) -> None:
        if self.state not in ("agent", "os", "rescue"):
            self.log("nothing runs that would notice the power button")
            return
        self.state = "shutting down"
        asyncio.get_running_loop().call_later(self.site.config.shutdown_delay, self._off_if_same_boot, self.boots)

    def power_off_soon(self) -> None:
        """Switch off as an operating system does: a moment after it was asked to."""
        asyncio.get_running_loop().call_later(self.site.config.power_off_delay, self._off_if_same_boot, self.boots)

    def restart_soon(self) -> None:
        """Restart a moment from now."""
        asyncio.get_running_loop().call_later(self.site.config.power_off_delay, self._restart_if_same_boot, self.boots)

    def _restart_if_same_boot(self, boot_number: int) -> None:
        if self.powered and self.boots == boot_number:
            self.restart()

    def _off_if_same_boot(self, boot_number: int) -> None:
        if self.powered and self.boots == boot_number:
            self.switch_off()

    # Booting

    async def _boot(self) -> None:
        self.enter("firmware")
        await asyncio.sleep(self.spec.boot_delay)
        if self.faults.strike("boot_hang"):
            raise Hang("fault boot_hang")
        version = self.faults.take("agent_version_after_reboot")
        self.agent_version = version or self.site.config.agent_version
        setting = self.nvram.take()
        device = setting.device if setting else "default"
        boots: dict[str, Callable[[], Awaitable[None]]] = {
            "pxe": self._boot_network,
            "disk": self._boot_disk,
            "cdrom": self._boot_media,
            "http": self._boot_http,
            "default": self._boot_anything,
        }
        if device not in boots:
            raise Hang(f"boot device {device}: no medium")
        await boots[device]()

    async def _boot_anything(self) -> None:
        if self._bootable_disk():
            await self._boot_disk()
        else:
            await self._boot_network()

    async def _boot_network(self) -> None:
        self.enter("network boot")
        try:
            plan = await self._ask_network()
        except boot.Reboot:
            self.restart_soon()
            return
        except volumes.StartVolume as start:
            await self._boot_volume(start.volume)
            return
        except boot.StartImage as start:
            await self._start_image(Medium(start.url))
            return
        if plan is None:
            self.log("the boot script leaves booting to the disk")
            await self._boot_disk()
            return
        self.log(f"kernel {plan.kernel} started")
        await self._run_agent(plan.arguments)

    async def _boot_media(self) -> None:
        medium = self.media.bootable()
        if medium is None:
            raise Hang("boot device cdrom: no medium")
        await self._start_image(medium, is_drive=True)

    async def _boot_http(self) -> None:
        """Start from the image at the URL that the BMC was given, as UEFI does from one that it keeps in memory."""
        if not self.http_boot_uri:
            await self._boot_network()
            return
        await self._start_image(Medium(self.http_boot_uri))

    async def _start_image(self, medium: Medium, is_drive: bool = False) -> None:
        """Fetch an image and run what its loader starts: the agent, or another system.

        :param is_drive: whether what runs can read the image, too.
        """
        self.enter("media boot", medium.image)
        image = self.directory / "boot.iso"
        try:
            await in_thread(self.site.heavy, fetch, medium, image, self.site.config.ca_file)
            arguments = await in_thread(self.site.quick, iso.read_arguments, image)
            settings = await in_thread(self.site.quick, iso.read_settings, image) if is_drive else {}
        except (MediaError, iso.IsoError) as error:
            raise Hang(f"media boot: {error}") from error
        finally:
            image.unlink(missing_ok=True)
        if arguments.get("boot_method") == "vmedia":
            arguments |= settings | await self._read_settings()
        if "ipa-api-url" in arguments:
            await self._run_agent(arguments)
            return
        await asyncio.sleep(self.site.config.os_boot_delay)
        self.enter("os", f"started from {medium.image}")

    async def _read_settings(self) -> dict[str, str]:
        """Return what the agent of a finished image finds on a second medium, in place of kernel arguments."""
        medium = self.media.stick()
        if medium is None:
            return {}
        image = self.directory / "stick.img"
        try:
            await in_thread(self.site.heavy, fetch, medium, image, self.site.config.ca_file)
            content = image.read_bytes()
            found = (
                fat.read_file(content, "parameters.txt") if fat.read_label(content).lower() == _SETTINGS_LABEL else None
            )
        except (MediaError, fat.FatError) as error:
            self.log(f"second medium: {error}")
            return {}
        finally:
            image.unlink(missing_ok=True)
        return boot_files.parse_arguments((found or b"").decode(errors="replace").split())

    async def _ask_network(self) -> boot_files.BootPlan | None:
        """Return what the network has for this machine; with boot_retry, ask until there is something."""
        firmware = boot.Firmware(self, self.boot_setting_efi())
        while True:
            try:
                return await firmware.network_boot()
            except boot_files.BootError as error:
                if not self.site.config.boot_retry:
                    raise Hang(f"network boot: {error}") from error
                self.log(f"network boot: {error}; looking again in {self.site.config.boot_retry:g} s")
            await asyncio.sleep(self.site.config.boot_retry)

    def boot_setting_efi(self) -> bool:
        setting = self.nvram.last_taken
        return bool(setting and setting.efi)

    async def _run_agent(self, arguments: dict[str, str]) -> None:
        self.enter("agent")
        while True:
            self.agent = Agent(self, arguments)
            end = await self.agent.run()
            self.agent.kill()
            if not self.agent.comes_back:
                break
            self.log(f"the agent ended and is started again: {end}")
        if self.rescue_password is None:
            raise Hang(f"the agent ended: {end}")
        self.enter("rescue", end)

    def _bootable_disk(self) -> Disk | None:
        return next((disk for disk in self.disks if partitions.boot_signature(disk)), None)

    async def _boot_disk(self) -> None:
        disk = await in_thread(self.site.quick, self._bootable_disk)
        if disk is None:
            raise Hang("no disk has a boot sector (neither MBR nor GPT)")
        await asyncio.sleep(self.site.config.os_boot_delay)
        self.enter("os", f"started from {disk.name} ({partitions.boot_signature(disk)})")

    async def _boot_volume(self, volume: volumes.Volume) -> None:
        await asyncio.sleep(self.site.config.os_boot_delay)
        self.boot_volume = volume
        self.enter("os", f"started from {volume.uri}")

    # What others see

    def public(self) -> dict[str, Any]:
        return {
            **super().public(),
            "agent": self.agent.public() if self.agent else None,
            "commands": list(self.commands),
            "rescue_password": self.rescue_password,
            "boot_volume": asdict(self.boot_volume) if self.boot_volume else None,
            "volumes": [device.public() for device in block_devices(self.disks) if device.members],
        }
