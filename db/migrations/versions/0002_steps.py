"""Runbooks, volumes, logs of agents, classic drivers, allocations, inspection rules, what machines are made of, events.

Revision 0002 of the schema: everything is added, so that the first release goes on working on it.
"""

from typing import Any

import sqlalchemy as sa
from alembic import op

from ingot.db import types

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
        sa.Column("uuid", types.string(36), nullable=False),
        sa.Column("name", types.string(), nullable=False),
        sa.Column("description", types.string()),
        sa.Column("disable_ramdisk", sa.Boolean(), nullable=False),
        sa.Column("owner", types.string()),
        sa.Column("public", sa.Boolean(), nullable=False),
        sa.Column("extra", types.text(), nullable=False),
        sa.Column("created_at", types.moment(), nullable=False),
        sa.Column("updated_at", types.moment()),
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
        sa.Column("interface", types.string(), nullable=False),
        sa.Column("step", types.string(), nullable=False),
        sa.Column("args", types.text(), nullable=False),
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
        sa.Column("trait", types.string(), nullable=False),
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
        sa.Column("uuid", types.string(36), nullable=False),
        sa.Column("node_id", sa.Integer(), nullable=False),
        sa.Column("type", types.string(32), nullable=False),
        sa.Column("connector_id", types.string(), nullable=False),
        sa.Column("extra", types.text(), nullable=False),
        sa.Column("created_at", types.moment(), nullable=False),
        sa.Column("updated_at", types.moment()),
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
        sa.Column("uuid", types.string(36), nullable=False),
        sa.Column("node_id", sa.Integer(), nullable=False),
        sa.Column("volume_type", types.string(64), nullable=False),
        sa.Column("volume_id", types.string(36), nullable=False),
        sa.Column("boot_index", sa.Integer(), nullable=False),
        sa.Column("properties", types.text(), nullable=False),
        sa.Column("extra", types.text(), nullable=False),
        sa.Column("created_at", types.moment(), nullable=False),
        sa.Column("updated_at", types.moment()),
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
        sa.Column("uuid", types.string(36), nullable=False),
        sa.Column("node_id", sa.Integer(), nullable=False),
        sa.Column("run_id", types.string(36), nullable=False),
        sa.Column("flow", types.string(32), nullable=False),
        sa.Column("created_at", types.moment(), nullable=False),
        sa.Column("size", sa.Integer(), nullable=False),
        sa.Column("content", types.blob(), nullable=False),
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
        sa.Column("uuid", types.string(36), nullable=False),
        sa.Column("name", types.string()),
        sa.Column("node_id", sa.Integer()),
        sa.Column("state", types.string(15), nullable=False),
        sa.Column("owner", types.string()),
        sa.Column("resource_class", types.string(80)),
        sa.Column("candidate_nodes", types.text(), nullable=False),
        sa.Column("traits", types.text(), nullable=False),
        sa.Column("last_error", types.text()),
        sa.Column("extra", types.text(), nullable=False),
        sa.Column("created_at", types.moment(), nullable=False),
        sa.Column("updated_at", types.moment()),
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
        sa.Column("uuid", types.string(36), nullable=False),
        sa.Column("description", types.string()),
        sa.Column("priority", sa.Integer(), nullable=False),
        sa.Column("sensitive", sa.Boolean(), nullable=False),
        sa.Column("phase", types.string(16), nullable=False),
        sa.Column("conditions", types.text(), nullable=False),
        sa.Column("actions", types.text(), nullable=False),
        sa.Column("created_at", types.moment(), nullable=False),
        sa.Column("updated_at", types.moment()),
        sa.PrimaryKeyConstraint("id", name="inspection_rules_pkey"),
        sa.UniqueConstraint("uuid", name="uniq_inspection_rules_uuid"),
        **_OPTIONS,
    )
    op.create_table(
        "node_inventory",
        sa.Column("node_id", sa.Integer(), nullable=False),
        sa.Column("inventory", types.text(), nullable=False),
        sa.Column("plugin_data", types.text(), nullable=False),
        sa.Column("inspected_at", types.moment(), nullable=False),
        sa.PrimaryKeyConstraint("node_id", name="node_inventory_pkey"),
        sa.ForeignKeyConstraint(["node_id"], ["nodes.id"], name="node_inventory_node_id_fkey", ondelete="CASCADE"),
        **_OPTIONS,
    )


