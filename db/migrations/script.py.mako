"""${message}.

Revision ${up_revision} of the schema${f", follows {down_revision}" if down_revision else ""}.
"""

import sqlalchemy as sa
from alembic import op

from ingot.db import types

${imports if imports else ""}
revision = ${repr(up_revision)}
down_revision = ${repr(down_revision)}
branch_labels = ${repr(branch_labels)}
depends_on = ${repr(depends_on)}


def upgrade() -> None:
    ${upgrades if upgrades else "pass"}
