"""The tables of the first release.

Revision 0001 of the schema.
"""

from typing import Any

import sqlalchemy as sa
from alembic import op

from ingot.db import models

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
        sa.Column("uuid", models.string(36), nullable=False),
        sa.Column("description", models.string()),
        sa.Column("extra", models.text(), nullable=False),
        sa.Column("created_at", models.moment(), nullable=False),
        sa.Column("updated_at", models.moment()),
        sa.PrimaryKeyConstraint("id", name="chassis_pkey"),
        sa.UniqueConstraint("uuid", name="uniq_chassis_uuid"),
        **_OPTIONS,
    )


def _conductors() -> None:
    op.create_table(
        "conductors",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("hostname", models.string(), nullable=False),
        sa.Column("conductor_group", models.string(), nullable=False),
        sa.Column("online", sa.Boolean(), nullable=False),
        sa.Column("heartbeat_at", models.moment(), nullable=False),
        sa.Column("release", models.string(32), nullable=False),
        sa.Column("rpc_version", models.string(16), nullable=False),
        sa.Column("created_at", models.moment(), nullable=False),
        sa.Column("updated_at", models.moment()),
        sa.PrimaryKeyConstraint("id", name="conductors_pkey"),
        sa.UniqueConstraint("hostname", name="uniq_conductors_hostname"),
        **_OPTIONS,
    )
    op.create_index("conductors_heartbeat_at_idx", "conductors", ["heartbeat_at"])


def _deploy_templates() -> None:
    op.create_table(
        "deploy_templates",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("uuid", models.string(36), nullable=False),
        sa.Column("name", models.string(), nullable=False),
        sa.Column("extra", models.text(), nullable=False),
        sa.Column("created_at", models.moment(), nullable=False),
        sa.Column("updated_at", models.moment()),
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
        sa.Column("hardware_type", models.string(128), nullable=False),
        sa.Column("interface_type", models.string(16), nullable=False),
        sa.Column("interface_name", models.string(128), nullable=False),
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
        sa.Column("interface", models.string(), nullable=False),
        sa.Column("step", models.string(), nullable=False),
        sa.Column("args", models.text(), nullable=False),
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
        sa.Column("uuid", models.string(36), nullable=False),
        sa.Column("name", models.string()),
        sa.Column("description", models.text()),
        sa.Column("chassis_id", sa.Integer()),
        sa.Column("parent_node", models.string(36)),
        sa.Column("shard", models.string()),
        sa.Column("resource_class", models.string(80)),
        sa.Column("owner", models.string()),
        sa.Column("lessee", models.string()),
        sa.Column("conductor_group", models.string(), nullable=False),
        sa.Column("properties", models.text(), nullable=False),
        sa.Column("extra", models.text(), nullable=False),
        sa.Column("driver", models.string(), nullable=False),
        sa.Column("driver_info", models.text(), nullable=False),
        sa.Column("driver_internal_info", models.text(), nullable=False),
        sa.Column("bios_interface", models.string()),
        sa.Column("boot_interface", models.string()),
        sa.Column("console_interface", models.string()),
        sa.Column("deploy_interface", models.string()),
        sa.Column("firmware_interface", models.string()),
        sa.Column("inspect_interface", models.string()),
        sa.Column("management_interface", models.string()),
        sa.Column("network_interface", models.string()),
        sa.Column("power_interface", models.string()),
        sa.Column("raid_interface", models.string()),
        sa.Column("rescue_interface", models.string()),
        sa.Column("storage_interface", models.string()),
        sa.Column("vendor_interface", models.string()),
        sa.Column("instance_uuid", models.string(36)),
        sa.Column("instance_name", models.string()),
        sa.Column("instance_info", models.text(), nullable=False),
        sa.Column("configdrive", models.text()),
        sa.Column("network_data", models.text(), nullable=False),
        sa.Column("power_state", models.string(15)),
        sa.Column("target_power_state", models.string(15)),
        sa.Column("provision_state", models.string(15), nullable=False),
        sa.Column("target_provision_state", models.string(15)),
        sa.Column("provision_updated_at", models.moment()),
        sa.Column("last_error", models.text()),
        sa.Column("maintenance", sa.Boolean(), nullable=False),
        sa.Column("maintenance_reason", models.text()),
        sa.Column("fault", models.string()),
        sa.Column("health", models.string()),
        sa.Column("boot_mode", models.string(16)),
        sa.Column("secure_boot", sa.Boolean()),
        sa.Column("console_enabled", sa.Boolean(), nullable=False),
        sa.Column("inspection_started_at", models.moment()),
        sa.Column("inspection_finished_at", models.moment()),
        sa.Column("raid_config", models.text(), nullable=False),
        sa.Column("target_raid_config", models.text(), nullable=False),
        sa.Column("automated_clean", sa.Boolean()),
        sa.Column("disable_power_off", sa.Boolean(), nullable=False),
        sa.Column("protected", sa.Boolean(), nullable=False),
        sa.Column("protected_reason", models.text()),
        sa.Column("retired", sa.Boolean(), nullable=False),
        sa.Column("retired_reason", models.text()),
        sa.Column("revision", sa.BigInteger(), nullable=False),
        sa.Column("reservation", models.string()),
        sa.Column("lock_epoch", sa.BigInteger(), nullable=False),
        sa.Column("lock_purpose", models.string()),
        sa.Column("locked_at", models.moment()),
        sa.Column("flow", models.string(32)),
        sa.Column("request", models.text(), nullable=False),
        sa.Column("abort_requested", sa.Boolean(), nullable=False),
        sa.Column("power_request", models.text(), nullable=False),
        sa.Column("due_at", models.moment()),
        sa.Column("run_id", models.string(36)),
        sa.Column("clean_step", models.text(), nullable=False),
        sa.Column("deploy_step", models.text(), nullable=False),
        sa.Column("service_step", models.text(), nullable=False),
        sa.Column("step_state", models.string(16)),
        sa.Column("step_attempt", sa.Integer(), nullable=False),
        sa.Column("step_started_at", models.moment()),
        sa.Column("step_deadline", models.moment()),
        sa.Column("step_memory", models.text(), nullable=False),
        sa.Column("boot_config", models.text(), nullable=False),
        sa.Column("agent_url", models.text()),
        sa.Column("agent_token", models.string()),
        sa.Column("agent_version", models.string()),
        sa.Column("agent_verify_ca", models.text()),
        sa.Column("agent_status", models.text()),
        sa.Column("agent_last_heartbeat", models.moment()),
        sa.Column("created_at", models.moment(), nullable=False),
        sa.Column("updated_at", models.moment()),
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
        sa.Column("uuid", models.string(36), nullable=False),
        sa.Column("node_id", sa.Integer(), nullable=False),
        sa.Column("created_at", models.moment(), nullable=False),
        sa.Column("conductor", models.string()),
        sa.Column("severity", models.string(10), nullable=False),
        sa.Column("event_type", models.string(), nullable=False),
        sa.Column("event", models.text(), nullable=False),
        sa.Column("user", models.string()),
        sa.Column("project", models.string()),
        sa.Column("state", models.string(15)),
        sa.Column("target_provision_state", models.string(15)),
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
        sa.Column("tag", models.string(), nullable=False),
        sa.PrimaryKeyConstraint("node_id", "tag", name="node_tags_pkey"),
        sa.ForeignKeyConstraint(["node_id"], ["nodes.id"], name="node_tags_node_id_fkey", ondelete="CASCADE"),
        **_OPTIONS,
    )


