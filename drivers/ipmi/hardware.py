"""The hardware type ipmi: machines whose BMC speaks IPMI 2.0."""

from ingot.drivers.generic.hardware_type import GenericHardwareType
from ingot.drivers.interfaces import noop
from ingot.drivers.interfaces.hardware_type import Supported
from ingot.drivers.ipmi.console import SerialOverLanConsole
from ingot.drivers.ipmi.management import IPMIManagement
from ingot.drivers.ipmi.power import IPMIPower
from ingot.drivers.ipmi.vendor import IPMIVendor


class IPMIHardware(GenericHardwareType):
    """The entry points are called ``ipmitool``, as in the configuration files and node records that operators have; no
    program of that name is run."""

    supported_console_interfaces: Supported = (SerialOverLanConsole, noop.NoConsole)
    supported_management_interfaces: Supported = (IPMIManagement, noop.NoopManagement)
    supported_power_interfaces: Supported = (IPMIPower,)
    supported_vendor_interfaces: Supported = (IPMIVendor, noop.NoVendor)
