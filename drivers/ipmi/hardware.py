"""The hardware type ipmi: power and boot device over IPMI 2.0 (codes: chapter 28 of the IPMI specification)."""

import re
from concurrent import futures

from oslo_utils import strutils

from ingot.common import errors, states
from ingot.common.json_types import Json
from ingot.drivers.generic.hardware_type import GenericHardwareType
from ingot.drivers.interfaces import bmc_loop, boot, noop
from ingot.drivers.interfaces.base import BaseInterface
from ingot.drivers.interfaces.hardware_type import Supported
from ingot.drivers.interfaces.management import BootDevice, ManagementInterface
from ingot.drivers.interfaces.power import PowerInterface, Reading
from ingot.drivers.interfaces.task import Task
from ingot.drivers.ipmi import session
from ingot.drivers.ipmi.session import Request

_KEEPS_BOOT_DEVICE = "ipmi_disable_boot_timeout"
_LOSES_BOOT_DEVICE = "ipmi_force_boot_device"

_PROPERTIES: dict[str, str] = {
    "ipmi_address": "Address or host name of the BMC. Required.",
    "ipmi_port": "UDP port of the BMC. Default: 623.",
    "ipmi_username": "User name, at most 16 bytes. Default: the anonymous user.",
    "ipmi_password": "Password, at most 20 bytes. Default: none.",
    "ipmi_priv_level": "ADMINISTRATOR, OPERATOR or USER. Default: ADMINISTRATOR, else OPERATOR.",
    "ipmi_hex_kg_key": "Key Kg of the BMC, 40 hexadecimal digits. Default: none.",
    "ipmi_protocol_version": "2.0, the only one that is spoken. Optional.",
    "ipmi_cipher_suite": "17 or 3. Optional: the best that the BMC has is used, whatever is written here.",
    "ipmi_bridging": "no: requests go to the BMC itself, none are bridged. Optional.",
    _LOSES_BOOT_DEVICE: "Whether the boot device is set again each time that the machine is switched on, for BMCs that "
    "do not keep it. Optional, default false.",
    _KEEPS_BOOT_DEVICE: "Whether the BMC is asked to keep a boot device for longer than 60 s. Optional, default true.",
}

_FIXED = {"ipmi_protocol_version": ("2.0",), "ipmi_cipher_suite": ("17", "3"), "ipmi_bridging": ("no",)}
"""What nodes may have that were enrolled for another service; with any other value they would not be reached."""

_PRIVILEGES = {"USER": 2, "OPERATOR": 3, "ADMINISTRATOR": 4}

_CHASSIS = 0x00
_CHASSIS_STATUS = Request(_CHASSIS, 0x01)
_CHASSIS_CONTROL = {
    states.POWER_OFF: Request(_CHASSIS, 0x02, (0x00,)),
    states.POWER_ON: Request(_CHASSIS, 0x02, (0x01,)),
    states.REBOOT: Request(_CHASSIS, 0x02, (0x03,)),
    states.SOFT_POWER_OFF: Request(_CHASSIS, 0x02, (0x05,)),
}

# What a chassis status says beside the power (table 28-3): byte, bit, what is wrong, how bad that is.
_FINDINGS = (
    (0, 0x02, "power overload", "Critical"),
    (0, 0x08, "fault in the power supply", "Critical"),
    (0, 0x10, "power control fault", "Critical"),
    (2, 0x08, "cooling or fan fault", "Critical"),
    (2, 0x04, "drive fault", "Warning"),
)

# Boot options: parameter 5 is the boot flags; parameter 3 with bit 3 keeps the BMC from dropping them after 60 s.
_KEEP_BOOT_FLAGS = Request(_CHASSIS, 0x08, (0x03, 0x08))
_GET_BOOT_FLAGS = Request(_CHASSIS, 0x09, (0x05, 0x00, 0x00))
_VALID, _PERSISTENT, _UEFI = 0x80, 0x40, 0x20
_DEVICES = {"pxe": 1, "disk": 2, "safe": 3, "cdrom": 5, "bios": 6, "floppy": 15}
_NAMES = {code: name for name, code in _DEVICES.items()}


def read_address(driver_info: Json) -> session.Address:
    """Return the BMC that a node's ``driver_info`` names.

    :raises MissingParameter: there is no ``ipmi_address``.
    :raises Invalid: a value that cannot be used, with its key.
    """
    if not driver_info.get("ipmi_address"):
        raise errors.MissingParameter(where="driver_info", names="ipmi_address (of the machine's BMC)")
    kg, privilege = driver_info.get("ipmi_hex_kg_key"), driver_info.get("ipmi_priv_level")
    if kg is not None and not re.fullmatch("[0-9a-fA-F]{40}", str(kg)):
        raise errors.Invalid(field="driver_info.ipmi_hex_kg_key", value="(not shown)", allowed="40 hexadecimal digits.")
    if privilege not in (None, *_PRIVILEGES):
        raise errors.Invalid(
            field="driver_info.ipmi_priv_level", value=privilege, allowed=f"One of {', '.join(_PRIVILEGES)}."
        )
    for key, allowed in _FIXED.items():
        if driver_info.get(key) is not None and str(driver_info[key]) not in allowed:
            shown = ", ".join(allowed)
            raise errors.Invalid(field=f"driver_info.{key}", value=driver_info[key], allowed=f"Allowed: {shown}.")
    return session.Address(
        host=_read_text(driver_info, "ipmi_address", 255),
        port=_read_port(driver_info.get("ipmi_port")),
        username=_read_text(driver_info, "ipmi_username", 16),
        password=_read_text(driver_info, "ipmi_password", 20),
        kg=None if kg is None else bytes.fromhex(str(kg)),
        privilege=None if privilege is None else _PRIVILEGES[privilege],
    )


