"""Managers: the BMC itself, its reset and its clock."""

from datetime import datetime

from ingot.rack.redfish import dell
from ingot.rack.redfish.messages import RedfishError
from ingot.rack.redfish.routing import ROOT, Call, Document, Route, collection, link, of_type, patch, resource

MANAGERS = f"{ROOT}/Managers"
_RESETS = ("ForceRestart", "GracefulRestart")
OK = {"State": "Enabled", "Health": "OK"}


def _list(call: Call) -> Document:
    return collection(MANAGERS, "Manager", [member.manager for member in call.service.members])


def _show(call: Call) -> Document:
    member, board = call.member, call.board
    media = {"VirtualMedia": link(f"{member.manager}/VirtualMedia")} if "manager" in member.vendor.media_at else {}
    is_dell = member.vendor.oem == "Dell"
    console = {"ServiceEnabled": True, "MaxConcurrentSessions": 1}
    return resource(
        member.manager,
        "Manager.v1_20_0.Manager",
        f"BMC of {board.machine.name}",
        ManagerType="BMC",
        UUID=str(board.machine.uuid),
        Model=member.vendor.manager_model,
        FirmwareVersion=board.state["firmware"]["BMC"],
        DateTime=board.now().isoformat(timespec="seconds"),
        DateTimeLocalOffset=board.state["time_zone"],
        PowerState="On",
        Status=OK,
        SerialConsole={**console, "ConnectTypesSupported": ["IPMI"]},
        EthernetInterfaces=link(f"{member.manager}/EthernetInterfaces"),
        Links={
            "ManagerForServers": [link(member.system)],
            "ManagerForChassis": [link(member.chassis)],
            **({"Oem": dell.links(member.manager)} if is_dell else {}),
        },
        Actions={
            "#Manager.Reset": {
                "target": f"{member.manager}/Actions/Manager.Reset",
                "ResetType@Redfish.AllowableValues": list(_RESETS),
            },
            **({"Oem": dell.actions(member.manager)} if is_dell else {}),
        },
        **media,
    )


def _set_time(call: Call, body: Document, name: str) -> None:
    text = of_type(body, name, str)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise RedfishError("PropertyValueTypeError", text, name, related=(f"#/{name}",)) from error
    call.board.set_clock(moment if moment.tzinfo else moment.replace(tzinfo=call.board.now().tzinfo))


def _set_zone(call: Call, body: Document, name: str) -> None:
    text = of_type(body, name, str)
    try:
        datetime.strptime(text, "%z")
    except ValueError as error:
        raise RedfishError("PropertyValueTypeError", text, name, related=(f"#/{name}",)) from error
    call.board.state["time_zone"] = text
    call.board.save()


def _change(call: Call) -> None:
    patch(call, {"DateTime": _set_time, "DateTimeLocalOffset": _set_zone})


def _reset(call: Call) -> None:
    kind = call.parameters("Reset", (), ("ResetType",)).get("ResetType", _RESETS[0])
    if kind not in _RESETS:
        raise RedfishError("ActionParameterValueNotInList", kind, "ResetType", "Reset", related=("#/ResetType",))
    call.service.after(call.board.restart)


def _cards(call: Call) -> Document:
    return collection(call.path, "EthernetInterface", [f"{call.path}/1"])


def _card(call: Call) -> Document:
    mac = call.board.machine.spec.macs[0].upper()
    address = call.board.machine.site.config.address
    return resource(
        call.path,
        "EthernetInterface.v1_12_3.EthernetInterface",
        "BMC network card",
        MACAddress=f"{mac[:-2]}FF",
        IPv4Addresses=[{"Address": address, "AddressOrigin": "Static"}],
        Status=OK,
    )


ROUTES = (
    Route("GET", "/Managers", _list),
    Route("GET", "/Managers/{manager}", _show),
    Route("PATCH", "/Managers/{manager}", _change),
    Route("POST", "/Managers/{manager}/Actions/Manager.Reset", _reset),
    Route("GET", "/Managers/{manager}/EthernetInterfaces", _cards),
    Route("GET", "/Managers/{manager}/EthernetInterfaces/1", _card),
)
