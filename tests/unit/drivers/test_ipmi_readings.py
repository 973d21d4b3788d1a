"""Sensors of BMCs that name, compute or describe them in ways that pyghmi does not expect."""

import struct
from collections.abc import Sequence
from typing import Any

import fixtures
import testtools

from ingot.drivers.ipmi import pyghmi_session, readings
from ingot.rack import bmc_commands, faults, sensors

DEVICE = bytes((0x20, 1, 9, 0x14, 2, 0xBF, *(0x11, 0, 0), *(0x22, 0)))
NAME, LINEARIZATION, FORMULA, UNIT = 47, 23, 24, 21
"""Where in a record is what the tests change."""


class Chassis:
    powered = True

    def __init__(self) -> None:
        self.faults = faults.Faults()


class Session(pyghmi_session.Session):  # type: ignore[misc]
    """A session with the rack's BMC, without packets."""

    def __init__(self, lacks: tuple[int, int] = (0, 0), place: object = None) -> None:
        self._commands = bmc_commands.Extras(Chassis())
        self._lacks = lacks
        self._route = ()
        self.place = place or object()

    def request(self, netfn: int, command: int, data: Sequence[int]) -> dict[str, Any]:
        if (netfn, command) == self._lacks:
            return {"command": command, "netfn": netfn + 1, "code": 0xC1, "data": b"", "error": "Invalid command"}
        found = self._commands.answer(netfn, command, bytes(data))
        if found is None:
            return {"command": command, "netfn": netfn + 1, "code": 0, "data": DEVICE}
        refused = {"error": "refused", "code": found.code} if found.code else {}
        return {"command": command, "netfn": netfn + 1, "code": 0, "data": found.data, **refused}


class ReadingsTest(testtools.TestCase):
    def read(self, *records: bytes, place: object = None) -> dict[str, Any]:
        numbered = [struct.pack("<H", number) + record[2:] for number, record in enumerate(records, 1)]
        with fixtures.MonkeyPatch("ingot.rack.sensors.RECORDS", numbered):
            return {one["name"]: one for one in readings.read_sensors(Session(place=place))}

    def test_a_name_may_be_packed(self) -> None:
        letters = [ord(letter) - 0x20 for letter in "12V AUX."]
        packed = sum(code << 6 * place for place, code in enumerate(letters)).to_bytes(6, "little")
        record = sensors.RECORDS[2][:NAME] + bytes((0x80 | len(packed),)) + packed
        self.assertEqual(12.0, self.read(record)["12V AUX."]["reading"])

    def test_a_name_may_have_letters_of_latin_1(self) -> None:
        name = "Lüfter °1".encode("latin-1")
        record = sensors.RECORDS[1][:NAME] + bytes((0xC0 | len(name),)) + name
        self.assertEqual(["Lüfter °1"], list(self.read(record)))

    def test_one_that_cannot_be_computed_is_left_out_alone(self) -> None:
        inlet, fan = sensors.RECORDS[:2]
        for linearization, formula in ((7, (0, 0, 0, 0, 0, 0)), (1, (0, 0, 0, 0, 0, 0)), (4, (255, 0, 0, 0, 0, 0x70)),
                                       (11, (255, 0xC0, 0, 0, 0, 0)), (0x70, (1, 0, 0, 0, 0, 0))):  # fmt: skip
            strange = bytearray(fan)
            strange[LINEARIZATION : FORMULA + 6] = bytes((linearization, *formula))
            self.assertEqual(["Inlet Temp"], list(self.read(bytes(strange), inlet)), linearization)

    def test_a_record_that_is_none_is_left_out_alone(self) -> None:
        inlet, fan = sensors.RECORDS[:2]
        unknown_unit = bytearray(fan)
        unknown_unit[UNIT] = 0xEE
        other_version = fan[:2] + b"\x99" + fan[3:]
        for strange in (bytes(unknown_unit), other_version, fan[:4] + b"\x01\x20"):
            self.assertEqual(["Inlet Temp"], list(self.read(strange, inlet)), strange)

    def test_sensors_of_other_controllers_are_not_looked_for_at_the_bmc(self) -> None:
        inlet, fan = sensors.RECORDS[:2]
        for owner, unit in ((0x2C, 0), (0x20, 1)):
            self.assertEqual(["Inlet Temp"], list(self.read(fan[:5] + bytes((owner, unit)) + fan[7:], inlet)))

    def test_records_of_one_bmc_are_not_taken_for_those_of_another(self) -> None:
        self.assertEqual(["Inlet Temp"], list(self.read(sensors.RECORDS[0], place="one")))
        self.assertEqual(["Fan 1"], list(self.read(sensors.RECORDS[1], place="another")))
        self.assertEqual(["Inlet Temp"], list(self.read(place="one")), "its records are read again")
        for other in range(100):
            self.read(sensors.RECORDS[1], place=other)
        self.assertEqual(["Fan 1"], list(self.read(sensors.RECORDS[1], place="one")), "all are kept for ever")

    def test_a_refusal_names_the_request(self) -> None:
        for read, netfn, command in (
            (readings.read_sensors, 0x0A, 0x20),
            (readings.read_sensors, 0x0A, 0x23),
            (readings.read_log, 0x0A, 0x43),
        ):
            refused = self.assertRaises(pyghmi_session.RequestRefused, read, Session((netfn, command)))
            self.assertEqual((f"{netfn:#x}/{command:#x}", 0xC1), (refused.request, refused.code))

    def test_an_empty_log_may_be_a_refusal(self) -> None:
        self.assertEqual([], readings.read_log(Session()))
