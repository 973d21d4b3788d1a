"""The board that a machine's Redfish face stands for: what its BMC and firmware remember, and what a boot changes."""

import asyncio
import copy
import json
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from ingot.rack.machine import Machine
from ingot.rack.nvram import BootSetting
from ingot.rack.redfish import attributes
from ingot.rack.redfish.tasks import Tasks
from ingot.rack.vendors import VENDORS

_FIRST_STATE: dict[str, Any] = {
    "led": "Off",
    "drive_leds": {},
    "asset_tag": "",
    "boot_target": "None",
    "http_boot_uri": "",
    "media_marked": [],
    "bios": attributes.DEFAULTS,
    "bios_pending": {},
    "bios_waits": False,
    "bios_applied": None,
    "bios_passwords": {},
    "secure_boot": {"enabled": False, "current": False, "databases": ["PK", "KEK", "db", "dbx"]},
    "volumes": {},
    "volumes_made": 0,
    "firmware": {"BIOS": "1.0.0", "BMC": "1.0.0", "NIC": "1.0.0"},
    "firmware_pending": {},
    "clock_offset": 0.0,
    "time_zone": "+00:00",
}
"""What a new board remembers."""


class Board:
    """One machine's board. Its state is a file beside the machine's disks.

    :ivar state: what it remembers; call :meth:`save` after a change.
    :ivar at_boot: what the next boot does besides, once.
    :ivar on_restart: is called when the BMC restarts.
    """

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.vendor = VENDORS[machine.spec.redfish_vendor]
        self.state = copy.deepcopy(_FIRST_STATE)
        self._path = machine.directory / "board.json"
        if self._path.exists():
            self.state.update(json.loads(self._path.read_text()))
        self.tasks = Tasks(self)
        self.at_boot: list[Callable[[], None]] = []
        self.on_restart: list[Callable[[], None]] = []
        self.on_event: list[Callable[[str, str], None]] = []
        self._away_until = 0.0
        self._starts_again = False
        machine.power_hooks.append(self._note_power)
        machine.http_boot_uri = self.state["http_boot_uri"]
        machine.secure_boot = bool(self.state["secure_boot"]["current"])
        if machine.boot_setting() is None:
            machine.set_boot_setting("default", persistent=True, efi=True)

    def save(self) -> None:
        fresh = self._path.with_suffix(".new")
        fresh.write_text(json.dumps(self.state))
        fresh.replace(self._path)

    # The BMC

    @property
    def away(self) -> bool:
        """Whether the BMC restarts."""
        return time.monotonic() < self._away_until

    @property
    def silent(self) -> bool:
        faults = self.machine.faults
        return faults.active("bmc_silent") or faults.active("redfish_silent")

    def restart(self) -> None:
        """Restart the BMC: its sessions end, and it is away for a while. The machine does not notice."""
        self.machine.log("the BMC restarts")
        self._away_until = time.monotonic() + self.machine.site.config.bmc_restart_time
        for end in self.on_restart:
            end()

    def now(self) -> datetime:
        """Return the time of the BMC's clock."""
        zone = datetime.strptime(self.state["time_zone"], "%z").tzinfo
        return datetime.now(zone) + timedelta(seconds=self.state["clock_offset"])

    def set_clock(self, moment: datetime) -> None:
        self.state["clock_offset"] = (moment - datetime.now(UTC)).total_seconds()
        self.save()

    # The machine

    @property
    def in_post(self) -> bool:
        """Whether the machine's firmware starts."""
        return self.machine.state == "firmware"

    def restart_gracefully(self) -> None:
        """Press the power button, and start the machine again when it has gone off."""
        self._starts_again = True
        self.machine.power("soft")

    def override_boot(self, target: str, frequency: str, efi: bool, device: str | None = None) -> None:
        """Note what the machine boots; ``Disabled`` is what it boots without an override.

        :param device: what the target means, if not what it means to the vendor.
        """
        if self.machine.faults.strike("redfish_boot_ignored"):
            return
        if frequency == "Disabled":
            target = "None"
        self.state["boot_target"] = target
        self.save()
        device = device or self.vendor.boot_targets[target]
        lasting = self.machine.nvram.persistent
        if lasting is None or lasting.efi != efi:
            # The mode outlasts an override for one boot.
            self.machine.set_boot_setting(lasting.device if lasting else "default", persistent=True, efi=efi)
        self.machine.set_boot_setting(device, frequency != "Once" or device == "default", efi)

    def boot_override(self) -> tuple[str, str, bool]:
        """Return target, frequency and whether the firmware is UEFI, for the next boot."""
        setting = self.machine.boot_setting() or BootSetting("default", persistent=True, efi=True)
        if setting.device == "default":
            return "None", "Disabled", setting.efi
        names = {name for name, device in self.vendor.boot_targets.items() if device == setting.device}
        names |= {name for device, name in self.vendor.shown_as.items() if device == setting.device}
        target = self.state["boot_target"] if self.state["boot_target"] in names else min(names, default="None")
        return target, "Continuous" if setting.persistent else "Once", setting.efi

    def _note_power(self, on: bool) -> None:
        if on:
            self._boot()
        else:
            self.tasks.cut()
            if self._starts_again:
                self._starts_again = False
                asyncio.get_running_loop().call_soon(self.machine.power, "on")
        for send in self.on_event:
            send("PowerState", "On" if on else "Off")

    def _boot(self) -> None:
        """Do what the firmware does first: apply what was set for this moment."""
        self._starts_again = False
        self.state["media_marked"] = []
        attributes.apply(self)
        self.state["firmware"].update(self.state["firmware_pending"])
        self.state["firmware_pending"] = {}
        secure, (_, _, efi) = self.state["secure_boot"], self.boot_override()
        secure["current"] = secure["enabled"] and "PK" in secure["databases"] and efi
        self.machine.secure_boot = secure["current"]
        work, self.at_boot = self.at_boot, []
        for do in work:
            do()
        self.save()
