"""The command line of a QEMU process, from what a machine is and what it boots."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ingot.rack import partitions
from ingot.rack.config import ConfigError, MachineSpec
from ingot.rack.disks import Disk
from ingot.rack.nvram import BootSetting

PROGRAM = "qemu-system-x86_64"
TIED_TO_THE_RACK = ("setpriv", "--pdeathsig", "KILL")
"""What a command begins with that never outlives the rack, however that ends: the kernel sees to it."""

UEFI_CODE = Path("/usr/share/OVMF/OVMF_CODE_4M.fd")
UEFI_VARIABLES = Path("/usr/share/OVMF/OVMF_VARS_4M.fd")
# The same with secure boot, and variables that have Microsoft's keys in them, as machines are sold.
SECURE_CODE = Path("/usr/share/OVMF/OVMF_CODE_4M.secboot.fd")
SECURE_VARIABLES = Path("/usr/share/OVMF/OVMF_VARS_4M.ms.fd")

MEDIA_DRIVE = "media"
"""The id of the drive for virtual media."""

AGENT_PORT = 9999
"""Where the agent listens inside the machine."""

_RECORDED = 256
"""Bytes of each packet that are kept: its headers, and of small ones everything."""

# Other devices in the order of the boot: a setting that names none of these starts as from the disk.
_LAST = 20
_DEVICES = {"ata": "scsi-hd,bus=scsi.0", "nvme": "nvme"}
_IDENTITY = {"ata": "serial={0.serial},wwn={0.wwn}", "nvme": "serial={0.serial}"}
_FROM_MEDIA = ("cdrom", "http")
# What makes OVMF one of the firmwares that know no PXE.
_BY_HTTP_ONLY = [
    word for version in (4, 6) for word in ("-fw_cfg", f"name=opt/org.tianocore/IPv{version}PXESupport,string=n")
]
_READ_ONLY = {"normal": "", "read-only": ",readonly=on"}

_EMULATED = "max,erms=off,fsrm=off,xsave=off"
"""Processor of an emulated machine: copying with "rep movsb" and the large registers (AVX) cost emulation much. Without
them a machine unpacks its ramdisk twice as fast, and the agent answers after four fifths of the time."""


def host_of(nic: int) -> str:
    """Return the address by which a machine reaches this computer through one of its network cards."""
    return f"10.0.{2 + nic}.2"


def accelerator() -> tuple[str, str]:
    """Return QEMU's accelerator and processor: KVM where the processor really has it, else emulation.

    The mere presence of /dev/kvm says little: kernels that offer it without hardware support (such as kvm_pvm) do not
    run an ordinary Linux.
    """
    hardware = any(Path("/sys/module", module).exists() for module in ("kvm_intel", "kvm_amd"))
    return ("kvm", "host") if hardware and os.access("/dev/kvm", os.R_OK | os.W_OK) else ("tcg", _EMULATED)


@dataclass(frozen=True)
class Wiring:
    """What connects a QEMU process with the rack.

    :param monitor: descriptor of its control socket; ``console``: of the socket of its serial line.
    :param boot_urls: where each network card finds its iPXE script; with TFTP, the file that it starts.
    :param agent: address and port at which others reach the agent.
    :param forwarded: further ports that are reached at that address, too.
    :param tftp_root: directory that the networks serve by TFTP; None: they serve none, and iPXE boots.
    :param taps: the other end of each network card; none: they have private networks.
    :param records: a file for each network card that keeps what passes through it; none: nothing is kept.
    """

    monitor: int
    console: int
    boot_urls: Sequence[str]
    agent: tuple[str, int]
    records: Sequence[Path] = ()
    forwarded: Sequence[int] = ()
    tftp_root: Path | None = None
    taps: Sequence[str] = ()


@dataclass(frozen=True)
class Firmware:
    """A machine's UEFI firmware: the same machine has other variables when it checks signatures.

    :param directory: has the machine's UEFI variables.
    """

    directory: Path
    secure_boot: bool = False

    @property
    def variables(self) -> Path:
        return self.directory / ("uefi-variables-secure.fd" if self.secure_boot else "uefi-variables.fd")

    @property
    def first_variables(self) -> Path:
        """Those that a new machine has."""
        return SECURE_VARIABLES if self.secure_boot else UEFI_VARIABLES

    def words(self) -> list[str]:
        flash = "if=pflash,format=raw,unit={},file={}"
        code = flash.format(0, SECURE_CODE if self.secure_boot else UEFI_CODE) + ",readonly=on"
        # Only the firmware writes to its variables, or secure boot would be none.
        guard = ["-global", "driver=cfi.pflash01,property=secure,value=on"] if self.secure_boot else []
        return ["-drive", code, "-drive", flash.format(1, _value(self.variables)), *guard]


def has_uefi(spec: MachineSpec, setting: BootSetting | None) -> bool:
    """Return whether a machine boots by UEFI, and not by BIOS.

    :param setting: what its BMC was ordered for this boot.
    """
    return spec.firmware != "bmc" or (setting is not None and setting.efi)


def check(disks: Sequence[Disk]) -> None:
    """Check that QEMU can have the disks.

    :raises ConfigError: a disk is to be in a state that QEMU cannot give it.
    """
    for disk in disks:
        if disk.spec.state not in _READ_ONLY:
            raise ConfigError(
                f"disk_kinds: {disk.spec.kind}:{disk.spec.state} is for simulated machines; disks of QEMU machines are "
                f"{' or '.join(_READ_ONLY)}"
            )


def build(
    spec: MachineSpec,
    disks: Sequence[Disk],
    firmware: Firmware,
    setting: BootSetting | None,
    wiring: Wiring,
    medium: Path | None = None,
) -> list[str]:
    """Return the command that runs a machine from power on to power off.

    :param setting: what its BMC was ordered for this boot; decides between UEFI and BIOS.
    :param medium: the image in its virtual drive.
    """
    kind, processor = accelerator()
    efi = has_uefi(spec, setting)
    network_first = setting is not None and setting.device == "pxe"
    options = {
        "-name": spec.name,
        "-uuid": str(spec.uuid),
        "-smbios": f"type=1,manufacturer=Ingot,product=rack,serial={spec.name},uuid={spec.uuid}",
        "-machine": f"q35,graphics=off{',smm=on' if efi and firmware.secure_boot else ''}",
        "-accel": kind,
        "-cpu": processor,
        "-smp": str(spec.cpus),
        "-m": str(spec.memory),
        "-display": "none",
        "-vga": "none",
        "-action": "reboot=shutdown",  # a machine that restarts itself boots what its BMC says then
        "-mon": "chardev=monitor,mode=control",
        "-serial": "chardev:console",
    }
    return [
        *TIED_TO_THE_RACK,
        PROGRAM,
        "-nodefaults",
        "-no-user-config",
        *(word for option in options.items() for word in option),
        "-chardev",
        f"socket,id=monitor,fd={wiring.monitor}",
        "-chardev",
        f"socket,id=console,fd={wiring.console}",
        "-device",
        "virtio-rng-pci",
        *(firmware.words() if efi else ()),
        *(_BY_HTTP_ONLY if spec.firmware == "uefi-http" else ()),
        *_disks(disks, first=_LAST // 2 if network_first else 1),
        *_media(medium, first=setting is not None and setting.device in _FROM_MEDIA),
        *(_wire if wiring.taps else _network)(spec, wiring, 1 if network_first else _LAST, efi),
    ]


def _value(text: object) -> str:
    return str(text).replace(",", ",,")


def _media(medium: Path | None, first: bool) -> list[str]:
    """Return arguments for the virtual drive, which is there whether it has an image or not."""
    image = ["-drive", f"if=none,id=image,format=raw,readonly=on,media=cdrom,file={_value(medium)}"] if medium else []
    drive, order = ",drive=image" if medium else "", ",bootindex=0" if first and medium else ""
    return [*image, "-device", f"scsi-cd,bus=scsi.0,id={MEDIA_DRIVE}{drive}{order}"]


def _disks(disks: Sequence[Disk], first: int) -> list[str]:
    """Return arguments for disks without the cost of durability, in which what is erased becomes a hole again.

    Those that can be booted come first, as a BIOS starts from its first disk only.
    """
    order = sorted(disks, key=lambda disk: partitions.boot_signature(disk) is None)
    words = ["-device", "virtio-scsi-pci,id=scsi"]
    for number, disk in enumerate(disks):
        identity = _IDENTITY[disk.spec.kind].format(disk.spec)
        words += [
            "-drive",
            f"if=none,id=disk{number},format=raw,cache=unsafe,discard=unmap,detect-zeroes=unmap,"
            f"file={_value(disk.path)}{_READ_ONLY[disk.spec.state]}",
            "-device",
            f"{_DEVICES[disk.spec.kind]},drive=disk{number},{identity},bootindex={first + order.index(disk)}",
        ]
    return words


def _wire(spec: MachineSpec, wiring: Wiring, first: int, efi: bool) -> list[str]:
    """Return arguments for network cards that this computer has the other ends of; UEFI boots by its own means."""
    rom = ",romfile=" if efi else ""
    words = []
    for nic, (mac, tap) in enumerate(zip(spec.macs, wiring.taps, strict=True)):
        words += ["-netdev", f"tap,id=net{nic},ifname={_value(tap)},script=no,downscript=no"]
        words += ["-device", f"virtio-net-pci,netdev=net{nic},mac={mac},bootindex={first + nic}{rom}"]
    return words


def _network(spec: MachineSpec, wiring: Wiring, first: int, efi: bool) -> list[str]:
    """Return arguments for a private network per card, with this computer as host; the first leads to the agent.

    A card has iPXE in its ROM; without it UEFI boots by its own means. A BIOS has none.
    """
    tftp = f",tftp={_value(wiring.tftp_root)}" if wiring.tftp_root else ""
    rom = ",romfile=" if wiring.tftp_root and efi else ""
    address, port = wiring.agent
    pairs = [(port, AGENT_PORT), *((further, further) for further in wiring.forwarded)]
    words = []
    for nic, (mac, url) in enumerate(zip(spec.macs, wiring.boot_urls, strict=True)):
        forward = (
            "".join(f",hostfwd=tcp:{address}:{outside}-:{inside}" for outside, inside in pairs) if nic == 0 else ""
        )
        words += [
            "-netdev",
            f"user,id=net{nic},net=10.0.{2 + nic}.0/24,bootfile={_value(url)}{tftp}{forward}",
            "-device",
            f"virtio-net-pci,netdev=net{nic},mac={mac},bootindex={first + nic}{rom}",
        ]
    for nic, path in enumerate(wiring.records):
        words += ["-object", f"filter-dump,id=record{nic},netdev=net{nic},maxlen={_RECORDED},file={_value(path)}"]
    return words
