"""The update service: what firmware the machines have, and updates that fetch an image and take some time.

An image is for the component that the request or its file's name says (``bios-2.1.0.bin``), and brings the version of
its name. BIOS and network card have it from the next boot; the BMC restarts with it.
"""

import re
from functools import partial

import requests

from ingot.rack.http_server import Response
from ingot.rack.loop import in_thread
from ingot.rack.redfish.board import Board
from ingot.rack.redfish.messages import RedfishError
from ingot.rack.redfish.routing import ROOT, Call, Document, Route, collection, link, resource
from ingot.rack.redfish.service import Member
from ingot.rack.redfish.tasks import WorkFailed, answer_with

SERVICE = f"{ROOT}/UpdateService"
INVENTORY = f"{SERVICE}/FirmwareInventory"
_ACTION = "SimpleUpdate"
_PROTOCOLS = ("HTTP", "HTTPS")
_OPTIONAL = ("TransferProtocol", "Targets", "Username", "Password", "ForceUpdate")
_VERSION = re.compile(r"(\d+(?:\.\d+)+)")
_FETCH_TIMEOUT = 30.0


def _service(call: Call) -> Document:
    target = f"{SERVICE}/Actions/UpdateService.SimpleUpdate"
    return resource(
        SERVICE,
        "UpdateService.v1_14_1.UpdateService",
        "Update Service",
        ServiceEnabled=True,
        Status={"State": "Enabled", "Health": "OK"},
        FirmwareInventory=link(INVENTORY),
        SoftwareInventory=link(f"{SERVICE}/SoftwareInventory"),
        Actions={
            "#UpdateService.SimpleUpdate": {
                "target": target,
                "TransferProtocol@Redfish.AllowableValues": list(_PROTOCOLS),
            }
        },
    )


def _list(call: Call) -> Document:
    names = [f"{one.prefix}{name}" for one in call.service.members for name in one.board.state["firmware"]]
    return collection(call.path, "SoftwareInventory", [f"{call.path}/{name}" for name in names])


def _find(call: Call, name: str) -> tuple[Member, str]:
    for member in call.service.members:
        component = name.removeprefix(member.prefix)
        if name.startswith(member.prefix) and component in member.board.state["firmware"]:
            return member, component
    raise call.missing()


def _show(call: Call) -> Document:
    member, component = _find(call, call.ids["component"])
    related = {"BIOS": member.system, "BMC": member.manager, "NIC": member.chassis}[component]
    return resource(
        call.path,
        "SoftwareInventory.v1_11_0.SoftwareInventory",
        f"{component} firmware",
        SoftwareId=component,
        Manufacturer=member.vendor.manufacturer,
        Version=member.board.state["firmware"][component],
        Updateable=True,
        RelatedItem=[link(related)],
        Status={"State": "Enabled", "Health": "OK"},
    )


def _update(call: Call) -> Response:
    given = call.parameters(_ACTION, ("ImageURI",), _OPTIONAL)
    image, protocol = str(given["ImageURI"]), given.get("TransferProtocol", _PROTOCOLS[0])
    if protocol not in _PROTOCOLS:
        raise RedfishError("ActionParameterValueNotInList", protocol, "TransferProtocol", _ACTION)
    if not image.startswith(("http://", "https://")):
        raise RedfishError("ActionParameterValueNotInList", image, "ImageURI", _ACTION, related=("#/ImageURI",))
    member, component = _target(call, given.get("Targets") or [], image)
    board = member.board
    waits = board.vendor.updates_at_boot and component != "BMC"
    at_boot = given.get("@Redfish.OperationApplyTime") == "OnReset" or waits
    task = board.tasks.start(
        f"Update of {component}",
        partial(_install, board, component, image, at_boot),
        at_boot=at_boot,
        prepare=lambda: in_thread(board.machine.site.heavy, _fetch, image, board.machine.site.config.ca_file),
    )
    return answer_with(board, task)


def _target(call: Call, targets: list[str], image: str) -> tuple[Member, str]:
    """Return the machine and the component that an image is for."""
    for target in targets:
        path = str(target).rstrip("/")
        for member in call.service.members:
            paths = {member.system: "BIOS", member.manager: "BMC", member.chassis: "NIC"}
            paths |= {f"{INVENTORY}/{member.prefix}{name}": name for name in member.board.state["firmware"]}
            if path in paths:
                return member, paths[path]
        raise RedfishError("ActionParameterValueNotInList", target, "Targets", _ACTION, related=("#/Targets",))
    if len(call.service.members) > 1:
        raise RedfishError("ActionParameterMissing", _ACTION, "Targets", related=("#/Targets",))
    (member,) = call.service.members
    file = image.rpartition("/")[2].lower()
    return member, next((name for name in member.board.state["firmware"] if name.lower() in file), "")


def _fetch(image: str, ca_file: str | None) -> None:
    """Fetch an image. :raises WorkFailed: that is not possible."""
    try:
        answer = requests.get(image, timeout=_FETCH_TIMEOUT, verify=ca_file or False)
    except (requests.RequestException, ValueError) as error:
        raise WorkFailed(f"{image}: {error}") from error
    if answer.status_code != requests.codes.ok:
        raise WorkFailed(f"{image}: HTTP {answer.status_code}")


def _install(board: Board, component: str, image: str, in_boot: bool) -> None:
    found = _VERSION.search(image.rpartition("/")[2])
    if not component or found is None:
        raise WorkFailed(f"{image}: its name says no component or no version")
    board.machine.log(f"firmware of {component}: {found[1]}")
    when = "firmware" if component == "BMC" or in_boot else "firmware_pending"
    board.state[when][component] = found[1]
    board.save()
    if component == "BMC":
        board.restart()


ROUTES = (
    Route("GET", "/UpdateService", _service),
    Route("POST", "/UpdateService/Actions/UpdateService.SimpleUpdate", _update),
    *(
        route
        for kind in ("FirmwareInventory", "SoftwareInventory")
        for route in (
            Route("GET", f"/UpdateService/{kind}", _list),
            Route("GET", f"/UpdateService/{kind}/{{component}}", _show),
        )
    ),
)
