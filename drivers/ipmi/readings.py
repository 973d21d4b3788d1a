"""Sensors and event log of a BMC: pyghmi knows the records of IPMI 2.0, and is given a session that ends in time.

What pyghmi expects of its own ``Command`` is here in :class:`_Command`; nothing of pyghmi opens a connection.
"""

from collections.abc import Sequence

from pyghmi import constants, exceptions
from pyghmi.ipmi import events, sdr
from pyghmi.ipmi.private import constants as event_constants

from ingot.common.json_types import Json
from ingot.drivers.interfaces.sensors import THRESHOLDS, UNITS, Sensor
from ingot.drivers.ipmi.pyghmi_session import RequestRefused, Session

FACTOR = 3  # times [ipmi] command_retry_timeout: a BMC has hundreds of records

_MOST_PACKETS = 20_000  # each record takes two or three

_READ, _THRESHOLDS = (0x04, 0x2D), (0x04, 0x27)
_RESERVE_LOG, _CLEAR_LOG = (0x0A, 0x42), (0x0A, 0x47)
_ERASE = (*b"CLR", 0xAA)
_KINDS = {
    "Temperature": "temperature",
    "Voltage": "voltage",
    "Current": "current",
    "Fan": "fan",
    "Cooling Device": "fan",
    "Power Supply": "power_supply",
    "Power Unit": "power_supply",
    "PSU Redundancy": "power_supply",
    "Drive Bay": "drive",
    "Processor": "processor",
    "Memory": "memory",
    "Battery": "battery",
    "Physical Security": "intrusion",
}
"""Type of a sensor, as pyghmi names it -> its kind. What measures watts has a type of a supply, or none of these."""

_HEALTH = (
    (constants.Health.Failed | constants.Health.Critical, "Critical"),
    (constants.Health.Warning, "Warning"),
)


class _Command:
    """A session, as pyghmi's readers of records expect it."""

    def __init__(self, session: Session) -> None:
        self._session = session
        session.most_packets = _MOST_PACKETS
        self._oem = self  # no vendor's events are known

    def raw_command(self, netfn: int, command: int, data: Sequence[int] = ()) -> Json:
        return {"code": 0, **self._session.request(netfn, command, data)}

    def xraw_command(self, netfn: int, command: int, data: Sequence[int] = ()) -> Json:
        answer = self.raw_command(netfn, command, data)
        if answer["code"]:
            raise exceptions.IpmiException(answer.get("error", ""), answer["code"])
        return {**answer, "data": bytes(answer["data"])}

    def get_event_constants(self) -> object:
        return event_constants

    def process_event(self, event: Json, command: object, record: bytes) -> None:
        """Do nothing: pyghmi calls it for what a vendor may know of an event."""


def _name_health(value: int) -> str:
    return next((name for bits, name in _HEALTH if value & bits), "OK")


def read_sensors(session: Session) -> list[Sensor]:
    """Return the machine's sensors with what they read; one that the BMC does not read now is left out."""
    command = _Command(session)
    known = sdr.SDR(command).sensors.values()
    found = (_read_sensor(session, command, one) for one in known if one.readable)
    return [one for one in found if one is not None]


def _read_sensor(session: Session, command: _Command, record: sdr.SDREntry) -> Sensor | None:
    try:
        reading = record.decode_sensor_reading(command, session.send(*_READ, (record.sensor_number,)))
    except RequestRefused:  # not there, or not now
        return None
    if reading.unavailable:
        return None
    measures = reading.value is not None
    unit = ((reading.units or "").strip() or None) if measures else None
    return {
        "id": str(record.sensor_number),
        "name": reading.name.rstrip("\x00 "),
        "kind": UNITS.get(unit or "") or _KINDS.get(reading.type, "other"),
        "reading": round(reading.value, 3) if measures else None,
        "unit": unit,
        "thresholds": _read_thresholds(session, command, record) if measures and record.has_thresholds else {},
        "health": _name_health(reading.health),
        "states": list(reading.states),
    }


def _read_thresholds(session: Session, command: _Command, record: sdr.SDREntry) -> dict[str, float]:
    try:
        mask, *raw = session.send(*_THRESHOLDS, (record.sensor_number,))
    except RequestRefused:
        return {}
    return {
        name: round(record.decode_value(command, value), 3)
        for number, (name, value) in enumerate(zip(THRESHOLDS, raw, strict=False))
        if mask & 1 << number
    }


def read_log(session: Session) -> list[Json]:
    """Return the events in the BMC's log, the oldest first."""
    command = _Command(session)
    records = sdr.SDR(command)
    entries = events.EventHandler(records, command).fetch_sel(command)
    return [
        {
            "id": one.get("record_id"),
            "time": one.get("timestamp"),
            "sensor": one.get("component"),
            "type": one.get("component_type"),
            "event": one.get("event"),
            "severity": _name_health(one.get("severity", 0)),
            "ended": bool(one.get("deassertion")),
        }
        for one in entries
    ]


def clear_log(session: Session) -> None:
    """Clear the BMC's log; it may go on erasing afterwards."""
    reservation = tuple(session.send(*_RESERVE_LOG, ()))
    session.send(*_CLEAR_LOG, (*reservation, *_ERASE))
