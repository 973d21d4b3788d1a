"""The benches that contracts are tested on: each has the hardware of one implementation, and another client of it.

A process has one rack and one emulator, from which each test takes a machine that no other has had.
"""

import atexit
import functools
import pathlib
import subprocess
import tempfile
import threading
from typing import Any, ClassVar

from ingot.common import states
from ingot.driver_kit.bench import Bench, service
from ingot.drivers.redfish import connection
from ingot.rack import vendors
from ingot.rack.process import RackProcess
from tests import patience
from tests.functional import redfish_emulator
from tests.functional.contract.front import Front
from tests.functional.rack.base import FAST
from tests.unit.drivers import fakes

_MACHINES_PER_VENDOR = 48
_EMULATED = 60

_POWER = {"on": states.POWER_ON, "off": states.POWER_OFF}


class _Rack:
    """A rack with machines of all makers' habits.

    :ivar free: machines that no test has had, by the maker.
    """

    def __init__(self) -> None:
        self._directory = tempfile.TemporaryDirectory()
        names = list(vendors.VENDORS) * _MACHINES_PER_VENDOR
        self.process = RackProcess(
            pathlib.Path(self._directory.name, "rack"),
            boot_url=service().url + "/boot/ipxe/{mac}",
            machines=len(names),
            machine=[{"redfish_vendor": vendor} for vendor in names],
            bmc_base_port=0,
            redfish_base_port=0,
            redfish_task_time=0.1,
            bmc_restart_time=0.5,
            disks=6,
            **{**FAST, "disk_size": "2G"},
        )
        self.process.start()
        atexit.register(self._stop)
        self.free: dict[str, list[dict[str, Any]]] = {}
        for vendor, machine in zip(names, self.process.machines, strict=True):
            self.free.setdefault(vendor, []).append(machine)

    def _stop(self) -> None:
        self.process.stop()
        self._directory.cleanup()


_racks: list[_Rack] = []


def _take(vendor: str) -> tuple[RackProcess, dict[str, Any]]:
    """Return a machine that was not returned before, and its rack."""
    if not _racks or not _racks[-1].free[vendor]:
        _racks.append(_Rack())
    return _racks[-1].process, _racks[-1].free[vendor].pop()


@functools.cache
def _emulator() -> tuple[redfish_emulator.Emulator, list[str]]:
    """Return sushy-tools' emulator, and the paths of machines that no test has had."""
    started = redfish_emulator.Emulator(_EMULATED, guarded=True)
    started.setUp()
    atexit.register(started.cleanUp)
    return started, list(started.systems)


class Fake(Bench):
    columns: ClassVar[dict[str, Any]] = {**fakes.ALL_FAKE, "power_state": states.POWER_OFF}


class _OnRack(Bench):
    """A machine of the rack."""

    vendor: ClassVar[str] = "generic"

    def connect(self) -> dict[str, Any]:
        self.rack, self.machine = _take(self.vendor)
        self._control = self.rack.control
        self.name = self.machine["name"]
        self.addCleanup(self._control.power, self.name, "off")
        self.addCleanup(self.clear)
        return self.find_bmc()

    def find_bmc(self) -> dict[str, Any]:
        raise NotImplementedError

    def macs(self) -> list[str]:
        return list(self.machine["macs"])

    def seen_power(self) -> str | None:
        return _POWER[self._control.machine(self.name)["power"]]

    def seen_boot_device(self) -> tuple[str | None, bool | None] | None:
        setting = self._control.machine(self.name)["boot_device"]
        names = {"http": "uefihttp"}
        return (names.get(setting["device"], setting["device"]), setting["persistent"]) if setting else (None, None)

    def seen_boot_mode(self) -> str | None:
        setting = self._control.machine(self.name)["boot_device"]
        return None if setting is None else "uefi" if setting["efi"] else "bios"

    def count_log(self, part: str) -> int:
        return sum(part in line for line in self._control.log(self.name))

    def await_system(self) -> None:
        self._control.wait_for_state(self.name, "agent", patience.seconds(60))

    def fault(self, name: str, value: Any = None, times: int | None = None) -> None:
        self._control.order_fault(self.name, name, value, times)

    def clear(self) -> None:
        self._control.clear_faults(self.name)

    speak = clear


