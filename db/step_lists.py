"""Named lists of steps: a row and the rows of its steps, written together. Deploy templates and runbooks are such."""

from collections.abc import Collection, Iterable, Mapping
from typing import TypeVar, cast

import sqlalchemy as sa
from oslo_utils import uuidutils

from ingot.common.json_types import Json
from ingot.db import listing, models, outbox, rows
from ingot.db.engine import Database, retry_transaction

_SHOWN = ("uuid", "name", "owner", "public")
"""What events show of a plan, as far as it has that."""


class WithSteps(models.Row):
    """A row, with its steps."""

    steps: list[Json]


class TemplateWithSteps(models.DeployTemplate, WithSteps):
    """A deploy template, with its steps."""


class RunbookWithSteps(models.Runbook, WithSteps):
    """A runbook, with its steps and traits."""

    traits: list[str]


AnyWithSteps = TypeVar("AnyWithSteps", bound=WithSteps)


class StepLists(rows.Rows[AnyWithSteps]):
    """The queries of one noun that has steps.

    :param source: its own table.
    :param steps: the table of the steps.
    :param owner: the column there that names whose step it is; the others, but for the id, are what a step consists of.
    :param plan: what events call the noun.
    """

    def __init__(self, source: listing.Source[AnyWithSteps], steps: type[models.Base], owner: str, plan: str) -> None:
        super().__init__(source)
        self._plan = plan
        self._steps = models.table(steps)
        self._owner = self._steps.c[owner]
        self._shown = [column for column in self._steps.c if column.name not in ("id", owner)]

    def steps_of(self, db: Database, owner_ids: Collection[int]) -> dict[int, list[Json]]:
        """Return the steps in the order they were given, by the id of their owner. One statement."""
        statement = sa.select(self._owner, *self._shown).where(self._owner.in_(owner_ids)).order_by(self._steps.c.id)
        found: dict[int, list[Json]] = {}
        with db.single() as connection:
            for owner_id, *values in connection.execute(statement):
                step = dict(zip((column.name for column in self._shown), values, strict=True))
                found.setdefault(owner_id, []).append(step)
        return found

    @retry_transaction
    def create(self, db: Database, values: Mapping[str, object]) -> int:
        """Add a row with its steps; see :meth:`rows.Rows.insert`."""
        own, steps = _split(values)
        own["uuid"] = own.get("uuid") or uuidutils.generate_uuid()
        with db.transaction() as connection:
            owner_id = self.insert(connection, own)
            self._add_steps(connection, owner_id, steps or ())
            self.announce(connection, own, "created")
        return owner_id

    @retry_transaction
    def update(self, db: Database, row: AnyWithSteps, values: Mapping[str, object]) -> None:
        """Change a row; given steps replace all that it had; see :meth:`rows.Rows.write`."""
        own, steps = _split(values)
        with db.transaction() as connection:
            self.write(connection, row, own)
            if steps is not None:
                connection.execute(sa.delete(self._steps).where(self._owner == row.id))
                self._add_steps(connection, row.id, steps)
            self.announce(connection, {**vars(row), **own}, "updated")

    @retry_transaction
    def delete(self, db: Database, row: AnyWithSteps) -> None:
        """Remove a row with its steps; see :meth:`rows.Rows.remove`."""
        with db.transaction() as connection:
            if self.remove(connection, row):
                self.announce(connection, vars(row), "deleted")

    def announce(self, connection: sa.Connection, row: Mapping[str, object], change: str) -> None:
        """Leave the event of a row that is written."""
        shown = {name: row[name] for name in _SHOWN if name in row}
        outbox.add(connection, "plan", {"plan": self._plan, **shown, "change": change})

    def _add_steps(self, connection: sa.Connection, owner_id: int, steps: Iterable[Json]) -> None:
        # One step at least must name every column: those that follow are written as the first one is.
        connection.execute(sa.insert(self._steps), [{self._owner.name: owner_id, "args": {}, **step} for step in steps])


def _split(values: Mapping[str, object]) -> tuple[Json, list[Json] | None]:
    own = dict(values)
    return own, cast(list[Json] | None, own.pop("steps", None))


# Deploy templates

TEMPLATES = StepLists(
    listing.Source("Deploy template", TemplateWithSteps),
    models.DeployTemplateStep,
    owner="deploy_template_id",
    plan="deploy_template",
)


class TemplateStep(models.DeployTemplateStep):
    """A step, with the name of the template that it is from."""

    template: str


def list_template_steps(db: Database, names: Collection[str]) -> list[TemplateStep]:
    """Return the steps of the deploy templates of these names: template, interface, step, args, priority."""
    templates, steps = TEMPLATES.source.table, models.table(models.DeployTemplateStep)
    columns = models.columns(steps, ("interface", "step", "args", "priority"))
    statement = (
        sa.select(templates.c.name.label("template"), *columns)
        .join(templates, templates.c.id == steps.c.deploy_template_id)
        .where(templates.c.name.in_(names))
        .order_by(steps.c.id)
    )
    return db.read_all(TemplateStep, statement)


# Runbooks

RUNBOOKS = StepLists(
    listing.Source("Runbook", RunbookWithSteps), models.RunbookStep, owner="runbook_id", plan="runbook"
)

_TRAITS = models.table(models.RunbookTrait)


def traits_of_runbooks(db: Database, runbook_ids: Collection[int]) -> dict[int, list[str]]:
    """Return the sorted traits of runbooks by the runbook's id; runbooks without traits are absent. One statement."""
    statement = sa.select(_TRAITS.c.runbook_id, _TRAITS.c.trait).where(_TRAITS.c.runbook_id.in_(runbook_ids))
    return db.read_groups(statement.order_by(_TRAITS.c.trait))


@retry_transaction
def set_runbook_traits(db: Database, runbook: models.Runbook, traits: Collection[str]) -> None:
    """Give a runbook these traits and no others.

    :param runbook: as read; see :meth:`rows.Rows.write`.
    :raises ChangedMeanwhile: another request changed the runbook, or its traits, since it was read.
    """
    new = [{"runbook_id": runbook.id, "trait": trait} for trait in sorted(traits)]
    with db.transaction() as connection:
        RUNBOOKS.write(connection, runbook, {})
        RUNBOOKS.announce(connection, vars(runbook), "updated")
        connection.execute(sa.delete(_TRAITS).where(_TRAITS.c.runbook_id == runbook.id))
        if new:
            connection.execute(sa.insert(_TRAITS), new)
