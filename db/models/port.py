"""Ports and portgroups."""

from sqlalchemy import ForeignKey

from ingot.common.json_types import Json
from ingot.db.models.base import Row, column, string


class Portgroup(Row):
    __tablename__ = "portgroups"

    name: str | None = column(unique=True)
    node_id: int = column(ForeignKey("nodes.id", ondelete="CASCADE"), index=True)
    address: str | None = column(string(18), unique=True)
    mode: str | None
    properties: Json
    standalone_ports_supported: bool = column(default=True)
    physical_network: str | None = column(string(64))
    category: str | None = column(string(80))
    dynamic_portgroup: bool = column(default=False, server_default="0")
    joined: int = column(default=0, server_default="0", doc="how often ports joined or moved in it")
    internal_info: Json
    extra: Json


class Port(Row):
    __tablename__ = "ports"

    name: str | None = column(unique=True)
    node_id: int = column(ForeignKey("nodes.id", ondelete="CASCADE"), index=True)
    portgroup_id: int | None = column(ForeignKey("portgroups.id"), index=True)
    address: str = column(string(18), unique=True)
    description: str | None
    vendor: str | None = column(string(32))
    category: str | None = column(string(80))
    local_link_connection: Json
    pxe_enabled: bool = column(default=True)
    physical_network: str | None = column(string(64))
    is_smartnic: bool = column(default=False)
    available_for_dynamic_portgroup: bool = column(default=True, server_default="1")
    internal_info: Json
    extra: Json
