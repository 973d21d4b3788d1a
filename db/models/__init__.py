"""The tables, and the types of rows read from them: ``models.Node`` declares the table and is what a node is.

Query functions use the tables through SQLAlchemy Core: mapping a node's eighty columns to objects of the ORM is slow.
Once all are declared the ORM therefore lets go of the classes; their instances are plain records
(:class:`Record`). A column's ``doc`` is its documentation; what the API shows of a node is declared in
``ingot.api.nodes.node_fields``.
"""

from ingot.common import interfaces
from ingot.db.models.allocation import Allocation
from ingot.db.models.base import (
    Base,
    JsonText,
    Number,
    Record,
    Row,
    blob,
    columns,
    json_schema,
    moment,
    string,
    table,
    text,
)
from ingot.db.models.conductor import Conductor, ConductorHardwareInterface
from ingot.db.models.history import AgentLog, Event, NodeHistory, StepRun
from ingot.db.models.inspection import BiosSetting, FirmwareComponent, InspectionRule, NodeInventory
from ingot.db.models.node import Chassis, Node, NodeTag, NodeTrait
from ingot.db.models.port import Port, Portgroup
from ingot.db.models.step_list import DeployTemplate, DeployTemplateStep, Runbook, RunbookStep, RunbookTrait
from ingot.db.models.volume import VolumeConnector, VolumeTarget

__all__ = [
    "AgentLog",
    "Allocation",
    "Base",
    "BiosSetting",
    "Chassis",
    "Conductor",
    "ConductorHardwareInterface",
    "DeployTemplate",
    "DeployTemplateStep",
    "Event",
    "FirmwareComponent",
    "InspectionRule",
    "JsonText",
    "Node",
    "NodeHistory",
    "NodeInventory",
    "NodeTag",
    "NodeTrait",
    "Number",
    "Port",
    "Portgroup",
    "Record",
    "Row",
    "Runbook",
    "RunbookStep",
    "RunbookTrait",
    "StepRun",
    "VolumeConnector",
    "VolumeTarget",
    "blob",
    "columns",
    "json_schema",
    "moment",
    "string",
    "table",
    "text",
]

Base.registry.dispose()

assert set(interfaces.FIELDS) <= set(table(Node).c.keys()), "a kind of interface has no column"  # noqa: S101
