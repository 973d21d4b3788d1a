"""What alembic runs for each of its commands, on the connection that ``ingot.db.migrate`` hands over."""

from alembic import context

from ingot.db import models


def _run() -> None:
    context.configure(
        connection=context.config.attributes["connection"],
        target_metadata=models.Base.metadata,
        # SQLite cannot alter a column; alembic then copies the table.
        render_as_batch=True,
    )
    context.run_migrations()


_run()
