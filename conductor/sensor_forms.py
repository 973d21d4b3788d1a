"""What sensors read, in the forms of Ironic's messages, and as metrics of ironic-prometheus-exporter.

The names are those of Ironic 39 and of release 4.10 of the exporter, so that dashboards and alerts carry over. A test
has the exporter itself read the same messages. Machines name their sensors as they like: what becomes part of a metric
is made of few signs, and is short.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ingot.common.json_types import Json
from ingot.drivers.interfaces.sensors import Sensor

_HEALTH = {"OK": 0, "Warning": 1, "Critical": 2}
_STATUS = {"OK": "ok", "Warning": "nc", "Critical": "cr"}
_UNIT_WORDS = {"°C": "degrees C", "V": "Volts", "A": "Amps", "W": "Watts", "%": "percent"}
_LONGEST = 120

_IPMI_TYPES = {
    "temperature": "Temperature",
    "fan": "Fan",
    "voltage": "Voltage",
    "current": "Current",
    "power": "Current",  # as ipmitool has it
    "power_supply": "Power",
    "memory": "Memory",
    "other": "System",
}
"""By kind, the type under which a sensor of IPMI is sent; others are not."""

_REDFISH_TYPES = {"temperature": "Temperature", "fan": "Fan", "power_supply": "Power", "drive": "Drive"}


class _Category(NamedTuple):
    """How metrics of a type of IPMI are called: prefix, name of the sensor, suffix."""

    prefix: str
    suffix: str = ""
    has_unit: bool = False


_CATEGORIES = {
    "Temperature": _Category("baremetal_", "_celsius"),
    "Fan": _Category("baremetal_", has_unit=True),
    "Voltage": _Category("baremetal_voltage_", has_unit=True),
    "Current": _Category("baremetal_"),
    "Power": _Category("baremetal_power_"),
    "Memory": _Category("baremetal_"),
    "System": _Category("baremetal_system_"),
}


class Sample(NamedTuple):
    """A value of a metric."""

    name: str
    labels: Mapping[str, str]
    value: float


def build_payload(driver: str, sensors: Iterable[Sensor], types: Sequence[str] = ("ALL",)) -> Json:
    """Return what a message of a machine's sensors holds.

    :param driver: hardware type: ipmi has a form of its own, which was that of ipmitool.
    :param types: types that are requested, in any case of letters; ALL: every one.
    """
    requested = {one.lower() for one in types}
    named, describe = (_IPMI_TYPES, _describe_ipmi) if driver == "ipmi" else (_REDFISH_TYPES, _describe_redfish)
    payload: Json = {}
    for sensor in sensors:
        kind = named.get(sensor["kind"])
        if kind is not None and ("all" in requested or kind.lower() in requested):
            name, described = describe(sensor)
            payload.setdefault(kind, {})[name] = described
    return payload


def _describe_ipmi(sensor: Sensor) -> tuple[str, Json]:
    name = f"{sensor['name']} ({_number(sensor['id'])})"
    reading = "0h" if not sensor["states"] else "1h"
    if sensor["reading"] is not None:
        unit = _UNIT_WORDS.get(sensor["unit"] or "", sensor["unit"] or "")
        reading = f"{sensor['reading']:g} (+/- 0) {unit}".rstrip()
    described = {"Sensor ID": name, "Entity ID": sensor["place"] or "unknown", "Sensor Reading": reading}
    if sensor["health"]:
        described["Status"] = _STATUS[sensor["health"]]
    if sensor["states"]:
        described["States Asserted"] = ", ".join(sensor["states"])
    thresholds = {key.replace("_", " ").capitalize(): f"{value:g}" for key, value in sensor["thresholds"].items()}
    return name, {**described, **thresholds}


def _number(ident: str) -> str:
    return f"0x{int(ident):x}" if ident.isascii() and ident.isdecimal() else ident


def _describe_redfish(sensor: Sensor) -> tuple[str, Json]:
    state = next(iter(sensor["states"]), "Enabled")
    described: Json = {"identity": sensor["id"], "name": sensor["name"], "state": state, "health": sensor["health"]}
    if sensor["kind"] == "temperature":
        described |= {"reading_celsius": sensor["reading"], "physical_context": sensor["place"] or "Other"}
    elif sensor["kind"] == "fan":
        described |= {
            "reading": sensor["reading"],
            "reading_units": sensor["unit"],
            "physical_context": sensor["place"],
        }
    elif sensor["kind"] == "power_supply":
        described |= {"last_power_output_watts": sensor["reading"]}
    return sensor["id"], {name: value for name, value in described.items() if value is not None}


def build_samples(driver: str, message: Mapping[str, Any]) -> list[Sample]:
    """Return the metrics of a message, whose ``payload`` is as :func:`build_payload` makes it."""
    node = {"node_uuid": message["node_uuid"], "instance_uuid": message["instance_uuid"] or message["node_uuid"]}
    if message["node_name"]:
        node["node_name"] = message["node_name"]
    read = _read_ipmi if driver == "ipmi" else _read_redfish
    return [
        Sample(name, {**node, **{key: _clean(value) for key, value in labels.items()}}, value)
        for kind, found in message["payload"].items()
        for name, labels, value in read(kind, found)
    ]


def _clean(value: object) -> str:
    """Return the value of a label: short, and without halves of surrogate pairs, which cannot be sent."""
    return str(value)[:_LONGEST].encode("utf-8", "replace").decode()


_Read = Iterator[tuple[str, Mapping[str, object], float]]


def _read_ipmi(kind: str, found: Mapping[str, Json]) -> _Read:
    for entry, sensor in found.items():
        first, *more = sensor["Sensor Reading"].split()
        value = float(first) if more else float(first != "0h")
        labels = {"entity_id": sensor["Entity ID"], "sensor_id": sensor["Sensor ID"]}
        if "Status" in sensor:
            labels["status"] = sensor["Status"]
        yield _name_ipmi(kind, entry, more[-1].lower() if more else ""), labels, value


def _name_ipmi(kind: str, entry: str, unit: str) -> str:
    """Return the name of a metric: what a sensor is called, without its number and what it measures."""
    category, text = _CATEGORIES[kind], entry.lower()
    if kind == "Fan":
        label = "_".join(re.sub(r"\(.*\)", "", re.sub(r"fan\d*[a-z]*", "fan", text)).split())
    else:
        text = re.sub(r"\d+v|\d+.[\d*]v", "", text) if kind == "Voltage" else text
        label = "_".join(re.sub(r"\d+", "", text).split()[:-1]).replace("-", "_")
    if kind == "Voltage" and label in category.prefix:
        label = ""
    if kind == "Memory" and "mem" not in label:
        label = f"memory_{label}"
    name = f"{category.prefix}{label}{category.suffix}{f'_{unit}' if category.has_unit and unit else ''}"
    return re.sub("_+", "_", re.sub(r"\W", "_", name, flags=re.ASCII))[:_LONGEST]


def _read_redfish(kind: str, found: Mapping[str, Json]) -> _Read:
    hidden = {"Temperature": ("reading_celsius",), "Fan": ("reading", "reading_units")}
    for ident, sensor in found.items():
        if sensor["state"].lower() != "enabled":
            continue
        ignored = hidden.get(kind, ("last_power_output_watts",))
        labels = {**{name: value for name, value in sensor.items() if name not in ignored}, "sensor_id": ident}
        health = _HEALTH.get(sensor.get("health", ""))
        if kind == "Temperature":
            if sensor.get("reading_celsius") is None:
                continue
            place = re.sub(r"\W", "_", sensor["physical_context"].lower(), flags=re.ASCII)[:_LONGEST]
            yield f"baremetal_temp_{place}_celsius", labels, float(sensor["reading_celsius"])
        if health is not None:
            yield f"baremetal_{kind.lower()}_status", labels, float(health)
