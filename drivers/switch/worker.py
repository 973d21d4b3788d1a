"""The program that changes one switch; it runs beside a conductor. Only this module knows networking-generic-switch.

    PYTHON worker.py < job

It imports nothing of Ingot: PYTHON may be that of an environment of the library's own ([switch] python).

The job is JSON: ``name`` and ``settings`` of the switch, ``config_files`` with the options ``[ngs_coordination]`` and
``[ngs]`` of its library, and ``orders``, each with ``plugs``, ``port_id``, ``vlan`` and ``is_bond``. They are done one
after the other. What is said are lines of JSON: ``{"done": number}``, and in the end perhaps ``{"order": number,
"failed": reason, "may_repeat": bool}``.

A process of its own, because the library keeps its configuration, its connections and what it changes in others of
this process for all of it, and because nothing else ends what waits for a switch that hangs.
"""

import importlib
import importlib.util
import json
import logging
import os
import re
import socket
import sys
import uuid
from collections.abc import Iterator, Mapping
from typing import Any, Final

from oslo_config import cfg

_SECRETS: Final = ("password", "secret", "passphrase")
_HEAVY = "neutron_lib"
"""A package whose own module loads an ORM and a web framework, which no switch needs: two thirds of the time."""

_OWN_WORDS: Final = re.compile(r"^(?:ovs-vsctl|sudo|bash|sh|-bash): .+$", re.MULTILINE)
_REFUSALS: Mapping[str, re.Pattern[str]] = {"netmiko_ovs_linux": _OWN_WORDS, "netmiko_cumulus": _OWN_WORDS}
"""How switches say no in words that the library passes over, by device_type."""

_PLAIN: Final = "Please contact your administrator"
"""In messages of the library that say nothing: what was raised before them does."""

_LONGEST: Final = 1000
"""Characters of a reason."""

_NETWORKS = uuid.UUID("4a7d1c52-0f3b-4c1e-9d86-2b5e70a9c341")
"""Of the names that VLANs get on switches whose library names them."""


def main() -> int:
    """Do what the job on the standard input says. Exit code 1 and a reason if that fails."""
    job = json.load(sys.stdin)
    logging.disable(logging.CRITICAL)  # its library logs some secrets; what matters is in errors
    done = 0
    try:
        device = _open(job)
        for order in job["orders"]:
            _carry_out(device, order)
            _say({"done": done})
            done += 1
    except Exception as exc:  # noqa: BLE001 - whatever it is, the conductor learns it
        reason = " ".join(_mask(_explain(exc), job["settings"]).split())[:_LONGEST]  # masked first, while it is whole
        _say({"order": done, "failed": reason, "may_repeat": _is_repeatable(exc)})
        return 1
    return 0


def _say(what: Mapping[str, object]) -> None:
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


class RefusedError(Exception):
    """The switch has said no."""


def _open(job: Mapping[str, Any]) -> Any:
    """Return the switch's device, which connects when it is first used."""
    if spec := importlib.util.find_spec(_HEAVY):
        sys.modules.setdefault(_HEAVY, importlib.util.module_from_spec(spec))
    cfg.CONF.register_opts([cfg.StrOpt("host", default=socket.gethostname())])
    devices: Any = importlib.import_module("networking_generic_switch.devices")
    importlib.import_module("networking_generic_switch.config")
    cfg.CONF([], project="ingot", default_config_files=job["config_files"], default_config_dirs=[])
    # One connection for all orders, which ends with this process.
    settings = {"ngs_ssh_reuse_connection": "True", **job["settings"]}
    device = devices.device_manager(settings, job["name"])
    device.ingot_refusals = _REFUSALS.get(job["settings"]["device_type"])
    return device


def _carry_out(device: Any, order: Mapping[str, Any]) -> None:
    port_id, vlan = order["port_id"], order["vlan"]
    if order["plugs"]:
        _check(device, device.add_network(vlan, str(uuid.uuid5(_NETWORKS, str(vlan)))))
        plug = device.plug_bond_to_network if order["is_bond"] else device.plug_port_to_network
    else:
        plug = device.unplug_bond_from_network if order["is_bond"] else device.delete_port
    _check(device, plug(port_id, vlan))


def _check(device: Any, output: object) -> None:
    """
    :raises RefusedError: the switch has said no in what it has answered.
    """
    if device.ingot_refusals is not None and (found := device.ingot_refusals.search(str(output or ""))):
        raise RefusedError(found.group().strip())


def _list_causes(exc: BaseException) -> Iterator[BaseException]:
    found: BaseException | None = exc
    while found is not None:
        yield found
        found = found.__cause__ or found.__context__


def _explain(exc: BaseException) -> str:
    """Return why something failed, in the words of what was raised first."""
    said = [f"{type(one).__name__}: {one}" for one in _list_causes(exc) if _PLAIN not in str(one)]
    return said[0] if said else "the switch has answered with an error"


def _is_repeatable(exc: BaseException) -> bool:
    """Return whether it was the connection that failed, not the order."""
    names = {type(one).__name__ for one in _list_causes(exc)}
    if "NetmikoAuthenticationException" in names:
        return False
    if isinstance(exc, RefusedError):
        return "connection failed" in str(exc)  # what the switch runs on has not reached the switch
    return bool(names & {"GenericSwitchNetmikoConnectError", "LockAcquireFailed", "OSError", "EOFError"}) or any(
        isinstance(one, OSError) for one in _list_causes(exc)
    )


def _mask(text: str, settings: Mapping[str, str]) -> str:
    for name, value in settings.items():
        if name in _SECRETS and value:
            text = text.replace(value, "***")
    return text


if __name__ == "__main__":
    code = main()
    os._exit(code)  # threads of the library, which wait for a connection, are not waited for
