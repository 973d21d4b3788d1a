"""The history of the schema, one file a step, which alembic replays."""
