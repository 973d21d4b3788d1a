"""A classic driver: the same machines in one fixed composition."""

from ingot.drivers.classic import ClassicDriver
from ingot.drivers.modules.agent_raid import AgentRAID
from ingot.drivers.modules.direct import DirectDeploy
from ingot.drivers.modules.ipxe import IPXEBoot
from ingot.drivers.modules.noop import NoopManagement
from ingot_example.power import PlugPower


class ExampleClassic(ClassicDriver):
    """Nodes of it have no interface fields, and operators nothing to choose. Prefer a hardware type."""

    boot = IPXEBoot
    deploy = DirectDeploy
    management = NoopManagement
    power = PlugPower
    raid = AgentRAID
