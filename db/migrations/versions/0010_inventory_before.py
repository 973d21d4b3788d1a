"""The inventory before the last one: what the inspection before found in a machine."""

import sqlalchemy as sa
from alembic import op

from ingot.db.models import base

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the table; nothing is moved. The release before leaves it alone."""
    op.create_table(
        "node_inventory_before",
        sa.Column(
            "node_id",
            sa.Integer(),
            sa.ForeignKey("nodes.id", ondelete="CASCADE", name="node_inventory_before_node_id_fkey"),
            nullable=False,
            primary_key=True,
        ),
        sa.Column("inventory", base.text(), nullable=False),
        sa.Column("inspected_at", base.moment(), nullable=False),
        mysql_engine="InnoDB",
        mysql_default_charset="utf8mb4",
        mysql_collate="utf8mb4_bin",
    )
