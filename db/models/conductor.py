"""The conductors that ever registered, and what each has enabled."""

import datetime

from sqlalchemy import ForeignKey, UniqueConstraint

from ingot.common import clock
from ingot.db.models.base import Base, Timestamps, column, string


class Conductor(Timestamps):
    """A conductor that ever registered; it is online while its heartbeats are recent."""

    __tablename__ = "conductors"

    id: int = column(primary_key=True)
    hostname: str = column(unique=True)
    conductor_group: str = column(default="")
    online: bool = column(default=True, doc="False after an orderly stop")
    heartbeat_at: datetime.datetime = column(default=clock.now, index=True)
    release: str = column(string(32), doc="Ingot's version there")
    rpc_version: str = column(string(16), doc="highest RPC version it serves")
    process: str | None = column(doc="which process has this name: see conductor/membership.py")
    classic_drivers: list[str] = column(nullable=True, doc="fixed compositions it has enabled (004)")
    announced: str | None = column(string(16), doc="what the latest event says of it")
    drain: str | None = column(string(16), doc="requested, or followed by the conductor")


class ConductorHardwareInterface(Base):
    """Which interface implementations a conductor has enabled for a hardware type (specification 004)."""

    __tablename__ = "conductor_hardware_interfaces"
    _KEY = ("conductor_id", "hardware_type", "interface_type", "interface_name")
    # By the convention its name would be too long for MySQL.
    __table_args__ = (UniqueConstraint(*_KEY, name="uniq_conductor_hardware_interfaces"),)

    id: int = column(primary_key=True)
    conductor_id: int = column(ForeignKey("conductors.id", ondelete="CASCADE"))
    hardware_type: str = column(string(128))
    interface_type: str = column(string(16))
    interface_name: str = column(string(128))
    default: bool = column(default=False)
