"""Ports and portgroups."""

from sqlalchemy import ForeignKey
from sqlalchemy.orm import Mapped, mapped_column

from ingot.common.json_types import Json
from ingot.db.models.base import Row, string


class Portgroup(Row):
    __tablename__ = "portgroups"

    name: Mapped[str | None] = mapped_column(unique=True)
    node_id: Mapped[int] = mapped_column(ForeignKey("nodes.id", ondelete="CASCADE"), index=True)
    address: Mapped[str | None] = mapped_column(string(18), unique=True)
    mode: Mapped[str | None]
    properties: Mapped[Json]
    standalone_ports_supported: Mapped[bool] = mapped_column(default=True)
    physical_network: Mapped[str | None] = mapped_column(string(64))
    category: Mapped[str | None] = mapped_column(string(80))
    dynamic_portgroup: Mapped[bool] = mapped_column(default=False, server_default="0")
    joined: Mapped[int] = mapped_column(default=0, server_default="0", doc="how often ports joined or moved in it")
    internal_info: Mapped[Json]
    extra: Mapped[Json]


class Port(Row):
    __tablename__ = "ports"

    name: Mapped[str | None] = mapped_column(unique=True)
    node_id: Mapped[int] = mapped_column(ForeignKey("nodes.id", ondelete="CASCADE"), index=True)
    portgroup_id: Mapped[int | None] = mapped_column(ForeignKey("portgroups.id"), index=True)
    address: Mapped[str] = mapped_column(string(18), unique=True)
    description: Mapped[str | None]
    vendor: Mapped[str | None] = mapped_column(string(32))
    category: Mapped[str | None] = mapped_column(string(80))
    local_link_connection: Mapped[Json]
    pxe_enabled: Mapped[bool] = mapped_column(default=True)
    physical_network: Mapped[str | None] = mapped_column(string(64))
    is_smartnic: Mapped[bool] = mapped_column(default=False)
    available_for_dynamic_portgroup: Mapped[bool] = mapped_column(default=True, server_default="1")
    internal_info: Mapped[Json]
    extra: Mapped[Json]
