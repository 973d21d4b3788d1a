"""The tables of the first release.

Revision 0001 of the schema.
"""

from typing import Any

import sqlalchemy as sa
from alembic import op

from ingot.db import types

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

# Whatever the server's defaults are: text of all scripts, and rows that are locked one by one.
_OPTIONS: dict[str, Any] = {
    "mysql_engine": "InnoDB",
    "mysql_default_charset": "utf8mb4",
    "mysql_collate": "utf8mb4_bin",
}


def _chassis() -> None:
    op.create_table(
        "chassis",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("uuid", types.string(36), nullable=False),
        sa.Column("description", types.string()),
        sa.Column("extra", types.text(), nullable=False),
        sa.Column("created_at", types.moment(), nullable=False),
        sa.Column("updated_at", types.moment()),
        sa.PrimaryKeyConstraint("id", name="chassis_pkey"),
        sa.UniqueConstraint("uuid", name="uniq_chassis_uuid"),
        **_OPTIONS,
    )


def _conductors() -> None:
    op.create_table(
        "conductors",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("hostname", types.string(), nullable=False),
        sa.Column("conductor_group", types.string(), nullable=False),
        sa.Column("online", sa.Boolean(), nullable=False),
        sa.Column("heartbeat_at", types.moment(), nullable=False),
        sa.Column("release", types.string(32), nullable=False),
        sa.Column("rpc_version", types.string(16), nullable=False),
        sa.Column("created_at", types.moment(), nullable=False),
        sa.Column("updated_at", types.moment()),
        sa.PrimaryKeyConstraint("id", name="conductors_pkey"),
        sa.UniqueConstraint("hostname", name="uniq_conductors_hostname"),
        **_OPTIONS,
    )
    op.create_index("conductors_heartbeat_at_idx", "conductors", ["heartbeat_at"])


def _deploy_templates() -> None:
    op.create_table(
        "deploy_templates",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("uuid", types.string(36), nullable=False),
        sa.Column("name", types.string(), nullable=False),
        sa.Column("extra", types.text(), nullable=False),
        sa.Column("created_at", types.moment(), nullable=False),
        sa.Column("updated_at", types.moment()),
        sa.PrimaryKeyConstraint("id", name="deploy_templates_pkey"),
        sa.UniqueConstraint("name", name="uniq_deploy_templates_name"),
        sa.UniqueConstraint("uuid", name="uniq_deploy_templates_uuid"),
        **_OPTIONS,
    )


def _conductor_hardware_interfaces() -> None:
    op.create_table(
        "conductor_hardware_interfaces",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("conductor_id", sa.Integer(), nullable=False),
        sa.Column("hardware_type", types.string(128), nullable=False),
        sa.Column("interface_type", types.string(16), nullable=False),
        sa.Column("interface_name", types.string(128), nullable=False),
        sa.Column("default", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="conductor_hardware_interfaces_pkey"),
        sa.ForeignKeyConstraint(
            ["conductor_id"],
            ["conductors.id"],
            name="conductor_hardware_interfaces_conductor_id_fkey",
            ondelete="CASCADE",
        ),
        sa.UniqueConstraint(
            "conductor_id",
            "hardware_type",
            "interface_type",
            "interface_name",
            name="uniq_conductor_hardware_interfaces",
        ),
        **_OPTIONS,
    )


def _deploy_template_steps() -> None:
    op.create_table(
        "deploy_template_steps",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("deploy_template_id", sa.Integer(), nullable=False),
        sa.Column("interface", types.string(), nullable=False),
        sa.Column("step", types.string(), nullable=False),
        sa.Column("args", types.text(), nullable=False),
        sa.Column("priority", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="deploy_template_steps_pkey"),
        sa.ForeignKeyConstraint(
            ["deploy_template_id"],
            ["deploy_templates.id"],
            name="deploy_template_steps_deploy_template_id_fkey",
            ondelete="CASCADE",
        ),
        **_OPTIONS,
    )
    op.create_index("deploy_template_steps_deploy_template_id_idx", "deploy_template_steps", ["deploy_template_id"])
    op.create_index("deploy_template_steps_interface_idx", "deploy_template_steps", ["interface"])
    op.create_index("deploy_template_steps_step_idx", "deploy_template_steps", ["step"])


