"""The past of nodes: step runs, history entries, events, logs of agents."""

import datetime

from sqlalchemy import BigInteger, ForeignKey, Index
from sqlalchemy.orm import Mapped, mapped_column

from ingot.common import clock
from ingot.common.json_types import Json
from ingot.db.models.base import Base, Number, blob, string, text


class StepRun(Base):
    """One attempt of one step that has ended. Rows are only ever added; the attempt that runs is in the node's row."""

    __tablename__ = "step_runs"
    __table_args__ = (Index("step_runs_node_id_run_id_idx", "node_id", "run_id"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    node_id: Mapped[int] = mapped_column(ForeignKey("nodes.id", ondelete="CASCADE"))
    run_id: Mapped[str] = mapped_column(string(36), index=True)
    flow: Mapped[str] = mapped_column(string(32))
    step_index: Mapped[int]
    attempt: Mapped[int]
    interface: Mapped[str] = mapped_column(string(32))
    step: Mapped[str]
    args: Mapped[Json]
    priority: Mapped[float] = mapped_column(Number(), doc="agents may have fractions")
    origin: Mapped[str] = mapped_column(string(300), doc="driver, agent, template or runbook NAME, request, flow")
    state: Mapped[str] = mapped_column(string(16), doc="done, failed, interrupted, aborted")
    started_at: Mapped[datetime.datetime]
    finished_at: Mapped[datetime.datetime]
    conductor: Mapped[str]
    error: Mapped[str | None] = mapped_column(text())
    request_id: Mapped[str | None] = mapped_column(string(40), doc="of the API's request that asked for the flow")
    global_request_id: Mapped[str | None] = mapped_column(string(40), doc="the client's own id of it")


class NodeHistory(Base):
    """What an operator reads when a machine misbehaves: one row for each event worth recording."""

    __tablename__ = "node_history"

    id: Mapped[int] = mapped_column(primary_key=True)
    uuid: Mapped[str] = mapped_column(string(36), unique=True)
    node_id: Mapped[int] = mapped_column(ForeignKey("nodes.id", ondelete="CASCADE"), index=True)
    created_at: Mapped[datetime.datetime] = mapped_column(default=clock.now)
    conductor: Mapped[str | None]
    severity: Mapped[str] = mapped_column(string(10), doc="INFO or ERROR")
    event_type: Mapped[str] = mapped_column(doc="provisioning, power, maintenance ...")
    event: Mapped[str] = mapped_column(text())
    user: Mapped[str | None]
    project: Mapped[str | None]
    state: Mapped[str | None] = mapped_column(string(15))
    target_provision_state: Mapped[str | None] = mapped_column(string(15))
    duration_seconds: Mapped[float | None]


class Event(Base):
    """Something that changed; see ``ingot.db.events``. No reference to nodes: what happened to a node outlives it."""

    __tablename__ = "events"

    id: Mapped[int] = mapped_column(BigInteger(), primary_key=True, autoincrement=False, doc="1, 2, 3 ... no gaps")
    kind: Mapped[str] = mapped_column(string(16))
    created_at: Mapped[datetime.datetime]
    node_uuid: Mapped[str | None] = mapped_column(string(36))
    node_name: Mapped[str | None]
    data: Mapped[Json]


class AgentLog(Base):
    """What the agent of a run had logged, as it was collected: a tar.gz."""

    __tablename__ = "agent_logs"

    id: Mapped[int] = mapped_column(primary_key=True)
    uuid: Mapped[str] = mapped_column(string(36), unique=True)
    node_id: Mapped[int] = mapped_column(ForeignKey("nodes.id", ondelete="CASCADE"), index=True)
    run_id: Mapped[str] = mapped_column(string(36))
    flow: Mapped[str] = mapped_column(string(32))
    created_at: Mapped[datetime.datetime] = mapped_column(default=clock.now)
    size: Mapped[int] = mapped_column(doc="bytes of content")
    content: Mapped[bytes] = mapped_column(blob())
