"""What the sensors of a machine read, in one form for all kinds of BMC, and the method by which operators ask."""

from typing import TypedDict

from ingot.drivers.interfaces.task import Task
from ingot.drivers.interfaces.vendor import VendorInterface, node_method

THRESHOLDS: tuple[str, ...] = (
    "lower_non_critical",
    "lower_critical",
    "lower_non_recoverable",
    "upper_non_critical",
    "upper_critical",
    "upper_non_recoverable",
)

KINDS: tuple[str, ...] = (
    "temperature",
    "fan",
    "voltage",
    "current",
    "power",
    "energy",
    "humidity",
    "power_supply",
    "drive",
    "processor",
    "memory",
    "battery",
    "intrusion",
    "other",
)

HEALTH: tuple[str, ...] = ("OK", "Warning", "Critical")

UNITS: dict[str, str] = {
    "°C": "temperature",
    "RPM": "fan",
    "V": "voltage",
    "A": "current",
    "W": "power",
    "kWh": "energy",
}
"""Unit of a reading -> what it measures. There are others, such as percent, which say nothing of that."""


class Sensor(TypedDict):
    """One sensor, or one part of the machine that tells how it is.

    :ivar id: unique in the machine, and the same at each reading.
    :ivar kind: one of :data:`KINDS`.
    :ivar reading: None: it has none now, or only states.
    :ivar unit: of reading and thresholds, as in :data:`UNITS`; None: they have none.
    :ivar thresholds: by the names of :data:`THRESHOLDS`: those that it has.
    :ivar health: one of :data:`HEALTH`; None: the BMC does not say.
    :ivar place: where it is in the machine, in the words of the BMC; None: it does not say.
    :ivar states: what the BMC says of it besides, in its words.
    """

    id: str
    name: str
    kind: str
    reading: float | None
    unit: str | None
    thresholds: dict[str, float]
    health: str | None
    place: str | None
    states: list[str]


class ReadsSensors(VendorInterface):
    """The vendor interface of hardware with sensors."""

    @node_method("GET", description="Sensors with readings, thresholds and health.", exclusive=False)
    def get_sensors(self, task: Task) -> list[Sensor]:
        """Return what the management interface reads."""
        found: list[Sensor] = task.driver.management.get_sensors(task)
        return found
