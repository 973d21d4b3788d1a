"""The hardware type: which interfaces machines behind plugs support, the preferred one first."""

from ingot.drivers.generic import fake
from ingot.drivers.generic.hardware_type import GenericHardwareType
from ingot.drivers.interfaces import noop
from ingot.drivers.interfaces.hardware_type import Supported
from ingot_example.power import PlugPower


class ExampleHardware(GenericHardwareType):
    """Power is the example's own; all else is Ingot's.

    What is not named here comes from ``GenericHardwareType``, which boots the agent over the network and writes images
    with it. The boot order is set by hand, network first.
    """

    supported_power_interfaces: Supported = (PlugPower,)
    supported_management_interfaces: Supported = (noop.NoopManagement,)
    supported_boot_interfaces: Supported = (*GenericHardwareType.supported_boot_interfaces, fake.FakeBoot)
    supported_deploy_interfaces: Supported = (*GenericHardwareType.supported_deploy_interfaces, fake.FakeDeploy)
