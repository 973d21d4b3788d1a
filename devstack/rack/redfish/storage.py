"""Storage of a system: a controller, the machine's disks as its drives, and the volumes made of them."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from ingot.rack.http_server import Response
from ingot.rack.redfish.board import Board
from ingot.rack.redfish.messages import RedfishError
from ingot.rack.redfish.routing import Call, Document, Route, collection, link, of_type, one_of, patch, resource
from ingot.rack.redfish.systems import CRITICAL, LEDS, OK
from ingot.rack.redfish.tasks import answer_with

CONTROLLER = "RAID1"
_APPLY_TIME = "@Redfish.OperationApplyTime"
_INITIALIZE = ("Fast", "Slow")
_PROTOCOLS = {"ata": "SATA", "nvme": "NVMe"}
_KNOWN = ("RAIDType", "VolumeType", "CapacityBytes", "Name", "Links", "Encrypted", "DisplayName", _APPLY_TIME)


@dataclass(frozen=True)
class Level:
    """A RAID level: how many drives it takes at least, and how many of ``n`` hold data."""

    kind: str
    least: int
    data: Callable[[int], int]


LEVELS = {
    "RAID0": Level("NonRedundant", 1, lambda n: n),
    "RAID1": Level("Mirrored", 2, lambda n: 1),
    "RAID5": Level("StripedWithParity", 3, lambda n: n - 1),
    "RAID6": Level("StripedWithParity", 4, lambda n: n - 2),
    "RAID10": Level("SpannedMirrors", 4, lambda n: n // 2),
}


def _drive_ids(board: Board) -> list[str]:
    return [f"Disk{number}" for number in range(len(board.machine.disks))]


def _controller_part(board: Board) -> Document:
    return {
        "Name": "RAID controller",
        "SpeedGbps": 12,
        "SupportedControllerProtocols": ["PCIe"],
        "SupportedDeviceProtocols": sorted({_PROTOCOLS[disk.spec.kind] for disk in board.machine.disks}),
        "Identifiers": [{"DurableNameFormat": "UUID", "DurableName": str(board.machine.uuid)}],
        "Status": OK,
    }


def _list(call: Call) -> Document:
    return collection(call.path, "Storage", [f"{call.path}/{CONTROLLER}"])


def _show(call: Call) -> Document:
    board = call.board
    part = _controller_part(board)
    return resource(
        call.path,
        "Storage.v1_17_1.Storage",
        "RAID controller",
        StorageControllers=[{"MemberId": "0", "SupportedRAIDTypes": list(LEVELS), **part}],
        Controllers=link(f"{call.path}/Controllers"),
        Drives=[link(f"{call.path}/Drives/{name}") for name in _drive_ids(board)],
        Volumes=link(f"{call.path}/Volumes"),
        Status=CRITICAL if board.machine.faults.active("drive_failed") else OK,
    )


def _controllers(call: Call) -> Document:
    return collection(call.path, "StorageController", [f"{call.path}/0"])


def _controller(call: Call) -> Document:
    kind = "StorageController.v1_8_0.StorageController"
    part = _controller_part(call.board)
    return resource(call.path, kind, **{"name": part.pop("Name")}, SupportedRAIDTypes=list(LEVELS), **part)


def _drive(call: Call) -> Document:
    board, name = call.board, call.ids["disk"]
    if name not in _drive_ids(board):
        raise call.missing()
    number = _drive_ids(board).index(name)
    spec = board.machine.disks[number].spec
    storage = call.path.partition("/Drives/")[0]
    failed = number == 0 and board.machine.faults.active("drive_failed")
    members = [key for key, volume in board.state["volumes"].items() if name in volume["drives"]]
    return resource(
        call.path,
        "Drive.v1_20_0.Drive",
        f"Drive {number}",
        Manufacturer="Ingot",
        Model="Simulated",
        Revision="1.0",
        SerialNumber=spec.serial,
        PartNumber="RACK-D",
        CapacityBytes=spec.size,
        BlockSizeBytes=512,
        MediaType="SSD",
        Protocol=_PROTOCOLS[spec.kind],
        Identifiers=[{"DurableNameFormat": "NAA", "DurableName": spec.wwn.removeprefix("0x")}],
        IndicatorLED=board.state["drive_leds"].get(name, "Off"),
        Status=CRITICAL if failed else OK,
        Links={"Volumes": [link(f"{storage}/Volumes/{key}") for key in members]},
    )


def _set_led(call: Call, body: Document, name: str) -> None:
    if call.ids["disk"] not in _drive_ids(call.board):
        raise call.missing()
    call.board.state["drive_leds"][call.ids["disk"]] = one_of(body, name, LEDS)
    call.board.save()


def _change_drive(call: Call) -> None:
    patch(call, {"IndicatorLED": _set_led})


def _simple_list(call: Call) -> Document:
    return collection(call.path, "SimpleStorage", [f"{call.path}/1"])


def _simple(call: Call) -> Document:
    devices = [
        {"Name": f"Drive {n}", "Model": "Simulated", "CapacityBytes": disk.spec.size, "Status": OK}
        for n, disk in enumerate(call.board.machine.disks)
    ]
    return resource(call.path, "SimpleStorage.v1_3_2.SimpleStorage", "Disks", Devices=devices, Status=OK)


# Volumes


def _support(board: Board) -> Document:
    support = {
        "@odata.type": "#Settings.v1_4_0.OperationApplyTimeSupport",
        "SupportedValues": list(board.vendor.volume_times),
    }
    return {"@Redfish.OperationApplyTimeSupport": support}


def _volumes(call: Call) -> Document:
    members = [f"{call.path}/{key}" for key in call.board.state["volumes"]]
    return collection(call.path, "Volume", members) | _support(call.board)


def _find(call: Call) -> dict[str, Any]:
    found: dict[str, Any] | None = call.board.state["volumes"].get(call.ids["volume"])
    if found is None:
        raise call.missing()
    return found


def _volume(call: Call) -> Document:
    volume = _find(call)
    storage = call.path.partition("/Volumes/")[0]
    initialize = {
        "target": f"{call.path}/Actions/Volume.Initialize",
        "InitializeType@Redfish.AllowableValues": list(_INITIALIZE),
    }
    return resource(
        call.path,
        "Volume.v1_10_1.Volume",
        volume["name"],
        RAIDType=volume["level"],
        VolumeType=LEVELS[volume["level"]].kind,
        CapacityBytes=volume["size"],
        BlockSizeBytes=512,
        Encrypted=False,
        Identifiers=[{"DurableNameFormat": "NAA", "DurableName": f"{int(call.ids['volume']):032x}"}],
        Status=OK,
        Links={"Drives": [link(f"{storage}/Drives/{name}") for name in volume["drives"]]},
        Actions={"#Volume.Initialize": initialize},
        **_support(call.board),
    )


def _create(call: Call) -> Response:
    body, board = call.body(), call.board
    for name in body:
        if name not in _KNOWN:
            raise RedfishError("PropertyUnknown", name, related=(f"#/{name}",))
    if "RAIDType" not in body:
        raise RedfishError("PropertyMissing", "RAIDType", related=("#/RAIDType",))
    level = one_of(body, "RAIDType", LEVELS)
    drives = _choose_drives(call, body, LEVELS[level])
    room = _room(board, drives, LEVELS[level])
    size = of_type(body, "CapacityBytes", int) if body.get("CapacityBytes") else room
    if not 0 < size <= room:
        raise RedfishError("ResourceExhaustion", CONTROLLER)
    board.state["volumes_made"] += 1
    key = str(board.state["volumes_made"])
    volume = {"name": body.get("Name") or f"Volume {key}", "level": level, "size": size, "drives": drives}
    done = Response(status=201, headers={"Location": f"{call.path}/{key}"}, raw=b"")
    return _at_time(board, body.get(_APPLY_TIME), f"Create volume {key}", partial(_add, board, key, volume), done)


def _choose_drives(call: Call, body: Document, level: Level) -> list[str]:
    """Return the drives of a new volume: those that are named, or the first free ones."""
    board = call.board
    taken = {name for volume in board.state["volumes"].values() for name in volume["drives"]}
    links = body.get("Links", {}).get("Drives", [])
    named = [str(one.get("@odata.id")).rpartition("/")[2] for one in links]
    for name in named:
        if name not in _drive_ids(board):
            raise RedfishError("PropertyValueNotInList", name, "Links/Drives", related=("#/Links/Drives",))
    if set(named) & taken:
        raise RedfishError("ResourceInUse")
    chosen = named or [name for name in _drive_ids(board) if name not in taken][: level.least]
    if len(chosen) < level.least:
        raise RedfishError("ResourceExhaustion", CONTROLLER)
    return chosen


def _room(board: Board, drives: list[str], level: Level) -> int:
    smallest = min(board.machine.disks[_drive_ids(board).index(name)].spec.size for name in drives)
    return smallest * level.data(len(drives))


def _at_time(board: Board, when: str | None, name: str, work: Callable[[], None], done: Response) -> Response:
    """Do something now, or have it done by a task; a task fault makes a task of what would be done at once."""
    faults = board.machine.faults
    times = board.vendor.volume_times
    if when not in (None, *times):
        raise RedfishError("ApplyTimeNotSupported", when)
    slow = any(faults.active(fault) for fault in ("redfish_slow_tasks", "redfish_task_fails", "redfish_task_stuck"))
    at_boot = when == "OnReset" or "Immediate" not in times
    if at_boot or slow or board.vendor.task_location == "task":
        return answer_with(board, board.tasks.start(name, work, at_boot=at_boot))
    work()
    return done


def _add(board: Board, key: str, volume: dict[str, Any]) -> None:
    board.state["volumes"][key] = volume
    board.save()
    board.machine.log(f"volume {key}: {volume['level']} of {', '.join(volume['drives'])}")


def _remove(board: Board, key: str) -> None:
    board.state["volumes"].pop(key, None)
    board.save()
    board.machine.log(f"volume {key} deleted")


def _delete(call: Call) -> Response:
    _find(call)
    key, when = call.ids["volume"], call.body().get(_APPLY_TIME)
    work = partial(_remove, call.board, key)
    return _at_time(call.board, when, f"Delete volume {key}", work, Response(status=204))


def _initialize(call: Call) -> Response:
    _find(call)
    kind = call.parameters("Initialize", (), ("InitializeType",)).get("InitializeType", "Fast")
    if kind not in _INITIALIZE:
        raise RedfishError("ActionParameterValueNotInList", kind, "InitializeType", "Initialize")
    when = call.body().get(_APPLY_TIME)
    return _at_time(call.board, when, f"Initialize volume {call.ids['volume']}", lambda: None, Response(status=204))


_SYSTEM = "/Systems/{system}"
_HERE = f"{_SYSTEM}/Storage/{CONTROLLER}"
ROUTES = (
    Route("GET", f"{_SYSTEM}/SimpleStorage", _simple_list),
    Route("GET", f"{_SYSTEM}/SimpleStorage/1", _simple),
    Route("GET", f"{_SYSTEM}/Storage", _list),
    Route("GET", _HERE, _show),
    Route("GET", f"{_HERE}/Controllers", _controllers),
    Route("GET", f"{_HERE}/Controllers/0", _controller),
    Route("GET", f"{_HERE}/Drives/{{disk}}", _drive),
    Route("PATCH", f"{_HERE}/Drives/{{disk}}", _change_drive),
    Route("GET", f"{_HERE}/Volumes", _volumes),
    Route("POST", f"{_HERE}/Volumes", _create),
    Route("GET", f"{_HERE}/Volumes/{{volume}}", _volume),
    Route("DELETE", f"{_HERE}/Volumes/{{volume}}", _delete),
    Route("POST", f"{_HERE}/Volumes/{{volume}}/Actions/Volume.Initialize", _initialize),
)
