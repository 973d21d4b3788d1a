"""Allocations."""

from sqlalchemy import ForeignKey
from sqlalchemy.orm import Mapped, mapped_column

from ingot.common.json_types import Json
from ingot.db.models.base import Row, string, text


class Allocation(Row):
    """A user's request for a node, and the node that a conductor found for it. In state ``allocating`` it is work."""

    __tablename__ = "allocations"

    name: Mapped[str | None] = mapped_column(unique=True)
    node_id: Mapped[int | None] = mapped_column(ForeignKey("nodes.id"), unique=True)
    state: Mapped[str] = mapped_column(string(15), index=True)
    owner: Mapped[str | None] = mapped_column(index=True)
    resource_class: Mapped[str | None] = mapped_column(string(80), index=True)
    candidate_nodes: Mapped[list[str]]
    traits: Mapped[list[str]]
    last_error: Mapped[str | None] = mapped_column(text())
    extra: Mapped[Json]
