"""What all IPMI interfaces have in common: where a node's BMC is and how to log in, and calls to it."""

import re
from collections.abc import Callable
from typing import TypeVar

from oslo_config import cfg

from ingot.common import errors
from ingot.common.json_types import Json
from ingot.drivers.interfaces.base import BaseInterface
from ingot.drivers.interfaces.task import Task
from ingot.drivers.ipmi import pyghmi_session, session
from ingot.drivers.ipmi.session import Request

Answer = TypeVar("Answer")

KEEPS_BOOT_DEVICE = "ipmi_disable_boot_timeout"
LOSES_BOOT_DEVICE = "ipmi_force_boot_device"

PROPERTIES: dict[str, str] = {
    "ipmi_address": "Address or host name of the BMC. Required.",
    "ipmi_port": "UDP port of the BMC. Default: 623.",
    "ipmi_username": "User name, at most 16 bytes. Default: the anonymous user.",
    "ipmi_password": "Password, at most 20 bytes. Default: none.",
    "ipmi_priv_level": "ADMINISTRATOR, OPERATOR or USER. Default: ADMINISTRATOR, else OPERATOR.",
    "ipmi_hex_kg_key": "Key Kg of the BMC, 40 hexadecimal digits. Default: none.",
    "ipmi_protocol_version": "2.0, the only one that is spoken. Optional.",
    "ipmi_cipher_suite": "17 or 3, and no other is used. Optional: by default 17, else 3; see [ipmi] "
    "cipher_suite_versions.",
    "ipmi_bridging": "no, single or dual: how many controllers requests are bridged through. Optional, default no.",
    "ipmi_target_channel": "Channel of the controller that serves bridged requests. Required with bridging.",
    "ipmi_target_address": "Its address on that channel, as 0x72. Required with bridging.",
    "ipmi_transit_channel": "Channel of the controller in between. Required for dual bridging.",
    "ipmi_transit_address": "Its address on that channel. Required for dual bridging.",
    LOSES_BOOT_DEVICE: "Whether the boot device is set again each time that the machine is switched on, for BMCs that "
    "do not keep it. Optional, default false.",
    KEEPS_BOOT_DEVICE: "Whether the BMC is asked to keep a boot device for longer than 60 s. Optional, default true.",
}

_FIXED = {
    "ipmi_protocol_version": (("2.0",), "IPMI 1.5 sends commands in clear text, and BMCs have had 2.0 since 2004"),
}
"""What nodes may have that were enrolled for another service; with any other value they would not be reached."""

_SUITES = (17, 3)

_PRIVILEGES = {"USER": 2, "OPERATOR": 3, "ADMINISTRATOR": 4}


def read_address(driver_info: Json, conf: cfg.ConfigOpts | None = None) -> session.Address:
    """Return the BMC that a node's ``driver_info`` names.

    :param conf: has the cipher suites of nodes that name none; None: all that are known.

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
    for key, (allowed, why) in _FIXED.items():
        if driver_info.get(key) is not None and str(driver_info[key]) not in allowed:
            shown = f"Allowed: {', '.join(allowed)}; {why}."
            raise errors.Invalid(field=f"driver_info.{key}", value=driver_info[key], allowed=shown)
    return session.Address(
        host=_read_text(driver_info, "ipmi_address", 255),
        port=_read_port(driver_info.get("ipmi_port")),
        username=_read_text(driver_info, "ipmi_username", 16),
        password=_read_text(driver_info, "ipmi_password", 20),
        kg=None if kg is None else bytes.fromhex(str(kg)),
        privilege=None if privilege is None else _PRIVILEGES[privilege],
        route=_read_route(driver_info),
        suites=_read_suites(driver_info.get("ipmi_cipher_suite"), conf),
    )


_ROUTES = {"no": (), "single": ("target",), "dual": ("transit", "target")}


def _read_route(driver_info: Json) -> tuple[pyghmi_session.Hop, ...]:
    """Return the controllers that requests are bridged through.

    :raises MissingParameter: where one of them is, is not said.
    """
    kind = driver_info.get("ipmi_bridging") or "no"
    if kind not in _ROUTES:
        raise errors.Invalid(field="driver_info.ipmi_bridging", value=kind, allowed=f"One of {', '.join(_ROUTES)}.")
    keys = [f"ipmi_{hop}_{part}" for hop in _ROUTES[kind] for part in ("channel", "address")]
    if missing := [key for key in keys if driver_info.get(key) is None]:
        raise errors.MissingParameter(where="driver_info", names=f"{', '.join(missing)} (for ipmi_bridging {kind})")
    numbers = [_read_number(driver_info, key, 15 if key.endswith("channel") else 255) for key in keys]
    return tuple(pyghmi_session.Hop(*pair) for pair in zip(numbers[::2], numbers[1::2], strict=True))


def _read_number(driver_info: Json, key: str, most: int) -> int:
    value = driver_info[key]
    try:
        number = int(value, 0) if isinstance(value, str) else int(value)
    except (TypeError, ValueError):
        number = -1
    if isinstance(value, bool) or not 0 <= number <= most:
        raise errors.Invalid(field=f"driver_info.{key}", value=value, allowed=f"A number from 0 to {most:#x}.")
    return number


def _read_suites(value: int | str | None, conf: cfg.ConfigOpts | None) -> tuple[int, ...]:
    """Return the cipher suites to try, the best first."""
    if value is not None:
        if str(value) not in map(str, _SUITES):
            allowed = f"One of {', '.join(map(str, _SUITES))}: others encrypt or sign badly, or not at all."
            raise errors.Invalid(field="driver_info.ipmi_cipher_suite", value=value, allowed=allowed)
        return (int(value),)
    chosen = conf.ipmi.cipher_suite_versions if conf is not None else []
    return tuple(suite for suite in _SUITES if suite in chosen) if chosen else _SUITES


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


def call(task: Task, *requests: Request) -> list[bytes]:
    """Send requests to a node's BMC; return the data of each answer, as :func:`ingot.drivers.ipmi.session.call`."""
    bmc = read_address(task.node.driver_info, task.conf)
    with task.circuit_breakers.observe_call(task.node.uuid, bmc.where, task.node.driver):
        return session.call(bmc, task.conf.ipmi.command_retry_timeout, *requests)


def converse(task: Task, work: Callable[[pyghmi_session.Session], Answer], factor: float) -> Answer:
    """Return what ``work`` returns, which sends requests of its own choice in one session.

    :param factor: how many times ``[ipmi] command_retry_timeout`` it may take.
    """
    bmc = read_address(task.node.driver_info, task.conf)
    with task.circuit_breakers.observe_call(task.node.uuid, bmc.where, task.node.driver):
        return session.converse(bmc, task.conf.ipmi.command_retry_timeout * factor, work)


class IPMIInterface(BaseInterface):
    def get_properties(self) -> dict[str, str]:
        return PROPERTIES

    def validate(self, task: Task) -> None:
        read_address(task.node.driver_info, task.conf)
