"""A machine with the hardware of a server, as far as QEMU has it, that boots by UEFI from a CD.

Disks are at an AHCI port, at an LSI MegaRAID and at an LSI SAS controller, and one is an NVMe drive. Network cards are
an Intel 82574L and a virtual one. The BMC is reached by KCS; a USB stick has the agent's settings.
"""

import pathlib
import shutil
import subprocess

import fixtures

from ingot.rack import qemu_command

DISKS = {
    "ide-hd,bus=ide.0": "AHCI",
    "nvme": "NVME",
    "scsi-hd,bus=raid.0": "MEGARAID",
    "scsi-hd,bus=sas.0,wwn=0x5000c50015000001": "SAS",
}
"""Kinds of disks, with the beginnings of their serial numbers."""
CARDS = {"e1000e": "52:54:00:15:00:01", "virtio-net-pci": "52:54:00:15:00:02"}
"""Network cards and their addresses."""

DISK_SIZE = 5 * 2**30  # the agent leaves out disks of less than 4 GiB
_MEMORY_MIB = 2048


class Server(fixtures.Fixture):
    """The machine, switched off.

    :param directory: for its disks, and for ``console.log``, what it says on its serial line.
    :param bmc: the socket of its BMC.
    """

    def __init__(self, directory: pathlib.Path, bmc: pathlib.Path) -> None:
        super().__init__()
        self._directory = directory
        self._bmc = bmc
        self.console = directory / "console.log"

    def _setUp(self) -> None:
        for serial in DISKS.values():
            with (self._directory / f"{serial}.raw").open("wb") as disk:
                disk.truncate(DISK_SIZE)
        shutil.copyfile(qemu_command.SECURE_VARIABLES, self._directory / "variables.fd")

    def start(self, cd: pathlib.Path, stick: pathlib.Path) -> None:
        """Switch it on, with secure boot."""
        with (self._directory / "qemu.log").open("wb") as log:
            self._process = subprocess.Popen(self._command(cd, stick), stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self.addCleanup(self._process.wait)
        self.addCleanup(self._process.kill)

    @property
    def is_on(self) -> bool:
        """Whether it runs: a QEMU that ends has said why in ``qemu.log``."""
        return self._process.poll() is None

    def _command(self, cd: pathlib.Path, stick: pathlib.Path) -> list[str]:
        kind, processor = qemu_command.accelerator()
        firmware = f"if=pflash,format=raw,unit=0,readonly=on,file={qemu_command.SECURE_CODE}"
        variables = f"if=pflash,format=raw,unit=1,file={self._directory}/variables.fd"
        options = [
            *("-nodefaults", "-no-user-config", "-machine", "q35,graphics=off,smm=on", "-accel", kind),
            *("-cpu", processor, "-smp", "2", "-m", str(_MEMORY_MIB), "-display", "none", "-vga", "none"),
            *("-serial", f"file:{self.console}", "-drive", firmware, "-drive", variables),
            *("-global", "driver=cfi.pflash01,property=secure,value=on"),
            *("-drive", f"if=none,id=cd,format=raw,readonly=on,media=cdrom,file={cd}"),
            *("-device", "ide-cd,bus=ide.1,drive=cd,bootindex=0"),
            *("-device", "qemu-xhci,id=usb", "-drive", f"if=none,id=stick,format=raw,readonly=on,file={stick}"),
            *("-device", "usb-storage,bus=usb.0,drive=stick"),
            *("-chardev", f"socket,id=bmc,path={self._bmc},reconnect=1"),  # not at once: the device would not be ready
            *("-device", "ipmi-bmc-extern,id=bmc,chardev=bmc", "-device", "isa-ipmi-kcs,bmc=bmc"),
            *("-device", "megasas-gen2,id=raid", "-device", "mptsas1068,id=sas"),
        ]
        for device, serial in DISKS.items():
            options += ["-drive", f"if=none,id={serial},format=raw,cache=unsafe,file={self._directory}/{serial}.raw"]
            options += ["-device", f"{device},drive={serial},serial={serial}-1"]
        for number, (device, mac) in enumerate(CARDS.items()):
            options += ["-netdev", f"user,id=net{number}"]
            options += ["-device", f"{device},netdev=net{number},mac={mac},romfile="]
        return [*qemu_command.TIED_TO_THE_RACK, qemu_command.PROGRAM, *options]
