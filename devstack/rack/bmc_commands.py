"""What BMCs are asked beside the power: sensors, the event log (SEL), the identify light."""

import struct
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from ingot.rack import sensors

OK = 0x00
NOT_PRESENT = 0xCB
INVALID_FIELD = 0xCC
_CANCELED = 0xC5
_LAST = 0xFFFF
_VERSION = 0x51
_RESERVATION = 1
_SENDS_RESERVATIONS = 0x02
_WHOLE = 0xFF
_MOST_EVENTS = 100

# Power unit: switched off; the event's direction says whether it is so from now on, or not anymore.
_POWER_UNIT, _SENSOR_SPECIFIC, _GONE = 0x09, 0x6F, 0x80


# Controllers behind the BMC: address by channel. The first leads on to the second.
_TRANSIT, _TARGET = (7, 0x82), (6, 0x72)


class Answer(NamedTuple):
    code: int = OK
    data: bytes = b""


class Extras:
    """What one BMC keeps for these commands.

    :ivar identifies_until: on the clock of ``time.monotonic``; 0 is dark.
    """

    def __init__(self, chassis: sensors.Chassis) -> None:
        self._chassis = chassis
        self._events: list[bytes] = []
        self.identifies_until = 0.0
        self._commands: dict[tuple[int, int], Callable[[bytes], Answer]] = {
            (0x00, 0x04): self._identify,
            (0x04, 0x2D): self._read_sensor,
            (0x04, 0x27): self._read_thresholds,
            (0x0A, 0x20): self._describe_sdr,
            (0x0A, 0x22): self._reserve,
            (0x0A, 0x23): self._get_sdr,
            (0x0A, 0x40): self._describe_sel,
            (0x0A, 0x42): self._reserve,
            (0x0A, 0x43): self._get_event,
            (0x0A, 0x47): self._clear,
            (0x0A, 0x48): self._tell_time,
        }

    def answer(self, netfn: int, command: int, data: bytes) -> Answer | None:
        """Return the answer to a request; None: it is none of these."""
        handler = self._commands.get((netfn, command))
        if handler is None:
            return None
        try:
            return handler(data)
        except (IndexError, struct.error):
            return Answer(0xC7)  # request data length invalid

    def note_power(self, on: bool) -> None:
        """Write into the log that the machine was switched."""
        gone = _GONE if on else 0
        self._events = self._events[-_MOST_EVENTS + 1 :]
        moment = struct.pack("<I", int(time.time()))
        self._events.append(
            b"\x02" + moment + bytes((0x20, 0, 4, _POWER_UNIT, 0xF0, gone | _SENSOR_SPECIFIC, 0, 0xFF, 0xFF))
        )

    def identify_state(self) -> int:
        """Return bits 6..4 of the chassis state: supported, and off, on for a while or on."""
        if self.identifies_until == float("inf"):
            return 0x60
        return 0x50 if self.identifies_until > time.monotonic() else 0x40

    def _identify(self, data: bytes) -> Answer:
        seconds = float(data[0]) if data else 15.0
        lasting = len(data) > 1 and bool(data[1] & 1)
        self.identifies_until = float("inf") if lasting else time.monotonic() + seconds if seconds else 0.0
        return Answer()

    def _read_sensor(self, data: bytes) -> Answer:
        one = sensors.BY_NUMBER.get(data[0])
        return Answer(NOT_PRESENT) if one is None else Answer(data=bytes(one.answer(self._chassis)))

    def _read_thresholds(self, data: bytes) -> Answer:
        one = sensors.BY_NUMBER.get(data[0])
        if one is None or one.thresholds is None:
            return Answer(NOT_PRESENT)
        return Answer(data=bytes(one.answer_thresholds()))

    def _describe_sdr(self, data: bytes) -> Answer:
        return Answer(data=struct.pack("<BHHIIB", _VERSION, len(sensors.RECORDS), 0, 1, 1, _SENDS_RESERVATIONS))

    def _reserve(self, data: bytes) -> Answer:
        return Answer(data=struct.pack("<H", _RESERVATION))

    def _get_sdr(self, data: bytes) -> Answer:
        reservation, number, offset, count = struct.unpack("<HHBB", data)
        if (offset or count != _WHOLE) and reservation != _RESERVATION:
            return Answer(_CANCELED)
        index = 0 if number == 0 else number - 1
        if index >= len(sensors.RECORDS):
            return Answer(NOT_PRESENT)
        following = index + 2 if index + 1 < len(sensors.RECORDS) else _LAST
        record = sensors.RECORDS[index]
        part = record[offset:] if count == _WHOLE else record[offset : offset + count]
        return Answer(data=struct.pack("<H", following) + part)

    def _describe_sel(self, data: bytes) -> Answer:
        free = (_MOST_EVENTS - len(self._events)) * 16
        return Answer(data=struct.pack("<BHHIIB", _VERSION, len(self._events), free, 0, 0, _SENDS_RESERVATIONS))

    def _get_event(self, data: bytes) -> Answer:
        _, number, offset, count = struct.unpack("<HHBB", data)
        last = len(self._events)
        index = {0: 1, _LAST: last}.get(number, number)
        if not 0 < index <= last:
            return Answer(NOT_PRESENT)
        record = struct.pack("<H", index) + self._events[index - 1]
        part = record[offset:] if count == _WHOLE else record[offset : offset + count]
        return Answer(data=struct.pack("<H", index + 1 if index < last else _LAST) + part)

    def _clear(self, data: bytes) -> Answer:
        reservation, word, action = struct.unpack("<H3sB", data)
        if reservation != _RESERVATION:
            return Answer(_CANCELED)
        if word != b"CLR" or action not in (0xAA, 0x00):
            return Answer(INVALID_FIELD)
        if action:
            self._events.clear()
        return Answer(data=b"\x01")

    def _tell_time(self, data: bytes) -> Answer:
        return Answer(data=struct.pack("<I", int(time.time())))


def find_bridged(data: bytes) -> dict[str, Any] | None:
    """Return the request in the data of Send Message; None: no controller has the address.

    The target is reached through the BMC, or through the transit controller.
    """
    seen: list[tuple[int, int]] = []
    while len(data) > 7:
        channel, address, netfn = data[0] & 0x0F, data[1], data[2] >> 2
        sequence, command, data = data[5] >> 2, data[6], data[7:-1]
        seen.append((channel, address))
        if (netfn, command) != (0x06, 0x34):
            break
    else:
        return None
    if seen not in ([_TARGET], [_TRANSIT], [_TRANSIT, _TARGET]):
        return None
    return {
        "netfn": netfn,
        "command": command,
        "data": bytearray(data),
        "seq": sequence,
        "address": seen[-1][1],
        "hops": len(seen),
    }