def _read_text(driver_info: Json, key: str, most: int) -> str:
    value = driver_info.get(key)
    if value is None:
        return ""
    if not isinstance(value, str) or len(value.encode()) > most:
        shown = "(not shown)" if "password" in key else value
        raise errors.Invalid(field=f"driver_info.{key}", value=shown, allowed=f"A string of at most {most} bytes.")
    return value


def _read_port(value: int | str | None) -> int:
    try:
        port = 623 if value is None else int(value)
    except (TypeError, ValueError):
        port = 0
    if isinstance(value, bool) or not 0 < port < 65536:
        raise errors.Invalid(field="driver_info.ipmi_port", value=value, allowed="An integer from 1 to 65535.")
    return port


def _call(task: Task, *requests: Request) -> list[bytes]:
    bmc = read_address(task.node.driver_info)
    with task.circuit_breakers.observe_call(task.node.uuid, bmc.where):
        return session.call(bmc, task.conf.ipmi.command_retry_timeout, *requests)


async def _read_status(bmc: session.Address, timeout: float) -> Reading:
    return _parse_status((await session.call_async(bmc, timeout, _CHASSIS_STATUS))[0])


def _parse_status(status: bytes) -> Reading:
    """Return what the answer to a request for the chassis status says."""
    findings = [(what, health) for byte, bit, what, health in _FINDINGS if status[byte] & bit]
    health = next((level for level in ("Critical", "Warning") if level in dict(findings).values()), "OK")
    power_state = states.POWER_ON if status[0] & 1 else states.POWER_OFF
    return Reading(power_state, health, tuple(what for what, _ in findings))


def _build_boot_flags(task: Task, device: str, persistent: bool) -> tuple[Request, ...]:
    """Return the requests that set the boot device."""
    flags = _VALID | (_PERSISTENT if persistent else 0) | (_UEFI if boot.find_boot_mode(task) == "uefi" else 0)
    boot_flags = Request(_CHASSIS, 0x08, (0x05, flags, _DEVICES[device] << 2, 0, 0, 0))
    keeps = strutils.bool_from_string(task.node.driver_info.get(_KEEPS_BOOT_DEVICE), default=True)
    return (_KEEP_BOOT_FLAGS, boot_flags) if keeps else (boot_flags,)


def _read_kept_device(task: Task) -> tuple[Request, ...]:
    """Return the requests that set the lasting boot device again, for a BMC that loses it.

    There are none before a boot for which another device was set.
    """
    info = task.node.driver_internal_info
    kept = info.get("ipmi_boot_device", {})
    if kept.get("waits"):
        left = {key: value for key, value in kept.items() if key != "waits"}
        task.set(driver_internal_info={**info, "ipmi_boot_device": left})
        return ()
    return _build_boot_flags(task, kept["device"], persistent=True) if "device" in kept else ()


class _IPMI(BaseInterface):
    def get_properties(self) -> dict[str, str]:
        return _PROPERTIES

    def validate(self, task: Task) -> None:
        read_address(task.node.driver_info)


class IPMIPower(_IPMI, PowerInterface):
    def get_power_state(self, task: Task) -> str | None:
        return _parse_status(_call(task, _CHASSIS_STATUS)[0]).power_state

    def start_reading(self, task: Task) -> "futures.Future[Reading]":
        return bmc_loop.submit(_read_status(read_address(task.node.driver_info), task.conf.ipmi.command_retry_timeout))

    def bmc(self, task: Task) -> str:
        return read_address(task.node.driver_info).where

    def start_power_change(self, task: Task, target: str) -> None:
        first = _read_kept_device(task) if target in (states.POWER_ON, states.REBOOT) else ()
        _call(task, *first, _CHASSIS_CONTROL[target])


class IPMIManagement(_IPMI, ManagementInterface):
    def get_supported_boot_devices(self, task: Task) -> list[str]:
        return list(_DEVICES)

    def set_boot_device(self, task: Task, device: str, persistent: bool = False) -> None:
        if device not in _DEVICES:
            raise errors.Invalid(field="boot_device", value=device, allowed=f"One of {', '.join(_DEVICES)}.")
        _call(task, *_build_boot_flags(task, device, persistent))
        if strutils.bool_from_string(task.node.driver_info.get(_LOSES_BOOT_DEVICE)):
            info = task.node.driver_internal_info
            kept = {"device": device} if persistent else {**info.get("ipmi_boot_device", {}), "waits": True}
            task.set(driver_internal_info={**info, "ipmi_boot_device": kept})

    def get_boot_device(self, task: Task) -> BootDevice:
        """Read the boot device. One that was not set, or that Ingot has no name for, is None."""
        flags, device = _call(task, _GET_BOOT_FLAGS)[0][2:4]
        if not flags & _VALID:
            return {"boot_device": None, "persistent": None}
        return {"boot_device": _NAMES.get((device >> 2) & 0x0F), "persistent": bool(flags & _PERSISTENT)}

    def inject_nmi(self, task: Task) -> None:
        _call(task, Request(_CHASSIS, 0x02, (0x04,)))


class IPMIHardware(GenericHardwareType):
    """The entry points are called ``ipmitool``, as in the configuration files and node records that operators have; no
    program of that name is run."""

    supported_management_interfaces: Supported = (IPMIManagement, noop.NoopManagement)
    supported_power_interfaces: Supported = (IPMIPower,)
