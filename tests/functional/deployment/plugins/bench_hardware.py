"""A hardware type for tests: power over IPMI, an agent that boots, and BIOS settings of no machine."""

from ingot.drivers.generic import fake
from ingot.drivers.interfaces.hardware_type import Supported
from ingot.drivers.ipmi.hardware import IPMIHardware


class BenchHardware(IPMIHardware):
    supported_bios_interfaces: Supported = (fake.FakeBIOS,)
