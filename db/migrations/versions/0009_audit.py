"""The audit trail."""

import sqlalchemy as sa
from alembic import op

from ingot.db.models import base

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the table; nothing is moved."""
    names = ("user_id", "user_name", "project_id", "project_name", "target_id", "target_name", "owner", "lessee")
    op.create_table(
        "audit_events",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False, primary_key=True),
        sa.Column("uuid", base.string(36), nullable=False),
        sa.Column("created_at", base.moment(), nullable=False),
        sa.Column("action", base.string(80), nullable=False),
        sa.Column("outcome", base.string(16), nullable=False),
        sa.Column("status", sa.Integer(), nullable=False),
        sa.Column("reason", base.string(500), nullable=True),
        sa.Column("method", base.string(10), nullable=False),
        sa.Column("path", base.string(500), nullable=False),
        *(sa.Column(name, base.string(), nullable=True) for name in names),
        sa.Column("address", base.string(64), nullable=True),
        sa.Column("target_type", base.string(40), nullable=False),
        sa.Column("detail", base.text(), nullable=False),
        sa.Column("request_id", base.string(40), nullable=False),
        sa.Column("global_request_id", base.string(40), nullable=True),
        sa.UniqueConstraint("uuid", name="uniq_audit_events_uuid"),
        sa.Index("audit_events_created_at_id_idx", "created_at", "id"),
        *(
            sa.Index(f"audit_events_{name}_created_at_idx", name, "created_at")
            for name in ("target_id", "user_id", "project_id", "owner", "lessee", "request_id")
        ),
        mysql_engine="InnoDB",
        mysql_default_charset="utf8mb4",
        mysql_collate="utf8mb4_bin",
    )
