"""The tables, and the types of rows read from them: ``models.Node`` declares the table and is what a node is.

Query functions use the tables through SQLAlchemy Core: mapping a node's eighty columns to objects of the ORM is slow.
Once all are declared the ORM therefore lets go of the classes; their instances are plain records
(:class:`Record`). A column's ``doc`` is its documentation; what the API shows of a node is declared in
``ingot.api.nodes.node_fields``.
"""

import datetime

from sqlalchemy import BigInteger, ForeignKey, Index, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from ingot.common import clock
from ingot.common.json_types import BootConfig, FlowRequest, Hold, InternalInfo, Json, PowerRequest
from ingot.db.records import Base as Base
from ingot.db.records import JsonText as JsonText
from ingot.db.records import Number, Timestamps, blob, forget_declarations, text
from ingot.db.records import Record as Record
from ingot.db.records import Row as Row
from ingot.db.records import columns as columns
from ingot.db.records import moment as moment
from ingot.db.records import string as string
from ingot.db.records import table as table


class Chassis(Row):
    __tablename__ = "chassis"

    description: Mapped[str | None]
    extra: Mapped[Json]


class Node(Row):
    """A machine: what it is, what should happen to it, what is happening, and who works on it.

    The row is the whole truth about the present: the plan of the flow that runs (``driver_internal_info``), the step it
    has reached, the wait it is in, the lock. The past is in ``step_runs`` and ``node_history``.
    """

    __tablename__ = "nodes"

    name: Mapped[str | None] = mapped_column(unique=True)
    description: Mapped[str | None] = mapped_column(text())
    chassis_id: Mapped[int | None] = mapped_column(ForeignKey("chassis.id"), index=True)
    parent_node: Mapped[str | None] = mapped_column(string(36), index=True)
    shard: Mapped[str | None] = mapped_column(index=True)
    resource_class: Mapped[str | None] = mapped_column(string(80), index=True)
    owner: Mapped[str | None] = mapped_column(index=True)
    lessee: Mapped[str | None] = mapped_column(index=True)
    conductor_group: Mapped[str] = mapped_column(default="")
    properties: Mapped[Json]
    extra: Mapped[Json]

    driver: Mapped[str] = mapped_column(index=True, doc="hardware type")
    driver_info: Mapped[Json]
    driver_internal_info: Mapped[InternalInfo] = mapped_column(JsonText(dict))
    bios_interface: Mapped[str | None]
    boot_interface: Mapped[str | None]
    console_interface: Mapped[str | None]
    deploy_interface: Mapped[str | None]
    firmware_interface: Mapped[str | None]
    inspect_interface: Mapped[str | None]
    management_interface: Mapped[str | None]
    network_interface: Mapped[str | None]
    power_interface: Mapped[str | None]
    raid_interface: Mapped[str | None]
    rescue_interface: Mapped[str | None]
    storage_interface: Mapped[str | None]
    vendor_interface: Mapped[str | None]

    instance_uuid: Mapped[str | None] = mapped_column(string(36), unique=True)
    instance_name: Mapped[str | None]
    instance_info: Mapped[Json]
    configdrive: Mapped[str | None] = mapped_column(text(), doc="base64 of gzip; read only by the step that writes it")
    network_data: Mapped[Json]

    power_state: Mapped[str | None] = mapped_column(string(15))
    target_power_state: Mapped[str | None] = mapped_column(string(15))
    provision_state: Mapped[str] = mapped_column(string(15), index=True)
    target_provision_state: Mapped[str | None] = mapped_column(string(15))
    provision_updated_at: Mapped[datetime.datetime | None]
    last_error: Mapped[str | None] = mapped_column(text())
    maintenance: Mapped[bool] = mapped_column(default=False)
    maintenance_reason: Mapped[str | None] = mapped_column(text())
    fault: Mapped[str | None]
    maintenance_holds: Mapped[list[Hold]] = mapped_column(JsonText(list), nullable=True, doc="see ingot.db.maintenance")
    health: Mapped[str | None]
    boot_mode: Mapped[str | None] = mapped_column(string(16))
    secure_boot: Mapped[bool | None]
    console_enabled: Mapped[bool] = mapped_column(default=False)
    inspection_started_at: Mapped[datetime.datetime | None]
    inspection_finished_at: Mapped[datetime.datetime | None]
    raid_config: Mapped[Json]
    target_raid_config: Mapped[Json]
    automated_clean: Mapped[bool | None]
    disable_power_off: Mapped[bool] = mapped_column(default=False)
    protected: Mapped[bool] = mapped_column(default=False)
    protected_reason: Mapped[str | None] = mapped_column(text())
    retired: Mapped[bool] = mapped_column(default=False)
    retired_reason: Mapped[str | None] = mapped_column(text())

    revision: Mapped[int] = mapped_column(
        BigInteger(), default=0, doc="grows with every write but heartbeats; what PATCH compares with"
    )
    reservation: Mapped[str | None] = mapped_column(index=True, doc="host of the conductor that holds the lock")
    lock_epoch: Mapped[int] = mapped_column(
        BigInteger(), default=0, doc="grows with every lock taken; every write of a task carries it"
    )
    lock_purpose: Mapped[str | None]
    locked_at: Mapped[datetime.datetime | None]

    flow: Mapped[str | None] = mapped_column(string(32), doc="name of the flow that is asked for or runs")
    request: Mapped[FlowRequest] = mapped_column(JsonText(dict), doc="arguments of the request, until its flow ends")
    abort_requested: Mapped[bool] = mapped_column(default=False)
    power_request: Mapped[PowerRequest] = mapped_column(JsonText(dict), doc="accepted power change, until it ends")
    due_at: Mapped[datetime.datetime | None] = mapped_column(
        index=True, doc="when a conductor must check the node next; never NULL while there is work"
    )
    run_id: Mapped[str | None] = mapped_column(string(36), index=True, doc="run of the flow, key into step_runs")
    clean_step: Mapped[Json]
    deploy_step: Mapped[Json]
    service_step: Mapped[Json]
    step_state: Mapped[str | None] = mapped_column(string(16), doc="see ingot.common.states.StepState")
    step_attempt: Mapped[int] = mapped_column(default=0)
    step_started_at: Mapped[datetime.datetime | None]
    step_deadline: Mapped[datetime.datetime | None]
    step_heard: Mapped[datetime.datetime | None] = mapped_column(doc="agent_last_heartbeat when the step was called")
    step_memory: Mapped[Json] = mapped_column(doc="what the step remembers between its calls")

    boot_config: Mapped[BootConfig] = mapped_column(JsonText(dict), doc="what the machine's next network boot gets")
    agent_url: Mapped[str | None] = mapped_column(text())
    agent_token: Mapped[str | None]
    agent_version: Mapped[str | None]
    agent_verify_ca: Mapped[str | None] = mapped_column(text())
    agent_status: Mapped[str | None] = mapped_column(text())
    agent_last_heartbeat: Mapped[datetime.datetime | None]

    outbox: Mapped[str | None] = mapped_column(text(), doc="events of writes to this row, not collected yet")
    outbox_at: Mapped[datetime.datetime | None] = mapped_column(index=True, doc="when the oldest of them was written")


