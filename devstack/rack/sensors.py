"""The sensors of a machine's BMC: their records (SDR, IPMI 2.0 chapter 43) and what they read."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from ingot.rack.faults import Faults

READABLE = 0xC0  # event messages and scanning are on
_DEGREES, _VOLTS, _ROUNDS = 1, 4, 18
_TEMPERATURE, _VOLTAGE, _FAN, _DRIVE = 0x01, 0x02, 0x04, 0x0D
_HOT, _WARM, _COOL = 99, 24, 19


class Chassis(Protocol):
    @property
    def faults(self) -> Faults: ...
    @property
    def powered(self) -> bool: ...


@dataclass(frozen=True)
class Sensor:
    """One sensor.

    :param thresholds: raw: lower non-critical, critical and non-recoverable, then the upper three. None: it is no
        threshold sensor, and what it reads are the bits of its states.
    :param scale: M and the exponent of the result: what one step of the raw value is worth.
    """

    number: int
    name: str
    type: int
    entity: int
    read: Callable[[Chassis], int]
    unit: int = 0
    thresholds: tuple[int, int, int, int, int, int] | None = None
    scale: tuple[int, int] = (1, 0)

    def answer(self, chassis: Chassis) -> list[int]:
        """Return the data of an answer to Get Sensor Reading."""
        raw = self.read(chassis)
        if self.thresholds is None:
            return [0, READABLE, raw, 0x80]
        lower, upper = self.thresholds[:3], self.thresholds[3:]
        bits = sum(1 << n for n, limit in enumerate(lower) if raw <= limit)
        bits |= sum(1 << n + 3 for n, limit in enumerate(upper) if raw >= limit)
        return [raw, READABLE, bits]

    def answer_thresholds(self) -> list[int]:
        return [0x3F, *(self.thresholds or (0,) * 6)]

    def record(self, number: int) -> bytes:
        """Return the sensor's record with a number in the repository."""
        begin = [0x20, 0, self.number, self.entity, 1]
        name = self.name.encode()
        if self.thresholds is None:
            masks = [0x67, 0x40, self.type, 0x6F, 3, 0, 3, 0, 3, 0]
            body = [*begin, *masks, 0xC0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0]
            kind = 0x02
        else:
            masks = [0x7F, 0x44, self.type, 0x01, 0, 0, 0, 0, 0x3F, 0]
            upper_first = [*reversed(self.thresholds[3:]), *reversed(self.thresholds[:3])]
            multiplier, exponent = self.scale
            formula = [0, multiplier, 0, 0, 0, 0, (exponent & 0x0F) << 4]
            body = [*begin, *masks, 0, self.unit, 0, *formula, 0, 0, 0, 0, 0xFF, 0, *upper_first, 1, 1, 0, 0, 0]
            kind = 0x01
        body = [*body, 0xC0 | len(name), *name]
        return bytes((number & 0xFF, number >> 8, 0x51, kind, len(body), *body))


def _read_inlet(chassis: Chassis) -> int:
    if chassis.faults.active("too_hot"):
        return _HOT
    return _WARM if chassis.powered else _COOL


SENSORS = (
    Sensor(1, "Inlet Temp", _TEMPERATURE, 0x37, _read_inlet, _DEGREES, (5, 3, 0, 38, 42, 120)),
    Sensor(2, "Fan 1", _FAN, 0x1D, lambda chassis: 60 if chassis.powered else 10, _ROUNDS, (8, 5, 2, 200, 220, 240),
           (100, 0)),
    Sensor(3, "12V", _VOLTAGE, 0x14, lambda chassis: 200, _VOLTS, (180, 170, 160, 220, 230, 240), (6, -2)),
    # States of a drive: bit 0 present, bit 1 failed
    Sensor(4, "Drive 0", _DRIVE, 0x1A, lambda chassis: 3 if chassis.faults.active("drive_failed") else 1),
)  # fmt: skip

INLET = SENSORS[0]
RECORDS = [one.record(number) for number, one in enumerate(SENSORS, 1)]
BY_NUMBER = {one.number: one for one in SENSORS}
