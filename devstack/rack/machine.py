"""A simulated machine: power, boot devices, disks, and what runs on it.

Everything here runs on the rack's event loop. What runs on the machine is one task: cutting the power cancels
it, whatever it is doing.
"""

import asyncio
import json
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID

from ingot.rack import boot, faults, partitions, volumes
from ingot.rack.agent import Agent
from ingot.rack.config import MachineSpec
from ingot.rack.disks import Disk
from ingot.rack.loop import Site, in_thread
from ingot.rack.raid import block_devices

LOG = logging.getLogger(__name__)

LOG_LINES = 500


@dataclass(frozen=True)
class BootSetting:
    """A boot device as a BMC sets it; ``persistent`` ones stay, others hold for one boot."""

    device: str
    persistent: bool
    efi: bool


class Hang(Exception):
    """The machine stops here, as hardware does: powered on, doing nothing, until its power is cut."""


class Machine:
    """One machine of the rack.

    ``state`` is ``off``, ``firmware``, ``network boot``, ``agent``, ``os``, ``shutting down`` or ``hung``;
    ``reason`` says more.
    """

    def __init__(self, spec: MachineSpec, site: Site) -> None:
        self.spec = spec
        self.site = site
        self.faults = faults.Faults()
        self.directory = site.state_dir / spec.name
        self.directory.mkdir(parents=True, exist_ok=True)
        self.disks = [Disk(disk, self.directory / f"disk{n}.img") for n, disk in enumerate(spec.disks)]
        self.powered = False
        self.state = "off"
        self.reason = ""
        self.boots = 0
        self.agent: Agent | None = None
        self.boot_volume: volumes.Volume | None = None
        self.bmc_port = 0
        self.on_new_credentials: Callable[[], None] = lambda: None
        self.agent_version = site.config.agent_version
        self.commands: deque[dict[str, Any]] = deque(maxlen=1000)
        self.log_lines: deque[str] = deque(maxlen=LOG_LINES)
        self._nvram = Nvram(self.directory / "nvram.json")
        self._running: asyncio.Task[None] | None = None

    @property
    def name(self) -> str:
        return self.spec.name

    @property
    def uuid(self) -> UUID:
        return self.spec.uuid

    def log(self, text: str) -> None:
        """Add a line to the machine's log and to the rack's."""
        self.log_lines.append(f"{datetime.now(UTC).isoformat(timespec='milliseconds')} {text}")
        LOG.info("%s: %s", self.name, text)

    def _enter(self, state: str, reason: str = "") -> None:
        self.state, self.reason = state, reason
        self.log(f"{state}: {reason}" if reason else state)

    def order_fault(self, name: str, value: Any = None, times: int | None = None) -> None:
        """Make something go wrong from now on; see ``faults.KNOWN``."""
        self.faults.order(name, value, times)
        self.log(f"fault ordered: {name}")
        if name == "bmc_wrong_password":
            self.on_new_credentials()

    # Power

    def power(self, action: str) -> bool:
        """Do ``on``, ``off``, ``cycle``, ``reset`` or ``soft``; False if it makes no sense in this state."""
        self.log(f"power {action} requested")
        if self.faults.strike("power_stuck"):
            return True
        if action == "on":
            self._switch_on()
            return True
        if not self.powered:
            return action == "off"
        {"off": self.switch_off, "soft": self._soft_off}.get(action, self.restart)()
        return True

    def interrupt(self) -> bool:
        """Send the processors a non-maskable interrupt, which what runs here ignores; False without power."""
        self.log("non-maskable interrupt")
        return self.powered

    def _switch_on(self) -> None:
        if self.powered:
            return
        self.powered = True
        self.boots += 1
        self._start(self._boot())

    def switch_off(self) -> None:
        """Cut the power: what runs is gone at once, mid-write if need be."""
        if self._running is not None:
            self._running.cancel()
            self._running = None
        if self.agent is not None:
            self.agent.kill()
            self.agent = None
        self.powered = False
        self.boot_volume = None
        self._enter("off")

    def restart(self) -> None:
        """Cut the power and give it back."""
        self.switch_off()
        self._switch_on()

    def _soft_off(self) -> None:
        if self.state not in ("agent", "os"):
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

    def boot_setting(self) -> BootSetting | None:
        return self._nvram.once or self._nvram.persistent

    def set_boot_setting(self, device: str, persistent: bool, efi: bool) -> None:
        self._nvram.store(BootSetting(device, persistent, efi))
        self.log(f"boot device {device} {'from now on' if persistent else 'once'}{', EFI' if efi else ''}")

    def _start(self, work: Awaitable[None]) -> None:
        self._running = asyncio.ensure_future(self._guard(work))

    async def _guard(self, work: Awaitable[None]) -> None:
        try:
            await work
        except Hang as hang:
            self._enter("hung", str(hang))
        except Exception as error:
            LOG.exception("%s: the simulation failed", self.name)
            self._enter("hung", f"the simulation failed: {error!r}")

    async def _boot(self) -> None:
        self._enter("firmware")
        await asyncio.sleep(self.spec.boot_delay)
        if self.faults.strike("boot_hang"):
            raise Hang("fault boot_hang")
        version = self.faults.take("agent_version_after_reboot")
        self.agent_version = version or self.site.config.agent_version
        setting = self._nvram.take()
        device = setting.device if setting else "default"
        boots: dict[str, Callable[[], Awaitable[None]]] = {
            "pxe": self._boot_network,
            "disk": self._boot_disk,
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
        self._enter("network boot")
        firmware = boot.Firmware(self, self.boot_setting_efi())
        try:
            plan = await firmware.network_boot()
        except boot.BootError as error:
            raise Hang(f"network boot: {error}") from error
        except boot.Reboot:
            self.restart_soon()
            return
        except volumes.StartVolume as start:
            await self._boot_volume(start.volume)
            return
        if plan is None:
            self.log("the boot script leaves booting to the disk")
            await self._boot_disk()
            return
        self.log(f"kernel {plan.kernel} started")
        await self._run_agent(plan.arguments)

    def boot_setting_efi(self) -> bool:
        setting = self._nvram.last_taken
        return bool(setting and setting.efi)

    async def _run_agent(self, arguments: dict[str, str]) -> None:
        self._enter("agent")
        self.agent = Agent(self, arguments)
        end = await self.agent.run()
        self.agent.kill()
        raise Hang(f"the agent ended: {end}")

    def _bootable_disk(self) -> Disk | None:
        return next((disk for disk in self.disks if partitions.boot_signature(disk)), None)

    async def _boot_disk(self) -> None:
        disk = await in_thread(self.site.quick, self._bootable_disk)
        if disk is None:
            raise Hang("no disk has a boot sector (neither MBR nor GPT)")
        await asyncio.sleep(self.site.config.os_boot_delay)
        self._enter("os", f"started from {disk.name} ({partitions.boot_signature(disk)})")

    async def _boot_volume(self, volume: volumes.Volume) -> None:
        await asyncio.sleep(self.site.config.os_boot_delay)
        self.boot_volume = volume
        self._enter("os", f"started from {volume.uri}")

    # What others see

    def identity(self) -> dict[str, Any]:
        """Return what the machine is, whatever its state."""
        return {
            "name": self.name,
            "uuid": str(self.spec.uuid),
            "bmc_address": self.site.config.address,
            "bmc_port": self.bmc_port,
            "memory_mb": self.spec.memory,
            "macs": list(self.spec.macs),
        }

    def public(self) -> dict[str, Any]:
        """Return the machine as the control API shows it, without secrets."""
        setting = self.boot_setting()
        return {
            **self.identity(),
            "power": "on" if self.powered else "off",
            "state": self.state,
            "reason": self.reason,
            "boots": self.boots,
            "boot_device": asdict(setting) if setting else None,
            "faults": self.faults.public(),
            "agent": self.agent.public() if self.agent else None,
            "commands": list(self.commands),
            "boot_volume": asdict(self.boot_volume) if self.boot_volume else None,
            "disks": [disk.public() for disk in self.disks],
            "volumes": [device.public() for device in block_devices(self.disks) if device.members],
        }


class Nvram:
    """Boot settings that survive power cuts and restarts of the rack, in a small JSON file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        stored = json.loads(path.read_text()) if path.exists() else {}
        self.once = BootSetting(**stored["once"]) if stored.get("once") else None
        self.persistent = BootSetting(**stored["persistent"]) if stored.get("persistent") else None
        self.last_taken: BootSetting | None = None

    def store(self, setting: BootSetting) -> None:
        if setting.persistent:
            self.once, self.persistent = None, setting
        else:
            self.once = setting
        self._save()

    def take(self) -> BootSetting | None:
        """Return what this boot uses; a setting for one boot is used up by it."""
        self.last_taken = self.once or self.persistent
        if self.once:
            self.once = None
            self._save()
        return self.last_taken

    def _save(self) -> None:
        slots = {"once": self.once, "persistent": self.persistent}
        fresh = self._path.with_suffix(".new")
        fresh.write_text(json.dumps({name: asdict(slot) if slot else None for name, slot in slots.items()}))
        fresh.replace(self._path)
