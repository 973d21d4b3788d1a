"""What inspections find, and the rules applied to it."""

import datetime

from sqlalchemy import BigInteger, ForeignKey

from ingot.common import clock
from ingot.common.json_types import Json
from ingot.db.models.base import Base, Row, Timestamps, column, string, text


class NodeInventory(Base):
    """What the last inspection found in a machine."""

    __tablename__ = "node_inventory"

    node_id: int = column(ForeignKey("nodes.id", ondelete="CASCADE"), primary_key=True)
    inventory: Json
    plugin_data: Json
    inspected_at: datetime.datetime = column(default=clock.now)


class NodeInventoryBefore(Base):
    """What the inspection before the last one found in a machine."""

    __tablename__ = "node_inventory_before"

    node_id: int = column(ForeignKey("nodes.id", ondelete="CASCADE"), primary_key=True)
    inventory: Json
    inspected_at: datetime.datetime


class InspectionRule(Row):
    """What is done with a node when its inspected inventory meets conditions."""

    __tablename__ = "inspection_rules"

    description: str | None
    priority: int = column(default=0)
    sensitive: bool = column(default=False)
    phase: str = column(string(16), default="main")
    conditions: list[Json]
    actions: list[Json]


class BiosSetting(Timestamps):
    """A setting of a machine's BIOS as it was read last."""

    __tablename__ = "bios_settings"

    node_id: int = column(ForeignKey("nodes.id", ondelete="CASCADE"), primary_key=True)
    name: str = column(primary_key=True)
    value: str | None = column(text())
    attribute_type: str | None
    allowable_values: list[str]
    lower_bound: int | None = column(BigInteger())
    upper_bound: int | None = column(BigInteger())
    min_length: int | None
    max_length: int | None
    read_only: bool | None
    reset_required: bool | None
    unique: bool | None


class FirmwareComponent(Timestamps):
    """The version of a machine's firmware as it was read last."""

    __tablename__ = "firmware_components"

    node_id: int = column(ForeignKey("nodes.id", ondelete="CASCADE"), primary_key=True)
    component: str = column(primary_key=True)
    initial_version: str
    current_version: str | None
    last_version_flashed: str | None
    vendor: str | None
    model: str | None
    serial_number: str | None
