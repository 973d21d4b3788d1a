"""The hardware type manual-management: machines whose power and boot order an operator sees to."""

from ingot.drivers.agent.power import AgentPower
from ingot.drivers.generic import fake
from ingot.drivers.generic.hardware_type import GenericHardwareType
from ingot.drivers.interfaces import noop
from ingot.drivers.interfaces.hardware_type import Supported


class ManualManagementHardware(GenericHardwareType):
    """Machines without a BMC that could be used. A rescue would end with an instance that nothing can start."""

    supported_management_interfaces: Supported = (noop.NoopManagement, fake.FakeManagement)
    supported_power_interfaces: Supported = (AgentPower, fake.FakePower)
    supported_rescue_interfaces: Supported = (noop.NoRescue,)
