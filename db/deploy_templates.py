"""Queries on deploy templates and their steps."""

from collections.abc import Collection, Mapping
from typing import Any

import sqlalchemy as sa

from ingot.db import listing, models, records, rows
from ingot.db.engine import Database, retried

SOURCE = listing.Source("Deploy template", models.table(models.DeployTemplate))

_STEPS = models.table(models.DeployTemplateStep)


def steps_of(db: Database, template_ids: Collection[int]) -> dict[int, list[dict[str, Any]]]:
    """The steps of templates in the order they were given, by the template's id. One statement."""
    statement = sa.select(_STEPS).where(_STEPS.c.deploy_template_id.in_(template_ids)).order_by(_STEPS.c.id)
    found: dict[int, list[dict[str, Any]]] = {}
    with db.single() as connection:
        for row in connection.execute(statement):
            step = {"interface": row.interface, "step": row.step, "args": row.args, "priority": row.priority}
            found.setdefault(row.deploy_template_id, []).append(step)
    return found


@retried
def create(db: Database, values: Mapping[str, Any]) -> int:
    """Adds a template with its steps; see :func:`rows.insert`."""
    row = {name: value for name, value in values.items() if name != "steps"}
    with db.transaction() as connection:
        template_id = rows.insert(connection, SOURCE, row)
        _add_steps(connection, template_id, values["steps"])
    return template_id


@retried
def update(db: Database, template: records.Record, values: Mapping[str, Any]) -> None:
    """Changes a template; given steps replace all that it had; see :func:`rows.update`."""
    row = {name: value for name, value in values.items() if name != "steps"}
    with db.transaction() as connection:
        rows.update(connection, SOURCE, template, row)
        if "steps" in values:
            connection.execute(sa.delete(_STEPS).where(_STEPS.c.deploy_template_id == template.id))
            _add_steps(connection, template.id, values["steps"])


@retried
def delete(db: Database, template: records.Record) -> None:
    """Removes a template with its steps."""
    with db.transaction() as connection:
        connection.execute(sa.delete(_STEPS).where(_STEPS.c.deploy_template_id == template.id))
        rows.delete(connection, SOURCE, template)


def _add_steps(connection: sa.Connection, template_id: int, steps: list[dict[str, Any]]) -> None:
    connection.execute(sa.insert(_STEPS), [{"deploy_template_id": template_id, **step} for step in steps])
