"""Release 0.1 is gone for good.

It needs no table or column that release 0.2 does not use, so none is dropped. But conductors that start from now on do
not listen on its queues any more (``ingot.rpcapi.queue_sets``).

It stands behind all other revisions of release 0.2: the last of those is its ``down_revision``.
"""

revision = "contract_0_2"
down_revision = "0005"
branch_labels = None
depends_on = None
contracts = True


def upgrade() -> None:
    """Nothing but the revision itself."""
