"""The past of nodes: step runs, history entries, events, logs of agents."""

import datetime

from sqlalchemy import BigInteger, ForeignKey, Index

from ingot.common import clock
from ingot.common.json_types import Json, NodeWas
from ingot.db.models.base import Base, JsonText, Number, blob, column, string, text


class StepRun(Base):
    """One attempt of one step that has ended. Rows are only ever added; the attempt that runs is in the node's row."""

    __tablename__ = "step_runs"
    __table_args__ = (Index("step_runs_node_id_run_id_idx", "node_id", "run_id"),)

    id: int = column(primary_key=True)
    node_id: int = column(ForeignKey("nodes.id", ondelete="CASCADE"))
    run_id: str = column(string(36), index=True)
    flow: str = column(string(32))
    step_index: int
    attempt: int
    interface: str = column(string(32))
    step: str
    args: Json
    priority: float = column(Number(), doc="agents may have fractions")
    origin: str = column(string(300), doc="driver, agent, template or runbook NAME, request, flow")
    state: str = column(string(16), doc="done, failed, interrupted, aborted")
    started_at: datetime.datetime
    finished_at: datetime.datetime
    conductor: str
    error: str | None = column(text())
    request_id: str | None = column(string(40), doc="of the API's request that asked for the flow")
    global_request_id: str | None = column(string(40), doc="the client's own id of it")


class NodeHistory(Base):
    """What an operator reads when a machine misbehaves: one row for each event worth recording."""

    __tablename__ = "node_history"

    id: int = column(primary_key=True)
    uuid: str = column(string(36), unique=True)
    node_id: int = column(ForeignKey("nodes.id", ondelete="CASCADE"), index=True)
    created_at: datetime.datetime = column(default=clock.now)
    conductor: str | None
    severity: str = column(string(10), doc="INFO or ERROR")
    event_type: str = column(doc="provisioning, power, maintenance ...")
    event: str = column(text())
    user: str | None
    project: str | None
    request_id: str | None = column(string(40), doc="of the API's request that it is about")
    state: str | None = column(string(15))
    target_provision_state: str | None = column(string(15))
    duration_seconds: float | None


class Event(Base):
    """Something that changed; see ``ingot.db.events``. No reference to nodes: what happened to a node outlives it."""

    __tablename__ = "events"

    id: int = column(BigInteger(), primary_key=True, autoincrement=False, doc="1, 2, 3 ... no gaps")
    kind: str = column(string(16))
    created_at: datetime.datetime
    node_uuid: str | None = column(string(36))
    node_name: str | None
    data: Json
    node_owner: str | None = column(doc="when it was written, as its lessee")
    node_lessee: str | None
    node_was: NodeWas | None = column(JsonText(), nullable=True, doc="what of this it has changed")


class WaitingEvent(Base):
    """An event, until it gets its number, whose change writes to no node's row; see ``ingot.db.outbox``."""

    __tablename__ = "waiting_events"

    id: int = column(primary_key=True)
    kind: str = column(string(16))
    created_at: datetime.datetime
    data: Json
    node_uuid: str | None = column(string(36))
    node_name: str | None
    node_owner: str | None
    node_lessee: str | None


class AgentLog(Base):
    """What the agent of a run had logged, as it was collected: a tar.gz."""

    __tablename__ = "agent_logs"

    id: int = column(primary_key=True)
    uuid: str = column(string(36), unique=True)
    node_id: int = column(ForeignKey("nodes.id", ondelete="CASCADE"), index=True)
    run_id: str = column(string(36))
    flow: str = column(string(32))
    created_at: datetime.datetime = column(default=clock.now)
    size: int = column(doc="bytes of content")
    content: bytes = column(blob())