class NodeTag(Base):
    __tablename__ = "node_tags"

    node_id: Mapped[int] = mapped_column(ForeignKey("nodes.id", ondelete="CASCADE"), primary_key=True)
    tag: Mapped[str] = mapped_column(primary_key=True)


class NodeTrait(Base):
    __tablename__ = "node_traits"

    node_id: Mapped[int] = mapped_column(ForeignKey("nodes.id", ondelete="CASCADE"), primary_key=True)
    trait: Mapped[str] = mapped_column(primary_key=True, index=True)


class Portgroup(Row):
    __tablename__ = "portgroups"

    name: Mapped[str | None] = mapped_column(unique=True)
    node_id: Mapped[int] = mapped_column(ForeignKey("nodes.id", ondelete="CASCADE"), index=True)
    address: Mapped[str | None] = mapped_column(string(18), unique=True)
    mode: Mapped[str | None]
    properties: Mapped[Json]
    standalone_ports_supported: Mapped[bool] = mapped_column(default=True)
    physical_network: Mapped[str | None] = mapped_column(string(64))
    category: Mapped[str | None] = mapped_column(string(80))
    dynamic_portgroup: Mapped[bool] = mapped_column(default=False, server_default="0")
    joined: Mapped[int] = mapped_column(default=0, server_default="0", doc="how often ports joined or moved in it")
    internal_info: Mapped[Json]
    extra: Mapped[Json]


