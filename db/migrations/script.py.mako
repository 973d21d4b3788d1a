"""${message}.

Revision ${up_revision} of the schema${f", follows {down_revision}" if down_revision else ""}.
"""

import sqlalchemy as sa
from alembic import op

from ingot.db import types

revision = "${up_revision}"
down_revision = "${down_revision}"
branch_labels = None
depends_on = None


def upgrade() -> None:
    ${upgrades if upgrades else "pass"}
