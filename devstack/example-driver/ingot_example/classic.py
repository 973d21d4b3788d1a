"""A classic driver: the same machines in one fixed composition."""

from ingot.drivers.agent.direct import DirectDeploy
from ingot.drivers.agent.raid import AgentRAID
from ingot.drivers.interfaces.hardware_type import ClassicDriver
from ingot.drivers.interfaces.noop import NoopManagement
from ingot.drivers.pxe.ipxe import IPXEBoot
from ingot_example.power import PlugPower


class ExampleClassic(ClassicDriver):
    """Nodes of it have no interface fields, and operators nothing to choose. Prefer a hardware type."""

    boot = IPXEBoot
    deploy = DirectDeploy
    management = NoopManagement
    power = PlugPower
    raid = AgentRAID
