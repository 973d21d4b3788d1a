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


def _times() -> list[Column[Any]]:
    return [Column("created_at", models.moment(), nullable=False), Column("updated_at", models.moment())]


def _row(*items: sa.schema.SchemaItem) -> tuple[sa.schema.SchemaItem, ...]:
    uuid = Column("uuid", models.string(36), nullable=False, unique=True)
    return (Column("id", sa.Integer(), primary_key=True), uuid, *items, *_times())


def _node_id(**options: Any) -> Column[Any]:
    key = sa.ForeignKey("nodes.id", ondelete="CASCADE")
    return Column("node_id", sa.Integer(), key, nullable=False, **options)


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
        Column("announced", models.string(16)),
        Column("drain", models.string(16)),
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
        Column("conditions", models.text(), nullable=False),
        Column("actions", models.text(), nullable=False),
    ),
    "runbooks": _row(
        Column("name", models.string(), nullable=False, unique=True),
        Column("description", models.string()),
        Column("disable_ramdisk", sa.Boolean(), nullable=False),
        Column("owner", models.string(), index=True),
        Column("public", sa.Boolean(), nullable=False),
        Column("extra", models.text(), nullable=False),
    ),
    "conductor_hardware_interfaces": (
        Column("id", sa.Integer(), primary_key=True),
        Column("conductor_id", sa.Integer(), sa.ForeignKey("conductors.id", ondelete="CASCADE"), nullable=False),
        Column("hardware_type", models.string(128), nullable=False),
        Column("interface_type", models.string(16), nullable=False),
        Column("interface_name", models.string(128), nullable=False),
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
        Column("interface", models.string(), nullable=False, index=True),
        Column("step", models.string(), nullable=False, index=True),
        Column("args", models.text(), nullable=False),
        Column("priority", sa.BigInteger(), nullable=False),
    ),
    "nodes": _row(
        Column("name", models.string(), unique=True),
        Column("description", models.text()),
        Column("chassis_id", sa.Integer(), sa.ForeignKey("chassis.id"), index=True),
        Column("parent_node", models.string(36), index=True),
        Column("shard", models.string(), index=True),
        Column("resource_class", models.string(80), index=True),
        Column("owner", models.string(), index=True),
        Column("lessee", models.string(), index=True),
        Column("conductor_group", models.string(), nullable=False),
        Column("properties", models.text(), nullable=False),
        Column("extra", models.text(), nullable=False),
        Column("driver", models.string(), nullable=False, index=True),
        Column("driver_info", models.text(), nullable=False),
        Column("driver_internal_info", models.text(), nullable=False),
        Column("bios_interface", models.string()),
        Column("boot_interface", models.string()),
        Column("console_interface", models.string()),
        Column("deploy_interface", models.string()),
        Column("firmware_interface", models.string()),
        Column("inspect_interface", models.string()),
        Column("management_interface", models.string()),
        Column("network_interface", models.string()),
        Column("power_interface", models.string()),
        Column("raid_interface", models.string()),
        Column("rescue_interface", models.string()),
        Column("storage_interface", models.string()),
        Column("vendor_interface", models.string()),
        Column("instance_uuid", models.string(36), unique=True),
        Column("instance_name", models.string()),
        Column("instance_info", models.text(), nullable=False),
        Column("configdrive", models.text()),
        Column("network_data", models.text(), nullable=False),
        Column("power_state", models.string(15)),
        Column("target_power_state", models.string(15)),
        Column("provision_state", models.string(15), nullable=False, index=True),
        Column("target_provision_state", models.string(15)),
        Column("provision_updated_at", models.moment()),
        Column("last_error", models.text()),
        Column("maintenance", sa.Boolean(), nullable=False),
        Column("maintenance_reason", models.text()),
        Column("fault", models.string()),
        Column("maintenance_holds", models.text()),
        Column("health", models.string()),
        Column("boot_mode", models.string(16)),
        Column("secure_boot", sa.Boolean()),
        Column("console_enabled", sa.Boolean(), nullable=False),
        Column("inspection_started_at", models.moment()),
        Column("inspection_finished_at", models.moment()),
        Column("raid_config", models.text(), nullable=False),
        Column("target_raid_config", models.text(), nullable=False),
        Column("automated_clean", sa.Boolean()),
        Column("disable_power_off", sa.Boolean(), nullable=False),
        Column("protected", sa.Boolean(), nullable=False),
        Column("protected_reason", models.text()),
        Column("retired", sa.Boolean(), nullable=False),
        Column("retired_reason", models.text()),
        Column("revision", sa.BigInteger(), nullable=False),
        Column("reservation", models.string(), index=True),
        Column("lock_epoch", sa.BigInteger(), nullable=False),
        Column("lock_purpose", models.string()),
        Column("locked_at", models.moment()),
        Column("flow", models.string(32)),
        Column("request", models.text(), nullable=False),
        Column("abort_requested", sa.Boolean(), nullable=False),
        Column("power_request", models.text(), nullable=False),
        Column("due_at", models.moment(), index=True),
        Column("run_id", models.string(36), index=True),
        Column("clean_step", models.text(), nullable=False),
        Column("deploy_step", models.text(), nullable=False),
        Column("service_step", models.text(), nullable=False),
        Column("step_state", models.string(16)),
        Column("step_attempt", sa.Integer(), nullable=False),
        Column("step_started_at", models.moment()),
        Column("step_deadline", models.moment()),
        Column("step_heard", models.moment()),
        Column("step_memory", models.text(), nullable=False),
        Column("boot_config", models.text(), nullable=False),
        Column("agent_url", models.text()),
        Column("agent_token", models.string()),
        Column("agent_version", models.string()),
        Column("agent_verify_ca", models.text()),
        Column("agent_status", models.text()),
        Column("agent_last_heartbeat", models.moment()),
        Column("outbox", models.text()),
        Column("outbox_at", models.moment(), index=True),
    ),
    "runbook_steps": (
        Column("id", sa.Integer(), primary_key=True),
        Column(
            "runbook_id", sa.Integer(), sa.ForeignKey("runbooks.id", ondelete="CASCADE"), nullable=False, index=True
        ),
        Column("interface", models.string(), nullable=False),
        Column("step", models.string(), nullable=False),
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
        Column("candidate_nodes", models.text(), nullable=False),
        Column("traits", models.text(), nullable=False),
        Column("last_error", models.text()),
        Column("extra", models.text(), nullable=False),
    ),
    "bios_settings": (
        _node_id(primary_key=True),
        Column("name", models.string(), primary_key=True),
        Column("value", models.text()),
        Column("attribute_type", models.string()),
        Column("allowable_values", models.text(), nullable=False),
        Column("lower_bound", sa.Integer()),
        Column("upper_bound", sa.Integer()),
        Column("min_length", sa.Integer()),
        Column("max_length", sa.Integer()),
        Column("read_only", sa.Boolean()),
        Column("reset_required", sa.Boolean()),
        Column("unique", sa.Boolean()),
        *_times(),
    ),
    "firmware_components": (
        _node_id(primary_key=True),
        Column("component", models.string(), primary_key=True),
        Column("initial_version", models.string(), nullable=False),
        Column("current_version", models.string()),
        Column("last_version_flashed", models.string()),
        Column("vendor", models.string()),
        Column("model", models.string()),
        Column("serial_number", models.string()),
        *_times(),
    ),
    "node_history": (
        Column("id", sa.Integer(), primary_key=True),
        Column("uuid", models.string(36), nullable=False, unique=True),
        _node_id(index=True),
        Column("created_at", models.moment(), nullable=False),
        Column("conductor", models.string()),
        Column("severity", models.string(10), nullable=False),
        Column("event_type", models.string(), nullable=False),
        Column("event", models.text(), nullable=False),
        Column("user", models.string()),
        Column("project", models.string()),
        Column("state", models.string(15)),
        Column("target_provision_state", models.string(15)),
        Column("duration_seconds", sa.Double()),
    ),
    "node_inventory": (
        _node_id(primary_key=True),
        Column("inventory", models.text(), nullable=False),
        Column("plugin_data", models.text(), nullable=False),
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
        Column("properties", models.text(), nullable=False),
        Column("standalone_ports_supported", sa.Boolean(), nullable=False),
        Column("physical_network", models.string(64)),
        Column("category", models.string(80)),
        Column("dynamic_portgroup", sa.Boolean(), nullable=False, server_default="0"),
        Column("joined", sa.Integer(), nullable=False, server_default="0"),
        Column("internal_info", models.text(), nullable=False),
        Column("extra", models.text(), nullable=False),
    ),
    "step_runs": (
        Column("id", sa.Integer(), primary_key=True),
        _node_id(),
        Column("run_id", models.string(36), nullable=False, index=True),
        Column("flow", models.string(32), nullable=False),
        Column("step_index", sa.Integer(), nullable=False),
        Column("attempt", sa.Integer(), nullable=False),
        Column("interface", models.string(32), nullable=False),
        Column("step", models.string(), nullable=False),
        Column("args", models.text(), nullable=False),
        Column("priority", sa.Double(), nullable=False),
        Column("origin", models.string(300), nullable=False),
        Column("state", models.string(16), nullable=False),
        Column("started_at", models.moment(), nullable=False),
        Column("finished_at", models.moment(), nullable=False),
        Column("conductor", models.string(), nullable=False),
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
        Column("properties", models.text(), nullable=False),
        Column("extra", models.text(), nullable=False),
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
        Column("local_link_connection", models.text(), nullable=False),
        Column("pxe_enabled", sa.Boolean(), nullable=False),
        Column("physical_network", models.string(64)),
        Column("is_smartnic", sa.Boolean(), nullable=False),
        Column("available_for_dynamic_portgroup", sa.Boolean(), nullable=False, server_default="1"),
        Column("internal_info", models.text(), nullable=False),
        Column("extra", models.text(), nullable=False),
    ),
}


def upgrade() -> None:
    for name, items in _TABLES.items():
        op.create_table(name, *items, **_OPTIONS)
