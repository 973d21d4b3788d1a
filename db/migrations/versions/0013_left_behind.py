"""What nodes that were deleted have left outside of themselves."""

import sqlalchemy as sa
from alembic import op

from ingot.db.models import base

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the table; nothing is moved. The release before leaves it alone."""
    op.create_table(
        "left_behind",
        sa.Column("id", sa.Integer(), nullable=False, primary_key=True),
        sa.Column("node_uuid", base.string(36), nullable=False),
        sa.Column("kind", base.string(32), nullable=False),
        sa.Column("notes", base.text(), nullable=False),
        mysql_engine="InnoDB",
        mysql_default_charset="utf8mb4",
        mysql_collate="utf8mb4_bin",
    )
