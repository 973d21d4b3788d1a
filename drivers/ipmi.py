"""The ipmi hardware type: machines whose BMC speaks IPMI 2.0 over the network."""

from ingot.drivers.hardware_type import GenericHardwareType, Supported
from ingot.drivers.modules import noop
from ingot.drivers.modules.ipmi import IPMIManagement, IPMIPower


class IPMIHardware(GenericHardwareType):
    """The entry points are called ``ipmitool``, as in the configuration files and node records that operators have; no
    program of that name is run."""

    supported_management_interfaces: Supported = (IPMIManagement, noop.NoopManagement)
    supported_power_interfaces: Supported = (IPMIPower,)
