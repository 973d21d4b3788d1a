"""What notifications hold: a table of payload objects with the names, versions and fields of Ironic 39.

Consumers read objects of oslo.versionedobjects. All that they see of one is its name, namespace, version and data, so
that is all there is here. ``tests/unit/notifications/ironic39.json`` was recorded from Ironic and is compared with it.
"""

import datetime
from collections.abc import Callable, Mapping
from typing import NamedTuple

from ingot.common import masking
from ingot.common.json_types import Json

REDACTED: Json = {"redacted_contents": "** Value redacted: not published on the notification bus. **"}
"""What stands for a field that users see by a rule of policy only: the broker knows no policy."""

_NODE = """
    bios_interface boot_interface boot_mode clean_step conductor_group console_enabled console_interface created_at
    deploy_interface deploy_step description disable_power_off driver extra fault inspect_interface
    inspection_finished_at inspection_started_at instance_uuid last_error lessee maintenance maintenance_reason
    management_interface name network_interface owner power_interface power_state properties protected protected_reason
    provision_state provision_updated_at raid_interface rescue_interface resource_class retired retired_reason
    secure_boot storage_interface target_power_state target_provision_state traits updated_at uuid vendor_interface
"""
_PROVISION = "event previous_provision_state previous_target_provision_state driver_internal_info instance_info"

NODE_COLUMNS = (*_NODE.split(), "chassis_uuid", "driver_info", "driver_internal_info", "instance_info")
"""What must be known of a node to send any notification of it."""


def _redact_properties(data: Json) -> None:
    if data["properties"]:
        data["properties"] = REDACTED


def _redact_sensitive(data: Json) -> None:
    if data["sensitive"]:
        data["actions"] = data["conditions"] = [REDACTED]


class Payload(NamedTuple):
    """A payload object.

    :param redact: takes out of its data what nobody may read on the bus.
    """

    name: str
    version: str
    fields: tuple[str, ...]
    redact: Callable[[Json], None]

    def build(self, values: Mapping[str, object]) -> Json:
        """Return the object as it is sent.

        :param values: columns of a row; what is not among them is null.
        """
        data = {name: _convert(values.get(name)) for name in self.fields}
        data |= {name: [] for name in ("traits", "candidate_nodes") if name in data and data[name] is None}
        self.redact(data)
        return {
            "ironic_object.name": self.name,
            "ironic_object.namespace": "ironic",
            "ironic_object.version": self.version,
            "ironic_object.data": data,
        }


def _convert(value: object) -> object:
    """Return a value of a column as consumers know it, its secrets masked."""
    if isinstance(value, datetime.datetime):
        return value.strftime("%Y-%m-%dT%H:%M:%SZ")
    return masking.mask(value)


def _declare(name: str, version: str, fields: str, redact: Callable[[Json], None] = lambda _data: None) -> Payload:
    return Payload(f"{name}Payload", version, tuple(fields.split()), redact)


def _declare_crud(name: str, version: str, own: str, redact: Callable[[Json], None] = lambda _data: None) -> Payload:
    return _declare(f"{name}CRUD", version, f"{own} created_at updated_at uuid", redact)


NODE = _declare("Node", "1.17", _NODE)
POWER_SET = _declare("NodeSetPowerState", "1.17", f"{_NODE} to_power")
POWER_CORRECTED = _declare("NodeCorrectedPowerState", "1.17", f"{_NODE} from_power")
PROVISION_SET = _declare("NodeSetProvisionState", "1.18", f"{_NODE} {_PROVISION}")

CRUD: Mapping[str, Payload] = {
    "allocation": _declare_crud(
        "Allocation", "1.1", "candidate_nodes extra last_error name node_uuid owner resource_class state traits"
    ),
    "chassis": _declare_crud("Chassis", "1.0", "description extra"),
    "deploytemplate": _declare_crud("DeployTemplate", "1.0", "extra name steps"),
    "inspectionrule": _declare_crud(
        "InspectionRule", "1.0", "actions conditions description phase priority scope sensitive", _redact_sensitive
    ),
    "node": _declare("NodeCRUD", "1.15", f"{_NODE} chassis_uuid driver_info instance_info"),
    "port": _declare_crud(
        "Port",
        "1.8",
        "address available_for_dynamic_portgroup category description extra is_smartnic local_link_connection name "
        "node_uuid physical_network portgroup_uuid pxe_enabled vendor",
    ),
    "portgroup": _declare_crud(
        "Portgroup",
        "1.3",
        "address category dynamic_portgroup extra mode name node_uuid physical_network properties "
        "standalone_ports_supported",
    ),
    "runbook": _declare_crud("Runbook", "1.1", "description disable_ramdisk extra name owner public steps traits"),
    "volumeconnector": _declare_crud("VolumeConnector", "1.0", "connector_id extra node_uuid type"),
    "volumetarget": _declare_crud(
        "VolumeTarget", "1.0", "boot_index extra node_uuid properties volume_id volume_type", _redact_properties
    ),
}
"""By the name of the object in event types, what is sent when one is created, updated or deleted."""
