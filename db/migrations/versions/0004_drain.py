"""Conductors that an operator has drained.

Revision 0004 of the schema: everything is added.
"""

import sqlalchemy as sa
from alembic import op

from ingot.db import models

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("conductors", sa.Column("drain", models.string(16)))
