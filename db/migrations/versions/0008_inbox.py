"""The inbox: machines that were discovered, until an operator accepts them."""

import sqlalchemy as sa
from alembic import op

from ingot.db.models import base

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "inbox",
        sa.Column("created_at", base.moment(), nullable=False),
        sa.Column("updated_at", base.moment(), nullable=True),
        sa.Column("id", sa.Integer(), nullable=False, primary_key=True),
        sa.Column("uuid", base.string(36), nullable=False),
        sa.Column("mac_key", base.string(64), nullable=False),
        sa.Column("client_address", base.string(64), nullable=False),
        sa.Column("seen_at", base.moment(), nullable=False),
        sa.Column("seen_count", sa.Integer(), nullable=False),
        sa.Column("facts", base.text(), nullable=False),
        sa.Column("inventory", base.text(), nullable=False),
        sa.Column("plugin_data", base.text(), nullable=False),
        sa.UniqueConstraint("uuid", name="uniq_inbox_uuid"),
        sa.UniqueConstraint("mac_key", name="uniq_inbox_mac_key"),
        sa.Index("inbox_seen_at_idx", "seen_at"),
        mysql_engine="InnoDB",
        mysql_default_charset="utf8mb4",
        mysql_collate="utf8mb4_bin",
    )
