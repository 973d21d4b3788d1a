"""Events of what is no node, until they get their numbers."""

import sqlalchemy as sa
from alembic import op

from ingot.db.models import base

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the table; nothing is moved. The release before leaves it alone."""
    op.create_table(
        "waiting_events",
        sa.Column("id", sa.Integer(), nullable=False, primary_key=True),
        sa.Column("kind", base.string(16), nullable=False),
        sa.Column("created_at", base.moment(), nullable=False),
        sa.Column("data", base.text(), nullable=False),
        mysql_engine="InnoDB",
        mysql_default_charset="utf8mb4",
        mysql_collate="utf8mb4_bin",
    )
