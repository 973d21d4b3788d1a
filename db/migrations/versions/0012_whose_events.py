"""Whose nodes events are of, and the requests that entries of the history are of."""

import sqlalchemy as sa
from alembic import op

from ingot.db.models import base

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None

_PROJECTS = ("node_owner", "node_lessee")

_COLUMNS = {
    "events": {
        **{name: base.string() for name in _PROJECTS},
        "node_was": base.text(),
    },
    "waiting_events": {
        "node_uuid": base.string(36),
        **{name: base.string() for name in ("node_name", *_PROJECTS)},
    },
    "removed_nodes": {name: base.string() for name in ("owner", "lessee")},
    "node_history": {"request_id": base.string(40)},
}


def upgrade() -> None:
    """Add columns, which may all be empty: the release before leaves them so."""
    for table, columns in _COLUMNS.items():
        for name, kind in columns.items():
            op.add_column(table, sa.Column(name, kind, nullable=True))
