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

_LISTED_BY = ("conductor_group", "driver", "maintenance", "provision_state", "retired")
_LISTED_BY_OPTIONAL = ("fault", "instance_name", "lessee", "name", "owner", "reservation", "resource_class", "shard")
"""Columns of nodes by which lists are filtered or sorted, and conductors find theirs, however many nodes there are."""

_NULLS_FIRST = "text_ops NULLS FIRST"
"""Words of PostgreSQL for a text in an index that is as lists are: without a value first, as on the other databases."""

_HAD_INDEX = ("driver", "lessee", "owner", "provision_state", "reservation", "resource_class", "shard")
"""Those whose index release 0.2 has without the id, by which ties are ordered. It misses nothing with the new ones."""

_OPTIONS: dict[str, Any] = {
    "mysql_engine": "InnoDB",
    "mysql_default_charset": "utf8mb4",
    "mysql_collate": "utf8mb4_bin",
}


def upgrade() -> None:
    # What takes long comes first: from the first column on, PostgreSQL lets no other process read the nodes.
    for name in (*_LISTED_BY, *_LISTED_BY_OPTIONAL):
        words = {name: _NULLS_FIRST} if name in _LISTED_BY_OPTIONAL else {}
        op.create_index(f"nodes_{name}_id_idx", "nodes", [name, "id"], postgresql_ops=words)
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
    for table, columns in _COLUMNS.items():
        for column in columns:
            op.add_column(table, column)
    for name in _HAD_INDEX:
        op.drop_index(f"nodes_{name}_idx", "nodes")
