"""Systems: power, boot overrides, indicator, and what is in them."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ingot.rack.redfish.board import Board
from ingot.rack.redfish.messages import RedfishError
from ingot.rack.redfish.routing import (
    ROOT,
    Call,
    Document,
    Route,
    collection,
    link,
    of_type,
    one_of,
    patch,
    resource,
)

if TYPE_CHECKING:
    from ingot.rack.redfish.service import Member

SYSTEMS = f"{ROOT}/Systems"
LEDS = ("Lit", "Blinking", "Off")
MODES = {"UEFI": True, "Legacy": False}
"""By name in Redfish: whether the firmware is UEFI."""
OK = {"State": "Enabled", "Health": "OK", "HealthRollup": "OK"}
CRITICAL = {"State": "Enabled", "Health": "Critical", "HealthRollup": "Critical"}
_PARTS = ("Processors", "Memory", "EthernetInterfaces", "SimpleStorage", "Storage", "Bios", "SecureBoot")
_PROGRESS = {
    "off": "None",
    "firmware": "SystemHardwareInitializationComplete",
    "network boot": "OSBootStarted",
    "media boot": "OSBootStarted",
    "hung": "OSBootStarted",
}
"""By a machine's state; all others are running systems."""


def health(board: Board) -> Document:
    return CRITICAL if board.machine.faults.active("drive_failed") else OK


def _list(call: Call) -> Document:
    return collection(SYSTEMS, "ComputerSystem", [member.system for member in call.service.members])


def _show(call: Call) -> Document:
    member, board, vendor = call.member, call.board, call.member.vendor
    spec = board.machine.spec
    media = {"VirtualMedia": link(f"{member.system}/VirtualMedia")} if "system" in vendor.media_at else {}
    settings = (
        {"@Redfish.Settings": {"@odata.type": "#Settings.v1_4_0.Settings",
                               "SettingsObject": link(f"{member.system}/Settings")}}
        if vendor.boot_in_settings else {}
    )  # fmt: skip
    return resource(
        member.system,
        "ComputerSystem.v1_23_0.ComputerSystem",
        spec.name,
        UUID=str(spec.uuid),
        SystemType="Physical",
        Manufacturer=vendor.manufacturer,
        Model=vendor.model,
        SerialNumber=spec.name,
        SKU=f"{vendor.model}-{spec.index}",
        PartNumber="RACK-1",
        AssetTag=board.state["asset_tag"],
        HostName=spec.name,
        BiosVersion=board.state["firmware"]["BIOS"],
        PowerState="On" if board.machine.powered else "Off",
        IndicatorLED=board.state["led"],
        Status=health(board),
        Boot=_boot(board) if not vendor.boot_in_settings else {},
        BootProgress={"LastState": _PROGRESS.get(board.machine.state, "OSRunning")},
        ProcessorSummary={"Count": 1, "CoreCount": spec.cpus, "LogicalProcessorCount": spec.cpus, "Status": OK},
        MemorySummary={"TotalSystemMemoryGiB": spec.memory / 1024, "Status": OK},
        Links={"Chassis": [link(member.chassis)], "ManagedBy": [link(member.manager)]},
        Actions={
            "#ComputerSystem.Reset": {
                "target": f"{member.system}/Actions/ComputerSystem.Reset",
                "ResetType@Redfish.AllowableValues": list(vendor.reset_types),
            }
        },
        **{part: link(f"{member.system}/{part}") for part in _PARTS},
        **media,
        **settings,
        **_oem(member),
    )


def _oem(member: "Member") -> Document:
    """Return the vendor's part: an iLO says with it how far the start of its machine is."""
    if member.vendor.oem != "Hpe":
        return {}
    states = {"off": "PowerOff", "firmware": "InPost"}
    state = states.get(member.board.machine.state, "FinishedPost")
    return {"Oem": {"Hpe": {"@odata.type": "#HpeComputerSystemExt.v2_6_1.HpeComputerSystemExt", "PostState": state}}}


def _boot(board: Board) -> Document:
    target, frequency, efi = board.boot_override()
    return {
        "BootSourceOverrideEnabled": frequency,
        "BootSourceOverrideEnabled@Redfish.AllowableValues": list(board.vendor.boot_frequencies),
        "BootSourceOverrideTarget": target,
        "BootSourceOverrideTarget@Redfish.AllowableValues": list(board.vendor.boot_targets),
        "BootSourceOverrideMode": "UEFI" if efi else "Legacy",
        "BootSourceOverrideMode@Redfish.AllowableValues": list(MODES),
        "HttpBootUri": board.state["http_boot_uri"] or None,
    }


def _change_boot(call: Call, body: Document, name: str) -> None:
    board = call.board
    requested = of_type(body, name, dict)
    known = ("BootSourceOverrideEnabled", "BootSourceOverrideTarget", "BootSourceOverrideMode", "HttpBootUri")
    for part in requested:
        if part not in known:
            raise RedfishError("PropertyUnknown", part, related=(f"#/Boot/{part}",))
    if board.vendor.busy_in_post and board.in_post:
        raise RedfishError("InvalidOperationForSystemState")
    if board.vendor.boot_needs_frequency and "BootSourceOverrideTarget" in requested:
        if "BootSourceOverrideEnabled" not in requested:
            raise RedfishError("PropertyMissing", "BootSourceOverrideEnabled", related=(f"#/Boot/{known[0]}",))
    target, frequency, efi = board.boot_override()
    values: tuple[Any, ...] = (board.vendor.boot_frequencies, board.vendor.boot_targets, MODES)
    allowed = dict(zip(known, values, strict=False))
    given = {part: one_of(requested, part, values) for part, values in allowed.items() if part in requested}
    if "HttpBootUri" in requested:
        board.state["http_boot_uri"] = of_type(requested, "HttpBootUri", (str, type(None))) or ""
        board.machine.http_boot_uri = board.state["http_boot_uri"]
    if "BootSourceOverrideTarget" in given and frequency == "Disabled":
        frequency = "Once"  # a target alone is meant for one boot
    board.override_boot(
        given.get("BootSourceOverrideTarget", target),
        given.get("BootSourceOverrideEnabled", frequency),
        MODES[given["BootSourceOverrideMode"]] if "BootSourceOverrideMode" in given else efi,
    )


