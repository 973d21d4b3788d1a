"""Which disk gets the image: root device hints, as users give them in the node's properties."""

import operator
from collections.abc import Callable, Sequence
from typing import Any

from ingot.rack.raid import GIBIBYTE, BlockDevice, fits_text

_NUMBERS: dict[str, Callable[[int, int], bool]] = {
    "==": operator.eq, "=": operator.ge, "!=": operator.ne,
    ">=": operator.ge, "<=": operator.le, ">": operator.gt, "<": operator.lt,
}  # fmt: skip
HINTS = ("name", "serial", "size", "wwn")


class DeviceNotFound(Exception):
    """No disk fits the hints, or a hint is not one that the rack's machines know."""


def hints(node: dict[str, Any]) -> dict[str, Any]:
    """Return what a node says about its root device; the instance's own wish comes first."""
    places = (node.get("instance_info") or {}, node.get("properties") or {})
    return next((place["root_device"] for place in places if place.get("root_device")), {})


def choose(devices: Sequence[BlockDevice], node: dict[str, Any]) -> BlockDevice:
    """Return the device the image goes to: what the hints name, else an array, else the smallest disk.

    :raises DeviceNotFound: naming the hints.
    """
    expected = hints(node)
    unknown = sorted(set(expected) - set(HINTS))
    if unknown:
        raise DeviceNotFound(f"root device hint {', '.join(unknown)}: known are {', '.join(HINTS)}")
    fitting = [device for device in devices if all(_fits(device, key, str(expected[key])) for key in expected)]
    if not fitting:
        names = ", ".join(device.name for device in devices)
        raise DeviceNotFound(f"no device fits the root device hints {expected}; there are {names}")
    return min(fitting, key=lambda device: (not device.members, device.size, device.name))


def _fits(device: BlockDevice, key: str, expected: str) -> bool:
    if key == "size":
        return _compare_numbers(device.size // GIBIBYTE, expected)
    return fits_text(str(device.public().get(key, "")), expected)


def _compare_numbers(actual: int, expected: str) -> bool:
    mark, _, value = expected.rpartition(" ")
    try:
        return _NUMBERS[mark or "=="](actual, int(value))
    except (KeyError, ValueError) as error:
        raise DeviceNotFound(f"root device hint size: {expected!r} is not a number of GiB or '>= 10'") from error
