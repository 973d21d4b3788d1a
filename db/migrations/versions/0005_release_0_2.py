"""The schema of release 0.2, the oldest one that this release upgrades from.

Databases of that release have this revision already; the tables are made for new ones only.
"""

from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy import Column

from ingot.db import models

revision = "0005"
down_revision = None
branch_labels = None
depends_on = None

# Whatever the server's defaults are: text of all scripts, and rows that are locked one by one.
_OPTIONS: dict[str, Any] = {
    "mysql_engine": "InnoDB",
    "mysql_default_charset": "utf8mb4",
    "mysql_collate": "utf8mb4_bin",
}


def _columns(column_type: sa.types.TypeEngine[Any], names: str, **options: Any) -> list[Column[Any]]:
    return [Column(name, column_type, **options) for name in names.split()]


def _times() -> list[Column[Any]]:
    return [Column("created_at", models.moment(), nullable=False), Column("updated_at", models.moment())]


def _with_id(*items: sa.schema.SchemaItem) -> tuple[sa.schema.SchemaItem, ...]:
    return (Column("id", sa.Integer(), primary_key=True), *items)


def _row(*items: sa.schema.SchemaItem) -> tuple[sa.schema.SchemaItem, ...]:
    return _with_id(Column("uuid", models.string(36), nullable=False, unique=True), *items, *_times())


def _key(name: str, owner: str, **options: Any) -> Column[Any]:
    return Column(name, sa.Integer(), sa.ForeignKey(f"{owner}.id", ondelete="CASCADE"), nullable=False, **options)


