"""The tables. Query functions use them through SQLAlchemy Core: mapping a node's eighty columns to objects is slow.

A column's ``doc`` is its documentation; what the API shows of a node is declared in ``ingot.api.node_fields``.
"""

import datetime
from typing import Any, ClassVar

import sqlalchemy as sa
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from ingot.common import clock, interfaces
from ingot.db import types

_NAMES = {
    "ix": "%(table_name)s_%(column_0_N_name)s_idx",
    "uq": "uniq_%(table_name)s_%(column_0_N_name)s",
    "fk": "%(table_name)s_%(column_0_name)s_fkey",
    "pk": "%(table_name)s_pkey",
}


class Base(DeclarativeBase):
    metadata = sa.MetaData(naming_convention=_NAMES)
    type_annotation_map: ClassVar[dict[Any, Any]] = {
        str: types.string(),
        datetime.datetime: types.moment(),
        dict[str, Any]: types.Json(dict),
        list[Any]: types.Json(list),
    }


class Timestamps:
    created_at: Mapped[datetime.datetime] = mapped_column(default=clock.now)
    updated_at: Mapped[datetime.datetime | None] = mapped_column(onupdate=clock.now)


class Conductor(Timestamps, Base):
    """A conductor process that ever registered; online is who gave a sign of life lately."""

    __tablename__ = "conductors"

    id: Mapped[int] = mapped_column(primary_key=True)
    hostname: Mapped[str] = mapped_column(unique=True)
    conductor_group: Mapped[str] = mapped_column(default="")
    online: Mapped[bool] = mapped_column(default=True, doc="False after an orderly stop")
    heartbeat_at: Mapped[datetime.datetime] = mapped_column(default=clock.now, index=True)
    release: Mapped[str] = mapped_column(types.string(32), doc="Ingot's version there")
    rpc_version: Mapped[str] = mapped_column(types.string(16), doc="highest RPC version it serves")
    process: Mapped[str | None] = mapped_column(doc="which process has this name: see conductor/namesake.py")
    classic_drivers: Mapped[list[Any]] = mapped_column(nullable=True, doc="fixed compositions it has enabled (004)")
    announced: Mapped[str | None] = mapped_column(types.string(16), doc="what the latest event says of it")
    drain: Mapped[str | None] = mapped_column(types.string(16), doc="asked for, or followed by the conductor")


