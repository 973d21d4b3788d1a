"""Chassis, nodes, and their tags and traits."""

import datetime

from sqlalchemy import BigInteger, ForeignKey, Index

from ingot.common.json_types import BootConfig, FlowRequest, Hold, InternalInfo, Json, PowerRequest
from ingot.db.models.base import Base, JsonText, Row, SecretJson, column, string, text

_LISTED_BY = (
    *("conductor_group", "driver", "fault", "instance_name", "lessee", "maintenance", "name", "owner"),
    *("provision_state", "reservation", "resource_class", "retired", "shard"),
)
"""Columns of nodes by which lists are filtered or sorted."""


class Chassis(Row):
    __tablename__ = "chassis"

    description: str | None
    extra: Json


class Node(Row):
    """A machine: what it is, what should happen to it, what is happening, and who works on it.

    The row is the whole truth about the present: the plan of the flow that runs (``driver_internal_info``), the step it
    has reached, the wait it is in, the lock. The past is in ``step_runs`` and ``node_history``.
    """

    __tablename__ = "nodes"
    # That of the name is beside the unique one, which MariaDB does not sort by: it may hold NULL more than once. On
    # PostgreSQL they have what is NULL first, which migrations say: each process would load what knows its words.
    __table_args__ = tuple(Index(f"nodes_{name}_id_idx", name, "id") for name in _LISTED_BY)

    name: str | None = column(unique=True)
    description: str | None = column(text())
    chassis_id: int | None = column(ForeignKey("chassis.id"), index=True)
    parent_node: str | None = column(string(36), index=True)
    shard: str | None
    resource_class: str | None = column(string(80))
    owner: str | None
    lessee: str | None
    conductor_group: str = column(default="")
    properties: Json
    extra: Json

    driver: str = column(doc="hardware type")
    driver_info: Json = column(SecretJson())
    driver_internal_info: InternalInfo = column(JsonText(dict))
    bios_interface: str | None
    boot_interface: str | None
    console_interface: str | None
    deploy_interface: str | None
    firmware_interface: str | None
    inspect_interface: str | None
    management_interface: str | None
    network_interface: str | None
    power_interface: str | None
    raid_interface: str | None
    rescue_interface: str | None
    storage_interface: str | None
    vendor_interface: str | None

    instance_uuid: str | None = column(string(36), unique=True)
    instance_name: str | None
    instance_info: Json
    configdrive: str | None = column(text(), doc="base64 of gzip; read only by the step that writes it")
    network_data: Json

    power_state: str | None = column(string(15))
    target_power_state: str | None = column(string(15))
    provision_state: str = column(string(15))
    target_provision_state: str | None = column(string(15))
    provision_updated_at: datetime.datetime | None
    last_error: str | None = column(text())
    maintenance: bool = column(default=False)
    maintenance_reason: str | None = column(text())
    fault: str | None
    maintenance_holds: list[Hold] = column(JsonText(list), nullable=True, doc="see ingot.db.maintenance")
    health: str | None
    boot_mode: str | None = column(string(16))
    secure_boot: bool | None
    console_enabled: bool = column(default=False)
    inspection_started_at: datetime.datetime | None
    inspection_finished_at: datetime.datetime | None
    raid_config: Json
    target_raid_config: Json
    automated_clean: bool | None
    disable_power_off: bool = column(default=False)
    protected: bool = column(default=False)
    protected_reason: str | None = column(text())
    retired: bool = column(default=False)
    retired_reason: str | None = column(text())

    revision: int = column(
        BigInteger(), default=0, doc="grows with every write but heartbeats; what PATCH compares with"
    )
    reservation: str | None = column(doc="host of the conductor that holds the lock")
    lock_epoch: int = column(
        BigInteger(), default=0, doc="grows with every lock taken; every write of a task carries it"
    )
    lock_attempts: int = column(
        default=0, server_default="0", doc="locks taken since one was given back: all but the last were lost"
    )
    lock_purpose: str | None
    locked_at: datetime.datetime | None

    flow: str | None = column(string(32), doc="name of the flow that is asked for or runs")
    request: FlowRequest = column(JsonText(dict), doc="arguments of the request, until its flow ends")
    abort_requested: bool = column(default=False)
    power_request: PowerRequest = column(JsonText(dict), doc="accepted power change, until it ends")
    due_at: datetime.datetime | None = column(
        index=True, doc="when a conductor must check the node next; never NULL while there is work"
    )
    run_id: str | None = column(string(36), index=True, doc="run of the flow, key into step_runs")
    clean_step: Json
    deploy_step: Json
    service_step: Json
    step_state: str | None = column(string(16), doc="see ingot.common.states.StepState")
    step_attempt: int = column(default=0)
    step_started_at: datetime.datetime | None
    step_deadline: datetime.datetime | None
    step_heard: datetime.datetime | None = column(doc="agent_last_heartbeat when the step was called")
    step_memory: Json = column(doc="what the step remembers between its calls")

    boot_config: BootConfig = column(JsonText(dict), doc="what the machine's next network boot gets")
    boot_script_at: datetime.datetime | None = column(doc="when the machine last fetched its boot script")
    boot_ticket: str | None = column(doc="lets the machine fetch the script of its volume, once")
    boot_address: str | None = column(doc="network address that such tickets are given to in this boot")
    agent_url: str | None = column(text())
    agent_token: str | None
    agent_token_at: datetime.datetime | None = column(doc="when the token was given out first")
    agent_address: str | None = column(doc="network address that the token was given to")
    agent_version: str | None
    agent_verify_ca: str | None = column(text())
    agent_status: str | None = column(text())
    agent_last_heartbeat: datetime.datetime | None

    outbox: str | None = column(text(), doc="events of writes to this row, not collected yet")
    outbox_at: datetime.datetime | None = column(index=True, doc="when the oldest of them was written")


class RemovedNode(Base):
    """What a node had to say when it was deleted: its outbox, which is collected from here."""

    __tablename__ = "removed_nodes"

    id: int = column(primary_key=True)
    uuid: str = column(string(36))
    name: str | None
    owner: str | None
    lessee: str | None
    outbox: str = column(text())


class LeftBehind(Base):
    """What a node had left outside of itself when it was deleted; see ``ingot.db.left_behind``."""

    __tablename__ = "left_behind"

    id: int = column(primary_key=True)
    node_uuid: str = column(string(36))
    kind: str = column(string(32), doc="of ``ingot.common.leftovers``")
    notes: Json


class NodeTag(Base):
    __tablename__ = "node_tags"

    node_id: int = column(ForeignKey("nodes.id", ondelete="CASCADE"), primary_key=True)
    tag: str = column(primary_key=True)


class NodeTrait(Base):
    __tablename__ = "node_traits"

    node_id: int = column(ForeignKey("nodes.id", ondelete="CASCADE"), primary_key=True)
    trait: str = column(primary_key=True, index=True)
