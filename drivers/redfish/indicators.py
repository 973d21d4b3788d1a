"""Lights of a machine: of the system, its chassis and its disks."""

from collections.abc import Iterator

from ingot.common import errors
from ingot.common.json_types import Json
from ingot.drivers.interfaces.management import Indicator
from ingot.drivers.redfish import connection

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
    for chassis in system.chassis if (system.json.get("Links") or {}).get("Chassis") else ():
        yield from _if_lit("chassis", str(chassis.uuid or chassis.identity), chassis.json)
    if "Storage" in system.json:
        for storage in machine.read_members(system.json["Storage"]["@odata.id"]):
            for drive in storage.get("Drives") or ():
                document = machine.read_optional(drive["@odata.id"])
                yield from _if_lit("disk", f"{storage.get('Id')}:{document.get('Id')}", document)


def _if_lit(component: str, name: str, document: Json) -> Iterator[tuple[str, str, Json]]:
    if document.get(_LOCATOR) is not None or document.get("IndicatorLED") is not None:
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
    if _LOCATOR in document:
        return "on" if document[_LOCATOR] else "off"
    state = _STATES.get(document["IndicatorLED"])
    if state is None:
        reason = f"IndicatorLED is {document['IndicatorLED']!r}"
        raise errors.HardwareError(what=f"Reading {machine.describe(document['@odata.id'])}", reason=reason)
    return state


def write(machine: connection.Machine, indicator: Indicator, state: str) -> None:
    """Switch a light to ``on``, ``off`` or ``blinking``."""
    document = _find_document(machine, indicator)
    change = {_LOCATOR: state == "on"} if _LOCATOR in document else {"IndicatorLED": _VALUES[state]}
    machine.patch(document["@odata.id"], change, document.get("@odata.etag"))
