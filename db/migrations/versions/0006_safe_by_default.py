"""What release 0.3 adds: the check of the key that secrets are encrypted with, and what deleted nodes leave.

Each further table, column or index of the release is a line here, and in ``ingot.db.models``.
"""

from typing import Any

import sqlalchemy as sa
from alembic import op

from ingot.db.models import base

revision = "0006"
down_revision = "contract_0_2"
branch_labels = None
depends_on = None

_COLUMNS: dict[str, tuple[sa.Column[Any], ...]] = {
    "nodes": (
        sa.Column("lock_attempts", sa.Integer(), nullable=False, server_default="0"),
        sa.Column("agent_token_at", base.moment(), nullable=True),
        sa.Column("agent_address", base.string(), nullable=True),
        sa.Column("boot_script_at", base.moment(), nullable=True),
        sa.Column("boot_ticket", base.string(), nullable=True),
        sa.Column("boot_address", base.string(), nullable=True),
    ),
    "step_runs": (
        sa.Column("request_id", base.string(40), nullable=True),
        sa.Column("global_request_id", base.string(40), nullable=True),
    ),
}
"""New columns by table."""

_INDEXED = ("conductor_group", "fault", "instance_name", "maintenance", "name", "retired")
"""Columns of nodes by which lists are filtered or sorted, and conductors find theirs, however many nodes there are."""

_OPTIONS: dict[str, Any] = {
    "mysql_engine": "InnoDB",
    "mysql_default_charset": "utf8mb4",
    "mysql_collate": "utf8mb4_bin",
}


def upgrade() -> None:
    for table, columns in _COLUMNS.items():
        for column in columns:
            op.add_column(table, column)
    for column_name in _INDEXED:
        op.create_index(f"nodes_{column_name}_idx", "nodes", [column_name])
    op.create_table(
        "secret_keys",
        sa.Column("id", sa.Integer(), nullable=False, primary_key=True),
        sa.Column("sealed", base.text(), nullable=False),
        sa.Column("hostname", base.string(), nullable=False),
        sa.Column("created_at", base.moment(), nullable=False),
        **_OPTIONS,
    )
    op.create_table(
        "removed_nodes",
        sa.Column("id", sa.Integer(), nullable=False, primary_key=True),
        sa.Column("uuid", base.string(36), nullable=False),
        sa.Column("name", base.string(), nullable=True),
        sa.Column("outbox", base.text(), nullable=False),
        **_OPTIONS,
    )
