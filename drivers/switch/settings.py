"""Switches as operators describe them: sections ``[genericswitch:NAME]``, as networking-generic-switch has them."""

import json
import pathlib
import subprocess
import sys
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from oslo_config import cfg

from ingot.common import errors

_SECTION = "genericswitch:"
_NAMES = "[switch] config_files"

_LIST_DEVICES = """
import importlib.metadata, json
print(json.dumps(sorted(point.name for point in importlib.metadata.entry_points(group="generic_switch.devices"))))
"""
_LIST_TIMEOUT_S = 60


class Switch(NamedTuple):
    """A switch.

    :param settings: of its section, secrets among them.
    """

    name: str
    settings: Mapping[str, str]

    def find_objection(self, port_id: str, vlan: int | None) -> str | None:
        """Return why the operator does not want a port to be changed, or to be on a VLAN; None: nothing is wrong."""
        ports, vlans = (self._list(f"ngs_allowed_{what}") for what in ("ports", "vlans"))
        if ports is not None and port_id not in ports:
            return f"port {port_id} is not in ngs_allowed_ports of switch {self.name}"
        if vlan is not None and vlans is not None and str(vlan) not in vlans:
            return f"VLAN {vlan} is not in ngs_allowed_vlans of switch {self.name}"
        return None

    def _list(self, name: str) -> list[str] | None:
        given = self.settings.get(name)
        return None if given is None else [one.strip() for one in given.split(",")]

    def __repr__(self) -> str:  # no secrets in tracebacks
        return f"Switch({self.name!r})"


def check(conf: cfg.ConfigOpts, of: str) -> None:
    """Refuse a configuration with which no switch can be changed.

    :param of: what needs it, for the message.
    :raises ConfigurationError: the library is missing, or a switch is not described as it has to be.
    """
    known = _list_devices(conf)
    if not known:
        raise errors.ConfigurationError(
            f"{of} needs networking-generic-switch, which is not installed for {find_python(conf)}: pip install it "
            "there, or in an environment of its own that [switch] python names."
        )
    switches = read(conf)
    if not switches:
        raise errors.ConfigurationError(
            f"{of} needs a section [{_SECTION}NAME] for each switch, in the files of {_NAMES}, or in the "
            "configuration file."
        )
    for switch in switches.values():
        given = switch.settings.get("device_type")
        if given not in known:
            option, allowed = f"[{_SECTION}{switch.name}] device_type", f"One of: {', '.join(known)}."
            raise errors.ConfigurationError(option=option, value=given, allowed=allowed)


def find_python(conf: cfg.ConfigOpts) -> str:
    """Return the interpreter that runs the library."""
    return str(conf.switch.python or sys.executable)


def _list_devices(conf: cfg.ConfigOpts) -> list[str]:
    """Return the types of switches that the library knows; none if it is not installed.

    :raises ConfigurationError: its interpreter cannot be run.
    """
    python = find_python(conf)
    try:
        said = subprocess.run(  # noqa: S603 - the operator's interpreter
            [python, "-P", "-c", _LIST_DEVICES], capture_output=True, timeout=_LIST_TIMEOUT_S, check=True
        )
        return [str(name) for name in json.loads(said.stdout)]
    except (OSError, subprocess.SubprocessError, ValueError) as exc:
        allowed = f"The interpreter of a Python environment, which cannot be run: {exc}."
        raise errors.ConfigurationError(option="[switch] python", value=python, allowed=allowed) from exc


def list_files(conf: cfg.ConfigOpts) -> list[str]:
    """Return the files that may describe switches."""
    if conf.switch.config_files:
        return list(conf.switch.config_files)
    directories = [pathlib.Path(one) for one in conf.config_dirs if one]
    return [*conf.config_file, *(str(one) for place in directories for one in sorted(place.glob("*.conf")))]


def read(conf: cfg.ConfigOpts) -> dict[str, Switch]:
    """Return the switches by name; files are read anew, so that a new switch needs no restart.

    :raises ConfigurationError: a file cannot be read.
    """
    found: dict[str, Switch] = {}
    for file in list_files(conf):
        sections: dict[str, dict[str, list[str]]] = {}
        try:
            cfg.ConfigParser(file, sections).parse()
        except (OSError, cfg.ParseError, UnicodeDecodeError) as exc:
            reason = getattr(exc, "strerror", None) or "it is no configuration file"  # a line of it may be a secret
            raise errors.ConfigurationError(option=_NAMES, value=file, allowed=f"It cannot be read: {reason}.") from exc
        for section, values in sections.items():
            if section.startswith(_SECTION):
                name = section.removeprefix(_SECTION)
                found[name] = Switch(name, {key: value[0] for key, value in values.items()})
    return found


def find(switches: Mapping[str, Switch], link: Mapping[str, object]) -> Switch | None:
    """Return the switch at the other end of a cable: by ``switch_id``, its MAC address, else by ``switch_info``."""
    mac = str(link.get("switch_id") or "").lower()
    for switch in switches.values():
        if mac and switch.settings.get("ngs_mac_address", "").lower() == mac:
            return switch
    return switches.get(str(link.get("switch_info") or ""))


def describe(switches: Iterable[str]) -> str:
    """Return names of switches for a message."""
    return ", ".join(sorted(switches)) or "none"
