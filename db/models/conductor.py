"""The conductors that ever registered, and what each has enabled."""

import datetime

from sqlalchemy import ForeignKey, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from ingot.common import clock
from ingot.db.models.base import Base, Timestamps, string


class Conductor(Timestamps, Base):
    """A conductor that ever registered; it is online while its heartbeats are recent."""

    __tablename__ = "conductors"

    id: Mapped[int] = mapped_column(primary_key=True)
    hostname: Mapped[str] = mapped_column(unique=True)
    conductor_group: Mapped[str] = mapped_column(default="")
    online: Mapped[bool] = mapped_column(default=True, doc="False after an orderly stop")
    heartbeat_at: Mapped[datetime.datetime] = mapped_column(default=clock.now, index=True)
    release: Mapped[str] = mapped_column(string(32), doc="Ingot's version there")
    rpc_version: Mapped[str] = mapped_column(string(16), doc="highest RPC version it serves")
    process: Mapped[str | None] = mapped_column(doc="which process has this name: see conductor/membership.py")
    classic_drivers: Mapped[list[str]] = mapped_column(nullable=True, doc="fixed compositions it has enabled (004)")
    announced: Mapped[str | None] = mapped_column(string(16), doc="what the latest event says of it")
    drain: Mapped[str | None] = mapped_column(string(16), doc="requested, or followed by the conductor")


class ConductorHardwareInterface(Base):
    """Which interface implementations a conductor has enabled for a hardware type (specification 004)."""

    __tablename__ = "conductor_hardware_interfaces"
    _KEY = ("conductor_id", "hardware_type", "interface_type", "interface_name")
    # By the convention its name would be too long for MySQL.
    __table_args__ = (UniqueConstraint(*_KEY, name="uniq_conductor_hardware_interfaces"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    conductor_id: Mapped[int] = mapped_column(ForeignKey("conductors.id", ondelete="CASCADE"))
    hardware_type: Mapped[str] = mapped_column(string(128))
    interface_type: Mapped[str] = mapped_column(string(16))
    interface_name: Mapped[str] = mapped_column(string(128))
    default: Mapped[bool] = mapped_column(default=False)