# Constraints and indexes get their names by the convention of ``models.Base``.
_TABLES: dict[str, tuple[sa.schema.SchemaItem, ...]] = {
    "chassis": _row(
        *_columns(models.string(), "description"),
        *_columns(models.text(), "extra", nullable=False),
    ),
    "conductors": _with_id(
        *_columns(models.string(), "hostname", nullable=False, unique=True),
        *_columns(models.string(), "conductor_group", nullable=False),
        *_columns(sa.Boolean(), "online", nullable=False),
        *_columns(models.moment(), "heartbeat_at", nullable=False, index=True),
        *_columns(models.string(32), "release", nullable=False),
        *_columns(models.string(16), "rpc_version", nullable=False),
        *_columns(models.string(), "process"),
        *_columns(models.text(), "classic_drivers"),
        *_columns(models.string(16), "announced drain"),
        *_times(),
    ),
    "deploy_templates": _row(
        *_columns(models.string(), "name", nullable=False, unique=True),
        *_columns(models.text(), "extra", nullable=False),
    ),
    "events": (
        *_columns(sa.BigInteger(), "id", primary_key=True, autoincrement=False),
        *_columns(models.string(16), "kind", nullable=False),
        *_columns(models.moment(), "created_at", nullable=False),
        *_columns(models.string(36), "node_uuid"),
        *_columns(models.string(), "node_name"),
        *_columns(models.text(), "data", nullable=False),
    ),
    "inspection_rules": _row(
        *_columns(models.string(), "description"),
        *_columns(sa.Integer(), "priority", nullable=False),
        *_columns(sa.Boolean(), "sensitive", nullable=False),
        *_columns(models.string(16), "phase", nullable=False),
        *_columns(models.text(), "conditions actions", nullable=False),
    ),
    "runbooks": _row(
        *_columns(models.string(), "name", nullable=False, unique=True),
        *_columns(models.string(), "description"),
        *_columns(sa.Boolean(), "disable_ramdisk public", nullable=False),
        *_columns(models.string(), "owner", index=True),
        *_columns(models.text(), "extra", nullable=False),
    ),
    "conductor_hardware_interfaces": _with_id(
        _key("conductor_id", "conductors"),
        *_columns(models.string(128), "hardware_type interface_name", nullable=False),
        *_columns(models.string(16), "interface_type", nullable=False),
        *_columns(sa.Boolean(), "default", nullable=False),
        sa.UniqueConstraint(
            "conductor_id",
            "hardware_type",
            "interface_type",
            "interface_name",
            name="uniq_conductor_hardware_interfaces",
        ),
    ),
    "deploy_template_steps": _with_id(
        _key("deploy_template_id", "deploy_templates", index=True),
        *_columns(models.string(), "interface step", nullable=False, index=True),
        *_columns(models.text(), "args", nullable=False),
        *_columns(sa.BigInteger(), "priority", nullable=False),
    ),
    "nodes": _row(
        *_columns(models.string(), "name", unique=True),
        *_columns(
            models.text(),
            "description configdrive last_error maintenance_reason maintenance_holds protected_reason "
            "retired_reason agent_url agent_verify_ca agent_status outbox",
        ),
        Column("chassis_id", sa.Integer(), sa.ForeignKey("chassis.id"), index=True),
        *_columns(models.string(36), "parent_node run_id", index=True),
        *_columns(models.string(), "shard owner lessee reservation", index=True),
        *_columns(models.string(80), "resource_class", index=True),
        *_columns(models.string(), "conductor_group", nullable=False),
        *_columns(
            models.text(),
            "properties extra driver_info driver_internal_info instance_info network_data raid_config "
            "target_raid_config request power_request clean_step deploy_step service_step step_memory "
            "boot_config",
            nullable=False,
        ),
        *_columns(models.string(), "driver", nullable=False, index=True),
        *_columns(
            models.string(),
            "bios_interface boot_interface console_interface deploy_interface firmware_interface "
            "inspect_interface management_interface network_interface power_interface raid_interface "
            "rescue_interface storage_interface vendor_interface instance_name fault health lock_purpose "
            "agent_token agent_version",
        ),
        *_columns(models.string(36), "instance_uuid", unique=True),
        *_columns(models.string(15), "power_state target_power_state target_provision_state"),
        *_columns(models.string(15), "provision_state", nullable=False, index=True),
        *_columns(
            models.moment(),
            "provision_updated_at inspection_started_at inspection_finished_at locked_at step_started_at "
            "step_deadline step_heard agent_last_heartbeat",
        ),
        *_columns(
            sa.Boolean(),
            "maintenance console_enabled disable_power_off protected retired abort_requested",
            nullable=False,
        ),
        *_columns(models.string(16), "boot_mode step_state"),
        *_columns(sa.Boolean(), "secure_boot automated_clean"),
        *_columns(sa.BigInteger(), "revision lock_epoch", nullable=False),
        *_columns(models.string(32), "flow"),
        *_columns(models.moment(), "due_at outbox_at", index=True),
        *_columns(sa.Integer(), "step_attempt", nullable=False),
    ),
    "runbook_steps": _with_id(
        _key("runbook_id", "runbooks", index=True),
        *_columns(models.string(), "interface step", nullable=False),
        *_columns(models.text(), "args", nullable=False),
        *_columns(sa.BigInteger(), "order", nullable=False),
    ),
    "runbook_traits": (
        _key("runbook_id", "runbooks", primary_key=True),
        *_columns(models.string(), "trait", primary_key=True),
    ),
    "agent_logs": _with_id(
        *_columns(models.string(36), "uuid", nullable=False, unique=True),
        _key("node_id", "nodes", index=True),
        *_columns(models.string(36), "run_id", nullable=False),
        *_columns(models.string(32), "flow", nullable=False),
        *_columns(models.moment(), "created_at", nullable=False),
        *_columns(sa.Integer(), "size", nullable=False),
        *_columns(models.blob(), "content", nullable=False),
    ),
    "allocations": _row(
        *_columns(models.string(), "name", unique=True),
        Column("node_id", sa.Integer(), sa.ForeignKey("nodes.id"), unique=True),
        *_columns(models.string(15), "state", nullable=False, index=True),
        *_columns(models.string(), "owner", index=True),
        *_columns(models.string(80), "resource_class", index=True),
        *_columns(models.text(), "candidate_nodes traits extra", nullable=False),
        *_columns(models.text(), "last_error"),
    ),
    "bios_settings": (
        _key("node_id", "nodes", primary_key=True),
        *_columns(models.string(), "name", primary_key=True),
        *_columns(models.text(), "value"),
        *_columns(models.string(), "attribute_type"),
        *_columns(models.text(), "allowable_values", nullable=False),
        *_columns(sa.Integer(), "lower_bound upper_bound min_length max_length"),
        *_columns(sa.Boolean(), "read_only reset_required unique"),
        *_times(),
    ),
    "firmware_components": (
        _key("node_id", "nodes", primary_key=True),
        *_columns(models.string(), "component", primary_key=True),
        *_columns(models.string(), "initial_version", nullable=False),
        *_columns(models.string(), "current_version last_version_flashed vendor model serial_number"),
        *_times(),
    ),
    "node_history": _with_id(
        *_columns(models.string(36), "uuid", nullable=False, unique=True),
        _key("node_id", "nodes", index=True),
        *_columns(models.moment(), "created_at", nullable=False),
        *_columns(models.string(), "conductor user project"),
        *_columns(models.string(10), "severity", nullable=False),
        *_columns(models.string(), "event_type", nullable=False),
        *_columns(models.text(), "event", nullable=False),
        *_columns(models.string(15), "state target_provision_state"),
        *_columns(sa.Double(), "duration_seconds"),
    ),
    "node_inventory": (
        _key("node_id", "nodes", primary_key=True),
        *_columns(models.text(), "inventory plugin_data", nullable=False),
        *_columns(models.moment(), "inspected_at", nullable=False),
    ),
    "node_tags": (_key("node_id", "nodes", primary_key=True), *_columns(models.string(), "tag", primary_key=True)),
    "node_traits": (
        _key("node_id", "nodes", primary_key=True),
        *_columns(models.string(), "trait", primary_key=True, index=True),
    ),
    "portgroups": _row(
        *_columns(models.string(), "name", unique=True),
        _key("node_id", "nodes", index=True),
        *_columns(models.string(18), "address", unique=True),
        *_columns(models.string(), "mode"),
        *_columns(models.text(), "properties internal_info extra", nullable=False),
        *_columns(sa.Boolean(), "standalone_ports_supported", nullable=False),
        *_columns(models.string(64), "physical_network"),
        *_columns(models.string(80), "category"),
        *_columns(sa.Boolean(), "dynamic_portgroup", nullable=False, server_default="0"),
        *_columns(sa.Integer(), "joined", nullable=False, server_default="0"),
    ),
    "step_runs": _with_id(
        _key("node_id", "nodes"),
        *_columns(models.string(36), "run_id", nullable=False, index=True),
        *_columns(models.string(32), "flow interface", nullable=False),
        *_columns(sa.Integer(), "step_index attempt", nullable=False),
        *_columns(models.string(), "step conductor", nullable=False),
        *_columns(models.text(), "args", nullable=False),
        *_columns(sa.Double(), "priority", nullable=False),
        *_columns(models.string(300), "origin", nullable=False),
        *_columns(models.string(16), "state", nullable=False),
        *_columns(models.moment(), "started_at finished_at", nullable=False),
        *_columns(models.text(), "error"),
        sa.Index("step_runs_node_id_run_id_idx", "node_id", "run_id"),
    ),
    "volume_connectors": _row(
        _key("node_id", "nodes", index=True),
        *_columns(models.string(32), "type", nullable=False),
        *_columns(models.string(), "connector_id", nullable=False),
        *_columns(models.text(), "extra", nullable=False),
        sa.UniqueConstraint("type", "connector_id"),
    ),
    "volume_targets": _row(
        _key("node_id", "nodes"),
        *_columns(models.string(64), "volume_type", nullable=False),
        *_columns(models.string(36), "volume_id", nullable=False),
        *_columns(sa.Integer(), "boot_index", nullable=False),
        *_columns(models.text(), "properties extra", nullable=False),
        sa.UniqueConstraint("node_id", "boot_index"),
    ),
    "ports": _row(
        *_columns(models.string(), "name", unique=True),
        _key("node_id", "nodes", index=True),
        Column("portgroup_id", sa.Integer(), sa.ForeignKey("portgroups.id"), index=True),
        *_columns(models.string(18), "address", nullable=False, unique=True),
        *_columns(models.string(), "description"),
        *_columns(models.string(32), "vendor"),
        *_columns(models.string(80), "category"),
        *_columns(models.text(), "local_link_connection internal_info extra", nullable=False),
        *_columns(sa.Boolean(), "pxe_enabled is_smartnic", nullable=False),
        *_columns(models.string(64), "physical_network"),
        *_columns(sa.Boolean(), "available_for_dynamic_portgroup", nullable=False, server_default="1"),
    ),
}


def upgrade() -> None:
    for name, items in _TABLES.items():
        op.create_table(name, *items, **_OPTIONS)