class ConductorHardwareInterface(Base):
    """Which interface implementations a conductor has enabled for a hardware type (specification 004)."""

    __tablename__ = "conductor_hardware_interfaces"
    __table_args__ = (
        sa.UniqueConstraint(
            "conductor_id",
            "hardware_type",
            "interface_type",
            "interface_name",
            name="uniq_conductor_hardware_interfaces",  # by the convention it would be too long for MySQL
        ),
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    conductor_id: Mapped[int] = mapped_column(sa.ForeignKey("conductors.id", ondelete="CASCADE"))
    hardware_type: Mapped[str] = mapped_column(types.string(128))
    interface_type: Mapped[str] = mapped_column(types.string(16))
    interface_name: Mapped[str] = mapped_column(types.string(128))
    default: Mapped[bool] = mapped_column(default=False)


class Chassis(Timestamps, Base):
    __tablename__ = "chassis"

    id: Mapped[int] = mapped_column(primary_key=True)
    uuid: Mapped[str] = mapped_column(types.string(36), unique=True)
    description: Mapped[str | None]
    extra: Mapped[dict[str, Any]]


class Node(Timestamps, Base):
    """A machine: what it is, what should happen to it, what is happening, and who works on it.

    The row is the whole truth about the present: the plan of the flow that runs (``driver_internal_info``), the step it
    has reached, the wait it is in, the lock. The past is in ``step_runs`` and ``node_history``.
    """

    __tablename__ = "nodes"

    id: Mapped[int] = mapped_column(primary_key=True)
    uuid: Mapped[str] = mapped_column(types.string(36), unique=True)
    name: Mapped[str | None] = mapped_column(unique=True)
    description: Mapped[str | None] = mapped_column(types.text())
    chassis_id: Mapped[int | None] = mapped_column(sa.ForeignKey("chassis.id"), index=True)
    parent_node: Mapped[str | None] = mapped_column(types.string(36), index=True)
    shard: Mapped[str | None] = mapped_column(index=True)
    resource_class: Mapped[str | None] = mapped_column(types.string(80), index=True)
    owner: Mapped[str | None] = mapped_column(index=True)
    lessee: Mapped[str | None] = mapped_column(index=True)
    conductor_group: Mapped[str] = mapped_column(default="")
    properties: Mapped[dict[str, Any]]
    extra: Mapped[dict[str, Any]]

    driver: Mapped[str] = mapped_column(index=True, doc="hardware type")
    driver_info: Mapped[dict[str, Any]]
    driver_internal_info: Mapped[dict[str, Any]]
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

    instance_uuid: Mapped[str | None] = mapped_column(types.string(36), unique=True)
    instance_name: Mapped[str | None]
    instance_info: Mapped[dict[str, Any]]
    configdrive: Mapped[str | None] = mapped_column(
        types.text(), doc="config drive of the deployment, base64 of gzip; read only by the step that writes it"
    )
    network_data: Mapped[dict[str, Any]]

    power_state: Mapped[str | None] = mapped_column(types.string(15))
    target_power_state: Mapped[str | None] = mapped_column(types.string(15))
    provision_state: Mapped[str] = mapped_column(types.string(15), index=True)
    target_provision_state: Mapped[str | None] = mapped_column(types.string(15))
    provision_updated_at: Mapped[datetime.datetime | None]
    last_error: Mapped[str | None] = mapped_column(types.text())
    maintenance: Mapped[bool] = mapped_column(default=False)
    maintenance_reason: Mapped[str | None] = mapped_column(types.text())
    fault: Mapped[str | None]
    maintenance_holds: Mapped[list[Any]] = mapped_column(nullable=True, doc="see ingot.db.maintenance")
    health: Mapped[str | None]
    boot_mode: Mapped[str | None] = mapped_column(types.string(16))
    secure_boot: Mapped[bool | None]
    console_enabled: Mapped[bool] = mapped_column(default=False)
    inspection_started_at: Mapped[datetime.datetime | None]
    inspection_finished_at: Mapped[datetime.datetime | None]
    raid_config: Mapped[dict[str, Any]]
    target_raid_config: Mapped[dict[str, Any]]
    automated_clean: Mapped[bool | None]
    disable_power_off: Mapped[bool] = mapped_column(default=False)
    protected: Mapped[bool] = mapped_column(default=False)
    protected_reason: Mapped[str | None] = mapped_column(types.text())
    retired: Mapped[bool] = mapped_column(default=False)
    retired_reason: Mapped[str | None] = mapped_column(types.text())

    revision: Mapped[int] = mapped_column(
        sa.BigInteger(), default=0, doc="grows with every write but heartbeats; what PATCH compares with"
    )
    reservation: Mapped[str | None] = mapped_column(index=True, doc="host of the conductor that holds the lock")
    lock_epoch: Mapped[int] = mapped_column(
        sa.BigInteger(), default=0, doc="grows with every lock taken; every write of a task carries it"
    )
    lock_purpose: Mapped[str | None]
    locked_at: Mapped[datetime.datetime | None]

    flow: Mapped[str | None] = mapped_column(types.string(32), doc="name of the flow that is asked for or runs")
    request: Mapped[dict[str, Any]] = mapped_column(doc="arguments of the accepted request, until its flow ends")
    abort_requested: Mapped[bool] = mapped_column(default=False)
    power_request: Mapped[dict[str, Any]] = mapped_column(doc="accepted power change, until it ends")
    due_at: Mapped[datetime.datetime | None] = mapped_column(
        index=True, doc="when a conductor must look at the node next; never NULL while somebody is owed work"
    )
    run_id: Mapped[str | None] = mapped_column(types.string(36), index=True, doc="run of the flow, key into step_runs")
    clean_step: Mapped[dict[str, Any]]
    deploy_step: Mapped[dict[str, Any]]
    service_step: Mapped[dict[str, Any]]
    step_state: Mapped[str | None] = mapped_column(
        types.string(16), doc="of the current step, see ingot.conductor.steps.position"
    )
    step_attempt: Mapped[int] = mapped_column(default=0)
    step_started_at: Mapped[datetime.datetime | None]
    step_deadline: Mapped[datetime.datetime | None]
    step_heard: Mapped[datetime.datetime | None] = mapped_column(doc="agent_last_heartbeat when the step was called")
    step_memory: Mapped[dict[str, Any]] = mapped_column(doc="what the step remembers between its calls")

    boot_config: Mapped[dict[str, Any]] = mapped_column(doc="what the machine's next network boot gets")
    agent_url: Mapped[str | None] = mapped_column(types.text())
    agent_token: Mapped[str | None]
    agent_version: Mapped[str | None]
    agent_verify_ca: Mapped[str | None] = mapped_column(types.text())
    agent_status: Mapped[str | None] = mapped_column(types.text())
    agent_last_heartbeat: Mapped[datetime.datetime | None]

    outbox: Mapped[str | None] = mapped_column(types.text(), doc="events of writes to this row, not collected yet")
    outbox_at: Mapped[datetime.datetime | None] = mapped_column(index=True, doc="when the oldest of them was written")


class NodeTag(Base):
    __tablename__ = "node_tags"

    node_id: Mapped[int] = mapped_column(sa.ForeignKey("nodes.id", ondelete="CASCADE"), primary_key=True)
    tag: Mapped[str] = mapped_column(primary_key=True)


class NodeTrait(Base):
    __tablename__ = "node_traits"

    node_id: Mapped[int] = mapped_column(sa.ForeignKey("nodes.id", ondelete="CASCADE"), primary_key=True)
    trait: Mapped[str] = mapped_column(primary_key=True, index=True)


class Portgroup(Timestamps, Base):
    __tablename__ = "portgroups"

    id: Mapped[int] = mapped_column(primary_key=True)
    uuid: Mapped[str] = mapped_column(types.string(36), unique=True)
    name: Mapped[str | None] = mapped_column(unique=True)
    node_id: Mapped[int] = mapped_column(sa.ForeignKey("nodes.id", ondelete="CASCADE"), index=True)
    address: Mapped[str | None] = mapped_column(types.string(18), unique=True)
    mode: Mapped[str | None]
    properties: Mapped[dict[str, Any]]
    standalone_ports_supported: Mapped[bool] = mapped_column(default=True)
    physical_network: Mapped[str | None] = mapped_column(types.string(64))
    category: Mapped[str | None] = mapped_column(types.string(80))
    dynamic_portgroup: Mapped[bool] = mapped_column(default=False, server_default="0")
    joined: Mapped[int] = mapped_column(default=0, server_default="0", doc="how often ports joined or moved in it")
    internal_info: Mapped[dict[str, Any]]
    extra: Mapped[dict[str, Any]]


class Port(Timestamps, Base):
    __tablename__ = "ports"

    id: Mapped[int] = mapped_column(primary_key=True)
    uuid: Mapped[str] = mapped_column(types.string(36), unique=True)
    name: Mapped[str | None] = mapped_column(unique=True)
    node_id: Mapped[int] = mapped_column(sa.ForeignKey("nodes.id", ondelete="CASCADE"), index=True)
    portgroup_id: Mapped[int | None] = mapped_column(sa.ForeignKey("portgroups.id"), index=True)
    address: Mapped[str] = mapped_column(types.string(18), unique=True)
    description: Mapped[str | None]
    vendor: Mapped[str | None] = mapped_column(types.string(32))
    category: Mapped[str | None] = mapped_column(types.string(80))
    local_link_connection: Mapped[dict[str, Any]]
    pxe_enabled: Mapped[bool] = mapped_column(default=True)
    physical_network: Mapped[str | None] = mapped_column(types.string(64))
    is_smartnic: Mapped[bool] = mapped_column(default=False)
    available_for_dynamic_portgroup: Mapped[bool] = mapped_column(default=True, server_default="1")
    internal_info: Mapped[dict[str, Any]]
    extra: Mapped[dict[str, Any]]


class DeployTemplate(Timestamps, Base):
    """A trait name and the steps that a deployment with this trait gets (specification 003)."""

    __tablename__ = "deploy_templates"

    id: Mapped[int] = mapped_column(primary_key=True)
    uuid: Mapped[str] = mapped_column(types.string(36), unique=True)
    name: Mapped[str] = mapped_column(unique=True)
    extra: Mapped[dict[str, Any]]


class DeployTemplateStep(Base):
    __tablename__ = "deploy_template_steps"

    id: Mapped[int] = mapped_column(primary_key=True)
    deploy_template_id: Mapped[int] = mapped_column(
        sa.ForeignKey("deploy_templates.id", ondelete="CASCADE"), index=True
    )
    interface: Mapped[str] = mapped_column(index=True)
    step: Mapped[str] = mapped_column(index=True)
    args: Mapped[dict[str, Any]]
    priority: Mapped[int] = mapped_column(sa.BigInteger())


class Runbook(Timestamps, Base):
    """Steps under a name, for manual cleaning and servicing of the nodes that share one of its traits."""

    __tablename__ = "runbooks"

    id: Mapped[int] = mapped_column(primary_key=True)
    uuid: Mapped[str] = mapped_column(types.string(36), unique=True)
    name: Mapped[str] = mapped_column(unique=True)
    description: Mapped[str | None]
    disable_ramdisk: Mapped[bool] = mapped_column(default=False)
    owner: Mapped[str | None] = mapped_column(index=True)
    public: Mapped[bool] = mapped_column(default=False)
    extra: Mapped[dict[str, Any]]


class RunbookStep(Base):
    __tablename__ = "runbook_steps"

    id: Mapped[int] = mapped_column(primary_key=True)
    runbook_id: Mapped[int] = mapped_column(sa.ForeignKey("runbooks.id", ondelete="CASCADE"), index=True)
    interface: Mapped[str]
    step: Mapped[str]
    args: Mapped[dict[str, Any]]
    order: Mapped[int] = mapped_column(sa.BigInteger())


class RunbookTrait(Base):
    __tablename__ = "runbook_traits"

    runbook_id: Mapped[int] = mapped_column(sa.ForeignKey("runbooks.id", ondelete="CASCADE"), primary_key=True)
    trait: Mapped[str] = mapped_column(primary_key=True)


class VolumeConnector(Timestamps, Base):
    """How a machine reaches volumes: an iSCSI initiator name, a WWN, an address."""

    __tablename__ = "volume_connectors"
    __table_args__ = (sa.UniqueConstraint("type", "connector_id"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    uuid: Mapped[str] = mapped_column(types.string(36), unique=True)
    node_id: Mapped[int] = mapped_column(sa.ForeignKey("nodes.id", ondelete="CASCADE"), index=True)
    type: Mapped[str] = mapped_column(types.string(32))
    connector_id: Mapped[str]
    extra: Mapped[dict[str, Any]]


class VolumeTarget(Timestamps, Base):
    """A volume that a machine uses; it boots from the one with boot index 0."""

    __tablename__ = "volume_targets"
    __table_args__ = (sa.UniqueConstraint("node_id", "boot_index"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    uuid: Mapped[str] = mapped_column(types.string(36), unique=True)
    node_id: Mapped[int] = mapped_column(sa.ForeignKey("nodes.id", ondelete="CASCADE"))
    volume_type: Mapped[str] = mapped_column(types.string(64))
    volume_id: Mapped[str] = mapped_column(types.string(36))
    boot_index: Mapped[int]
    properties: Mapped[dict[str, Any]]
    extra: Mapped[dict[str, Any]]


class StepRun(Base):
    """One attempt of one step that has ended. Rows are only ever added; the attempt that runs is in the node's row."""

    __tablename__ = "step_runs"
    __table_args__ = (sa.Index("step_runs_node_id_run_id_idx", "node_id", "run_id"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    node_id: Mapped[int] = mapped_column(sa.ForeignKey("nodes.id", ondelete="CASCADE"))
    run_id: Mapped[str] = mapped_column(types.string(36), index=True)
    flow: Mapped[str] = mapped_column(types.string(32))
    step_index: Mapped[int]
    attempt: Mapped[int]
    interface: Mapped[str] = mapped_column(types.string(32))
    step: Mapped[str]
    args: Mapped[dict[str, Any]]
    priority: Mapped[float] = mapped_column(types.Number(), doc="agents may have fractions")
    origin: Mapped[str] = mapped_column(types.string(300), doc="driver, agent, template or runbook NAME, request, flow")
    state: Mapped[str] = mapped_column(types.string(16), doc="done, failed, interrupted, aborted")
    started_at: Mapped[datetime.datetime]
    finished_at: Mapped[datetime.datetime]
    conductor: Mapped[str]
    error: Mapped[str | None] = mapped_column(types.text())


class NodeHistory(Base):
    """What an operator reads when a machine misbehaves: one row for each event worth telling."""

    __tablename__ = "node_history"

    id: Mapped[int] = mapped_column(primary_key=True)
    uuid: Mapped[str] = mapped_column(types.string(36), unique=True)
    node_id: Mapped[int] = mapped_column(sa.ForeignKey("nodes.id", ondelete="CASCADE"), index=True)
    created_at: Mapped[datetime.datetime] = mapped_column(default=clock.now)
    conductor: Mapped[str | None]
    severity: Mapped[str] = mapped_column(types.string(10), doc="INFO or ERROR")
    event_type: Mapped[str] = mapped_column(doc="provisioning, power, maintenance ...")
    event: Mapped[str] = mapped_column(types.text())
    user: Mapped[str | None]
    project: Mapped[str | None]
    state: Mapped[str | None] = mapped_column(types.string(15))
    target_provision_state: Mapped[str | None] = mapped_column(types.string(15))
    duration_seconds: Mapped[float | None]


class Event(Base):
    """Something that changed, in the one order in which all readers see it; see ``ingot.db.events``. No reference to
    nodes: what happened to a node outlives it."""

    __tablename__ = "events"

    id: Mapped[int] = mapped_column(sa.BigInteger(), primary_key=True, autoincrement=False, doc="1, 2, 3 ... no gaps")
    kind: Mapped[str] = mapped_column(types.string(16))
    created_at: Mapped[datetime.datetime]
    node_uuid: Mapped[str | None] = mapped_column(types.string(36))
    node_name: Mapped[str | None]
    data: Mapped[dict[str, Any]]


class Allocation(Timestamps, Base):
    """A user's wish for a node, and the node that a conductor found for it. A wish in state ``allocating`` is work."""

    __tablename__ = "allocations"

    id: Mapped[int] = mapped_column(primary_key=True)
    uuid: Mapped[str] = mapped_column(types.string(36), unique=True)
    name: Mapped[str | None] = mapped_column(unique=True)
    node_id: Mapped[int | None] = mapped_column(sa.ForeignKey("nodes.id"), unique=True)
    state: Mapped[str] = mapped_column(types.string(15), index=True)
    owner: Mapped[str | None] = mapped_column(index=True)
    resource_class: Mapped[str | None] = mapped_column(types.string(80), index=True)
    candidate_nodes: Mapped[list[Any]]
    traits: Mapped[list[Any]]
    last_error: Mapped[str | None] = mapped_column(types.text())
    extra: Mapped[dict[str, Any]]


class InspectionRule(Timestamps, Base):
    """What is done with a node when its inspected inventory meets conditions."""

    __tablename__ = "inspection_rules"

    id: Mapped[int] = mapped_column(primary_key=True)
    uuid: Mapped[str] = mapped_column(types.string(36), unique=True)
    description: Mapped[str | None]
    priority: Mapped[int] = mapped_column(default=0)
    sensitive: Mapped[bool] = mapped_column(default=False)
    phase: Mapped[str] = mapped_column(types.string(16), default="main")
    conditions: Mapped[list[Any]]
    actions: Mapped[list[Any]]


class BiosSetting(Timestamps, Base):
    """A setting of a machine's BIOS as it was read last."""

    __tablename__ = "bios_settings"

    node_id: Mapped[int] = mapped_column(sa.ForeignKey("nodes.id", ondelete="CASCADE"), primary_key=True)
    name: Mapped[str] = mapped_column(primary_key=True)
    value: Mapped[str | None] = mapped_column(types.text())
    attribute_type: Mapped[str | None]
    allowable_values: Mapped[list[Any]]
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

    node_id: Mapped[int] = mapped_column(sa.ForeignKey("nodes.id", ondelete="CASCADE"), primary_key=True)
    component: Mapped[str] = mapped_column(primary_key=True)
    initial_version: Mapped[str]
    current_version: Mapped[str | None]
    last_version_flashed: Mapped[str | None]
    vendor: Mapped[str | None]
    model: Mapped[str | None]
    serial_number: Mapped[str | None]


class NodeInventory(Base):
    """What the last inspection found in a machine."""

    __tablename__ = "node_inventory"

    node_id: Mapped[int] = mapped_column(sa.ForeignKey("nodes.id", ondelete="CASCADE"), primary_key=True)
    inventory: Mapped[dict[str, Any]]
    plugin_data: Mapped[dict[str, Any]]
    inspected_at: Mapped[datetime.datetime] = mapped_column(default=clock.now)


class AgentLog(Base):
    """What the agent of a run had logged, as it was collected: a tar.gz."""

    __tablename__ = "agent_logs"

    id: Mapped[int] = mapped_column(primary_key=True)
    uuid: Mapped[str] = mapped_column(types.string(36), unique=True)
    node_id: Mapped[int] = mapped_column(sa.ForeignKey("nodes.id", ondelete="CASCADE"), index=True)
    run_id: Mapped[str] = mapped_column(types.string(36))
    flow: Mapped[str] = mapped_column(types.string(32))
    created_at: Mapped[datetime.datetime] = mapped_column(default=clock.now)
    size: Mapped[int] = mapped_column(doc="bytes of content")
    content: Mapped[bytes] = mapped_column(types.blob())


def table(model: type[Base]) -> sa.Table:
    """The Core table of a model, typed as such."""
    assert isinstance(model.__table__, sa.Table)  # noqa: S101 - a narrowing for mypy, always true
    return model.__table__


assert set(interfaces.FIELDS) <= set(table(Node).c.keys()), "a kind of interface has no column"  # noqa: S101
