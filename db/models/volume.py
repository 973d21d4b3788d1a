"""Volume connectors and volume targets."""

from sqlalchemy import ForeignKey, UniqueConstraint

from ingot.common.json_types import Json
from ingot.db.models.base import Row, SecretJson, column, string


class VolumeConnector(Row):
    """How a machine reaches volumes: an iSCSI initiator name, a WWN, an address."""

    __tablename__ = "volume_connectors"
    __table_args__ = (UniqueConstraint("type", "connector_id"),)

    node_id: int = column(ForeignKey("nodes.id", ondelete="CASCADE"), index=True)
    type: str = column(string(32))
    connector_id: str
    extra: Json


class VolumeTarget(Row):
    """A volume that a machine uses; it boots from the one with boot index 0."""

    __tablename__ = "volume_targets"
    __table_args__ = (UniqueConstraint("node_id", "boot_index"),)

    node_id: int = column(ForeignKey("nodes.id", ondelete="CASCADE"))
    volume_type: str = column(string(64))
    volume_id: str = column(string(36))
    boot_index: int
    properties: Json = column(SecretJson())
    extra: Json
