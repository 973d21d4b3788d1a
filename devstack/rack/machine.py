"""What every machine of the rack has: power, boot devices, faults, disks, a log. Its kinds say what runs on it.

Everything here runs on the rack's event loop. What runs on a machine is one task: cutting the power cancels it,
whatever it is doing.
"""

import abc
import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Collection
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any, ClassVar
from uuid import UUID

from ingot.rack import faults
from ingot.rack.config import MachineSpec
from ingot.rack.disks import Disk
from ingot.rack.loop import Site
from ingot.rack.media import Media
from ingot.rack.nvram import BootSetting, Nvram

LOG = logging.getLogger(__name__)

LOG_LINES = 500


class Machine(abc.ABC):
    """One machine of the rack, as its BMC and the control API see it.

    A kind of machines implements :meth:`_begin`, :meth:`_cut` and :meth:`_button`; it calls :meth:`switch_off` or
    :meth:`restart` when its machine does so on its own. ``state`` is ``off`` or a word of the class's; ``reason`` says
    more.

    :cvar possible_faults: names from ``faults.KNOWN``.
    """

    possible_faults: ClassVar[Collection[str]] = faults.KNOWN

    def __init__(self, spec: MachineSpec, site: Site) -> None:
        self.spec = spec
        self.site = site
        self.faults = faults.Faults(self.possible_faults)
        self.directory = site.state_dir / spec.name
        self.directory.mkdir(parents=True, exist_ok=True)
        self.disks = [Disk(disk, self.directory / f"disk{n}.img") for n, disk in enumerate(spec.disks)]
        self.powered = False
        self.state = "off"
        self.reason = ""
        self.boots = 0
        self.bmc_port = 0
        self.redfish: dict[str, str] | None = None
        self.on_new_credentials: Callable[[], None] = lambda: None
        self.on_faults: Callable[[], None] = lambda: None
        self.power_hooks: list[Callable[[bool], None]] = []
        self.console_hooks: list[Callable[[bytes], None]] = []
        self.media = Media(self.directory)
        self.http_boot_uri = ""
        self.secure_boot = False
        self.log_lines: deque[str] = deque(maxlen=LOG_LINES)
        self.nvram = Nvram(self.directory / "nvram.json")
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

    def enter(self, state: str, reason: str = "") -> None:
        """Note what the machine does from now on."""
        self.state, self.reason = state, reason
        self.log(f"{state}: {reason}" if reason else state)

    def order_fault(self, name: str, value: Any = None, times: int | None = None) -> None:
        """Make something go wrong from now on; see ``faults.KNOWN``."""
        self.faults.order(name, value, times)
        self.log(f"fault ordered: {name}")
        self.on_faults()
        if name == "bmc_wrong_password":
            self.on_new_credentials()

    def clear_faults(self, name: str | None = None) -> None:
        """Forget one fault, or all of them."""
        self.faults.clear(name)
        self.on_faults()

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
        {"off": self.switch_off, "soft": self._button}.get(action, self.restart)()
        return True

    def interrupt(self) -> bool:
        """Send the processors a non-maskable interrupt; False without power."""
        self.log("non-maskable interrupt")
        return self.powered

    def feed(self, data: bytes) -> bool:
        """Type something on the machine's serial console; False if nothing there reads it."""
        return False

    def say(self, data: bytes) -> None:
        """Have the machine's serial console show something."""
        for hook in self.console_hooks:
            hook(data)

    def send_break(self) -> None:
        """Send a break on the machine's serial line."""
        self.log("break on the serial console")

    def _switch_on(self) -> None:
        if self.powered:
            return
        self.powered = True
        self.boots += 1
        self._note_power()
        self._begin()

    def _note_power(self) -> None:
        for hook in self.power_hooks:
            hook(self.powered)

    def switch_off(self, reason: str = "") -> None:
        """Cut the power: what runs is gone at once, mid-write if need be."""
        if self._running is not None:
            self._running.cancel()
            self._running = None
        self._cut()
        self.powered = False
        self.enter("off", reason)
        self._note_power()

    def restart(self) -> None:
        """Cut the power and give it back."""
        self.switch_off()
        self._switch_on()

    def run(self, work: Awaitable[None]) -> None:
        """Run something until it ends or the power goes; whatever it raises leaves the machine on and hung."""
        self._running = asyncio.ensure_future(self._guard(work))

    async def _guard(self, work: Awaitable[None]) -> None:
        try:
            await work
        except Hang as hang:
            self.enter("hung", str(hang))
        except Exception as error:
            LOG.exception("%s: the machine failed", self.name)
            self.enter("hung", f"the machine failed: {error!r}")

    @abc.abstractmethod
    def _begin(self) -> None:
        """Start what runs on the machine: its power has just come."""

    @abc.abstractmethod
    def _cut(self) -> None:
        """End what runs outside :meth:`run`: its power goes."""

    @abc.abstractmethod
    def _button(self) -> None:
        """Do what the power button does to what runs."""

    # Boot device

    def boot_setting(self) -> BootSetting | None:
        return self.nvram.once or self.nvram.persistent

    def set_boot_setting(self, device: str, persistent: bool, efi: bool) -> None:
        self.nvram.store(BootSetting(device, persistent, efi))
        self.log(f"boot device {device} {'from now on' if persistent else 'once'}{', EFI' if efi else ''}")

    # What others see

    def identity(self) -> dict[str, Any]:
        """Return what the machine is, whatever its state."""
        return {
            "name": self.name,
            "uuid": str(self.spec.uuid),
            "bmc_address": self.site.config.address,
            "bmc_port": self.bmc_port,
            "redfish": self.redfish,
            "memory_mb": self.spec.memory,
            "macs": list(self.spec.macs),
            "kernel_arguments": self.kernel_arguments(),
        }

    def kernel_arguments(self) -> str:
        """Return the kernel arguments with which a ramdisk on this machine is reached by others."""
        return ""

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
            "media": self.media.public(),
            "faults": self.faults.public(),
            "disks": [disk.public() for disk in self.disks],
        }


class Hang(Exception):
    """The machine stops here, as hardware does: powered on, doing nothing, until its power is cut."""
