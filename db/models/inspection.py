"""What inspections find, and the rules applied to it."""

import datetime

from sqlalchemy import ForeignKey
from sqlalchemy.orm import Mapped, mapped_column

from ingot.common import clock
from ingot.common.json_types import Json
from ingot.db.models.base import Base, Row, Timestamps, string, text


class NodeInventory(Base):
    """What the last inspection found in a machine."""

    __tablename__ = "node_inventory"

    node_id: Mapped[int] = mapped_column(ForeignKey("nodes.id", ondelete="CASCADE"), primary_key=True)
    inventory: Mapped[Json]
    plugin_data: Mapped[Json]
    inspected_at: Mapped[datetime.datetime] = mapped_column(default=clock.now)


class InspectionRule(Row):
    """What is done with a node when its inspected inventory meets conditions."""

    __tablename__ = "inspection_rules"

    description: Mapped[str | None]
    priority: Mapped[int] = mapped_column(default=0)
    sensitive: Mapped[bool] = mapped_column(default=False)
    phase: Mapped[str] = mapped_column(string(16), default="main")
    conditions: Mapped[list[Json]]
    actions: Mapped[list[Json]]


class BiosSetting(Timestamps, Base):
    """A setting of a machine's BIOS as it was read last."""

    __tablename__ = "bios_settings"

    node_id: Mapped[int] = mapped_column(ForeignKey("nodes.id", ondelete="CASCADE"), primary_key=True)
    name: Mapped[str] = mapped_column(primary_key=True)
    value: Mapped[str | None] = mapped_column(text())
    attribute_type: Mapped[str | None]
    allowable_values: Mapped[list[str]]
    lower_bound: Mapped[int | None]
    upper_bound: Mapped[int | None]
    min_length: Mapped[int | None]
    max_length: Mapped[int | None]
    read_only: Mapped[bool | None]
    reset_required: Mapped[bool | None]
    unique: Mapped[bool | None]


class FirmwareComponent(Timestamps, Base):
    """The version of a machine's firmware as it was read last."""

    __tablename__ = "firmware_components"

    node_id: Mapped[int] = mapped_column(ForeignKey("nodes.id", ondelete="CASCADE"), primary_key=True)
    component: Mapped[str] = mapped_column(primary_key=True)
    initial_version: Mapped[str]
    current_version: Mapped[str | None]
    last_version_flashed: Mapped[str | None]
    vendor: Mapped[str | None]
    model: Mapped[str | None]
    serial_number: Mapped[str | None]
