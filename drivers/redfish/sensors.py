"""The sensors of a machine: what its chassis read, and how its power supplies, fans and drives are.

Chassis have had the same in two forms. The older, Thermal and Power, has everything in two documents. The newer has a
resource for each sensor and each part, and BMCs that have both show the same in both. So the older is read first, and
the newer only where it says nothing.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from oslo_log import log

from ingot.common.json_types import Json
from ingot.drivers.interfaces.sensors import HEALTH, UNITS, Sensor
from ingot.drivers.redfish import connection, fields

LOG = log.getLogger(__name__)

FACTOR = 4  # times read_timeout: each drive is a request, and in the newer form each sensor

MOST_REQUESTS = 250
"""For one reading, without those that find the machine: what would need more is left out."""

_EXPANDED = "?$expand=.($levels=1)"
_ABSENT = ("Absent", "Disabled")
_USUAL = ("Enabled", None)

_THRESHOLDS = {
    "lower_non_critical": ("LowerThresholdNonCritical", "LowerCaution"),
    "lower_critical": ("LowerThresholdCritical", "LowerCritical"),
    "lower_non_recoverable": ("LowerThresholdFatal", "LowerFatal"),
    "upper_non_critical": ("UpperThresholdNonCritical", "UpperCaution"),
    "upper_critical": ("UpperThresholdCritical", "UpperCritical"),
    "upper_non_recoverable": ("UpperThresholdFatal", "UpperFatal"),
}
"""Name of a threshold: in the older form, in the newer."""

_UNIT_NAMES = {"Cel": "°C", "Percent": "%", "{rev}/min": "RPM", "kW.h": "kWh"}
_READING_TYPES = {
    "Temperature": "temperature",
    "Rotational": "fan",
    "Voltage": "voltage",
    "Current": "current",
    "Power": "power",
    "EnergykWh": "energy",
    "Humidity": "humidity",
}


class _Part(NamedTuple):
    """A list of a document, or an object of it, whose members are sensors.

    :param readings: names of the reading: the first that is there counts.
    :param unit: of the reading, where the member does not say it itself.
    """

    name: str
    kind: str
    readings: tuple[str, ...] = ("Reading",)
    unit: str | None = None


_OLDER = {
    "Thermal": (
        _Part("Temperatures", "temperature", ("ReadingCelsius",), "°C"),
        _Part("Fans", "fan", unit="RPM"),
    ),
    "Power": (
        _Part("Voltages", "voltage", ("ReadingVolts",), "V"),
        _Part("PowerControl", "power", ("PowerConsumedWatts",), "W"),
        _Part("PowerSupplies", "power_supply", ("PowerOutputWatts", "LastPowerOutputWatts"), "W"),
    ),
}
_METRICS = (
    _Part("TemperatureReadingsCelsius", "temperature", unit="°C"),
    _Part("TemperatureCelsius", "temperature", unit="°C"),
    _Part("FanSpeedsPercent", "fan", unit="%"),
    _Part("HumidityPercent", "humidity", unit="%"),
    _Part("PowerWatts", "power", unit="W"),
    _Part("EnergykWh", "energy", unit="kWh"),
)
"""Parts of EnvironmentMetrics and ThermalMetrics, which repeat what sensors read (DataSourceUri)."""


class _Reader:
    """Reads a machine's documents, as long as it may ask for more.

    :ivar left_out: how many it did not read.
    """

    def __init__(self, machine: connection.Machine) -> None:
        self._machine = machine
        self._left = MOST_REQUESTS
        self.left_out = 0
        expands = fields.part(machine.service.json, "ProtocolFeaturesSupported", "ExpandQuery")
        self._expands = expands.get("NoLinks") is True

    def read(self, path: str | None) -> Json:
        """Return a document; an empty one if there is no path, the BMC refuses it, or too many were read."""
        if path is None:
            return {}
        if not self._left:
            self.left_out += 1
            return {}
        self._left -= 1
        return self._machine.read_optional(path)

    def list(self, path: str | None) -> Iterator[tuple[str, Json]]:
        """Yield path and document of each member of a collection: of one request, where the BMC can do that."""
        if path is None:
            return
        whole = self.read(path + _EXPANDED) if self._expands and "?" not in path else {}
        page = whole or self.read(path)
        while page:
            for member in fields.parts(page, "Members"):
                place = fields.link(member)
                if place is not None:
                    yield place, member if len(member) > 1 else self.read(place)
            page = self.read(fields.next_page(page))


def read(machine: connection.Machine) -> list[Sensor]:
    """Return the machine's sensors; what the BMC does not have, or refuses, is left out."""
    system, reader = machine.system.json, _Reader(machine)
    found: dict[str, Sensor] = {}
    for path in fields.links(fields.part(system, "Links"), "Chassis"):
        chassis = reader.read(path)
        found |= _read_older(reader, chassis) or _read_newer(reader, chassis)
    found |= _read_drives(reader, system)
    if reader.left_out:
        LOG.warning("%s: %d resources with sensors were not read, as %d requests have been made",
                    machine.describe(machine.system_path), reader.left_out, MOST_REQUESTS)  # fmt: skip
    return list(found.values())


