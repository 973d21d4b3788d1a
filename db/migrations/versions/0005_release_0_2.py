"""The schema of release 0.2, the oldest one that this release upgrades from.

Databases of that release have this revision already; the tables are made for new ones only.
"""

import re
from collections.abc import Callable, Iterator
from typing import Any

import sqlalchemy as sa
from alembic import op

from ingot.db.models import base

revision = "0005"
down_revision = None
branch_labels = None
depends_on = None

# Columns of one type are a group, "names: type options"; the options are those of sqlalchemy.Column. A type with a dot
# is a reference; rows whose reference is not nullable are deleted with what it names. An indented line continues the
# one before. Constraints and indexes get their names by the convention of ``models.Base``.
_TABLES = """
chassis = id; uuid; description: string nullable; extra: text; times
conductors = id; hostname: string unique; conductor_group: string; online: boolean; heartbeat_at: moment index;
    release: string(32); rpc_version: string(16); process: string nullable; classic_drivers: text nullable;
    announced drain: string(16) nullable; times
deploy_templates = id; uuid; name: string unique; extra: text; times
events = id: bigint primary_key; kind: string(16); created_at: moment; node_uuid: string(36) nullable;
    node_name: string nullable; data: text
inspection_rules = id; uuid; description: string nullable; priority: integer; sensitive: boolean; phase: string(16);
    conditions actions: text; times
runbooks = id; uuid; name: string unique; description: string nullable; disable_ramdisk public: boolean;
    owner: string nullable index; extra: text; times
conductor_hardware_interfaces = id; conductor_id: conductors.id; hardware_type interface_name: string(128);
    interface_type: string(16); default: boolean
deploy_template_steps = id; deploy_template_id: deploy_templates.id index; interface step: string index; args: text;
    priority: bigint
nodes = id; uuid; name: string nullable unique;
    description configdrive last_error maintenance_reason maintenance_holds protected_reason retired_reason agent_url
    agent_verify_ca agent_status outbox: text nullable;
    chassis_id: chassis.id nullable index;
    parent_node run_id: string(36) nullable index;
    shard owner lessee reservation: string nullable index; resource_class: string(80) nullable index;
    conductor_group: string;
    properties extra driver_info driver_internal_info instance_info network_data raid_config target_raid_config
    request power_request clean_step deploy_step service_step step_memory boot_config: text;
    driver: string index;
    bios_interface boot_interface console_interface deploy_interface firmware_interface inspect_interface
    management_interface network_interface power_interface raid_interface rescue_interface storage_interface
    vendor_interface instance_name fault health lock_purpose agent_token agent_version: string nullable;
    instance_uuid: string(36) nullable unique;
    power_state target_power_state target_provision_state: string(15) nullable; provision_state: string(15) index;
    provision_updated_at inspection_started_at inspection_finished_at locked_at step_started_at step_deadline
    step_heard agent_last_heartbeat: moment nullable;
    maintenance console_enabled disable_power_off protected retired abort_requested: boolean;
    boot_mode step_state: string(16) nullable; secure_boot automated_clean: boolean nullable;
    revision lock_epoch: bigint; flow: string(32) nullable; due_at outbox_at: moment nullable index;
    step_attempt: integer; times
runbook_steps = id; runbook_id: runbooks.id index; interface step: string; args: text; order: bigint
runbook_traits = runbook_id: runbooks.id primary_key; trait: string primary_key
agent_logs = id; uuid; node_id: nodes.id index; run_id: string(36); flow: string(32); created_at: moment; size: integer;
    content: blob
allocations = id; uuid; name: string nullable unique; node_id: nodes.id nullable unique; state: string(15) index;
    owner: string nullable index; resource_class: string(80) nullable index; candidate_nodes traits extra: text;
    last_error: text nullable; times
bios_settings = node_id: nodes.id primary_key; name: string primary_key; value: text nullable;
    attribute_type: string nullable; allowable_values: text;
    lower_bound upper_bound min_length max_length: integer nullable;
    read_only reset_required unique: boolean nullable; times
firmware_components = node_id: nodes.id primary_key; component: string primary_key; initial_version: string;
    current_version last_version_flashed vendor model serial_number: string nullable; times
node_history = id; uuid; node_id: nodes.id index; created_at: moment; conductor user project: string nullable;
    severity: string(10); event_type: string; event: text; state target_provision_state: string(15) nullable;
    duration_seconds: double nullable
node_inventory = node_id: nodes.id primary_key; inventory plugin_data: text; inspected_at: moment
node_tags = node_id: nodes.id primary_key; tag: string primary_key
node_traits = node_id: nodes.id primary_key; trait: string primary_key index
portgroups = id; uuid; name: string nullable unique; node_id: nodes.id index; address: string(18) nullable unique;
    mode: string nullable; properties internal_info extra: text; standalone_ports_supported: boolean;
    physical_network: string(64) nullable; category: string(80) nullable;
    dynamic_portgroup: boolean server_default=0; joined: integer server_default=0; times
step_runs = id; node_id: nodes.id; run_id: string(36) index; flow interface: string(32); step_index attempt: integer;
    step conductor: string; args: text; priority: double; origin: string(300); state: string(16);
    started_at finished_at: moment; error: text nullable
volume_connectors = id; uuid; node_id: nodes.id index; type: string(32); connector_id: string; extra: text; times
volume_targets = id; uuid; node_id: nodes.id; volume_type: string(64); volume_id: string(36); boot_index: integer;
    properties extra: text; times
ports = id; uuid; name: string nullable unique; node_id: nodes.id index; portgroup_id: portgroups.id nullable index;
    address: string(18) unique; description: string nullable; vendor: string(32) nullable;
    category: string(80) nullable; local_link_connection internal_info extra: text; pxe_enabled is_smartnic: boolean;
    physical_network: string(64) nullable; available_for_dynamic_portgroup: boolean server_default=1; times
"""

