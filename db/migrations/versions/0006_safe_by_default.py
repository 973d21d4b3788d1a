"""What release 0.3 adds: the check of the key that secrets are encrypted with.

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


def upgrade() -> None:
    for table, columns in _COLUMNS.items():
        for column in columns:
            op.add_column(table, column)
    op.create_table(
        "secret_keys",
        sa.Column("id", sa.Integer(), nullable=False, primary_key=True),
        sa.Column("sealed", base.text(), nullable=False),
        sa.Column("hostname", base.string(), nullable=False),
        sa.Column("created_at", base.moment(), nullable=False),
        mysql_engine="InnoDB",
        mysql_default_charset="utf8mb4",
        mysql_collate="utf8mb4_bin",
    )