def _read_older(reader: _Reader, chassis: Json) -> dict[str, Sensor]:
    found = {}
    for name, parts in _OLDER.items():
        path = fields.link(chassis, name)
        document = reader.read(path)
        for part in parts:
            for number, member in enumerate(fields.parts(document, part.name)):
                if (sensor := _describe(f"{path}#/{part.name}/{number}", member, part)) is not None:
                    found[sensor["id"]] = sensor
    return found


def _read_newer(reader: _Reader, chassis: Json) -> dict[str, Sensor]:
    found = {}
    for path, document in reader.list(fields.link(chassis, "Sensors")):
        if (sensor := _describe(path, document, _choose_part(document))) is not None:
            found[path] = sensor
    thermal = reader.read(fields.link(chassis, "ThermalSubsystem"))
    power = reader.read(fields.link(chassis, "PowerSubsystem"))
    for place in (fields.link(chassis, "EnvironmentMetrics"), fields.link(thermal, "ThermalMetrics")):
        found |= _read_metrics(place, reader.read(place), found)
    for collection, part in ((fields.link(thermal, "Fans"), _Part("SpeedPercent", "fan", unit="%")),
                             (fields.link(power, "PowerSupplies"), _Part("", "power_supply"))):  # fmt: skip
        for path, document in reader.list(collection):
            speed = fields.part(document, part.name)
            known = fields.path(speed, "DataSourceUri") in found
            reading = {} if known else {"Reading": speed.get("Reading")}
            if (
                sensor := _describe(path, {**document, **reading}, part if reading else _Part("", part.kind))
            ) is not None:
                found[path] = sensor
    return found


def _choose_part(document: Json) -> _Part:
    """Return what a sensor of its own resource is."""
    kind = _READING_TYPES.get(fields.text(document, "ReadingType") or "")
    unit = _name_unit(document, None)
    if kind is None and unit == "%" and document.get("PhysicalContext") == "Fan":
        kind = "fan"
    return _Part("", kind or UNITS.get(unit or "", "other"))


def _read_metrics(path: str | None, document: Json, known: Mapping[str, Sensor]) -> dict[str, Sensor]:
    """Return the readings of a document of metrics, without those of sensors that are known already."""
    found = {}
    for part in _METRICS:
        value = document.get(part.name)
        several = isinstance(value, list)
        members = fields.parts(document, part.name) if several else [fields.part(document, part.name)]
        for number, member in enumerate(members):
            if fields.measure(member, "Reading") is None or fields.path(member, "DataSourceUri") in known:
                continue
            identity = f"{path}#/{part.name}" + (f"/{number}" if several else "")
            named = {"Name": fields.text(member, "DeviceName") or part.name, **member}
            if (sensor := _describe(identity, named, part)) is not None:
                found[identity] = sensor
    return found


def _read_drives(reader: _Reader, system: Json) -> dict[str, Sensor]:
    paths = [
        path for _, storage in reader.list(fields.link(system, "Storage")) for path in fields.links(storage, "Drives")
    ]
    found = {}
    for path in dict.fromkeys(paths):
        drive = reader.read(path)
        sensor = _describe(path, drive, _Part("", "drive", ())) if drive else None
        if sensor is None:
            continue
        if drive.get("FailurePredicted") is True:
            sensor["states"].append("FailurePredicted")
            sensor["health"] = "Critical" if sensor["health"] == "Critical" else "Warning"
        found[path] = sensor
    return found


def _describe(identity: str, document: Json, part: _Part) -> Sensor | None:
    """Return the sensor that a document, or an object of one, is; None: it is not there in fact, or says nothing."""
    status = fields.part(document, "Status")
    state, health = fields.text(status, "State"), fields.text(status, "Health")
    reading = next((value for name in part.readings if (value := fields.measure(document, name)) is not None), None)
    if state in _ABSENT or (reading is None and health not in HEALTH and state is None):
        return None
    thresholds = _read_thresholds(document)
    return {
        "id": identity,
        "name": fields.text(document, "Name") or fields.text(document, "FanName") or identity.rpartition("/")[2],
        "kind": part.kind,
        "reading": reading,
        "unit": _name_unit(document, part.unit) if reading is not None or thresholds else None,
        "thresholds": thresholds,
        "health": health if health in HEALTH else None,
        "place": fields.text(document, "PhysicalContext"),
        "states": [] if state is None or state in _USUAL else [state],
    }


def _name_unit(document: Json, usual: str | None) -> str | None:
    unit = fields.text(document, "ReadingUnits")
    return usual if unit is None else _UNIT_NAMES.get(unit, unit)


def _read_thresholds(document: Json) -> dict[str, float]:
    newer = fields.part(document, "Thresholds")
    values = {
        name: (fields.measure(document, older), fields.measure(fields.part(newer, key), "Reading"))
        for name, (older, key) in _THRESHOLDS.items()
    }
    return {name: value for name, pair in values.items() for value in pair if value is not None}