def _nodes() -> None:
    op.create_table(
        "nodes",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("uuid", types.string(36), nullable=False),
        sa.Column("name", types.string()),
        sa.Column("description", types.text()),
        sa.Column("chassis_id", sa.Integer()),
        sa.Column("parent_node", types.string(36)),
        sa.Column("shard", types.string()),
        sa.Column("resource_class", types.string(80)),
        sa.Column("owner", types.string()),
        sa.Column("lessee", types.string()),
        sa.Column("conductor_group", types.string(), nullable=False),
        sa.Column("properties", types.text(), nullable=False),
        sa.Column("extra", types.text(), nullable=False),
        sa.Column("driver", types.string(), nullable=False),
        sa.Column("driver_info", types.text(), nullable=False),
        sa.Column("driver_internal_info", types.text(), nullable=False),
        sa.Column("bios_interface", types.string()),
        sa.Column("boot_interface", types.string()),
        sa.Column("console_interface", types.string()),
        sa.Column("deploy_interface", types.string()),
        sa.Column("firmware_interface", types.string()),
        sa.Column("inspect_interface", types.string()),
        sa.Column("management_interface", types.string()),
        sa.Column("network_interface", types.string()),
        sa.Column("power_interface", types.string()),
        sa.Column("raid_interface", types.string()),
        sa.Column("rescue_interface", types.string()),
        sa.Column("storage_interface", types.string()),
        sa.Column("vendor_interface", types.string()),
        sa.Column("instance_uuid", types.string(36)),
        sa.Column("instance_name", types.string()),
        sa.Column("instance_info", types.text(), nullable=False),
        sa.Column("configdrive", types.text()),
        sa.Column("network_data", types.text(), nullable=False),
        sa.Column("power_state", types.string(15)),
        sa.Column("target_power_state", types.string(15)),
        sa.Column("provision_state", types.string(15), nullable=False),
        sa.Column("target_provision_state", types.string(15)),
        sa.Column("provision_updated_at", types.moment()),
        sa.Column("last_error", types.text()),
        sa.Column("maintenance", sa.Boolean(), nullable=False),
        sa.Column("maintenance_reason", types.text()),
        sa.Column("fault", types.string()),
        sa.Column("health", types.string()),
        sa.Column("boot_mode", types.string(16)),
        sa.Column("secure_boot", sa.Boolean()),
        sa.Column("console_enabled", sa.Boolean(), nullable=False),
        sa.Column("inspection_started_at", types.moment()),
        sa.Column("inspection_finished_at", types.moment()),
        sa.Column("raid_config", types.text(), nullable=False),
        sa.Column("target_raid_config", types.text(), nullable=False),
        sa.Column("automated_clean", sa.Boolean()),
        sa.Column("disable_power_off", sa.Boolean(), nullable=False),
        sa.Column("protected", sa.Boolean(), nullable=False),
        sa.Column("protected_reason", types.text()),
        sa.Column("retired", sa.Boolean(), nullable=False),
        sa.Column("retired_reason", types.text()),
        sa.Column("revision", sa.BigInteger(), nullable=False),
        sa.Column("reservation", types.string()),
        sa.Column("lock_epoch", sa.BigInteger(), nullable=False),
        sa.Column("lock_purpose", types.string()),
        sa.Column("locked_at", types.moment()),
        sa.Column("flow", types.string(32)),
        sa.Column("request", types.text(), nullable=False),
        sa.Column("abort_requested", sa.Boolean(), nullable=False),
        sa.Column("power_request", types.text(), nullable=False),
        sa.Column("due_at", types.moment()),
        sa.Column("run_id", types.string(36)),
        sa.Column("clean_step", types.text(), nullable=False),
        sa.Column("deploy_step", types.text(), nullable=False),
        sa.Column("service_step", types.text(), nullable=False),
        sa.Column("step_state", types.string(16)),
        sa.Column("step_attempt", sa.Integer(), nullable=False),
        sa.Column("step_started_at", types.moment()),
        sa.Column("step_deadline", types.moment()),
        sa.Column("step_memory", types.text(), nullable=False),
        sa.Column("boot_config", types.text(), nullable=False),
        sa.Column("agent_url", types.text()),
        sa.Column("agent_token", types.string()),
        sa.Column("agent_version", types.string()),
        sa.Column("agent_verify_ca", types.text()),
        sa.Column("agent_status", types.text()),
        sa.Column("agent_last_heartbeat", types.moment()),
        sa.Column("created_at", types.moment(), nullable=False),
        sa.Column("updated_at", types.moment()),
        sa.PrimaryKeyConstraint("id", name="nodes_pkey"),
        sa.ForeignKeyConstraint(["chassis_id"], ["chassis.id"], name="nodes_chassis_id_fkey"),
        sa.UniqueConstraint("instance_uuid", name="uniq_nodes_instance_uuid"),
        sa.UniqueConstraint("name", name="uniq_nodes_name"),
        sa.UniqueConstraint("uuid", name="uniq_nodes_uuid"),
        **_OPTIONS,
    )
    op.create_index("nodes_chassis_id_idx", "nodes", ["chassis_id"])
    op.create_index("nodes_driver_idx", "nodes", ["driver"])
    op.create_index("nodes_due_at_idx", "nodes", ["due_at"])
    op.create_index("nodes_lessee_idx", "nodes", ["lessee"])
    op.create_index("nodes_owner_idx", "nodes", ["owner"])
    op.create_index("nodes_parent_node_idx", "nodes", ["parent_node"])
    op.create_index("nodes_provision_state_idx", "nodes", ["provision_state"])
    op.create_index("nodes_reservation_idx", "nodes", ["reservation"])
    op.create_index("nodes_resource_class_idx", "nodes", ["resource_class"])
    op.create_index("nodes_shard_idx", "nodes", ["shard"])


