"""What can be made to go wrong with a machine, and how often."""

import asyncio
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

REDFISH: dict[str, tuple[type | None, str]] = {
    "redfish_silent": (None, "connections are accepted, and nothing is ever said"),
    "redfish_port_closed": (None, "connections to the machine's own port are refused; those to the shared one are cut"),
    "redfish_busy": (
        dict,
        "value {retry_after} with method and path where only some requests are meant: they are answered 503 with "
        "Retry-After, and nothing is done",
    ),
    "redfish_error": (
        dict,
        "value {status} with method and path as above: such requests are answered this status, and nothing is done",
    ),
    "redfish_answer_lost": (
        dict,
        "value {method} with a path as above: what is asked is done, and the connection is cut instead of an answer",
    ),
    "redfish_held": (
        dict,
        "value {done} with method and path as above: what is asked is done, or not, and no answer comes until faults "
        "are cleared; then the connection is cut",
    ),
    "redfish_drips": (dict, "value {seconds}: answers come byte by byte, with this pause"),
    "redfish_slow_tasks": (dict, "value {seconds}: tasks that start from now on take this long"),
    "redfish_task_fails": (str, "tasks end in an exception with this message"),
    "redfish_task_stuck": (None, "tasks that start from now on run until they are deleted"),
    "redfish_sessions_lost": (None, "all sessions have ended when the next request comes with one"),
    "redfish_session_table_full": (None, "no session can be opened"),
    "redfish_certificate": (str, "value expired, wrong-name or unknown-issuer: the certificate is that"),
    "redfish_boot_ignored": (None, "a boot override is accepted and not kept"),
    "redfish_media_ignored": (None, "virtual media are accepted and not inserted"),
}

# Name -> (what its value must be, what it does). The control API shows this table.
KNOWN: dict[str, tuple[type | None, str]] = {
    **REDFISH,
    "bmc_silent": (None, "the BMC answers nothing"),
    "bmc_wrong_password": (None, "the BMC has another password; sessions in progress end"),
    "drive_failed": (None, "the BMC tells that a drive has failed; the machine does not notice"),
    "too_hot": (None, "the BMC's sensor of the air that comes in is above its critical threshold"),
    "power_stuck": (None, "the BMC accepts power commands and does nothing"),
    "boot_hang": (None, "the machine stops in its firmware"),
    "agent_dies_at_step": (str, "the agent is gone when it should start the named step or command"),
    "agent_restarts_at_step": (str, "the agent's process ends as above, and the ramdisk starts another"),
    "agent_hangs_at_step": (str, "the named step or command stands still until a fault is cleared; heartbeats go on"),
    "image_404": (None, "the image server answers the agent 404"),
    "checksum_wrong": (None, "a byte of the image changes on its way to the agent"),
    "disk_too_small": (None, "the agent finds its disks to be 1 MiB"),
    "agent_version_after_reboot": (str, "agents that start from now on have this version"),
    "slow_answer": (dict, "value {command, seconds}: the agent answers POST of this command late"),
    "heartbeat_lost": (None, "heartbeats do not leave the machine"),
    "heartbeat_token_wrong": (None, "heartbeats carry a token that the service did not give out"),
    "command_token_wrong": (None, "the agent takes the token of commands for a wrong one"),
    "agent_lacks_extension": (str, "the agent answers as one from before it had the named extension, such as deploy"),
    "hardware_manager_version": (str, "the agent's hardware manager has this version from now on"),
    "new_version_after_step": (
        dict,
        "value {step, agent} or {step, hardware_manager}: when the named step has ended, the agent has that version "
        "from its next start, or its hardware manager at once",
    ),
    "inspection_error": (None, "the agent finds something wrong in its machine and tells so with the inventory"),
    "malformed_steps": (None, "the agent offers a step whose priority is no number"),
    "disks_frozen": (None, "the secure erase of disks is frozen by the firmware"),
    "secure_erase_fails": (None, "disks that erase themselves fail to"),
}

_SCOPES: tuple[dict[str, type | tuple[type, ...]], ...] = (
    {},
    {"method": str},
    {"path": str},
    {"method": str, "path": str},
)

# What the parts of a value that is an object must be; of alternatives, one is given.
_PARTS: dict[str, tuple[dict[str, type | tuple[type, ...]], ...]] = {
    "slow_answer": ({"command": str, "seconds": (int, float)},),
    "new_version_after_step": ({"step": str, "agent": str}, {"step": str, "hardware_manager": str}),
    "redfish_busy": tuple({"retry_after": int, **scope} for scope in _SCOPES),
    "redfish_error": tuple({"status": int, **scope} for scope in _SCOPES),
    "redfish_answer_lost": ({"method": str}, {"method": str, "path": str}),
    "redfish_held": tuple({"done": bool, **scope} for scope in _SCOPES),
    "redfish_drips": ({"seconds": (int, float)},),
    "redfish_slow_tasks": ({"seconds": (int, float)},),
}
_VALUES = {"redfish_certificate": ("expired", "wrong-name", "unknown-issuer")}
_VERSION_FAULTS = {"agent": "agent_version_after_reboot", "hardware_manager": "hardware_manager_version"}

