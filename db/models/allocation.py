"""Allocations."""

from sqlalchemy import ForeignKey

from ingot.common.json_types import Json
from ingot.db.models.base import Row, column, string, text


class Allocation(Row):
    """A user's request for a node, and the node that a conductor found for it. In state ``allocating`` it is work."""

    __tablename__ = "allocations"

    name: str | None = column(unique=True)
    node_id: int | None = column(ForeignKey("nodes.id"), unique=True)
    state: str = column(string(15), index=True)
    owner: str | None = column(index=True)
    resource_class: str | None = column(string(80), index=True)
    candidate_nodes: list[str]
    traits: list[str]
    last_error: str | None = column(text())
    extra: Json