class Port(Row):
    __tablename__ = "ports"

    name: Mapped[str | None] = mapped_column(unique=True)
    node_id: Mapped[int] = mapped_column(ForeignKey("nodes.id", ondelete="CASCADE"), index=True)
    portgroup_id: Mapped[int | None] = mapped_column(ForeignKey("portgroups.id"), index=True)
    address: Mapped[str] = mapped_column(string(18), unique=True)
    description: Mapped[str | None]
    vendor: Mapped[str | None] = mapped_column(string(32))
    category: Mapped[str | None] = mapped_column(string(80))
    local_link_connection: Mapped[Json]
    pxe_enabled: Mapped[bool] = mapped_column(default=True)
    physical_network: Mapped[str | None] = mapped_column(string(64))
    is_smartnic: Mapped[bool] = mapped_column(default=False)
    available_for_dynamic_portgroup: Mapped[bool] = mapped_column(default=True, server_default="1")
    internal_info: Mapped[Json]
    extra: Mapped[Json]


class VolumeConnector(Row):
    """How a machine reaches volumes: an iSCSI initiator name, a WWN, an address."""

    __tablename__ = "volume_connectors"
    __table_args__ = (UniqueConstraint("type", "connector_id"),)

    node_id: Mapped[int] = mapped_column(ForeignKey("nodes.id", ondelete="CASCADE"), index=True)
    type: Mapped[str] = mapped_column(string(32))
    connector_id: Mapped[str]
    extra: Mapped[Json]


class VolumeTarget(Row):
    """A volume that a machine uses; it boots from the one with boot index 0."""

    __tablename__ = "volume_targets"
    __table_args__ = (UniqueConstraint("node_id", "boot_index"),)

    node_id: Mapped[int] = mapped_column(ForeignKey("nodes.id", ondelete="CASCADE"))
    volume_type: Mapped[str] = mapped_column(string(64))
    volume_id: Mapped[str] = mapped_column(string(36))
    boot_index: Mapped[int]
    properties: Mapped[Json]
    extra: Mapped[Json]


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


class Allocation(Row):
    """A user's request for a node, and the node that a conductor found for it. In state ``allocating`` it is work."""

    __tablename__ = "allocations"

    name: Mapped[str | None] = mapped_column(unique=True)
    node_id: Mapped[int | None] = mapped_column(ForeignKey("nodes.id"), unique=True)
    state: Mapped[str] = mapped_column(string(15), index=True)
    owner: Mapped[str | None] = mapped_column(index=True)
    resource_class: Mapped[str | None] = mapped_column(string(80), index=True)
    candidate_nodes: Mapped[list[str]]
    traits: Mapped[list[str]]
    last_error: Mapped[str | None] = mapped_column(text())
    extra: Mapped[Json]


class DeployTemplate(Row):
    """A trait name and the steps that a deployment with this trait gets (specification 003)."""

    __tablename__ = "deploy_templates"

    name: Mapped[str] = mapped_column(unique=True)
    extra: Mapped[Json]


class DeployTemplateStep(Base):
    __tablename__ = "deploy_template_steps"

    id: Mapped[int] = mapped_column(primary_key=True)
    deploy_template_id: Mapped[int] = mapped_column(ForeignKey("deploy_templates.id", ondelete="CASCADE"), index=True)
    interface: Mapped[str] = mapped_column(index=True)
    step: Mapped[str] = mapped_column(index=True)
    args: Mapped[Json]
    priority: Mapped[int] = mapped_column(BigInteger())


class Runbook(Row):
    """Steps under a name, for manual cleaning and servicing of the nodes that share one of its traits."""

    __tablename__ = "runbooks"

    name: Mapped[str] = mapped_column(unique=True)
    description: Mapped[str | None]
    disable_ramdisk: Mapped[bool] = mapped_column(default=False)
    owner: Mapped[str | None] = mapped_column(index=True)
    public: Mapped[bool] = mapped_column(default=False)
    extra: Mapped[Json]


class RunbookStep(Base):
    __tablename__ = "runbook_steps"

    id: Mapped[int] = mapped_column(primary_key=True)
    runbook_id: Mapped[int] = mapped_column(ForeignKey("runbooks.id", ondelete="CASCADE"), index=True)
    interface: Mapped[str]
    step: Mapped[str]
    args: Mapped[Json]
    order: Mapped[int] = mapped_column(BigInteger())


class RunbookTrait(Base):
    __tablename__ = "runbook_traits"

    runbook_id: Mapped[int] = mapped_column(ForeignKey("runbooks.id", ondelete="CASCADE"), primary_key=True)
    trait: Mapped[str] = mapped_column(primary_key=True)


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


forget_declarations()
