"""What a task reads beside the node itself, at first use: ports, volumes, traits, the steps that templates ask for."""

from collections.abc import Collection

import sqlalchemy as sa

from ingot.db import models, records
from ingot.db.engine import Database

_PORTS = models.table(models.Port)
_CONNECTORS = models.table(models.VolumeConnector)
_TARGETS = models.table(models.VolumeTarget)
_TRAITS = models.table(models.NodeTrait)
_TEMPLATES = models.table(models.DeployTemplate)
_TEMPLATE_STEPS = models.table(models.DeployTemplateStep)


def ports(db: Database, node_id: int) -> list[records.Record]:
    """A node's ports, in order of creation."""
    with db.single() as connection:
        found = connection.execute(sa.select(_PORTS).where(_PORTS.c.node_id == node_id).order_by(_PORTS.c.id))
        return records.many(found)


def volume_connectors(db: Database, node_id: int) -> list[records.Record]:
    """A node's volume connectors, in order of creation."""
    statement = sa.select(_CONNECTORS).where(_CONNECTORS.c.node_id == node_id).order_by(_CONNECTORS.c.id)
    with db.single() as connection:
        return records.many(connection.execute(statement))


def volume_targets(db: Database, node_id: int) -> list[records.Record]:
    """A node's volume targets, by boot index."""
    statement = sa.select(_TARGETS).where(_TARGETS.c.node_id == node_id).order_by(_TARGETS.c.boot_index)
    with db.single() as connection:
        return records.many(connection.execute(statement))


def traits(db: Database, node_id: int) -> list[str]:
    """A node's traits, sorted."""
    statement = sa.select(_TRAITS.c.trait).where(_TRAITS.c.node_id == node_id).order_by(_TRAITS.c.trait)
    with db.single() as connection:
        return list(connection.execute(statement).scalars())


def template_steps(db: Database, names: Collection[str]) -> list[records.Record]:
    """The steps of the deploy templates of these names: template (its name), interface, step, args, priority."""
    statement = (
        sa.select(
            _TEMPLATES.c.name.label("template"),
            _TEMPLATE_STEPS.c.interface,
            _TEMPLATE_STEPS.c.step,
            _TEMPLATE_STEPS.c.args,
            _TEMPLATE_STEPS.c.priority,
        )
        .join(_TEMPLATES, _TEMPLATES.c.id == _TEMPLATE_STEPS.c.deploy_template_id)
        .where(_TEMPLATES.c.name.in_(names))
        .order_by(_TEMPLATE_STEPS.c.id)
    )
    with db.single() as connection:
        return records.many(connection.execute(statement))
