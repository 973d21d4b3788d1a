"""The boot flags of a BMC (IPMI 2.0 table 28-14): what a machine boots from, and with which firmware."""

from oslo_utils import strutils

from ingot.common import errors
from ingot.drivers.interfaces import boot
from ingot.drivers.interfaces.management import BootDevice
from ingot.drivers.interfaces.task import Task
from ingot.drivers.ipmi.base import KEEPS_BOOT_DEVICE, LOSES_BOOT_DEVICE, call
from ingot.drivers.ipmi.session import Request

_CHASSIS = 0x00

# Boot options: parameter 5 is the boot flags; parameter 3 with bit 3 keeps the BMC from dropping them after 60 s.
_KEEP_BOOT_FLAGS = Request(_CHASSIS, 0x08, (0x03, 0x08))
_GET_BOOT_FLAGS = Request(_CHASSIS, 0x09, (0x05, 0x00, 0x00), least=4)
_VALID, _PERSISTENT, _UEFI = 0x80, 0x40, 0x20
DEVICES = {"pxe": 1, "disk": 2, "safe": 3, "cdrom": 5, "bios": 6, "floppy": 15}
_NAMES = {code: name for name, code in DEVICES.items()}


def _build(task: Task, device: str, persistent: bool) -> tuple[Request, ...]:
    """Return the requests that set the boot device."""
    flags = _VALID | (_PERSISTENT if persistent else 0) | (_UEFI if boot.find_boot_mode(task) == "uefi" else 0)
    boot_flags = _request(flags, DEVICES[device] << 2)
    keeps = strutils.bool_from_string(
        task.node.driver_info.get(KEEPS_BOOT_DEVICE), default=task.conf.ipmi.disable_boot_timeout
    )
    return (_KEEP_BOOT_FLAGS, boot_flags) if keeps else (boot_flags,)


def read_kept(task: Task) -> tuple[Request, ...]:
    """Return the requests that set the lasting boot device again, for a BMC that loses it.

    There are none before a boot for which another device was set.
    """
    info = task.node.driver_internal_info
    kept = info.get("ipmi_boot_device", {})
    if kept.get("waits"):
        left = {key: value for key, value in kept.items() if key != "waits"}
        task.set(driver_internal_info={**info, "ipmi_boot_device": left})
        return ()
    return _build(task, kept["device"], persistent=True) if "device" in kept else ()


def write_device(task: Task, device: str, persistent: bool) -> None:
    """Set what the machine boots from; note it for BMCs that do not keep it.

    :raises Invalid: the device has no code in IPMI.
    """
    if device not in DEVICES:
        raise errors.Invalid(field="boot_device", value=device, allowed=f"One of {', '.join(DEVICES)}.")
    call(task, *_build(task, device, persistent))
    if strutils.bool_from_string(task.node.driver_info.get(LOSES_BOOT_DEVICE)):
        info = task.node.driver_internal_info
        kept = {"device": device} if persistent else {**info.get("ipmi_boot_device", {}), "waits": True}
        task.set(driver_internal_info={**info, "ipmi_boot_device": kept})


def read_device(task: Task) -> BootDevice:
    """Return what the machine boots from. What was not set, or that Ingot has no name for, is None."""
    flags, device = call(task, _GET_BOOT_FLAGS)[0][2:4]
    if not flags & _VALID:
        return {"boot_device": None, "persistent": None}
    return {"boot_device": _NAMES.get((device >> 2) & 0x0F), "persistent": bool(flags & _PERSISTENT)}


def write_mode(task: Task, mode: str) -> None:
    """Have the machine boot by UEFI or not from now on; the boot device stays."""
    flags, device = call(task, _GET_BOOT_FLAGS)[0][2:4]
    kept, code = (flags & _PERSISTENT, device & 0x3C) if flags & _VALID else (_PERSISTENT, 0)
    call(task, _KEEP_BOOT_FLAGS, _request(_VALID | kept | (_UEFI if mode == "uefi" else 0), code))


def _request(flags: int, code: int) -> Request:
    return Request(_CHASSIS, 0x08, (0x05, flags, code, 0, 0, 0))
