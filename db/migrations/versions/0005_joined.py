"""Ports that join a portgroup at once are told apart by a column that both write.

Revision 0005 of the schema: everything is added. Release 0.1 writes the default.
"""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("portgroups", sa.Column("joined", sa.Integer(), nullable=False, server_default="0"))
