"""Runbooks, volumes, logs of agents, classic drivers, allocations, inspection rules, what machines are made of, events.

Revision 0002 of the schema: everything is added, so that the first release goes on working on it.
"""

from typing import Any

import sqlalchemy as sa
from alembic import op

from ingot.db import models

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

# As in revision 0001.
_OPTIONS: dict[str, Any] = {
    "mysql_engine": "InnoDB",
    "mysql_default_charset": "utf8mb4",
    "mysql_collate": "utf8mb4_bin",
}


def _runbooks() -> None:
    op.create_table(
        "runbooks",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("uuid", models.string(36), nullable=False),
        sa.Column("name", models.string(), nullable=False),
        sa.Column("description", models.string()),
        sa.Column("disable_ramdisk", sa.Boolean(), nullable=False),
        sa.Column("owner", models.string()),
        sa.Column("public", sa.Boolean(), nullable=False),
        sa.Column("extra", models.text(), nullable=False),
        sa.Column("created_at", models.moment(), nullable=False),
        sa.Column("updated_at", models.moment()),
        sa.PrimaryKeyConstraint("id", name="runbooks_pkey"),
        sa.UniqueConstraint("name", name="uniq_runbooks_name"),
        sa.UniqueConstraint("uuid", name="uniq_runbooks_uuid"),
        **_OPTIONS,
    )
    op.create_index("runbooks_owner_idx", "runbooks", ["owner"])
    op.create_table(
        "runbook_steps",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("runbook_id", sa.Integer(), nullable=False),
        sa.Column("interface", models.string(), nullable=False),
        sa.Column("step", models.string(), nullable=False),
        sa.Column("args", models.text(), nullable=False),
        sa.Column("order", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="runbook_steps_pkey"),
        sa.ForeignKeyConstraint(
            ["runbook_id"], ["runbooks.id"], name="runbook_steps_runbook_id_fkey", ondelete="CASCADE"
        ),
        **_OPTIONS,
    )
    op.create_index("runbook_steps_runbook_id_idx", "runbook_steps", ["runbook_id"])
    op.create_table(
        "runbook_traits",
        sa.Column("runbook_id", sa.Integer(), nullable=False),
        sa.Column("trait", models.string(), nullable=False),
        sa.PrimaryKeyConstraint("runbook_id", "trait", name="runbook_traits_pkey"),
        sa.ForeignKeyConstraint(
            ["runbook_id"], ["runbooks.id"], name="runbook_traits_runbook_id_fkey", ondelete="CASCADE"
        ),
        **_OPTIONS,
    )


def _volumes() -> None:
    op.create_table(
        "volume_connectors",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("uuid", models.string(36), nullable=False),
        sa.Column("node_id", sa.Integer(), nullable=False),
        sa.Column("type", models.string(32), nullable=False),
        sa.Column("connector_id", models.string(), nullable=False),
        sa.Column("extra", models.text(), nullable=False),
        sa.Column("created_at", models.moment(), nullable=False),
        sa.Column("updated_at", models.moment()),
        sa.PrimaryKeyConstraint("id", name="volume_connectors_pkey"),
        sa.ForeignKeyConstraint(["node_id"], ["nodes.id"], name="volume_connectors_node_id_fkey", ondelete="CASCADE"),
        sa.UniqueConstraint("uuid", name="uniq_volume_connectors_uuid"),
        sa.UniqueConstraint("type", "connector_id", name="uniq_volume_connectors_type_connector_id"),
        **_OPTIONS,
    )
    op.create_index("volume_connectors_node_id_idx", "volume_connectors", ["node_id"])
    op.create_table(
        "volume_targets",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("uuid", models.string(36), nullable=False),
        sa.Column("node_id", sa.Integer(), nullable=False),
        sa.Column("volume_type", models.string(64), nullable=False),
        sa.Column("volume_id", models.string(36), nullable=False),
        sa.Column("boot_index", sa.Integer(), nullable=False),
        sa.Column("properties", models.text(), nullable=False),
        sa.Column("extra", models.text(), nullable=False),
        sa.Column("created_at", models.moment(), nullable=False),
        sa.Column("updated_at", models.moment()),
        sa.PrimaryKeyConstraint("id", name="volume_targets_pkey"),
        sa.ForeignKeyConstraint(["node_id"], ["nodes.id"], name="volume_targets_node_id_fkey", ondelete="CASCADE"),
        sa.UniqueConstraint("uuid", name="uniq_volume_targets_uuid"),
        sa.UniqueConstraint("node_id", "boot_index", name="uniq_volume_targets_node_id_boot_index"),
        **_OPTIONS,
    )


