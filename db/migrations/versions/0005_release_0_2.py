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


def _columns(column_type: sa.types.TypeEngine[Any], *names: str, **options: Any) -> list[Column[Any]]:
    return [Column(name, column_type, **options) for name in names]


def _times() -> list[Column[Any]]:
    return [Column("created_at", models.moment(), nullable=False), Column("updated_at", models.moment())]


def _row(*items: sa.schema.SchemaItem) -> tuple[sa.schema.SchemaItem, ...]:
    uuid = Column("uuid", models.string(36), nullable=False, unique=True)
    return (Column("id", sa.Integer(), primary_key=True), uuid, *items, *_times())


def _node_id(**options: Any) -> Column[Any]:
    return Column("node_id", sa.Integer(), sa.ForeignKey("nodes.id", ondelete="CASCADE"), nullable=False, **options)


# Constraints and indexes get their names by the convention of ``models.Base``.
_TABLES: dict[str, tuple[sa.schema.SchemaItem, ...]] = {
    "chassis": _row(
        Column("description", models.string()),
        Column("extra", models.text(), nullable=False),
    ),
    "conductors": (
        Column("id", sa.Integer(), primary_key=True),
        Column("hostname", models.string(), nullable=False, unique=True),
        Column("conductor_group", models.string(), nullable=False),
        Column("online", sa.Boolean(), nullable=False),
        Column("heartbeat_at", models.moment(), nullable=False, index=True),
        Column("release", models.string(32), nullable=False),
        Column("rpc_version", models.string(16), nullable=False),
        Column("process", models.string()),
        Column("classic_drivers", models.text()),
        *_columns(models.string(16), "announced", "drain"),
        *_times(),
    ),
    "deploy_templates": _row(
        Column("name", models.string(), nullable=False, unique=True),
        Column("extra", models.text(), nullable=False),
    ),
    "events": (
        Column("id", sa.BigInteger(), primary_key=True, autoincrement=False),
        Column("kind", models.string(16), nullable=False),
        Column("created_at", models.moment(), nullable=False),
        Column("node_uuid", models.string(36)),
        Column("node_name", models.string()),
        Column("data", models.text(), nullable=False),
    ),
    "inspection_rules": _row(
        Column("description", models.string()),
        Column("priority", sa.Integer(), nullable=False),
        Column("sensitive", sa.Boolean(), nullable=False),
        Column("phase", models.string(16), nullable=False),
        *_columns(models.text(), "conditions", "actions", nullable=False),
    ),
    "runbooks": _row(
        Column("name", models.string(), nullable=False, unique=True),
        Column("description", models.string()),
        *_columns(sa.Boolean(), "disable_ramdisk", "public", nullable=False),
        Column("owner", models.string(), index=True),
        Column("extra", models.text(), nullable=False),
    ),
    "conductor_hardware_interfaces": (
        Column("id", sa.Integer(), primary_key=True),
        Column("conductor_id", sa.Integer(), sa.ForeignKey("conductors.id", ondelete="CASCADE"), nullable=False),
        *_columns(models.string(128), "hardware_type", "interface_name", nullable=False),
        Column("interface_type", models.string(16), nullable=False),
        Column("default", sa.Boolean(), nullable=False),
        sa.UniqueConstraint(
            "conductor_id",
            "hardware_type",
            "interface_type",
            "interface_name",
            name="uniq_conductor_hardware_interfaces",
        ),
    ),
    "deploy_template_steps": (
        Column("id", sa.Integer(), primary_key=True),
        Column(
            "deploy_template_id",
            sa.Integer(),
            sa.ForeignKey("deploy_templates.id", ondelete="CASCADE"),
            nullable=False,
            index=True,
        ),
        *_columns(models.string(), "interface", "step", nullable=False, index=True),
        Column("args", models.text(), nullable=False),
        Column("priority", sa.BigInteger(), nullable=False),
    ),
    "nodes": _row(
        Column("name", models.string(), unique=True),
        *_columns(
            models.text(),
            "description",
            "configdrive",
            "last_error",
            "maintenance_reason",
            "maintenance_holds",
            "protected_reason",
            "retired_reason",
            "agent_url",
            "agent_verify_ca",
            "agent_status",
            "outbox",
        ),
        Column("chassis_id", sa.Integer(), sa.ForeignKey("chassis.id"), index=True),
        *_columns(models.string(36), "parent_node", "run_id", index=True),
        *_columns(models.string(), "shard", "owner", "lessee", "reservation", index=True),
        Column("resource_class", models.string(80), index=True),
        Column("conductor_group", models.string(), nullable=False),
        *_columns(
            models.text(),
            "properties",
            "extra",
            "driver_info",
            "driver_internal_info",
            "instance_info",
            "network_data",
            "raid_config",
            "target_raid_config",
            "request",
            "power_request",
            "clean_step",
            "deploy_step",
            "service_step",
            "step_memory",
            "boot_config",
            nullable=False,
        ),
        Column("driver", models.string(), nullable=False, index=True),
        *_columns(
            models.string(),
            "bios_interface",
            "boot_interface",
            "console_interface",
            "deploy_interface",
            "firmware_interface",
            "inspect_interface",
            "management_interface",
            "network_interface",
            "power_interface",
            "raid_interface",
            "rescue_interface",
            "storage_interface",
            "vendor_interface",
            "instance_name",
            "fault",
            "health",
            "lock_purpose",
            "agent_token",
            "agent_version",
        ),
        Column("instance_uuid", models.string(36), unique=True),
        *_columns(models.string(15), "power_state", "target_power_state", "target_provision_state"),
        Column("provision_state", models.string(15), nullable=False, index=True),
        *_columns(
            models.moment(),
            "provision_updated_at",
            "inspection_started_at",
            "inspection_finished_at",
            "locked_at",
            "step_started_at",
            "step_deadline",
            "step_heard",
            "agent_last_heartbeat",
        ),
        *_columns(
            sa.Boolean(),
            "maintenance",
            "console_enabled",
            "disable_power_off",
            "protected",
            "retired",
            "abort_requested",
            nullable=False,
        ),
        *_columns(models.string(16), "boot_mode", "step_state"),
        *_columns(sa.Boolean(), "secure_boot", "automated_clean"),
        *_columns(sa.BigInteger(), "revision", "lock_epoch", nullable=False),
        Column("flow", models.string(32)),
        *_columns(models.moment(), "due_at", "outbox_at", index=True),
        Column("step_attempt", sa.Integer(), nullable=False),
    ),
    "runbook_steps": (
        Column("id", sa.Integer(), primary_key=True),
        Column(
            "runbook_id", sa.Integer(), sa.ForeignKey("runbooks.id", ondelete="CASCADE"), nullable=False, index=True
        ),
        *_columns(models.string(), "interface", "step", nullable=False),
        Column("args", models.text(), nullable=False),
        Column("order", sa.BigInteger(), nullable=False),
    ),
    "runbook_traits": (
        Column("runbook_id", sa.Integer(), sa.ForeignKey("runbooks.id", ondelete="CASCADE"), primary_key=True),
        Column("trait", models.string(), primary_key=True),
    ),
    "agent_logs": (
        Column("id", sa.Integer(), primary_key=True),
        Column("uuid", models.string(36), nullable=False, unique=True),
        _node_id(index=True),
        Column("run_id", models.string(36), nullable=False),
        Column("flow", models.string(32), nullable=False),
        Column("created_at", models.moment(), nullable=False),
        Column("size", sa.Integer(), nullable=False),
        Column("content", models.blob(), nullable=False),
    ),
    "allocations": _row(
        Column("name", models.string(), unique=True),
        Column("node_id", sa.Integer(), sa.ForeignKey("nodes.id"), unique=True),
        Column("state", models.string(15), nullable=False, index=True),
        Column("owner", models.string(), index=True),
        Column("resource_class", models.string(80), index=True),
        *_columns(models.text(), "candidate_nodes", "traits", "extra", nullable=False),
        Column("last_error", models.text()),
    ),
    "bios_settings": (
        _node_id(primary_key=True),
        Column("name", models.string(), primary_key=True),
        Column("value", models.text()),
        Column("attribute_type", models.string()),
        Column("allowable_values", models.text(), nullable=False),
        *_columns(sa.Integer(), "lower_bound", "upper_bound", "min_length", "max_length"),
        *_columns(sa.Boolean(), "read_only", "reset_required", "unique"),
        *_times(),
    ),
    "firmware_components": (
        _node_id(primary_key=True),
        Column("component", models.string(), primary_key=True),
        Column("initial_version", models.string(), nullable=False),
        *_columns(models.string(), "current_version", "last_version_flashed", "vendor", "model", "serial_number"),
        *_times(),
    ),
    "node_history": (
        Column("id", sa.Integer(), primary_key=True),
        Column("uuid", models.string(36), nullable=False, unique=True),
        _node_id(index=True),
        Column("created_at", models.moment(), nullable=False),
        *_columns(models.string(), "conductor", "user", "project"),
        Column("severity", models.string(10), nullable=False),
        Column("event_type", models.string(), nullable=False),
        Column("event", models.text(), nullable=False),
        *_columns(models.string(15), "state", "target_provision_state"),
        Column("duration_seconds", sa.Double()),
    ),
    "node_inventory": (
        _node_id(primary_key=True),
        *_columns(models.text(), "inventory", "plugin_data", nullable=False),
        Column("inspected_at", models.moment(), nullable=False),
    ),
    "node_tags": (
        _node_id(primary_key=True),
        Column("tag", models.string(), primary_key=True),
    ),
    "node_traits": (
        _node_id(primary_key=True),
        Column("trait", models.string(), primary_key=True, index=True),
    ),
    "portgroups": _row(
        Column("name", models.string(), unique=True),
        _node_id(index=True),
        Column("address", models.string(18), unique=True),
        Column("mode", models.string()),
        *_columns(models.text(), "properties", "internal_info", "extra", nullable=False),
        Column("standalone_ports_supported", sa.Boolean(), nullable=False),
        Column("physical_network", models.string(64)),
        Column("category", models.string(80)),
        Column("dynamic_portgroup", sa.Boolean(), nullable=False, server_default="0"),
        Column("joined", sa.Integer(), nullable=False, server_default="0"),
    ),
    "step_runs": (
        Column("id", sa.Integer(), primary_key=True),
        _node_id(),
        Column("run_id", models.string(36), nullable=False, index=True),
        *_columns(models.string(32), "flow", "interface", nullable=False),
        *_columns(sa.Integer(), "step_index", "attempt", nullable=False),
        *_columns(models.string(), "step", "conductor", nullable=False),
        Column("args", models.text(), nullable=False),
        Column("priority", sa.Double(), nullable=False),
        Column("origin", models.string(300), nullable=False),
        Column("state", models.string(16), nullable=False),
        *_columns(models.moment(), "started_at", "finished_at", nullable=False),
        Column("error", models.text()),
        sa.Index("step_runs_node_id_run_id_idx", "node_id", "run_id"),
    ),
    "volume_connectors": _row(
        _node_id(index=True),
        Column("type", models.string(32), nullable=False),
        Column("connector_id", models.string(), nullable=False),
        Column("extra", models.text(), nullable=False),
        sa.UniqueConstraint("type", "connector_id"),
    ),
    "volume_targets": _row(
        _node_id(),
        Column("volume_type", models.string(64), nullable=False),
        Column("volume_id", models.string(36), nullable=False),
        Column("boot_index", sa.Integer(), nullable=False),
        *_columns(models.text(), "properties", "extra", nullable=False),
        sa.UniqueConstraint("node_id", "boot_index"),
    ),
    "ports": _row(
        Column("name", models.string(), unique=True),
        _node_id(index=True),
        Column("portgroup_id", sa.Integer(), sa.ForeignKey("portgroups.id"), index=True),
        Column("address", models.string(18), nullable=False, unique=True),
        Column("description", models.string()),
        Column("vendor", models.string(32)),
        Column("category", models.string(80)),
        *_columns(models.text(), "local_link_connection", "internal_info", "extra", nullable=False),
        *_columns(sa.Boolean(), "pxe_enabled", "is_smartnic", nullable=False),
        Column("physical_network", models.string(64)),
        Column("available_for_dynamic_portgroup", sa.Boolean(), nullable=False, server_default="1"),
    ),
}


def upgrade() -> None:
    for name, items in _TABLES.items():
        op.create_table(name, *items, **_OPTIONS)
