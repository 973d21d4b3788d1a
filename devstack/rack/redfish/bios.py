"""BIOS settings of a system: what is in force, what waits for the next boot, and the way back to the defaults."""

from functools import partial
from typing import Any

from ingot.rack.http_server import Response
from ingot.rack.redfish import attributes
from ingot.rack.redfish.board import Board
from ingot.rack.redfish.messages import RedfishError
from ingot.rack.redfish.routing import Call, Document, Route, link, of_type, resource
from ingot.rack.redfish.service import etag
from ingot.rack.redfish.tasks import answer_with

_KIND = "Bios.v1_2_3.Bios"
_APPLY_TIME = "@Redfish.SettingsApplyTime"
_APPLY_TIMES = ("OnReset",)
_PASSWORDS = ("AdminPassword", "UserPassword")
_PASSWORD_PARAMETERS = ("PasswordName", "OldPassword", "NewPassword")


def _show(call: Call) -> Document:
    state, path = call.board.state, call.path
    _, _, efi = call.board.boot_override()
    applied = state["bios_applied"] or {"time": None, "messages": []}
    settings = {
        "@odata.type": "#Settings.v1_4_0.Settings",
        "SettingsObject": link(f"{path}/Settings"),
        "SupportedApplyTimes": list(_APPLY_TIMES),
        "ETag": etag(_pending(call, f"{path}/Settings")),
        "Messages": applied["messages"],
        **({"Time": applied["time"]} if applied["time"] else {}),
    }
    return resource(
        path,
        _KIND,
        "BIOS",
        AttributeRegistry=attributes.REGISTRY,
        Attributes={**state["bios"], "BootMode": "Uefi" if efi else "LegacyBios"},
        Actions={
            f"#Bios.{action}": {"target": f"{path}/Actions/Bios.{action}"} for action in ("ResetBios", "ChangePassword")
        },
        **{"@Redfish.Settings": settings},
    )


def _pending(call: Call, path: str) -> Document:
    annotation = {_APPLY_TIME: {"ApplyTime": "OnReset", "ApplyTime@Redfish.AllowableValues": list(_APPLY_TIMES)}}
    pending = call.board.state["bios_pending"]
    return resource(
        path, _KIND, "BIOS Settings", AttributeRegistry=attributes.REGISTRY, Attributes=pending, **annotation
    )


def _show_pending(call: Call) -> Document:
    return _pending(call, call.path)


def _set(call: Call) -> Response | None:
    body, board = call.body(), call.board
    for name in body:
        if name not in ("Attributes", _APPLY_TIME):
            raise RedfishError("PropertyUnknown", name, related=(f"#/{name}",))
    if "Attributes" not in body:
        raise RedfishError("PropertyMissing", "Attributes", related=("#/Attributes",))
    settings: dict[str, Any] = of_type(body, "Attributes", dict)
    apply_time = body.get(_APPLY_TIME, {}).get("ApplyTime")
    if apply_time not in (None, *_APPLY_TIMES):
        raise RedfishError("ApplyTimeNotSupported", apply_time)
    attributes.check(settings)
    board.state["bios_pending"] |= settings
    board.state["bios_waits"] = board.vendor.bios_needs_apply_time
    board.save()
    board.machine.log(f"BIOS settings for the next boot: {', '.join(settings)}")
    if board.vendor.bios_needs_apply_time and apply_time:
        return answer_with(board, board.tasks.start("Configure: BIOS.Setup.1-1", partial(_apply, board), at_boot=True))
    return None


def _apply(board: Board) -> None:
    board.state["bios_waits"] = False
    attributes.apply(board)
    board.save()


def _reset(call: Call) -> None:
    call.parameters("ResetBios", ())
    board = call.board
    board.state["bios_pending"] = {
        name: one.default for name, one in attributes.ATTRIBUTES.items() if not one.read_only
    }
    board.state["bios_waits"] = False
    board.save()


def _change_password(call: Call) -> None:
    given = call.parameters("ChangePassword", _PASSWORD_PARAMETERS)
    passwords = call.board.state["bios_passwords"]
    name = given["PasswordName"]
    if name not in _PASSWORDS or given["OldPassword"] != passwords.get(name, ""):
        wrong = "PasswordName" if name not in _PASSWORDS else "OldPassword"
        raise RedfishError("ActionParameterValueNotInList", "***", wrong, "ChangePassword", related=(f"#/{wrong}",))
    passwords[name] = given["NewPassword"]
    call.board.save()


ROUTES = (
    Route("GET", "/Systems/{system}/Bios", _show),
    Route("POST", "/Systems/{system}/Bios/Actions/Bios.ResetBios", _reset),
    Route("POST", "/Systems/{system}/Bios/Actions/Bios.ChangePassword", _change_password),
    Route("GET", "/Systems/{system}/Bios/Settings", _show_pending),
    Route("PATCH", "/Systems/{system}/Bios/Settings", _set),
)
