"""The audit trail: who has changed what by the API."""

import datetime

from sqlalchemy import BigInteger, Index, Integer

from ingot.common import clock
from ingot.common.json_types import Json
from ingot.db.models.base import Base, column, string

_FOUND_BY = ("target_id", "user_id", "project_id", "owner", "lessee", "request_id")
"""Columns by which the trail is searched, each in the order of time."""


class AuditEvent(Base):
    """A request that has changed something, or was refused to. It refers to nothing: it outlives what it is about."""

    __tablename__ = "audit_events"
    __table_args__ = (
        Index("audit_events_created_at_id_idx", "created_at", "id"),
        *(Index(f"audit_events_{name}_created_at_idx", name, "created_at") for name in _FOUND_BY),
    )

    id: int = column(BigInteger().with_variant(Integer(), "sqlite"), primary_key=True)
    uuid: str = column(string(36), unique=True)
    created_at: datetime.datetime = column(default=clock.now, doc="when it was answered")
    action: str = column(string(80), doc="the rule of policy for it")
    outcome: str = column(string(16), doc="success, pending (accepted) or failure")
    status: int = column(doc="of HTTP")
    reason: str | None = column(string(500), doc="the message of a refusal")
    method: str = column(string(10))
    path: str = column(string(500))
    user_id: str | None
    user_name: str | None
    project_id: str | None
    project_name: str | None
    address: str | None = column(string(64), doc="network address of the client")
    target_type: str = column(string(40))
    target_id: str | None = column(doc="uuid; what the URL has for what was not found")
    target_name: str | None
    owner: str | None = column(doc="project that owned the node, or what else the target is, at that time")
    lessee: str | None
    detail: Json = column(doc="names of the fields that were sent, and the verb")
    request_id: str = column(string(40))
    global_request_id: str | None = column(string(40))