class IPMI(_OnRack):
    """IPMI over UDP; what another client sees, ipmitool sees."""

    driver = "ipmi"
    address = "ipmi_address"
    password = "ipmi_password"
    columns: ClassVar[dict[str, Any]] = {"vendor_interface": "ipmitool"}
    options: ClassVar[dict[str, Any]] = {"ipmi__command_retry_timeout": 5, "deploy__default_boot_mode": "uefi"}
    troubles = ("silent for a second",)

    def find_bmc(self) -> dict[str, Any]:
        return {
            "ipmi_address": "127.0.0.1",
            "ipmi_port": self.machine["bmc_port"],
            "ipmi_username": "admin",
            "ipmi_password": "password",
        }

    def ipmitool(self, *words: str) -> str:
        """Return what ipmitool prints."""
        port = str(self.machine["bmc_port"])
        command = ["ipmitool", "-I", "lanplus", "-H", "127.0.0.1", "-p", port, "-U", "admin", "-P", "password"]
        return subprocess.run([*command, *words], capture_output=True, text=True, check=True).stdout

    def seen_power(self) -> str | None:
        return _POWER[self.ipmitool("power", "status").split()[-1]]

    _DEVICES: ClassVar[dict[str, str]] = {
        "Force PXE": "pxe",
        "Force Boot from default Hard-Drive": "disk",
        "Force Boot from default Hard-Drive, request Safe-Mode": "safe",
        "Force Boot from CD/DVD": "cdrom",
        "Force Boot into BIOS Setup": "bios",
        "Force Boot from Floppy/primary removable media": "floppy",
    }

    def _flags(self) -> str:
        return self.ipmitool("chassis", "bootparam", "get", "5")

    def seen_boot_device(self) -> tuple[str | None, bool | None] | None:
        flags = self._flags()
        (device,) = [line.partition(":")[2].strip() for line in flags.splitlines() if "Boot Device Selector" in line]
        return self._DEVICES.get(device), "all future boots" in flags

    def seen_boot_mode(self) -> str | None:
        return "uefi" if "BIOS EFI boot" in self._flags() else "bios"

    def limit_time(self, seconds: int) -> None:
        self.task.conf.set_override("command_retry_timeout", seconds, "ipmi")

    def silence(self) -> None:
        self.fault("bmc_silent")

    close = silence  # without connections, one that is away is one that is silent

    def disturb(self, trouble: str) -> None:
        self.silence()
        timer = threading.Timer(1.0, self.clear)
        timer.start()
        self.addCleanup(timer.join)


class RedfishGeneric(_OnRack):
    """Redfish on the rack, with the habits of one maker's BMCs; each subclass has another."""

    driver = "redfish"
    address = "redfish_address"
    password = "redfish_password"
    columns: ClassVar[dict[str, Any]] = {"raid_interface": "redfish", "inspect_interface": "redfish"}
    options: ClassVar[dict[str, Any]] = {
        "redfish__read_timeout": int(patience.seconds(20)),
        "redfish__connection_retry_interval": 1,
        **{
            f"redfish__{name}": int(patience.seconds(60))
            for name in (
                *("bios_settings_timeout", "bmc_restart_timeout"),
                *("firmware_update_overall_timeout", "raid_config_timeout"),
            )
        },
    }
    troubles = ("busy", "failing", "answer lost", "session lost")

    def find_bmc(self) -> dict[str, Any]:
        self.addCleanup(connection.log_out)
        return {
            "redfish_address": self.machine["redfish"]["address"],
            "redfish_system_id": self.machine["redfish"]["system"],
            "redfish_username": "admin",
            "redfish_password": "password",
            "redfish_verify_ca": self.rack.description["redfish_ca_file"],
        }

    def limit_time(self, seconds: int) -> None:
        self.task.conf.set_override("read_timeout", seconds, "redfish")

    def silence(self) -> None:
        self.fault("redfish_silent")

    def close(self) -> None:
        self.fault("redfish_port_closed")

    _TROUBLES: ClassVar[dict[str, tuple[str, Any, int]]] = {
        "busy": ("redfish_busy", {"retry_after": 1}, 2),
        "failing": ("redfish_error", {"status": 500}, 2),
        "answer lost": ("redfish_answer_lost", {"method": "POST"}, 1),
        "session lost": ("redfish_sessions_lost", None, 1),
    }

    def disturb(self, trouble: str) -> None:
        self.fault(*self._TROUBLES[trouble])


