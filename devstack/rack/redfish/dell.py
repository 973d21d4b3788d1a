"""What a Dell BMC has besides: a job queue, a reset, whether it is ready, and one-time boot by its configuration."""

import xml.etree.ElementTree as ElementTree

from ingot.rack.http_server import Response
from ingot.rack.redfish.messages import RedfishError
from ingot.rack.redfish.routing import Call, Document, Handler, Route, collection, link, resource
from ingot.rack.redfish.tasks import TASKS, Task, WorkFailed, answer_with

_OEM = "Oem/Dell"
_SERVICES = ("DellJobService", "DellLCService", "DelliDRACCardService", "Jobs")
_ALL_JOBS = ("JID_CLEARALL", "JID_CLEARALL_FORCE")
_STATES = {"New": "New", "Pending": "Scheduled", "Running": "Running", "Completed": "Completed", "Exception": "Failed"}
_DEVICES = {
    "VCD-DVD": ("Cd", "cdrom"),
    "VFDD": ("Floppy", "floppy"),
    "PXE": ("Pxe", "pxe"),
    "HDD": ("Hdd", "disk"),
    "BIOS": ("BiosSetup", "bios"),
    "Normal": ("None", "default"),
}
"""By FirstBootDevice: the boot target that is shown, and the device of the rack."""

_IMPORT_REQUIRED, _IMPORT_OPTIONAL = (
    ("ImportBuffer", "ShareParameters"),
    ("ShutdownType", "HostPowerState", "TimeToWait"),
)
_FIRST_DEVICE, _BOOT_ONCE = "ServerBoot.1#FirstBootDevice", "ServerBoot.1#BootOnce"


def links(manager: str) -> Document:
    """Return the links of a manager to what is here."""
    return {"Dell": {name: link(f"{manager}/{_OEM}/{name}") for name in _SERVICES}}


def actions(manager: str) -> Document:
    """Return the actions of a manager that are here."""
    base = f"{manager}/Actions/Oem/EID_674_Manager"
    return {
        "#OemManager.ImportSystemConfiguration": {
            "target": f"{base}.ImportSystemConfiguration",
            "ShutdownType@Redfish.AllowableValues": ["Graceful", "Forced", "NoReboot"],
        }
    }


def _is_dell(call: Call) -> None:
    if call.member.vendor.oem != "Dell":
        raise call.missing()


def _service(kind: str, *names: str) -> Handler:
    def show(call: Call) -> Document:
        _is_dell(call)
        targets = {f"#{kind}.{name}": {"target": f"{call.path}/Actions/{kind}.{name}"} for name in names}
        return resource(call.path, f"{kind}.v1_0_0.{kind}", kind, Actions=targets)

    return show


def _job(path: str, task: Task) -> Document:
    return resource(
        f"{path}/{task.id}",
        "DellJob.v1_4_0.DellJob",
        task.name,
        JobState=_STATES.get(task.state, "Failed"),
        JobType="BIOSConfiguration" if "BIOS.Setup" in task.name else "RealTimeNoRebootConfiguration",
        PercentComplete=task.percent,
        StartTime=task.started,
        EndTime=task.ended,
        CompletionTime=task.ended,
        Message=task.messages[-1]["Message"] if task.messages else "The job waits or runs.",
        MessageId=task.messages[-1]["MessageId"] if task.messages else "JCP001",
    )


def _jobs(call: Call) -> Document:
    _is_dell(call)
    return collection(call.path, "DellJob", [f"{call.path}/{task}" for task in call.board.tasks.all])


def _one_job(call: Call) -> Document:
    _is_dell(call)
    task = call.board.tasks.all.get(call.ids["job"])
    if task is None:
        raise call.missing()
    return _job(call.path.rpartition("/")[0], task)


def _delete_jobs(call: Call) -> Response:
    _is_dell(call)
    name = call.parameters("DeleteJobQueue", ("JobID",))["JobID"]
    if name in _ALL_JOBS:
        call.board.tasks.delete_all()
        call.board.state["bios_pending"] = {}
        call.board.save()
    elif not call.board.tasks.delete(name):
        raise RedfishError("ActionParameterValueNotInList", name, "JobID", "DeleteJobQueue")
    return Response({})


def _ready(call: Call) -> Response:
    _is_dell(call)
    state = "InPOST" if call.board.in_post else "OutOfPOST" if call.board.machine.powered else "PoweredOff"
    ready = "Ready" if not call.board.tasks.busy() else "NotReady"
    return Response({"LCStatus": ready, "RTStatus": "Ready", "ServerStatus": state, "Status": ready})


def _reset(call: Call) -> None:
    _is_dell(call)
    call.parameters("iDRACReset", (), ("Force",))
    call.service.after(call.board.restart)


def _import(call: Call) -> Response:
    """Take a configuration; of it, what it says of the next boot."""
    _is_dell(call)
    given = call.parameters("ImportSystemConfiguration", _IMPORT_REQUIRED, _IMPORT_OPTIONAL)
    try:
        root = ElementTree.fromstring(given["ImportBuffer"])  # noqa: S314 - from a client that has the password
    except ElementTree.ParseError as error:
        raise RedfishError("MalformedJSON") from error
    own = (part for part in root.iter("Component") if part.get("FQDD") == call.ids["manager"])
    found = {one.get("Name"): one.text or "" for part in own for one in part.iter("Attribute")}
    board = call.board
    if board.tasks.busy():
        raise RedfishError("SYS518", Retry_After="1")

    def configure() -> None:
        chosen = _DEVICES.get(found.get(_FIRST_DEVICE, ""))
        if chosen is None:
            raise WorkFailed("The configuration names no device to boot from.")
        target, device = chosen
        _, _, efi = board.boot_override()
        board.override_boot(target, "Once" if found.get(_BOOT_ONCE) == "Enabled" else "Continuous", efi, device)

    task = board.tasks.start("Import Configuration", configure)
    answer = answer_with(board, task)
    answer.headers["Location"] = f"{TASKS}/{task.id}"
    return answer


_MANAGER = "/Managers/{manager}"
_HERE = f"{_MANAGER}/{_OEM}"
ROUTES = (
    Route("GET", f"{_HERE}/DellJobService", _service("DellJobService", "DeleteJobQueue")),
    Route("POST", f"{_HERE}/DellJobService/Actions/DellJobService.DeleteJobQueue", _delete_jobs),
    Route("GET", f"{_HERE}/DellLCService", _service("DellLCService", "GetRemoteServicesAPIStatus")),
    Route("POST", f"{_HERE}/DellLCService/Actions/DellLCService.GetRemoteServicesAPIStatus", _ready),
    Route("GET", f"{_HERE}/DelliDRACCardService", _service("DelliDRACCardService", "iDRACReset")),
    Route("POST", f"{_HERE}/DelliDRACCardService/Actions/DelliDRACCardService.iDRACReset", _reset),
    Route("GET", f"{_HERE}/Jobs", _jobs),
    Route("GET", f"{_HERE}/Jobs/{{job}}", _one_job),
    Route("POST", f"{_MANAGER}/Actions/Oem/EID_674_Manager.ImportSystemConfiguration", _import),
)
