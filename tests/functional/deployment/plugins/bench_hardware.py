"""A hardware type for tests: power over IPMI, an agent that boots, and BIOS settings of no machine."""

from ingot.drivers.hardware_type import Supported
from ingot.drivers.ipmi import IPMIHardware
from ingot.drivers.modules import fake


class BenchHardware(IPMIHardware):
    supported_bios_interfaces: Supported = (fake.FakeBIOS,)