def _node_history() -> None:
    op.create_table(
        "node_history",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("uuid", types.string(36), nullable=False),
        sa.Column("node_id", sa.Integer(), nullable=False),
        sa.Column("created_at", types.moment(), nullable=False),
        sa.Column("conductor", types.string()),
        sa.Column("severity", types.string(10), nullable=False),
        sa.Column("event_type", types.string(), nullable=False),
        sa.Column("event", types.text(), nullable=False),
        sa.Column("user", types.string()),
        sa.Column("project", types.string()),
        sa.Column("state", types.string(15)),
        sa.Column("target_provision_state", types.string(15)),
        sa.Column("duration_seconds", sa.Double()),
        sa.PrimaryKeyConstraint("id", name="node_history_pkey"),
        sa.ForeignKeyConstraint(["node_id"], ["nodes.id"], name="node_history_node_id_fkey", ondelete="CASCADE"),
        sa.UniqueConstraint("uuid", name="uniq_node_history_uuid"),
        **_OPTIONS,
    )
    op.create_index("node_history_node_id_idx", "node_history", ["node_id"])


def _node_tags() -> None:
    op.create_table(
        "node_tags",
        sa.Column("node_id", sa.Integer(), nullable=False),
        sa.Column("tag", types.string(), nullable=False),
        sa.PrimaryKeyConstraint("node_id", "tag", name="node_tags_pkey"),
        sa.ForeignKeyConstraint(["node_id"], ["nodes.id"], name="node_tags_node_id_fkey", ondelete="CASCADE"),
        **_OPTIONS,
    )


def _node_traits() -> None:
    op.create_table(
        "node_traits",
        sa.Column("node_id", sa.Integer(), nullable=False),
        sa.Column("trait", types.string(), nullable=False),
        sa.PrimaryKeyConstraint("node_id", "trait", name="node_traits_pkey"),
        sa.ForeignKeyConstraint(["node_id"], ["nodes.id"], name="node_traits_node_id_fkey", ondelete="CASCADE"),
        **_OPTIONS,
    )
    op.create_index("node_traits_trait_idx", "node_traits", ["trait"])