class RedfishHpe(RedfishGeneric):
    vendor = "ilo"


class RedfishDell(RedfishGeneric):
    vendor = "dell"
    own_drives: ClassVar[dict[str, str]] = {"cdrom": "optical"}


class RedfishSupermicro(RedfishGeneric):
    vendor = "supermicro"


class RedfishLenovo(RedfishGeneric):
    vendor = "lenovo"
    cd_drives = 2


class RedfishCisco(RedfishGeneric):
    vendor = "cisco"


class RedfishNvidia(RedfishGeneric):
    vendor = "nvidia"
    cd_drives = 2


class ILO(RedfishHpe):
    driver = "ilo"


class IDRAC(RedfishDell):
    """With an iDRAC 10; that of :class:`RedfishDell` is a 9."""

    driver = "idrac"
    vendor = "idrac10"
    columns: ClassVar[dict[str, Any]] = {"raid_interface": "idrac-redfish", "inspect_interface": "idrac-redfish"}


class SushyTools(Bench):
    """sushy-tools' emulator, behind a front that can fail."""

    driver = "redfish"
    address = "redfish_address"
    password = "redfish_password"
    columns: ClassVar[dict[str, Any]] = RedfishGeneric.columns
    options: ClassVar[dict[str, Any]] = RedfishGeneric.options
    troubles = ("busy", "failing", "answer lost")
    missing = ("bios",)

    _TROUBLES: ClassVar[dict[str, list[int]]] = {"busy": [503, 503], "failing": [500, 500], "answer lost": [0]}

    def connect(self) -> dict[str, Any]:
        self._emulator, free = _emulator()
        self.path = free.pop()
        self.front = self.useFixture(Front(self._emulator.url))
        self.addCleanup(connection.log_out)
        return {
            "redfish_address": self.front.url,
            "redfish_system_id": self.path,
            "redfish_username": redfish_emulator.USER,
            "redfish_password": redfish_emulator.PASSWORD,
        }

    def seen_power(self) -> str | None:
        return _POWER[self._emulator.get(self.path)["PowerState"].lower()]

    def seen_boot_device(self) -> tuple[str | None, bool | None] | None:
        fields = self._emulator.get(self.path)["Boot"]
        names = {"Pxe": "pxe", "Hdd": "disk", "Cd": "cdrom", "UefiHttp": "uefihttp"}
        return names[fields["BootSourceOverrideTarget"]], fields["BootSourceOverrideEnabled"] == "Continuous"

    def seen_boot_mode(self) -> str | None:
        return {"UEFI": "uefi", "Legacy": "bios"}[self._emulator.get(self.path)["Boot"]["BootSourceOverrideMode"]]

    def limit_time(self, seconds: int) -> None:
        self.task.conf.set_override("read_timeout", seconds, "redfish")

    def silence(self) -> None:
        self.front.speaks.clear()

    def speak(self) -> None:
        self.front.speaks.set()

    close = silence

    def disturb(self, trouble: str) -> None:
        self.front.statuses[:] = self._TROUBLES[trouble]


BENCHES: tuple[type[Bench], ...] = (
    Fake,
    IPMI,
    RedfishGeneric,
    RedfishHpe,
    RedfishDell,
    RedfishSupermicro,
    RedfishLenovo,
    RedfishCisco,
    RedfishNvidia,
    ILO,
    IDRAC,
    SushyTools,
)
