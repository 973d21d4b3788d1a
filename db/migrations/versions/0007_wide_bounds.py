"""Bounds of BIOS settings have 64 bits: machines give those of addresses and sizes."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    with op.batch_alter_table("bios_settings") as table:
        for name in ("lower_bound", "upper_bound"):
            table.alter_column(name, existing_type=sa.Integer(), type_=sa.BigInteger(), existing_nullable=True)
