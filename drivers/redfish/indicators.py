"""Lights of a machine: of the system, its chassis and its disks."""

from collections.abc import Iterator

from ingot.common import errors
from ingot.common.json_types import Json
from ingot.drivers.interfaces.management import Indicator
from ingot.drivers.redfish import connection, fields

_STATES = {"Lit": "on", "Off": "off", "Blinking": "blinking"}
_VALUES = {state: value for value, state in _STATES.items()}

_LOCATOR = "LocationIndicatorActive"  # what newer BMCs have instead of IndicatorLED; it is on or off


def find(machine: connection.Machine) -> list[Indicator]:
    """Return the lights that the machine has."""
    return [_describe(component, name, document) for component, name, document in _list(machine)]


def _describe(component: str, name: str, document: Json) -> Indicator:
    states = ("off", "on") if _LOCATOR in document else tuple(sorted(_VALUES))
    return Indicator(component, name, readonly=False, states=states)


def _list(machine: connection.Machine) -> Iterator[tuple[str, str, Json]]:
    system = machine.system
    yield from _if_lit("system", str(system.uuid or system.identity), system.json)
    for chassis in system.chassis if fields.links(fields.part(system.json, "Links"), "Chassis") else ():
        yield from _if_lit("chassis", str(chassis.uuid or chassis.identity), chassis.json)
    storages = fields.link(system.json, "Storage")
    for storage in machine.read_members(storages) if storages else ():
        for path in fields.links(storage, "Drives"):
            document = {"@odata.id": path, **machine.read_optional(path)}
            yield from _if_lit("disk", f"{fields.text(storage, 'Id')}:{fields.text(document, 'Id')}", document)


def _if_lit(component: str, name: str, document: Json) -> Iterator[tuple[str, str, Json]]:
    if isinstance(document.get(_LOCATOR), bool) or fields.text(document, "IndicatorLED"):
        yield component, name, document


def _find_document(machine: connection.Machine, indicator: Indicator) -> Json:
    for component, name, document in _list(machine):
        if (component, name) == (indicator.component, indicator.name):
            return document
    raise errors.HardwareError(
        what=f"Finding the light {indicator.name} ({indicator.component}) of BMC {machine.address.where}",
        reason="it is not there anymore",
    )


def read(machine: connection.Machine, indicator: Indicator) -> str:
    """Return ``on``, ``off`` or ``blinking``."""
    document = _find_document(machine, indicator)
    if isinstance(document.get(_LOCATOR), bool):
        return "on" if document[_LOCATOR] else "off"
    shown = fields.text(document, "IndicatorLED") or ""
    if shown not in _STATES:
        what = f"Reading the light {indicator.name} ({indicator.component}) of BMC {machine.address.where}"
        raise errors.HardwareError(what=what, reason=f"IndicatorLED is {shown!r}")
    return _STATES[shown]


def write(machine: connection.Machine, indicator: Indicator, state: str) -> None:
    """Switch a light to ``on``, ``off`` or ``blinking``."""
    document = _find_document(machine, indicator)
    change = {_LOCATOR: state == "on"} if _LOCATOR in document else {"IndicatorLED": _VALUES[state]}
    machine.patch(document["@odata.id"], change, document.get("@odata.etag"))
