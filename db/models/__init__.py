"""The tables, and the types of rows read from them: ``models.Node`` declares the table and is what a node is.

Query functions use the tables through SQLAlchemy Core: mapping a node's eighty columns to objects of its ORM is slow,
and loading the ORM costs each process 6 MiB. What is read are plain records (:class:`Record`). A column's ``doc`` is
its documentation; what the API shows of a node is declared in ``ingot.api.nodes.node_fields``.
"""

from ingot.db.models.allocation import Allocation as Allocation
from ingot.db.models.audit import AuditEvent as AuditEvent
from ingot.db.models.base import Base as Base
from ingot.db.models.base import JsonText as JsonText
from ingot.db.models.base import Record as Record
from ingot.db.models.base import Row as Row
from ingot.db.models.base import SecretJson as SecretJson
from ingot.db.models.base import Words as Words
from ingot.db.models.base import as_kept as as_kept
from ingot.db.models.base import columns as columns
from ingot.db.models.base import keyrings as keyrings
from ingot.db.models.base import moment as moment
from ingot.db.models.base import string as string
from ingot.db.models.base import table as table
from ingot.db.models.base import text as text
from ingot.db.models.conductor import Conductor as Conductor
from ingot.db.models.conductor import ConductorHardwareInterface as ConductorHardwareInterface
from ingot.db.models.history import AgentLog as AgentLog
from ingot.db.models.history import Event as Event
from ingot.db.models.history import NodeHistory as NodeHistory
from ingot.db.models.history import StepRun as StepRun
from ingot.db.models.history import WaitingEvent as WaitingEvent
from ingot.db.models.inbox import InboxEntry as InboxEntry
from ingot.db.models.inspection import BiosSetting as BiosSetting
from ingot.db.models.inspection import FirmwareComponent as FirmwareComponent
from ingot.db.models.inspection import InspectionRule as InspectionRule
from ingot.db.models.inspection import NodeInventory as NodeInventory
from ingot.db.models.inspection import NodeInventoryBefore as NodeInventoryBefore
from ingot.db.models.node import Chassis as Chassis
from ingot.db.models.node import LeftBehind as LeftBehind
from ingot.db.models.node import Node as Node
from ingot.db.models.node import NodeTag as NodeTag
from ingot.db.models.node import NodeTrait as NodeTrait
from ingot.db.models.node import RemovedNode as RemovedNode
from ingot.db.models.port import Port as Port
from ingot.db.models.port import Portgroup as Portgroup
from ingot.db.models.secret import SecretKey as SecretKey
from ingot.db.models.step_list import DeployTemplate as DeployTemplate
from ingot.db.models.step_list import DeployTemplateStep as DeployTemplateStep
from ingot.db.models.step_list import Runbook as Runbook
from ingot.db.models.step_list import RunbookStep as RunbookStep
from ingot.db.models.step_list import RunbookTrait as RunbookTrait
from ingot.db.models.volume import VolumeConnector as VolumeConnector
from ingot.db.models.volume import VolumeTarget as VolumeTarget
