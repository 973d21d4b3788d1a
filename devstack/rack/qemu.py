"""Machines that QEMU emulates: firmware, kernel and agent are real ones, behind the same BMC as the simulated ones.

Power is a process: on while it runs. Which firmware it has, UEFI or BIOS, follows the boot setting of its BMC, as on
machines that can do both.
"""

import asyncio
import itertools
import json
import shutil
import signal
import socket
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, ClassVar, TextIO

from ingot.rack import faults, ports, qemu_command
from ingot.rack.config import ConfigError, MachineSpec, script_url
from ingot.rack.console import ConsoleText
from ingot.rack.loop import Site, in_thread
from ingot.rack.machine import Machine
from ingot.rack.media import MediaError, Medium, fetch
from ingot.rack.nvram import BootSetting

_KERNEL = "no_timer_check mitigations=off"
"""A kernel counts ticks of the clock when it starts and panics if they come late, as on a host that is busy; and
its defences against a processor's faults, which an emulated one does not have, cost an agent a tenth of its start."""

_PIECE = 2**16
_PACKAGES = "qemu-system-x86 ipxe-qemu ovmf util-linux"


class QemuMachine(Machine):
    """A machine in a QEMU process.

    Its states are ``off``, ``on`` and ``shutting down``: what runs on it shows on its console only.
    """

    possible_faults: ClassVar[tuple[str, ...]] = (
        "bmc_silent",
        "bmc_wrong_password",
        "drive_failed",
        "too_hot",
        "power_stuck",
        "boot_hang",
        *faults.REDFISH,
    )

    def __init__(self, spec: MachineSpec, site: Site) -> None:
        super().__init__(spec, site)
        _check_host()
        qemu_command.check(self.disks)
        base = site.config.agent_base_port
        self._console_log = self.directory / "console.log"
        self.secure_boot = spec.firmware == "uefi-secure"
        self._agent = (site.config.address, base + spec.index if base else ports.tcp())
        self._process: subprocess.Popen[bytes] | None = None
        self._monitor: socket.socket | None = None
        self._console: socket.socket | None = None
        self._said_last = ConsoleText()
        self._images = itertools.count()
        self.media.on_change = self._change_media

    def kernel_arguments(self) -> str:
        """Return kernel arguments that suit the machine, and give the agent the address by which others see it."""
        address, port = self._agent
        if self.site.config.taps:  # where others see it as it sees itself
            return _KERNEL
        return f"ipa-advertise-host={address} ipa-advertise-port={port} {_KERNEL}"

    def public(self) -> dict[str, Any]:
        return {**super().public(), "console": str(self._console_log), "prompt": self._said_last.unfinished}

    # Power

    def _begin(self) -> None:
        self.run(self._live())

    def _cut(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None
        for end in (self._monitor, self._console):
            if end is not None:
                end.close()
        self._monitor = self._console = None

    def _button(self) -> None:
        self.state = "shutting down"
        self._send_command("system_powerdown")

    def _change_media(self) -> None:
        """Follow what was inserted or ejected while the machine runs."""
        if self._monitor is not None:
            self._changing = asyncio.ensure_future(self._put_in(self.media.bootable()))

    async def _put_in(self, medium: Medium | None) -> None:
        image = await self._fetch(medium)
        if self.media.bootable() is not medium:
            return  # it was changed again meanwhile, and what came later is there already
        if image is None:
            self._send_command("eject", id=qemu_command.MEDIA_DRIVE, force=True)
        else:
            self._send_command("blockdev-change-medium", id=qemu_command.MEDIA_DRIVE, filename=str(image), format="raw")

    async def _fetch(self, medium: Medium | None) -> Path | None:
        """Return the file of an image; None: there is none, or it cannot be had, and the drive is empty."""
        if medium is None:
            return None
        image = self.directory / f"media-{next(self._images)}.iso"
        for old in self.directory.glob("media-*.iso"):
            old.unlink()
        try:
            await in_thread(self.site.heavy, fetch, medium, image, self.site.config.ca_file)
        except MediaError as error:
            self.log(f"virtual media: {error}")
            return None
        return image

    def interrupt(self) -> bool:
        self._send_command("inject-nmi")
        return super().interrupt()

    def feed(self, data: bytes) -> bool:
        if self._console is None:
            return False
        self._console.send(data)
        return True

    def _send_command(self, command: str, **arguments: Any) -> None:
        """Have QEMU do something (QEMU Machine Protocol); what it answers is read where its events are."""
        if self._monitor is not None:
            order = {"execute": command, **({"arguments": arguments} if arguments else {})}
            self._monitor.send(json.dumps(order).encode() + b"\n")

    async def _live(self) -> None:
        """Run the machine until it switches itself off, restarts itself, or QEMU fails."""
        boot = self.boots
        setting = self.nvram.take()
        image = await self._fetch(self._medium(setting))
        process = self._start(setting, image)
        self.enter("on", f"QEMU process {process.pid}, {'-'.join(qemu_command.accelerator())}")
        watched = (self._watch_events(), self._watch_console())
        cause, _ = await asyncio.gather(*watched)
        status = await in_thread(self.site.quick, process.wait)
        # Not from here: what comes now cancels this task.
        asyncio.get_running_loop().call_soon(self._note_end, boot, cause, status)

    def _medium(self, setting: BootSetting | None) -> Medium | None:
        """Return what is in the virtual drive at a boot. A boot by HTTP has its image there, for UEFI keeps it so."""
        if setting is not None and setting.device == "http" and self.http_boot_uri:
            return Medium(self.http_boot_uri)
        return self.media.bootable()

    def _start(self, setting: BootSetting | None, image: Path | None) -> "subprocess.Popen[bytes]":
        firmware = qemu_command.Firmware(self.directory, self.secure_boot)
        if qemu_command.has_uefi(self.spec, setting) and not firmware.variables.exists():
            shutil.copyfile(firmware.first_variables, firmware.variables)
        self._monitor, monitor = _connect_pair()
        self._console, console = _connect_pair()
        with monitor, console:
            ends = monitor.fileno(), console.fileno()
            config = self.site.config
            wiring = qemu_command.Wiring(
                *(*ends, self._boot_urls(), self._agent, self._records()),
                forwarded=config.forwarded_ports,
                tftp_root=config.tftp_root,
                taps=self._taps(),
            )
            command = qemu_command.build(self.spec, self.disks, firmware, setting, wiring, image)
            stopped = ["-S"] if self.faults.strike("boot_hang") else []
            with (self.directory / "qemu.log").open("wb") as log:
                self._process = subprocess.Popen(
                    [*command, *stopped],
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    pass_fds=(monitor.fileno(), console.fileno()),
                )
        self._send_command("qmp_capabilities")
        return self._process

    def _boot_urls(self) -> list[str]:
        template, spec = self.site.config.boot_url, self.spec
        return [script_url(template, spec, mac, qemu_command.host_of(nic)) for nic, mac in enumerate(spec.macs)]

    def _taps(self) -> list[str]:
        template, spec = self.site.config.taps, self.spec
        return [template.format(machine=spec.index, nic=nic) for nic in range(len(spec.macs))] if template else []

    def _records(self) -> list[Path]:
        cards = range(len(self.spec.macs)) if self.site.config.record_traffic else ()
        return [self.directory / f"traffic-{self.boots}-{nic}.pcap" for nic in cards]

    async def _watch_events(self) -> str:
        """Return why the machine ended, in QEMU's words; empty when it was not the machine."""
        cause, rest = "", b""
        async for data in _pieces(self._monitor):
            *lines, rest = (rest + data).split(b"\n")
            for message in map(json.loads, filter(None, lines)):
                if message.get("event") == "SHUTDOWN":
                    cause = message["data"]["reason"]
                elif "error" in message:
                    self.log(f"QEMU: {message['error']['desc']}")
        return cause

    async def _watch_console(self) -> None:
        """Write what the machine says to its file and its log, line by line."""
        text = self._said_last = ConsoleText()
        with self._console_log.open("a", buffering=1) as log:
            async for data in _pieces(self._console):
                self.say(data)
                for line in text.feed(data):
                    self._log_console(line, log)
            for line in text.end():
                self._log_console(line, log)

    def _log_console(self, line: str, log: TextIO) -> None:
        log.write(f"{line}\n")
        self.log(f"console: {line}")

    def _note_end(self, boot: int, cause: str, status: int) -> None:
        if not self.powered or self.boots != boot:
            return
        if cause == "guest-reset":
            self.log("the machine restarts itself")
            self.restart()
        elif status == 0:
            self.switch_off(cause)
        else:
            said = (self.directory / "qemu.log").read_text(errors="replace").strip().splitlines()
            how = signal.Signals(-status).name if status < 0 else f"status {status}"
            self.switch_off(f"QEMU ended with {how}{': ' + said[-1] if said else ''}")


def _check_host() -> None:
    """Check that QEMU can run here.

    :raises ConfigError: this computer lacks what QEMU machines need.
    """
    missing = [name for name in (qemu_command.PROGRAM, "setpriv") if shutil.which(name) is None]
    firmware = (
        qemu_command.UEFI_CODE,
        qemu_command.UEFI_VARIABLES,
        qemu_command.SECURE_CODE,
        qemu_command.SECURE_VARIABLES,
    )
    missing += [str(path) for path in firmware if not path.exists()]
    if missing:
        raise ConfigError(
            f"machine_kind: qemu needs {', '.join(missing)}, which this computer does not have; Debian's packages are "
            f"{_PACKAGES}"
        )


def _connect_pair() -> tuple[socket.socket, socket.socket]:
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    return ours, theirs


async def _pieces(end: socket.socket | None) -> AsyncIterator[bytes]:
    """Yield what comes from QEMU until it ends."""
    loop = asyncio.get_running_loop()
    while end is not None:
        try:
            data = await loop.sock_recv(end, _PIECE)
        except ConnectionError:
            data = b""
        if not data:
            return
        yield data
