"""A task in memory, with real configuration and the real factory: what interfaces are tested with."""

import contextlib
import uuid
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

import testtools
from oslo_config import cfg

from ingot.common import context, interfaces, states
from ingot.common.conf import opts
from ingot.common.steps import PlannedStep
from ingot.db import models, ports, rows
from ingot.drivers.interfaces import circuit_breakers, consoles, results
from ingot.drivers.loading import factory


def configuration(**options: Any) -> cfg.ConfigOpts:
    """Return real options with defaults; ``group__name=value`` or ``name=value`` sets some."""
    conf = opts.load([], prog="ingot-tests", files=[])
    conf.set_override("url_denied_networks", [], group="deploy")  # file servers of tests are on this host
    for key, value in options.items():
        group, _, name = key.rpartition("__")
        conf.set_override(name, value, group=group or None)
    return conf


def node(**columns: Any) -> models.Node:
    """Return a node's row as a query does."""
    values: dict[str, Any] = {
        column.name: None for column in models.table(models.Node).c if column.name != "configdrive"
    }
    values |= rows.json_defaults(models.table(models.Node))
    values |= {
        "id": 1,
        "uuid": str(uuid.uuid4()),
        "driver": "fake-hardware",
        "provision_state": states.AVAILABLE,
    }
    values |= {"maintenance": False, "disable_power_off": False, "conductor_group": ""}
    return models.Node(**values | columns)


def port(address: str = "52:54:00:00:00:01", **columns: Any) -> models.Port:
    """Return a port's row as a query does."""
    values: dict[str, Any] = {column.name: None for column in models.table(models.Port).c}
    values |= {name: {} for name in ("local_link_connection", "internal_info", "extra")}
    values |= {"uuid": str(uuid.uuid4()), "address": address, "pxe_enabled": True, "is_smartnic": False}
    return models.Port(**values | columns)


def portgroup(**columns: Any) -> models.Portgroup:
    """Return a portgroup's row as a query does."""
    values: dict[str, Any] = {column.name: None for column in models.table(models.Portgroup).c}
    values |= {name: {} for name in ("properties", "internal_info", "extra")}
    values |= {"uuid": str(uuid.uuid4()), "mode": "active-backup", "standalone_ports_supported": True}
    return models.Portgroup(**values | columns)


class MemoryTask:
    """A task whose node is a record in memory; ``saved`` counts the writes."""

    def __init__(self, conf: cfg.ConfigOpts, node: models.Node, hardware: factory.Hardware | None = None) -> None:
        self.conf = conf
        self.context = context.admin()
        self.node = node
        self.hardware = hardware or factory.Hardware(conf)
        self.driver, self.missing = self.hardware.compose(node)
        self.memory: dict[str, Any] = {}
        self.is_first_call = False
        self.shared = False
        self.circuit_breakers = circuit_breakers.CircuitBreakers(first=60, longest=300)
        self.consoles = consoles.Consoles(conf)
        self.ports: list[models.Port] = []
        self.portgroups: list[models.Portgroup] = []
        self.traits: list[str] = []
        self.volume_connectors: list[models.VolumeConnector] = []
        self.volume_targets: list[models.VolumeTarget] = []
        self.step: PlannedStep | None = None
        self.drive: str | None = None
        self.bios: list[dict[str, Any]] = []
        self.firmware: list[dict[str, Any]] = []
        self.inspected: models.NodeInventory | None = None
        self.found: tuple[dict[str, Any], dict[str, Any]] = ({}, {})
        self.saved = 0

    def set(self, **columns: Any) -> None:
        self.drive = columns.pop("configdrive", self.drive)
        for name, value in columns.items():
            if not hasattr(self.node, name):
                raise AttributeError(f"the node has no column {name}")
            setattr(self.node, name, value)

    def save(self) -> None:
        self.saved += 1

    def confirm_lock(self) -> None:
        """Assume that no other task has the node."""

    def alone(self, what: str, patience: float) -> contextlib.AbstractContextManager[None]:
        """Assume that no other task does it."""
        return contextlib.nullcontext()

    def keep_port_notes(self, key: str, notes: Mapping[str, str]) -> None:
        places: list[models.Port | models.Portgroup] = [*self.ports, *self.portgroups]
        for one in places:
            one.internal_info = ports.change_note(one.internal_info, key, notes.get(one.uuid))
        self.save()

    def remove_volume_targets(self) -> None:
        self.volume_targets = []

    def keep_volume_properties(self, properties: Mapping[str, dict[str, Any]]) -> None:
        for target in self.volume_targets:
            target.properties = properties.get(target.uuid, target.properties)
        self.save()

    def keep_bios_settings(self, read: Iterable[Mapping[str, Any]]) -> None:
        self.bios = [dict(row) for row in read]

    def keep_firmware_components(self, read: Iterable[Mapping[str, Any]]) -> None:
        known = {row["component"]: row for row in self.firmware}
        self.firmware = [{**known.get(str(row["component"]), {}), **row} for row in read]

    def keep_inventory(self, found: dict[str, Any], plugin_data: dict[str, Any]) -> None:
        self.found = (found, plugin_data)

    def inventory(self) -> models.NodeInventory | None:
        return self.inspected

    def configdrive(self) -> str | None:
        return self.drive


class DriverTestCase(testtools.TestCase):
    """Makes tasks on nodes of fake hardware; ``options`` of a subclass are set in the configuration."""

    options: ClassVar[dict[str, Any]] = {}
    columns: ClassVar[dict[str, Any]] = {}

    def task(self, **columns: Any) -> MemoryTask:
        conf = configuration(**{"enabled_hardware_types": ["fake-hardware"], **self.options})
        return MemoryTask(conf, node(**{**self.columns, **columns}))

    def run_to_end(self, call: Any, limit: int = 50) -> Any:
        """Call a step again while the answer is to poll; the memory of the task carries over."""
        return self.poll(lambda: results.parse_result(call(), "under test"), limit)

    def poll(self, call: Any, limit: int = 50) -> Any:
        """Call again while the answer is to poll."""
        for _ in range(limit):
            answer = call()
            if not isinstance(answer, results.PollAfter):
                return answer
        raise AssertionError("it never ended")


ALL_FAKE = {interfaces.FIELD[kind]: "fake" for kind in interfaces.TYPES if kind not in ("network", "storage")}
