"""Who keeps nodes in maintenance.

Revision 0003 of the schema: a column is added, so that earlier releases go on working on it. They write the flag of the
node only; what that means for its holds is decided when they are read (``ingot.db.maintenance``).
"""

import sqlalchemy as sa
from alembic import op

from ingot.db import models

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("nodes", sa.Column("maintenance_holds", models.text()))
