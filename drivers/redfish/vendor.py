"""What the API has no place of its own for, as methods of nodes: sensors, media, and where the BMC sends its events."""

import urllib.parse

from ingot.common import boot_files, errors
from ingot.common.json_types import Json
from ingot.drivers.interfaces.sensors import ReadsSensors
from ingot.drivers.interfaces.task import Task
from ingot.drivers.interfaces.vendor import node_method
from ingot.drivers.redfish import connection, fields, session, virtual_media
from ingot.drivers.redfish.base import RedfishInterface

_PROTOCOLS = ("Redfish", "SNMPv1", "SNMPv2c", "SNMPv3", "SMTP", "SyslogTLS", "SyslogTCP", "SyslogUDP", "SyslogRELP")

_DRIVES = {"cd": "cdrom", "dvd": "cdrom", "usb": "disk", **{name: name for name in virtual_media.MEDIA_TYPES}}
"""Name of a drive, as Ironic or as the API has it -> its type in the API."""

_SHOWN = ("Id", "Context", "Protocol", "Destination")
_SHOWN_OF_LIST = ("@odata.id", "@odata.type", "Name", "Members@odata.count")


def _read_events(machine: connection.Machine) -> str:
    """Return the path of the BMC's subscriptions.

    :raises HardwareError: it has none.
    """
    found = fields.link(machine.read_linked(machine.service.json, "EventService"), "Subscriptions")
    if not found:
        raise errors.HardwareError(what=f"Finding subscriptions of BMC {machine.address.where}",
                                   reason="it has no EventService")  # fmt: skip
    return found


def _show(document: Json) -> Json:
    """Return what the API shows of a subscription."""
    found = {name: fields.text(document, name) for name in _SHOWN}
    types = {"EventTypes": fields.texts(document, "EventTypes")} if "EventTypes" in document else {}
    return {name: value for name, value in found.items() if value is not None} | types


class RedfishVendor(RedfishInterface, ReadsSensors):
    @node_method("POST", description="Ejects the media of a drive (boot_device), or of all.", returns_result=False)
    def eject_vmedia(self, task: Task, boot_device: str | None = None) -> None:
        """Eject the media of one type of drive, or of all."""
        if boot_device is not None and boot_device not in _DRIVES:
            raise errors.Invalid(field="boot_device", value=boot_device, allowed=f"One of {', '.join(_DRIVES)}.")
        chosen = list(virtual_media.MEDIA_TYPES) if boot_device is None else [_DRIVES[boot_device]]
        connection.call(task, lambda machine: virtual_media.eject(machine, chosen), factor=2)

    @node_method("POST", description="Create a subscription for the BMC's events. Required: Destination.")
    def create_subscription(
        self, task: Task, Destination: str, Context: str | None = None, EventTypes: list[str] | None = None,
        Protocol: str = "Redfish", HttpHeaders: list[Json] | None = None,
    ) -> Json:  # fmt: skip
        """Have the BMC send its events to a URL; return the subscription."""
        if not isinstance(Destination, str) or not boot_files.read_scheme(Destination):
            raise errors.Invalid(field="Destination", value=Destination, allowed="A URL.")
        if Protocol not in _PROTOCOLS:
            raise errors.Invalid(field="Protocol", value=Protocol, allowed=f"One of {', '.join(_PROTOCOLS)}.")
        for name, value, kind in (("Context", Context, str), ("EventTypes", EventTypes, list),
                                  ("HttpHeaders", HttpHeaders, list)):  # fmt: skip
            if value is not None and not isinstance(value, kind):
                raise errors.Invalid(field=name, value=value, allowed=f"A {'string' if kind is str else 'list'}.")
        requested: Json = {"Destination": Destination, "Protocol": Protocol, "Context": Context or "",
                  "EventTypes": EventTypes or ["Alert"]}  # fmt: skip
        requested |= {"HttpHeaders": HttpHeaders} if HttpHeaders else {}

        def create(machine: connection.Machine) -> Json:
            response = machine.post(_read_events(machine), requested)
            location = response.headers.get("Location")
            return _show(machine.read(session.quote(location)) if location else requested | response.read_object())

        return connection.call(task, create)

    @node_method("DELETE", description="Delete a subscription. Required: id.")
    def delete_subscription(self, task: Task, id: str) -> None:
        connection.call(task, lambda machine: machine.delete(_find_member(_read_events(machine), id)))

    @node_method("GET", description="List the subscriptions of the BMC.", exclusive=False)
    def get_all_subscriptions(self, task: Task) -> Json:
        """Return the collection as BMCs have it: its members are links."""
        return connection.call(task, _list_subscriptions)

    @node_method("GET", description="Show a subscription. Required: id.", exclusive=False)
    def get_subscription(self, task: Task, id: str) -> Json:
        return connection.call(task, lambda machine: _show(machine.read(_find_member(_read_events(machine), id))))


def _list_subscriptions(machine: connection.Machine) -> Json:
    document = machine.read(_read_events(machine))
    members = [{"@odata.id": path} for path in fields.links(document, "Members")]
    found = {name: value for name in _SHOWN_OF_LIST if isinstance(value := document.get(name), str | int)}
    return {**found, "Members": members}


def _find_member(collection: str, identity: object) -> str:
    if not isinstance(identity, str) or not identity.strip("."):
        raise errors.Invalid(field="id", value=identity, allowed="The Id of a subscription.")
    return f"{collection.rstrip('/')}/{urllib.parse.quote(identity, safe='')}"