def _change_led(call: Call, body: Document, name: str) -> None:
    call.board.state["led"] = one_of(body, name, LEDS)
    call.board.save()


def _change_tag(call: Call, body: Document, name: str) -> None:
    call.board.state["asset_tag"] = of_type(body, name, str)
    call.board.save()


def _change(call: Call) -> None:
    boot = {} if call.member.vendor.boot_in_settings else {"Boot": _change_boot}
    patch(call, {"IndicatorLED": _change_led, "AssetTag": _change_tag, **boot})


def _show_settings(call: Call) -> Document:
    if not call.member.vendor.boot_in_settings:
        raise call.missing()
    kind = "ComputerSystem.v1_23_0.ComputerSystem"
    return resource(call.path, kind, "Settings of the System", Boot=_boot(call.board))


def _change_settings(call: Call) -> None:
    if not call.member.vendor.boot_in_settings:
        raise call.missing()
    patch(call, {"Boot": _change_boot})


# Power


def _act(action: str) -> Callable[[Board], bool]:
    return lambda board: board.machine.power(action)


def _start(board: Board) -> bool:
    return (board.vendor.power_repeats or not board.machine.powered) and board.machine.power("on")


def _cut(board: Board) -> bool:
    return (board.vendor.power_repeats or board.machine.powered) and board.machine.power("off")


def _press(board: Board) -> bool:
    return board.machine.power("soft" if board.machine.powered else "on")


def _restart(board: Board) -> bool:
    if board.machine.powered:
        board.restart_gracefully()
    return board.machine.powered


_RESETS: dict[str, Callable[[Board], bool]] = {
    "On": _start,
    "ForceOn": _start,
    "ForceOff": _cut,
    "GracefulShutdown": _act("soft"),
    "GracefulRestart": _restart,
    "ForceRestart": _act("reset"),
    "PowerCycle": _act("cycle"),
    "PushPowerButton": _press,
    "Nmi": lambda board: board.machine.interrupt(),
}


def reset(call: Call) -> None:
    """Do what ResetType says. :raises RedfishError: it makes no sense in the machine's state."""
    kind = call.parameters("Reset", ("ResetType",))["ResetType"]
    if kind not in call.member.vendor.reset_types:
        raise RedfishError("ActionParameterValueNotInList", kind, "ResetType", "Reset", related=("#/ResetType",))
    if not _RESETS[kind](call.board):
        raise RedfishError("ResourceInUse" if call.board.machine.powered else "ResourceInStandby")


# Parts


def _processors(call: Call) -> Document:
    return collection(call.path, "Processor", [f"{call.path}/CPU1"])


def _processor(call: Call) -> Document:
    spec = call.board.machine.spec
    return resource(
        call.path,
        "Processor.v1_20_1.Processor",
        "Processor",
        Socket="CPU 1",
        ProcessorType="CPU",
        ProcessorArchitecture="x86",
        InstructionSet="x86-64",
        Manufacturer="Ingot",
        Model="Simulated",
        MaxSpeedMHz=2000,
        TotalCores=spec.cpus,
        TotalThreads=spec.cpus,
        Status=OK,
    )


def _memory(call: Call) -> Document:
    return collection(call.path, "Memory", [f"{call.path}/DIMM1"])


def _module(call: Call) -> Document:
    size = call.board.machine.spec.memory
    kind = "Memory.v1_20_0.Memory"
    return resource(call.path, kind, "DIMM 1", CapacityMiB=size, MemoryDeviceType="DDR4", Status=OK)


def _cards(call: Call) -> Document:
    count = len(call.board.machine.spec.macs)
    return collection(call.path, "EthernetInterface", [f"{call.path}/NIC{n + 1}" for n in range(count)])


def _card(call: Call) -> Document:
    for number, mac in enumerate(call.board.machine.spec.macs, 1):
        if call.ids["card"] == f"NIC{number}":
            return resource(
                call.path,
                "EthernetInterface.v1_12_3.EthernetInterface",
                f"Network card {number}",
                MACAddress=mac.upper(),
                PermanentMACAddress=mac.upper(),
                SpeedMbps=10000,
                LinkStatus="LinkUp" if number == 1 else "LinkDown",
                Status=OK,
            )
    raise call.missing()


ROUTES = (
    Route("GET", "/Systems", _list),
    Route("GET", "/Systems/{system}", _show),
    Route("PATCH", "/Systems/{system}", _change),
    Route("GET", "/Systems/{system}/Settings", _show_settings),
    Route("PATCH", "/Systems/{system}/Settings", _change_settings),
    Route("POST", "/Systems/{system}/Actions/ComputerSystem.Reset", reset),
    Route("GET", "/Systems/{system}/Processors", _processors),
    Route("GET", "/Systems/{system}/Processors/CPU1", _processor),
    Route("GET", "/Systems/{system}/Memory", _memory),
    Route("GET", "/Systems/{system}/Memory/DIMM1", _module),
    Route("GET", "/Systems/{system}/EthernetInterfaces", _cards),
    Route("GET", "/Systems/{system}/EthernetInterfaces/{card}", _card),
)
