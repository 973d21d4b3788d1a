"""The boot device: what Redfish calls boot source override, with the habits that BMCs have."""

import fnmatch
from typing import NamedTuple

from oslo_log import log

from ingot.common import errors
from ingot.common.json_types import Json
from ingot.drivers.interfaces import boot
from ingot.drivers.interfaces.task import Task
from ingot.drivers.redfish import connection, dell, virtual_media

LOG = log.getLogger(__name__)

TARGETS: dict[str, tuple[str, ...]] = {
    "pxe": ("Pxe",),
    "disk": ("Hdd",),
    "cdrom": ("Cd", "UsbCd"),
    "bios": ("BiosSetup",),
    "uefihttp": ("UefiHttp",),
}
"""Name -> values of BootSourceOverrideTarget, the best first."""

VIRTUAL = "cdrom"
"""The device that may be a virtual drive; with Dell it is one while an image is in it."""

_NAMES = {target: name for name, targets in TARGETS.items() for target in targets}

MODES = {"uefi": "UEFI", "bios": "Legacy"}


def name_mode(value: str | None) -> str | None:
    """Return the boot mode of a BootSourceOverrideMode; None if it is none."""
    return next((name for name, known in MODES.items() if known == value), None)


class _Quirk(NamedTuple):
    """How BMCs of some manufacturers differ.

    :param manufacturer: pattern of the system's Manufacturer, in lower case.
    :param sends_mode: the mode must stand beside each change, or the BMC chooses one.
    :param prefers: targets that work where others are accepted too, by name of the device.
    :param imports_virtual: virtual CD drives are chosen by an import of configuration, never by a target.
    """

    manufacturer: str
    sends_mode: bool = False
    prefers: tuple[tuple[str, str], ...] = ()
    imports_virtual: bool = False


_QUIRKS = (
    # Virtual media of Supermicro are USB drives; "Cd" is a drive in the machine. Without the mode, legacy is assumed.
    _Quirk("supermicro*", sends_mode=True, prefers=(("cdrom", "UsbCd"),)),
    # Lenovo's XCC leaves the mode of the boot before where it is not given.
    _Quirk("lenovo*", sends_mode=True),
    # "Cd" of Dell is a drive in the machine, too, and no target means a virtual one.
    _Quirk("dell*", imports_virtual=True),
)
_NO_QUIRK = _Quirk("*")


class Choice(NamedTuple):
    """What a machine is to boot from.

    :param mode: ``uefi`` or ``bios``.
    """

    device: str
    persistent: bool
    mode: str


def choose(task: Task, device: str, persistent: bool) -> Choice:
    """
    :raises Invalid: there is no such device.
    """
    if device not in TARGETS:
        raise errors.Invalid(field="boot_device", value=device, allowed=f"One of {', '.join(TARGETS)}.")
    return Choice(device, persistent, boot.find_boot_mode(task))


def write(machine: connection.Machine, choice: Choice, uri: str | None = None) -> bool:
    """Set the boot device; return whether it lasts, which some BMCs cannot do.

    :param uri: what the firmware fetches, for ``uefihttp``.
    :raises Invalid: the machine has no such device.
    """
    system = machine.system
    quirk = _find_quirk(system)
    if choice.device == VIRTUAL and needs_import(machine):
        dell.boot_virtual_drive(machine, choice.persistent)
        return True
    target = _find_target(system, choice.device, quirk)
    mode = machine.constant("BootSourceOverrideMode", MODES[choice.mode]) if quirk.sends_mode else None
    if choice.persistent:
        try:
            _patch(machine, target, "Continuous", mode, uri)
        except machine.refusals as exc:
            LOG.info("BMC %s keeps no boot device: it is set for one boot (%s)", machine.address.where, exc)
        else:
            return True
    _patch(machine, target, "Once", mode, uri)
    return not choice.persistent


def needs_import(machine: connection.Machine) -> bool:
    """Return whether ``cdrom`` is a virtual drive that no target means: that takes a job of the BMC."""
    return _find_quirk(machine.system).imports_virtual and virtual_media.has_image(machine, VIRTUAL)


def _patch(machine: connection.Machine, target: str, enabled: str, mode: object, uri: str | None) -> None:
    machine.system.set_system_boot_options(
        target=machine.constant("BootSource", target),
        enabled=machine.constant("BootSourceOverrideEnabled", enabled),
        mode=mode,
        http_boot_uri=uri,
    )


def _find_quirk(system: connection.Resource) -> _Quirk:
    manufacturer = str(system.manufacturer or "").lower()
    return next((quirk for quirk in _QUIRKS if fnmatch.fnmatch(manufacturer, quirk.manufacturer)), _NO_QUIRK)


def _find_target(system: connection.Resource, device: str, quirk: _Quirk) -> str:
    """
    :raises Invalid: the machine has none of the device's targets.
    """
    preferred = dict(quirk.prefers).get(device)
    targets = TARGETS[device] if preferred is None else (preferred, *TARGETS[device])
    allowed = {one.value for one in system.get_allowed_system_boot_source_values()}
    target = next((one for one in targets if one in allowed), None)
    if target is None:
        known = ", ".join(name for name, values in TARGETS.items() if allowed.intersection(values)) or "none"
        raise errors.Invalid(field="boot_device", value=device, allowed=f"This machine has: {known}.")
    return target


def read(machine: connection.Machine) -> tuple[str | None, bool | None]:
    """Return the device, None if Ingot has no name for it, and whether it lasts."""
    fields = machine.system.boot
    if fields is None:
        return None, None
    target = fields.target.value if fields.target is not None else None
    enabled = fields.enabled.value if fields.enabled is not None else None
    return _NAMES.get(target or ""), None if enabled is None else enabled == "Continuous"


# A device that is to last, with a BMC that keeps it for one boot only: it is set again before each of Ingot's boots.


def note(task: Task, choice: Choice, lasts: bool) -> None:
    """Note what was set, as far as it must be set again."""
    info = task.node.driver_internal_info
    kept = info.get("redfish_boot_device", {})
    if choice.persistent:
        kept = {} if lasts else {"device": choice.device}
    elif kept:
        kept = {**kept, "waits": True}
    _keep(task, kept)


def find_kept(task: Task) -> Choice | None:
    """Return what must be set again before a boot; None also before a boot for which another device was set."""
    kept = task.node.driver_internal_info.get("redfish_boot_device", {})
    if "device" not in kept or kept.get("waits"):
        return None
    return choose(task, kept["device"], persistent=False)


def note_boot(task: Task) -> None:
    """Note that the machine boots: the device of one boot is used up."""
    kept = task.node.driver_internal_info.get("redfish_boot_device", {})
    if kept.get("waits"):
        _keep(task, {key: value for key, value in kept.items() if key != "waits"})


def _keep(task: Task, kept: Json) -> None:
    info = task.node.driver_internal_info
    if kept != info.get("redfish_boot_device", {}):
        task.set(driver_internal_info={**info, "redfish_boot_device": kept})
