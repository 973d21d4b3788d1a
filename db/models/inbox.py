"""Machines that are no nodes yet."""

import datetime

from ingot.common import clock
from ingot.common.json_types import Json
from ingot.db.models.base import Row, column, string


class InboxEntry(Row):
    """What an agent found in a machine that is not enrolled, until an operator accepts it as a node."""

    __tablename__ = "inbox"

    mac_key: str = column(string(64), unique=True, doc="stands for the set of MAC addresses")
    client_address: str = column(string(64), doc="network address that the inventory came from")
    seen_at: datetime.datetime = column(default=clock.now, index=True)
    seen_count: int = column(default=1)
    facts: Json = column(doc="what lists show of the inventory")
    inventory: Json
    plugin_data: Json
