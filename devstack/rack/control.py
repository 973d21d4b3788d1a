"""The rack's control API: look at machines, press power buttons, order faults. Loopback only, no password.

GET    /                                   what this is, and the faults that can be ordered
GET    /machines                           all machines
GET    /machines/NAME                      one machine
GET    /machines/NAME/log                  the last lines of its log
POST   /machines/NAME/power                {"action": "on" | "off" | "cycle" | "reset" | "soft"}
PUT    /machines/NAME/boot-device          {"device": "pxe" | "disk" | ..., "persistent": bool, "efi": bool}
POST   /machines/NAME/console              {"text": ...}: typed on the serial console of a QEMU machine
POST   /machines/NAME/faults               {"name": ..., "value": ..., "times": number or null}
DELETE /machines/NAME/faults[/FAULT]       clear one fault or all
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ingot.rack import faults
from ingot.rack.http_server import HttpError, Request, Response
from ingot.rack.machine import Machine

if TYPE_CHECKING:
    from ingot.rack.rack import Rack

POWER_ACTIONS = ("on", "off", "cycle", "reset", "soft")
BOOT_DEVICES = ("pxe", "disk", "default", "cdrom", "bios", "safe", "floppy")


class ControlApi:
    """Answers requests for one rack."""

    def __init__(self, rack: "Rack") -> None:
        self._rack = rack

    @staticmethod
    def error_body(status: int, message: str) -> dict[str, str]:
        return {"error": message}

    async def handle(self, request: Request) -> Response:
        """Route a request."""
        match request.path.strip("/").split("/"):
            case [""]:
                known = {name: text for name, (_, text) in faults.KNOWN.items()}
                return Response({"rack": str(self._rack.config.state_dir), "faults": known})
            case ["machines"]:
                return Response({"machines": [machine.public() for machine in self._rack.machines.values()]})
            case ["machines", name, *rest]:
                return self._machine(request, self._find(name), rest)
        raise HttpError(404, f"no such path: {request.path}")

    def _find(self, name: str) -> Machine:
        machine = self._rack.machines.get(name)
        if machine is None:
            raise HttpError(404, f"no machine {name!r}; there are {', '.join(self._rack.machines)}")
        return machine

    def _machine(self, request: Request, machine: Machine, rest: list[str]) -> Response:
        key = (request.method, rest[0] if rest else "")
        action = _ACTIONS.get(key)
        if action is None:
            raise HttpError(404, f"no such path: {request.method} {request.path}")
        return action(request, machine, rest[1:])


def _show(request: Request, machine: Machine, rest: list[str]) -> Response:
    return Response(machine.public())


def _log(request: Request, machine: Machine, rest: list[str]) -> Response:
    return Response({"log": list(machine.log_lines)})


def _power(request: Request, machine: Machine, rest: list[str]) -> Response:
    action = _object(request).get("action")
    if action not in POWER_ACTIONS:
        raise HttpError(400, f"action {action!r} is not one of {', '.join(POWER_ACTIONS)}")
    if not machine.power(action):
        raise HttpError(409, f"{machine.name} is off: {action} makes no sense")
    return _show(request, machine, rest)


def _boot_device(request: Request, machine: Machine, rest: list[str]) -> Response:
    requested = _object(request)
    if requested.get("device") not in BOOT_DEVICES:
        raise HttpError(400, f"device {requested.get('device')!r} is not one of {', '.join(BOOT_DEVICES)}")
    machine.set_boot_setting(requested["device"], bool(requested.get("persistent")), bool(requested.get("efi")))
    return _show(request, machine, rest)


def _type(request: Request, machine: Machine, rest: list[str]) -> Response:
    text = _object(request).get("text")
    if not isinstance(text, str):
        raise HttpError(400, f"text {text!r} is not a string")
    if not machine.feed(text.encode()):
        raise HttpError(409, f"{machine.name} has no console, or is off")
    return _show(request, machine, rest)


def _order_fault(request: Request, machine: Machine, rest: list[str]) -> Response:
    requested = _object(request)
    try:
        machine.order_fault(str(requested.get("name")), requested.get("value"), requested.get("times"))
    except faults.FaultError as error:
        raise HttpError(400, str(error)) from error
    return Response({"faults": machine.faults.public()})


def _clear_faults(request: Request, machine: Machine, rest: list[str]) -> Response:
    try:
        machine.clear_faults(rest[0] if rest else None)
    except faults.FaultError as error:
        raise HttpError(404, str(error)) from error
    return Response({"faults": machine.faults.public()})


def _object(request: Request) -> dict[str, Any]:
    body = request.json()
    if not isinstance(body, dict):
        raise HttpError(400, "the body must be an object")
    return body


_ACTIONS: dict[tuple[str, str], Callable[[Request, Machine, list[str]], Response]] = {
    ("GET", ""): _show,
    ("GET", "log"): _log,
    ("POST", "power"): _power,
    ("PUT", "boot-device"): _boot_device,
    ("POST", "console"): _type,
    ("POST", "faults"): _order_fault,
    ("DELETE", "faults"): _clear_faults,
}