_LOOK_INTERVAL = 0.05

_KIND_NAMES: dict[type, str] = {str: "a text", dict: "an object"}


class FaultError(ValueError):
    """An unknown fault or a value that it cannot have."""


@dataclass
class Fault:
    """An ordered fault; ``times`` is how often it still happens (None: until it is cleared)."""

    value: Any = True
    times: int | None = None


class Faults:
    """The faults of one machine.

    :param possible: the names of those that it can have.
    """

    def __init__(self, possible: Collection[str] = KNOWN) -> None:
        self._possible = possible
        self._ordered: dict[str, Fault] = {}
        self._clearings = 0

    def order(self, name: str, value: Any = None, times: int | None = None) -> None:
        """Make a fault happen from now on, ``times`` times or until it is cleared."""
        self._check(name)
        kind = KNOWN[name][0]
        if kind is None and value not in (None, True):
            raise FaultError(f"fault {name} takes no value, got {value!r}")
        if kind is not None and not isinstance(value, kind):
            raise FaultError(f"fault {name}: value must be {_KIND_NAMES[kind]}, got {value!r}")
        if name in _PARTS:
            _check_parts(name, value)
        if value not in _VALUES.get(name, (value,)):
            raise FaultError(f"fault {name}: value must be {', '.join(_VALUES[name])}, got {value!r}")
        if times is not None and (not isinstance(times, int) or isinstance(times, bool) or times < 1):
            raise FaultError(f"fault {name}: times must be a number from 1 on, got {times!r}")
        self._ordered[name] = Fault(True if kind is None else value, times)

    def clear(self, name: str | None = None) -> None:
        """Forget one fault, or all of them."""
        self._clearings += 1
        if name is None:
            self._ordered.clear()
            return
        self._check(name)
        self._ordered.pop(name, None)

    async def wait_until_cleared(self) -> None:
        """Wait until faults are cleared."""
        before = self._clearings
        while self._clearings == before:
            await asyncio.sleep(_LOOK_INTERVAL)

    def active(self, name: str) -> bool:
        """Say whether a lasting condition holds, without using it up."""
        return name in self._ordered

    def strike(self, name: str, match: str | None = None) -> bool:
        """Say whether the fault happens now, and count it.

        :param match: for a fault that names a step: the name of what is about to happen, with or without the
            agent extension in front (``write_image`` matches ``standby.write_image``).
        """
        fault = self._ordered.get(name)
        if fault is None:
            return False
        if match is not None and fault.value not in (match, match.rpartition(".")[2]):
            return False
        self._count(name, fault)
        return True

    def value(self, name: str) -> Any:
        """Return a lasting fault's value, without using it up; None when it is not ordered."""
        return self._ordered[name].value if name in self._ordered else None

    def note_step_end(self, name: str) -> None:
        """Take note that a step or command has ended well: versions may change with it."""
        change = self._ordered.get("new_version_after_step")
        if change is None or change.value["step"] not in (name, name.rpartition(".")[2]):
            return
        self._count("new_version_after_step", change)
        for part, fault in _VERSION_FAULTS.items():
            if part in change.value:
                self.order(fault, change.value[part])

    def take(self, name: str) -> Any:
        """Return the fault's value and count it; None when it is not ordered."""
        fault = self._ordered.get(name)
        if fault is None:
            return None
        self._count(name, fault)
        return fault.value

    def take_request(self, name: str, method: str, path: str) -> Any:
        """Return the value of a fault that is meant for a request, and count it; None when there is none.

        A part of the value that is not given means any: ``path`` is a part of the request's path.
        """
        fault = self._ordered.get(name)
        if fault is None or fault.value.get("method", method) != method or fault.value.get("path", "") not in path:
            return None
        self._count(name, fault)
        return fault.value

    def slow_answer(self, command: str) -> float:
        """Return for how many seconds the answer to ``command`` shall be held back."""
        fault = self._ordered.get("slow_answer")
        if fault is None or fault.value["command"] not in (command, command.rpartition(".")[2]):
            return 0.0
        self._count("slow_answer", fault)
        return float(fault.value["seconds"])

    def public(self) -> dict[str, Any]:
        return {name: {"value": f.value, "times": f.times} for name, f in self._ordered.items()}

    def _count(self, name: str, fault: Fault) -> None:
        if fault.times is not None:
            fault.times -= 1
            if fault.times == 0:
                del self._ordered[name]

    def _check(self, name: str) -> None:
        if name not in self._possible:
            raise FaultError(f"unknown fault {name!r}; this machine knows {', '.join(sorted(self._possible))}")


def _check_parts(name: str, value: dict[str, Any]) -> None:
    for parts in _PARTS[name]:
        if set(value) == set(parts) and all(isinstance(value[part], kind) for part, kind in parts.items()):
            return
    allowed = " or ".join(f"{{{', '.join(parts)}}}" for parts in _PARTS[name])
    raise FaultError(f"fault {name}: value must be {allowed}, got {value!r}")
