"""Virtual media: the virtual drives of a machine, under its manager, its system, or both."""

from typing import Any

from ingot.rack.media import Medium
from ingot.rack.redfish.board import Board
from ingot.rack.redfish.messages import RedfishError
from ingot.rack.redfish.routing import Call, Document, Route, collection, of_type, patch, resource

_INSERT = "InsertMedia"
_MARK = "BootOnNextServerReset"
_OPTIONAL = ("Inserted", "WriteProtected", "UserName", "Password", "TransferMethod", "TransferProtocolType")
_SCHEMES = ("http://", "https://")


def _drives(call: Call) -> None:
    """Check that the vendor has the drives there. :raises RedfishError: it has them elsewhere."""
    where = "system" if "system" in call.ids else "manager"
    if where not in call.member.vendor.media_at:
        raise call.missing()
    if "drive" in call.ids and call.ids["drive"] not in call.member.vendor.drives:
        raise call.missing()


def _list(call: Call) -> Document:
    _drives(call)
    return collection(call.path, "VirtualMedia", [f"{call.path}/{drive}" for drive in call.member.vendor.drives])


def _show(call: Call) -> Document:
    _drives(call)
    member, name = call.member, call.ids["drive"]
    medium = member.board.machine.media.inserted.get(name)
    actions = {
        f"#VirtualMedia.{action}": {"target": f"{call.path}/Actions/VirtualMedia.{action}"}
        for action in (_INSERT, "EjectMedia")
    }
    return resource(
        call.path,
        "VirtualMedia.v1_6_4.VirtualMedia",
        f"Virtual drive {name}",
        MediaTypes=list(member.vendor.drives[name].types),
        Image=medium.image if medium else None,
        ImageName=medium.image.rpartition("/")[2].partition("?")[0] if medium else None,
        ConnectedVia="URI" if medium else "NotConnected",
        Inserted=medium is not None,
        WriteProtected=medium.write_protected if medium else True,
        UserName=medium.username if medium else None,
        Password=None,
        TransferMethod="Stream" if medium else None,
        VerifyCertificate=False,
        Status={"State": "Enabled", "Health": "OK"},
        **({} if member.vendor.media_by_patch else {"Actions": actions}),
        **({"Oem": {"Hpe": {_MARK: name in member.board.state["media_marked"]}}} if member.vendor.oem == "Hpe" else {}),
    )


def _insert(call: Call) -> None:
    _drives(call)
    vendor = call.member.vendor
    if vendor.media_by_patch:
        raise call.missing()
    for name in vendor.media_refuses:
        if name in call.body():
            raise RedfishError("ActionParameterNotSupported", name, _INSERT, related=(f"#/{name}",))
    _put_in(call, call.parameters(_INSERT, ("Image", *vendor.media_requires), _OPTIONAL))


def _put_in(call: Call, body: dict[str, Any]) -> None:
    vendor, media, name = call.member.vendor, call.board.machine.media, call.ids["drive"]
    image = of_type(body, "Image", str)
    if not image.startswith(_SCHEMES):
        raise RedfishError("ActionParameterValueNotInList", image, "Image", _INSERT, related=("#/Image",))
    _check_post(call.board)
    if vendor.media_slot not in (None, name):
        raise RedfishError("ActionNotSupported", _INSERT)
    if name in media.inserted and not vendor.insert_over:
        raise RedfishError("VRM0012" if vendor.oem == "Dell" else "ResourceInUse")
    if call.board.machine.faults.strike("redfish_media_ignored") or not body.get("Inserted", True):
        return
    medium = Medium(
        image, vendor.drives[name].kind, bool(body.get("WriteProtected", True)), body.get("UserName"),
        body.get("Password"),
    )  # fmt: skip
    media.insert(name, medium)
    protocol = f" by {body['TransferProtocolType']}" if "TransferProtocolType" in body else ""
    call.board.machine.log(f"virtual drive {name}: {image}{protocol}")


def _eject(call: Call) -> None:
    _drives(call)
    vendor = call.member.vendor
    if vendor.media_by_patch:
        raise call.missing()
    if vendor.eject_needs_body and not call.request.body:
        raise RedfishError("MissingOrMalformedPart")
    call.parameters("EjectMedia", ())
    if call.ids["drive"] not in call.board.machine.media.inserted and not vendor.eject_empty:
        raise RedfishError("VRM0009")
    _take_out(call)


def _take_out(call: Call) -> None:
    _check_post(call.board)
    call.board.machine.media.eject(call.ids["drive"])
    _mark(call, False)
    call.board.machine.log(f"virtual drive {call.ids['drive']}: empty")


def _check_post(board: Board) -> None:
    if board.vendor.busy_in_post and board.in_post:
        raise RedfishError("InvalidOperationForSystemState")


def _change(call: Call) -> None:
    _drives(call)
    vendor = call.member.vendor
    if vendor.media_by_patch:
        body = call.body()
        if "Image" in body and "Inserted" not in body:
            raise RedfishError("PropertyMissing", "Inserted", related=("#/Inserted",))
        if body.get("Image"):
            _put_in(call, body)
        else:
            _take_out(call)
        return
    patch(call, {"VerifyCertificate": _ignore, **({"Oem": _boot_once} if vendor.oem == "Hpe" else {})})


def _ignore(call: Call, body: Document, name: str) -> None:
    """Check the value: images are verified, or not, as the rack's settings say."""
    of_type(body, name, bool)


def _boot_once(call: Call, body: Document, name: str) -> None:
    """Have the machine start from the drive, once, as an iLO is asked to; the next start ends the mark."""
    marked = of_type(of_type(of_type(body, name, dict), "Hpe", dict), _MARK, bool)
    _mark(call, marked)
    if marked:
        _, _, efi = call.board.boot_override()
        call.board.override_boot("Cd", "Once", efi)


def _mark(call: Call, marked: bool) -> None:
    """Note whether the machine is to start from the drive next time."""
    others = [drive for drive in call.board.state["media_marked"] if drive != call.ids["drive"]]
    call.board.state["media_marked"] = [*others, call.ids["drive"]] if marked else others
    call.board.save()


ROUTES = tuple(
    Route(method, f"/{home}/VirtualMedia{below}", handler)
    for home in ("Systems/{system}", "Managers/{manager}")
    for method, below, handler in (
        ("GET", "", _list),
        ("GET", "/{drive}", _show),
        ("PATCH", "/{drive}", _change),
        ("POST", "/{drive}/Actions/VirtualMedia.InsertMedia", _insert),
        ("POST", "/{drive}/Actions/VirtualMedia.EjectMedia", _eject),
    )
)