def _portgroups() -> None:
    op.create_table(
        "portgroups",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("uuid", types.string(36), nullable=False),
        sa.Column("name", types.string()),
        sa.Column("node_id", sa.Integer(), nullable=False),
        sa.Column("address", types.string(18)),
        sa.Column("mode", types.string()),
        sa.Column("properties", types.text(), nullable=False),
        sa.Column("standalone_ports_supported", sa.Boolean(), nullable=False),
        sa.Column("internal_info", types.text(), nullable=False),
        sa.Column("extra", types.text(), nullable=False),
        sa.Column("created_at", types.moment(), nullable=False),
        sa.Column("updated_at", types.moment()),
        sa.PrimaryKeyConstraint("id", name="portgroups_pkey"),
        sa.ForeignKeyConstraint(["node_id"], ["nodes.id"], name="portgroups_node_id_fkey", ondelete="CASCADE"),
        sa.UniqueConstraint("address", name="uniq_portgroups_address"),
        sa.UniqueConstraint("name", name="uniq_portgroups_name"),
        sa.UniqueConstraint("uuid", name="uniq_portgroups_uuid"),
        **_OPTIONS,
    )
    op.create_index("portgroups_node_id_idx", "portgroups", ["node_id"])


def _step_runs() -> None:
    op.create_table(
        "step_runs",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("node_id", sa.Integer(), nullable=False),
        sa.Column("run_id", types.string(36), nullable=False),
        sa.Column("flow", types.string(32), nullable=False),
        sa.Column("step_index", sa.Integer(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("interface", types.string(32), nullable=False),
        sa.Column("step", types.string(), nullable=False),
        sa.Column("args", types.text(), nullable=False),
        sa.Column("priority", sa.BigInteger(), nullable=False),
        sa.Column("origin", types.string(64), nullable=False),
        sa.Column("state", types.string(16), nullable=False),
        sa.Column("started_at", types.moment(), nullable=False),
        sa.Column("finished_at", types.moment(), nullable=False),
        sa.Column("conductor", types.string(), nullable=False),
        sa.Column("error", types.text()),
        sa.PrimaryKeyConstraint("id", name="step_runs_pkey"),
        sa.ForeignKeyConstraint(["node_id"], ["nodes.id"], name="step_runs_node_id_fkey", ondelete="CASCADE"),
        **_OPTIONS,
    )
    op.create_index("step_runs_node_id_run_id_idx", "step_runs", ["node_id", "run_id"])


def _ports() -> None:
    op.create_table(
        "ports",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("uuid", types.string(36), nullable=False),
        sa.Column("name", types.string()),
        sa.Column("node_id", sa.Integer(), nullable=False),
        sa.Column("portgroup_id", sa.Integer()),
        sa.Column("address", types.string(18), nullable=False),
        sa.Column("description", types.string()),
        sa.Column("vendor", types.string(32)),
        sa.Column("category", types.string(80)),
        sa.Column("local_link_connection", types.text(), nullable=False),
        sa.Column("pxe_enabled", sa.Boolean(), nullable=False),
        sa.Column("physical_network", types.string(64)),
        sa.Column("is_smartnic", sa.Boolean(), nullable=False),
        sa.Column("internal_info", types.text(), nullable=False),
        sa.Column("extra", types.text(), nullable=False),
        sa.Column("created_at", types.moment(), nullable=False),
        sa.Column("updated_at", types.moment()),
        sa.PrimaryKeyConstraint("id", name="ports_pkey"),
        sa.ForeignKeyConstraint(["node_id"], ["nodes.id"], name="ports_node_id_fkey", ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["portgroup_id"], ["portgroups.id"], name="ports_portgroup_id_fkey"),
        sa.UniqueConstraint("address", name="uniq_ports_address"),
        sa.UniqueConstraint("name", name="uniq_ports_name"),
        sa.UniqueConstraint("uuid", name="uniq_ports_uuid"),
        **_OPTIONS,
    )
    op.create_index("ports_node_id_idx", "ports", ["node_id"])
    op.create_index("ports_portgroup_id_idx", "ports", ["portgroup_id"])


def upgrade() -> None:
    _chassis()
    _conductors()
    _deploy_templates()
    _conductor_hardware_interfaces()
    _deploy_template_steps()
    _nodes()
    _node_history()
    _node_tags()
    _node_traits()
    _portgroups()
    _step_runs()
    _ports()
