"""Sensors and event log of a BMC: pyghmi knows the records of IPMI 2.0, and is given a session that ends in time.

What pyghmi expects of its own ``Command`` is here in :class:`_Command`; nothing of pyghmi opens a connection.
What it gets wrong is put right in :class:`_Record` and :class:`_Records`; all BMCs share the thread it runs in.
"""

import contextlib
import math
from collections.abc import Sequence

from oslo_log import log
from pyghmi import constants, exceptions
from pyghmi.ipmi import events, sdr
from pyghmi.ipmi.private import constants as event_constants

from ingot.common.json_types import Json
from ingot.drivers.interfaces.sensors import THRESHOLDS, UNITS, Sensor
from ingot.drivers.ipmi.pyghmi_session import GARBLED, RequestRefused, Session

LOG = log.getLogger(__name__)

FACTOR = 3  # times [ipmi] command_retry_timeout: a BMC has hundreds of records

_MOST_PACKETS = 20_000  # each record takes two or three

_MOST_KEPT = 50
"""BMCs whose records are kept: those of one are some hundred KiB."""

_CANCELED, _TOO_LONG = 0xC5, 0xCA
"""Refusals upon which pyghmi asks for less of a record, or for a new reservation."""

_PACKED, _BYTES = 2, (0, 3)
"""Types of a name (IPMI 2.0 chapter 43.15): six bits for a letter, and eight."""

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


class _Refused(RequestRefused, exceptions.IpmiException):
    """A request was refused; pyghmi goes on where it knows what that means."""

    def __init__(self, refused: RequestRefused) -> None:
        super().__init__(refused.request, refused.code, str(refused))
        self.ipmicode = refused.code


class _Command:
    """A session, as pyghmi's readers of records expect it."""

    def __init__(self, session: Session) -> None:
        self._session = session
        session.most_packets = _MOST_PACKETS
        self._oem = self  # no vendor's events are known

    def raw_command(self, netfn: int, command: int, data: Sequence[int] = ()) -> Json:
        try:
            return self.xraw_command(netfn, command, data)
        except _Refused as exc:
            if exc.code not in (_CANCELED, _TOO_LONG):
                raise
            return {"code": exc.code, "data": b""}

    def xraw_command(self, netfn: int, command: int, data: Sequence[int] = ()) -> Json:
        try:
            return {"code": 0, "data": self._session.send(netfn, command, data)}
        except RequestRefused as exc:
            raise _Refused(exc) from None

    def get_event_constants(self) -> object:
        return event_constants

    def process_event(self, event: Json, command: object, record: bytes) -> None:
        """Do nothing: pyghmi calls it for what a vendor may know of an event."""


class _Record(sdr.SDREntry):
    """A record of a sensor."""

    def tlv_decode(self, kind_and_length: int, data: Sequence[int]) -> str:
        """Return a name; pyghmi's own never ends at a packed one, and refuses what is not UTF-8."""
        kind = kind_and_length >> 6
        if kind == _PACKED:
            bits = int.from_bytes(bytes(data), "little")
            return "".join(chr((bits >> place & 0x3F) + 0x20) for place in range(0, len(data) * 8 - 5, 6)).rstrip()
        if kind in _BYTES:
            return _decode_name(bytes(data))
        name: str = super().tlv_decode(kind_and_length, data)
        return name


def _decode_name(name: bytes) -> str:
    with contextlib.suppress(UnicodeDecodeError):
        return name.decode()
    return name.decode("latin-1")


class _Records(sdr.SDR):
    """The records of one BMC, which are kept until it says that they have changed."""

    device_id: object

    def __init__(self, command: _Command, session: Session) -> None:
        self._place = session.place
        super().__init__(command)

    def make_sdr_entry(self, record: Sequence[int]) -> _Record:
        return _Record(record, event_constants, False, self.mfg_id, self.prod_id)

    def add_sdr(self, record: Sequence[int]) -> None:
        """Add a record, unless it cannot be read: the others can."""
        try:
            super().add_sdr(record)
        except GARBLED as exc:
            LOG.debug("A record of a sensor is left out (%r): %s", exc, bytes(record).hex(" "))

    def get_sdr(self) -> None:
        """Read the records, unless they are known; pyghmi would take those of any BMC of the same version and time."""
        self.device_id = (self._place, self.device_id)
        super().get_sdr()
        for oldest in list(sdr.shared_sdrs)[:-_MOST_KEPT]:
            del sdr.shared_sdrs[oldest]


def _name_health(value: int) -> str:
    return next((name for bits, name in _HEALTH if value & bits), "OK")


def read_sensors(session: Session) -> list[Sensor]:
    """Return the machine's sensors with what they read; one that this BMC does not read, or not now, is left out."""
    command = _Command(session)
    known = _Records(command, session).sensors.values()
    # Another controller, or logical unit, has other sensors of the same numbers.
    own = [one for one in known if one.readable and one.sensor_owner in session.servers and not one.sensor_lun]
    found = (_read_sensor(session, command, one) for one in own)
    return [one for one in found if one is not None]


def _read_sensor(session: Session, command: _Command, record: _Record) -> Sensor | None:
    """Return a sensor; None: it is not there, or not now, or what it reads is nothing that pyghmi can compute."""
    try:
        reading = record.decode_sensor_reading(command, session.send(*_READ, (record.sensor_number,)))
        return None if reading.unavailable else _describe(session, command, record, reading)
    except RequestRefused:
        return None
    except GARBLED as exc:
        LOG.debug("Sensor %s is left out: %r", record.name, exc)
        return None


def _describe(session: Session, command: _Command, record: _Record, reading: sdr.SensorReading) -> Sensor:
    measures = reading.value is not None
    unit = ((reading.units or "").strip() or None) if measures else None
    return {
        "id": str(record.sensor_number),
        "name": reading.name.rstrip("\x00 "),
        "kind": UNITS.get(unit or "") or _KINDS.get(reading.type, "other"),
        "reading": _round(reading.value) if measures else None,
        "unit": unit,
        "thresholds": _read_thresholds(session, command, record) if measures and record.has_thresholds else {},
        "health": _name_health(reading.health),
        "place": record.entity,
        "states": list(reading.states),
    }


def _round(value: float) -> float:
    """
    :raises ValueError: it is infinite.
    """
    if not math.isfinite(value):
        raise ValueError(f"a reading of {value}")
    return round(value, 3)


def _read_thresholds(session: Session, command: _Command, record: _Record) -> dict[str, float]:
    try:
        mask, *raw = session.send(*_THRESHOLDS, (record.sensor_number,))
    except RequestRefused:
        return {}
    return {
        name: _round(record.decode_value(command, value))
        for number, (name, value) in enumerate(zip(THRESHOLDS, raw, strict=False))
        if mask & 1 << number
    }


def read_log(session: Session) -> list[Json]:
    """Return the events in the BMC's log, the oldest first."""
    command = _Command(session)
    records = _Records(command, session)
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