# Whatever the server's defaults are: text of all scripts, and rows that are locked one by one.
_OPTIONS: dict[str, Any] = {
    "mysql_engine": "InnoDB",
    "mysql_default_charset": "utf8mb4",
    "mysql_collate": "utf8mb4_bin",
}

_SHORT = {
    "id": "id: integer primary_key",
    "uuid": "uuid: string(36) unique",
    "times": "created_at: moment; updated_at: moment nullable",
}

_TYPES: dict[str, Callable[..., sa.types.TypeEngine[Any]]] = {
    **{"bigint": sa.BigInteger, "boolean": sa.Boolean, "double": sa.Double, "integer": sa.Integer},
    **{"blob": base.blob, "moment": base.moment, "string": base.string, "text": base.text},
}

_OF_SEVERAL: dict[str, sa.schema.SchemaItem] = {
    "conductor_hardware_interfaces": sa.UniqueConstraint(
        *("conductor_id", "hardware_type", "interface_type", "interface_name"),
        name="uniq_conductor_hardware_interfaces",
    ),
    "step_runs": sa.Index(None, "node_id", "run_id"),
    "volume_connectors": sa.UniqueConstraint("type", "connector_id"),
    "volume_targets": sa.UniqueConstraint("node_id", "boot_index"),
}
"""Constraints and indexes of several columns."""


def _build_columns(group: str) -> Iterator[sa.Column[Any]]:
    names, _, described = group.partition(": ")
    kind, *given = described.split()
    options: dict[str, Any] = {"nullable": False}
    for option in given:
        key, _, value = option.partition("=")
        options[key] = value or True
    if "primary_key" in options:
        options["autoincrement"] = kind == "integer"
    type_name, _, length = kind.rstrip(")").partition("(")
    for name in names.split():
        if "." in kind:
            action = None if options["nullable"] else "CASCADE"
            yield sa.Column(name, sa.Integer(), sa.ForeignKey(kind, ondelete=action), **options)
        else:
            yield sa.Column(name, _TYPES[type_name](*([int(length)] if length else [])), **options)


def upgrade() -> None:
    for line in re.sub(r"\n +", " ", _TABLES).strip().splitlines():
        table, _, described = line.partition(" = ")
        groups = [part for group in described.split("; ") for part in _SHORT.get(group, group).split("; ")]
        columns = [column for group in groups for column in _build_columns(group)]
        more = [_OF_SEVERAL[table]] if table in _OF_SEVERAL else []
        op.create_table(table, *columns, *more, **_OPTIONS)