def _agent_logs() -> None:
    op.create_table(
        "agent_logs",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("uuid", models.string(36), nullable=False),
        sa.Column("node_id", sa.Integer(), nullable=False),
        sa.Column("run_id", models.string(36), nullable=False),
        sa.Column("flow", models.string(32), nullable=False),
        sa.Column("created_at", models.moment(), nullable=False),
        sa.Column("size", sa.Integer(), nullable=False),
        sa.Column("content", models.blob(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="agent_logs_pkey"),
        sa.ForeignKeyConstraint(["node_id"], ["nodes.id"], name="agent_logs_node_id_fkey", ondelete="CASCADE"),
        sa.UniqueConstraint("uuid", name="uniq_agent_logs_uuid"),
        **_OPTIONS,
    )
    op.create_index("agent_logs_node_id_idx", "agent_logs", ["node_id"])


def _allocations() -> None:
    op.create_table(
        "allocations",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("uuid", models.string(36), nullable=False),
        sa.Column("name", models.string()),
        sa.Column("node_id", sa.Integer()),
        sa.Column("state", models.string(15), nullable=False),
        sa.Column("owner", models.string()),
        sa.Column("resource_class", models.string(80)),
        sa.Column("candidate_nodes", models.text(), nullable=False),
        sa.Column("traits", models.text(), nullable=False),
        sa.Column("last_error", models.text()),
        sa.Column("extra", models.text(), nullable=False),
        sa.Column("created_at", models.moment(), nullable=False),
        sa.Column("updated_at", models.moment()),
        sa.PrimaryKeyConstraint("id", name="allocations_pkey"),
        sa.ForeignKeyConstraint(["node_id"], ["nodes.id"], name="allocations_node_id_fkey"),
        sa.UniqueConstraint("uuid", name="uniq_allocations_uuid"),
        sa.UniqueConstraint("name", name="uniq_allocations_name"),
        sa.UniqueConstraint("node_id", name="uniq_allocations_node_id"),
        **_OPTIONS,
    )
    for column in ("state", "owner", "resource_class"):
        op.create_index(f"allocations_{column}_idx", "allocations", [column])


def _inspection() -> None:
    op.create_table(
        "inspection_rules",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("uuid", models.string(36), nullable=False),
        sa.Column("description", models.string()),
        sa.Column("priority", sa.Integer(), nullable=False),
        sa.Column("sensitive", sa.Boolean(), nullable=False),
        sa.Column("phase", models.string(16), nullable=False),
        sa.Column("conditions", models.text(), nullable=False),
        sa.Column("actions", models.text(), nullable=False),
        sa.Column("created_at", models.moment(), nullable=False),
        sa.Column("updated_at", models.moment()),
        sa.PrimaryKeyConstraint("id", name="inspection_rules_pkey"),
        sa.UniqueConstraint("uuid", name="uniq_inspection_rules_uuid"),
        **_OPTIONS,
    )
    op.create_table(
        "node_inventory",
        sa.Column("node_id", sa.Integer(), nullable=False),
        sa.Column("inventory", models.text(), nullable=False),
        sa.Column("plugin_data", models.text(), nullable=False),
        sa.Column("inspected_at", models.moment(), nullable=False),
        sa.PrimaryKeyConstraint("node_id", name="node_inventory_pkey"),
        sa.ForeignKeyConstraint(["node_id"], ["nodes.id"], name="node_inventory_node_id_fkey", ondelete="CASCADE"),
        **_OPTIONS,
    )


def _inside() -> None:
    op.create_table(
        "bios_settings",
        sa.Column("node_id", sa.Integer(), nullable=False),
        sa.Column("name", models.string(), nullable=False),
        sa.Column("value", models.text()),
        sa.Column("attribute_type", models.string()),
        sa.Column("allowable_values", models.text(), nullable=False),
        sa.Column("lower_bound", sa.Integer()),
        sa.Column("upper_bound", sa.Integer()),
        sa.Column("min_length", sa.Integer()),
        sa.Column("max_length", sa.Integer()),
        sa.Column("read_only", sa.Boolean()),
        sa.Column("reset_required", sa.Boolean()),
        sa.Column("unique", sa.Boolean()),
        sa.Column("created_at", models.moment(), nullable=False),
        sa.Column("updated_at", models.moment()),
        sa.PrimaryKeyConstraint("node_id", "name", name="bios_settings_pkey"),
        sa.ForeignKeyConstraint(["node_id"], ["nodes.id"], name="bios_settings_node_id_fkey", ondelete="CASCADE"),
        **_OPTIONS,
    )
    op.create_table(
        "firmware_components",
        sa.Column("node_id", sa.Integer(), nullable=False),
        sa.Column("component", models.string(), nullable=False),
        sa.Column("initial_version", models.string(), nullable=False),
        sa.Column("current_version", models.string()),
        sa.Column("last_version_flashed", models.string()),
        sa.Column("vendor", models.string()),
        sa.Column("model", models.string()),
        sa.Column("serial_number", models.string()),
        sa.Column("created_at", models.moment(), nullable=False),
        sa.Column("updated_at", models.moment()),
        sa.PrimaryKeyConstraint("node_id", "component", name="firmware_components_pkey"),
        sa.ForeignKeyConstraint(["node_id"], ["nodes.id"], name="firmware_components_node_id_fkey", ondelete="CASCADE"),
        **_OPTIONS,
    )


def _portgroups() -> None:
    op.add_column("portgroups", sa.Column("physical_network", models.string(64)))
    op.add_column("portgroups", sa.Column("category", models.string(80)))
    # Rows that the first release writes get the default.
    false: dict[str, Any] = {"nullable": False, "server_default": "0"}
    op.add_column("portgroups", sa.Column("dynamic_portgroup", sa.Boolean(), **false))
    true: dict[str, Any] = {"nullable": False, "server_default": "1"}
    op.add_column("ports", sa.Column("available_for_dynamic_portgroup", sa.Boolean(), **true))


def _events() -> None:
    op.create_table(
        "events",
        sa.Column("id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("kind", models.string(16), nullable=False),
        sa.Column("created_at", models.moment(), nullable=False),
        sa.Column("node_uuid", models.string(36)),
        sa.Column("node_name", models.string()),
        sa.Column("data", models.text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="events_pkey"),
        **_OPTIONS,
    )
    op.add_column("nodes", sa.Column("outbox", models.text()))
    op.add_column("nodes", sa.Column("outbox_at", models.moment()))
    op.create_index("nodes_outbox_at_idx", "nodes", ["outbox_at"])
    op.create_index("nodes_run_id_idx", "nodes", ["run_id"])
    op.create_index("step_runs_run_id_idx", "step_runs", ["run_id"])
    op.add_column("conductors", sa.Column("announced", models.string(16)))


def upgrade() -> None:
    _runbooks()
    _volumes()
    _agent_logs()
    _allocations()
    _inspection()
    _inside()
    _portgroups()
    op.add_column("conductors", sa.Column("classic_drivers", models.text()))
    op.add_column("conductors", sa.Column("process", models.string()))
    op.add_column("nodes", sa.Column("step_heard", models.moment()))
    with op.batch_alter_table("step_runs") as batch:  # SQLite cannot alter a column in place
        # The name of a template or runbook may have 255 characters.
        batch.alter_column("origin", type_=models.string(300), existing_type=models.string(64), existing_nullable=False)
        # Specification 002 allows priorities with a fraction.
        batch.alter_column("priority", type_=sa.Double(), existing_type=sa.BigInteger(), existing_nullable=False)
    _events()
