"""The hooks for PCI devices: capabilities by their number, and accelerators."""

import json
import pathlib
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import yaml
from oslo_config import cfg

from ingot.common import errors
from ingot.common.json_types import Json
from ingot.conductor.inspection import facts
from ingot.conductor.inspection.draft import Draft
from ingot.conductor.inspection.hooks.base import InspectionHook

_ALIAS = "[inspector] pci_device_alias"
_ALIAS_KEYS = ("vendor_id", "product_id", "name")
_ACCELERATORS = "[inspector] known_accelerators"
_MOST_ACCELERATORS = 256

_KNOWN = pathlib.Path(__file__).parent / "known_accelerators.yaml"


class _Device(NamedTuple):
    """A device of a machine.

    :param kind: the numbers of vendor and product, in hexadecimal digits.
    :param place: its address on the bus.
    """

    kind: tuple[str, str]
    place: str | None


def _list_devices(draft: Draft) -> Iterator[_Device]:
    """Yield the devices that the agent's collector pci-devices has found, or a BMC."""
    for device in facts.read_objects(draft.plugin_data.get("pci_devices") or draft.inventory.get("pci_devices")):
        vendor, product = (facts.read_text(device, name) for name in ("vendor_id", "product_id"))
        if vendor and product:
            yield _Device((vendor, product), facts.read_text(device, "bus"))


class PCIDevices(InspectionHook):
    """The hook ``pci-devices``: sets a capability for each alias of ``[inspector] pci_device_alias``, to the number of
    such devices."""

    def __init__(self, conf: cfg.ConfigOpts) -> None:
        super().__init__(conf)
        self._aliases = dict(map(_parse_alias, conf.inspector.pci_device_alias))

    def run(self, draft: Draft) -> None:
        found = Counter(self._aliases[one.kind] for one in _list_devices(draft) if one.kind in self._aliases)
        for name, number in found.items():
            draft.set_capability(name, str(number))


def _parse_alias(entry: str) -> tuple[tuple[str, str], str]:
    """Return the numbers of vendor and product, and the name for devices that have them.

    :raises ConfigurationError: the entry has another form.
    """
    try:
        parsed = json.loads(entry)
    except ValueError:
        parsed = None
    given = parsed if isinstance(parsed, dict) else {}
    vendor, product, name = (str(given.get(key) or "") for key in _ALIAS_KEYS)
    if set(given) != set(_ALIAS_KEYS) or not (vendor and product and name):
        allowed = 'It must be as {"vendor_id": "10de", "product_id": "1eb8", "name": "t4"}.'
        raise errors.ConfigurationError(option=_ALIAS, value=entry, allowed=allowed)
    return (vendor, product), name


class Accelerators(InspectionHook):
    """The hook ``accelerators``: sets the property accelerators to those devices that a file knows."""

    def __init__(self, conf: cfg.ConfigOpts) -> None:
        super().__init__(conf)
        self._known = _read_accelerators(conf.inspector.known_accelerators)

    def run(self, draft: Draft) -> None:
        devices = list(_list_devices(draft))
        found = [{**self._known[one.kind], "pci_address": one.place} for one in devices if one.kind in self._known]
        if len(found) > _MOST_ACCELERATORS:
            raise errors.StepFailed(f"the agent found {len(found)} accelerators; {_MOST_ACCELERATORS} at most are kept")
        if devices:
            draft.node["properties"]["accelerators"] = found


def _read_accelerators(named: str | None) -> Mapping[tuple[str, str], Json]:
    """Return what a file, or Ingot's own, knows of devices, by vendor and device.

    :raises ConfigurationError: the file cannot be used.
    """
    try:
        content = yaml.safe_load(pathlib.Path(named or _KNOWN).read_text(encoding="utf-8"))
        listed = content["pci_devices"]
        return {(str(one["vendor_id"]), str(one["device_id"])): dict(one) for one in listed}
    except (OSError, ValueError, LookupError, TypeError, yaml.YAMLError) as exc:
        reason = exc.strerror if isinstance(exc, OSError) else f"{type(exc).__name__}: {exc}"
        allowed = f"A file in YAML with a list pci_devices, each with vendor_id and device_id ({reason})."
        raise errors.ConfigurationError(option=_ACCELERATORS, value=named, allowed=allowed) from exc