def _node_traits() -> None:
    op.create_table(
        "node_traits",
        sa.Column("node_id", sa.Integer(), nullable=False),
        sa.Column("trait", models.string(), nullable=False),
        sa.PrimaryKeyConstraint("node_id", "trait", name="node_traits_pkey"),
        sa.ForeignKeyConstraint(["node_id"], ["nodes.id"], name="node_traits_node_id_fkey", ondelete="CASCADE"),
        **_OPTIONS,
    )
    op.create_index("node_traits_trait_idx", "node_traits", ["trait"])


def _portgroups() -> None:
    op.create_table(
        "portgroups",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("uuid", models.string(36), nullable=False),
        sa.Column("name", models.string()),
        sa.Column("node_id", sa.Integer(), nullable=False),
        sa.Column("address", models.string(18)),
        sa.Column("mode", models.string()),
        sa.Column("properties", models.text(), nullable=False),
        sa.Column("standalone_ports_supported", sa.Boolean(), nullable=False),
        sa.Column("internal_info", models.text(), nullable=False),
        sa.Column("extra", models.text(), nullable=False),
        sa.Column("created_at", models.moment(), nullable=False),
        sa.Column("updated_at", models.moment()),
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
        sa.Column("run_id", models.string(36), nullable=False),
        sa.Column("flow", models.string(32), nullable=False),
        sa.Column("step_index", sa.Integer(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("interface", models.string(32), nullable=False),
        sa.Column("step", models.string(), nullable=False),
        sa.Column("args", models.text(), nullable=False),
        sa.Column("priority", sa.BigInteger(), nullable=False),
        sa.Column("origin", models.string(64), nullable=False),
        sa.Column("state", models.string(16), nullable=False),
        sa.Column("started_at", models.moment(), nullable=False),
        sa.Column("finished_at", models.moment(), nullable=False),
        sa.Column("conductor", models.string(), nullable=False),
        sa.Column("error", models.text()),
        sa.PrimaryKeyConstraint("id", name="step_runs_pkey"),
        sa.ForeignKeyConstraint(["node_id"], ["nodes.id"], name="step_runs_node_id_fkey", ondelete="CASCADE"),
        **_OPTIONS,
    )
    op.create_index("step_runs_node_id_run_id_idx", "step_runs", ["node_id", "run_id"])


def _ports() -> None:
    op.create_table(
        "ports",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("uuid", models.string(36), nullable=False),
        sa.Column("name", models.string()),
        sa.Column("node_id", sa.Integer(), nullable=False),
        sa.Column("portgroup_id", sa.Integer()),
        sa.Column("address", models.string(18), nullable=False),
        sa.Column("description", models.string()),
        sa.Column("vendor", models.string(32)),
        sa.Column("category", models.string(80)),
        sa.Column("local_link_connection", models.text(), nullable=False),
        sa.Column("pxe_enabled", sa.Boolean(), nullable=False),
        sa.Column("physical_network", models.string(64)),
        sa.Column("is_smartnic", sa.Boolean(), nullable=False),
        sa.Column("internal_info", models.text(), nullable=False),
        sa.Column("extra", models.text(), nullable=False),
        sa.Column("created_at", models.moment(), nullable=False),
        sa.Column("updated_at", models.moment()),
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
