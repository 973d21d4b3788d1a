"""Chassis, nodes, and their tags and traits."""

import datetime

from sqlalchemy import BigInteger, ForeignKey
from sqlalchemy.orm import Mapped, mapped_column

from ingot.common.json_types import BootConfig, FlowRequest, Hold, InternalInfo, Json, PowerRequest
from ingot.db.models.base import Base, JsonText, Row, SecretJson, string, text


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
    driver_info: Mapped[Json] = mapped_column(SecretJson())
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
    lock_attempts: Mapped[int] = mapped_column(
        default=0, server_default="0", doc="locks taken since one was given back: all but the last were lost"
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
    boot_script_at: Mapped[datetime.datetime | None] = mapped_column(
        doc="when the machine last fetched its boot script"
    )
    boot_ticket: Mapped[str | None] = mapped_column(doc="lets the machine fetch the script of its volume, once")
    boot_address: Mapped[str | None] = mapped_column(doc="network address that such tickets are given to in this boot")
    agent_url: Mapped[str | None] = mapped_column(text())
    agent_token: Mapped[str | None]
    agent_token_at: Mapped[datetime.datetime | None] = mapped_column(doc="when the token was given out first")
    agent_address: Mapped[str | None] = mapped_column(doc="network address that the token was given to")
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
