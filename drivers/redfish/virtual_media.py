"""Virtual media: drives of a machine whose media the BMC fetches from a URL."""

import asyncio

from ingot.common import boot_files, errors, masking
from ingot.common.json_types import Json
from ingot.drivers.interfaces import bmc_loop
from ingot.drivers.redfish import connection, dell, fields

MEDIA_TYPES: dict[str, tuple[str, ...]] = {"cdrom": ("CD", "DVD"), "floppy": ("Floppy",), "disk": ("USBStick",)}
"""Type of device in the API -> Redfish's MediaTypes of the drives that can be it, the best first."""

SECOND_TYPES = ("disk", "floppy")
"""Types of drives that can have a medium beside the one that boots, the best first."""

PROTOCOL = "vmedia_transport_protocol"
PROPERTIES = {
    PROTOCOL: "How the BMC is to fetch media (TransferProtocolType): HTTP or HTTPS. Default: nothing, unless "
    "it asks for it. Optional."
}

_PROTOCOLS = ("HTTP", "HTTPS")

_LOOKS = (0.0, 0.5, 1.0, 2.0, 4.0, 8.0)
"""Seconds before each look whether an image has arrived in its drive."""


def find_drives(machine: connection.Machine) -> list[connection.Resource]:
    """Return the machine's drives: its own, where newer BMCs have them, else those of its managers."""
    if "VirtualMedia" in machine.system.json:
        return list(machine.system.virtual_media.get_members())
    if not fields.links(fields.part(machine.system.json, "Links"), "ManagedBy"):
        return []
    managers = [manager for manager in machine.system.managers if "VirtualMedia" in manager.json]
    return [drive for manager in managers for drive in manager.virtual_media.get_members()]


def describe_drives(machine: connection.Machine) -> list[Json]:
    """Return what is in the drives."""
    return [
        {
            "media_types": [one.value for one in drive.media_types or ()],
            "inserted": drive.inserted,
            "image": drive.image and masking.mask_text(drive.image),
        }
        for drive in find_drives(machine)
    ]


def check_url(image_url: str) -> None:
    """
    :raises Invalid: the BMC could not fetch it.
    """
    if boot_files.read_scheme(image_url) not in ("http", "https"):
        raise errors.Invalid(
            field="image_url", value=image_url, allowed="A URL of http or https: the BMC fetches the image itself."
        )


def read_protocol(driver_info: Json) -> str | None:
    """Return the protocol that is sent to a node's BMC, None for none.

    :raises Invalid: there is no such protocol.
    """
    given = driver_info.get(PROTOCOL)
    if given is None:
        return None
    if str(given).upper() not in _PROTOCOLS:
        field, allowed = f"driver_info.{PROTOCOL}", f"One of {', '.join(_PROTOCOLS)}."
        raise errors.Invalid(field=field, value=given, allowed=allowed)
    return str(given).upper()


def insert(machine: connection.Machine, device_type: str, image_url: str, protocol: str | None = None) -> None:
    """Put an image into an empty drive, or in place of what is in the only one. Safe to repeat.

    :param protocol: how the BMC is to fetch it.
    :raises Invalid: the machine has no drive of this type.
    """
    drives = _find_fitting(_find_usable(machine), device_type)
    if any(drive.inserted and drive.image == image_url for drive in drives):
        return
    drive = min(drives, key=lambda drive: bool(drive.inserted))
    if drive.inserted:
        drive.eject_media()
    try:
        with machine.repeating():
            drive.insert_media(image_url, transfer_protocol=protocol)
    except machine.refusals:
        # One that was done, and its answer lost, is repeated; some refuse that, as the drive has an image then.
        shown = machine.read(drive.path)
        if not shown.get("Inserted") or shown.get("Image") != image_url:
            raise


def insert_and_see(machine: connection.Machine, device_type: str, image_url: str, protocol: str | None = None) -> None:
    """Put an image into a drive, and wait until the BMC shows it there.

    :raises HardwareError: it does not.
    """
    insert(machine, device_type, image_url, protocol)
    for pause in _LOOKS:
        bmc_loop.wait(asyncio.sleep(pause))
        shown = [machine.read(drive.path) for drive in _find_all(find_drives(machine), device_type)]
        if any(drive.get("Inserted") and drive.get("Image") for drive in shown):
            return
    raise errors.HardwareError(
        what=f"Inserting {masking.mask_text(image_url)} by BMC {machine.address.where}",
        reason="it accepts the image, and shows none in its drives",
    )


def insert_second(machine: connection.Machine, image_url: str, protocol: str | None = None) -> None:
    """Put an image into a drive beside that of CDs, as :func:`insert_and_see` does.

    :raises HardwareError: it does not arrive, or there is no such drive.
    """
    boots = set(MEDIA_TYPES["cdrom"])
    free = [
        drive
        for drive in _find_usable(machine)
        if not drive.inserted or drive.image == image_url or boots.isdisjoint(_list_types(drive))
    ]
    for device_type in SECOND_TYPES:
        if _find_all(free, device_type):
            insert_and_see(machine, device_type, image_url, protocol)
            return
    raise errors.HardwareError(
        what=f"Inserting {masking.mask_text(image_url)} by BMC {machine.address.where}",
        reason="it has neither a virtual USB stick nor a virtual floppy disk beside the drive that boots",
    )


def eject(machine: connection.Machine, device_types: list[str]) -> list[str]:
    """Empty the drives of these types; return the images that were in them. Safe to repeat."""
    drives, ejected = find_drives(machine), []
    requested = {drive.path for device_type in device_types for drive in _find_all(drives, device_type)}
    for drive in drives:
        if drive.inserted and drive.path in requested:
            ejected.append(str(drive.image))
            with machine.repeating():
                drive.eject_media()
    return ejected


def has_image(machine: connection.Machine, device_type: str) -> bool:
    """Return whether an image is in a drive of a type."""
    return any(drive.inserted for drive in _find_all(find_drives(machine), device_type))


def _find_usable(machine: connection.Machine) -> list[connection.Resource]:
    """Return the drives that take images."""
    drives = find_drives(machine)
    slot = dell.find_only_slot(machine)
    return [drive for drive in drives if drive.identity == slot] or drives


def _list_types(drive: connection.Resource) -> set[str]:
    return {one.value for one in drive.media_types or ()}


def _find_all(drives: list[connection.Resource], device_type: str) -> list[connection.Resource]:
    """Return the drives of a type."""
    kinds = set(MEDIA_TYPES[device_type])
    return [drive for drive in drives if kinds.intersection(_list_types(drive))]


def _find_fitting(drives: list[connection.Resource], device_type: str) -> list[connection.Resource]:
    """Return the drives of a type, those of the best kind of media that there is."""
    for kind in MEDIA_TYPES[device_type]:
        if fitting := [drive for drive in drives if kind in _list_types(drive)]:
            return fitting
    known = {kind for drive in drives for kind in _list_types(drive)}
    names = [name for name, kinds in MEDIA_TYPES.items() if known.intersection(kinds)]
    raise errors.Invalid(
        field="device_type", value=device_type, allowed=f"This machine has: {', '.join(names) or 'no virtual media'}."
    )