def _inside() -> None:
    op.create_table(
        "bios_settings",
        sa.Column("node_id", sa.Integer(), nullable=False),
        sa.Column("name", types.string(), nullable=False),
        sa.Column("value", types.text()),
        sa.Column("attribute_type", types.string()),
        sa.Column("allowable_values", types.text(), nullable=False),
        sa.Column("lower_bound", sa.Integer()),
        sa.Column("upper_bound", sa.Integer()),
        sa.Column("min_length", sa.Integer()),
        sa.Column("max_length", sa.Integer()),
        sa.Column("read_only", sa.Boolean()),
        sa.Column("reset_required", sa.Boolean()),
        sa.Column("unique", sa.Boolean()),
        sa.Column("created_at", types.moment(), nullable=False),
        sa.Column("updated_at", types.moment()),
        sa.PrimaryKeyConstraint("node_id", "name", name="bios_settings_pkey"),
        sa.ForeignKeyConstraint(["node_id"], ["nodes.id"], name="bios_settings_node_id_fkey", ondelete="CASCADE"),
        **_OPTIONS,
    )
    op.create_table(
        "firmware_components",
        sa.Column("node_id", sa.Integer(), nullable=False),
        sa.Column("component", types.string(), nullable=False),
        sa.Column("initial_version", types.string(), nullable=False),
        sa.Column("current_version", types.string()),
        sa.Column("last_version_flashed", types.string()),
        sa.Column("vendor", types.string()),
        sa.Column("model", types.string()),
        sa.Column("serial_number", types.string()),
        sa.Column("created_at", types.moment(), nullable=False),
        sa.Column("updated_at", types.moment()),
        sa.PrimaryKeyConstraint("node_id", "component", name="firmware_components_pkey"),
        sa.ForeignKeyConstraint(["node_id"], ["nodes.id"], name="firmware_components_node_id_fkey", ondelete="CASCADE"),
        **_OPTIONS,
    )


def _portgroups() -> None:
    op.add_column("portgroups", sa.Column("physical_network", types.string(64)))
    op.add_column("portgroups", sa.Column("category", types.string(80)))
    # Rows that the first release writes get the default.
    false: dict[str, Any] = {"nullable": False, "server_default": "0"}
    op.add_column("portgroups", sa.Column("dynamic_portgroup", sa.Boolean(), **false))
    true: dict[str, Any] = {"nullable": False, "server_default": "1"}
    op.add_column("ports", sa.Column("available_for_dynamic_portgroup", sa.Boolean(), **true))


def _events() -> None:
    op.create_table(
        "events",
        sa.Column("id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("kind", types.string(16), nullable=False),
        sa.Column("created_at", types.moment(), nullable=False),
        sa.Column("node_uuid", types.string(36)),
        sa.Column("node_name", types.string()),
        sa.Column("data", types.text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="events_pkey"),
        **_OPTIONS,
    )
    op.add_column("nodes", sa.Column("outbox", types.text()))
    op.add_column("nodes", sa.Column("outbox_at", types.moment()))
    op.create_index("nodes_outbox_at_idx", "nodes", ["outbox_at"])
    op.create_index("nodes_run_id_idx", "nodes", ["run_id"])
    op.create_index("step_runs_run_id_idx", "step_runs", ["run_id"])
    op.add_column("conductors", sa.Column("announced", types.string(16)))


def upgrade() -> None:
    _runbooks()
    _volumes()
    _agent_logs()
    _allocations()
    _inspection()
    _inside()
    _portgroups()
    op.add_column("conductors", sa.Column("classic_drivers", types.text()))
    op.add_column("conductors", sa.Column("process", types.string()))
    op.add_column("nodes", sa.Column("step_heard", types.moment()))
    with op.batch_alter_table("step_runs") as batch:  # SQLite cannot alter a column in place
        # The name of a template or runbook may have 255 characters.
        batch.alter_column("origin", type_=types.string(300), existing_type=types.string(64), existing_nullable=False)
        # Specification 002 allows priorities with a fraction.
        batch.alter_column("priority", type_=sa.Double(), existing_type=sa.BigInteger(), existing_nullable=False)
    _events()
