"""Release 0.1 is gone for good: a revision that changes no table, which databases of release 0.2 may have."""

revision = "contract_0_2"
down_revision = "0005"
branch_labels = None
depends_on = None
contracts = True


def upgrade() -> None:
    """Write the revision itself, and nothing else."""
