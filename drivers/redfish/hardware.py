"""The hardware type redfish: machines whose BMC speaks Redfish."""

from ingot.drivers.generic.hardware_type import GenericHardwareType
from ingot.drivers.interfaces import noop
from ingot.drivers.interfaces.hardware_type import Supported
from ingot.drivers.ipmi.console import SerialOverLanConsole
from ingot.drivers.redfish.bios import RedfishBIOS
from ingot.drivers.redfish.firmware import RedfishFirmware
from ingot.drivers.redfish.inspect import RedfishInspect
from ingot.drivers.redfish.management import RedfishManagement
from ingot.drivers.redfish.media_boot import RedfishHttpsBoot, RedfishVirtualMediaBoot
from ingot.drivers.redfish.power import RedfishPower
from ingot.drivers.redfish.raid import RedfishRAID
from ingot.drivers.redfish.vendor import RedfishVendor


class RedfishHardware(GenericHardwareType):
    """What vendor types of BMCs that speak Redfish extend."""

    supported_bios_interfaces: Supported = (RedfishBIOS, noop.NoBIOS)
    supported_boot_interfaces: Supported = (
        *GenericHardwareType.supported_boot_interfaces,
        RedfishVirtualMediaBoot,
        RedfishHttpsBoot,
    )
    # Many of these BMCs speak IPMI, too; where that is so is chosen by node.
    supported_console_interfaces: Supported = (noop.NoConsole, SerialOverLanConsole)
    supported_firmware_interfaces: Supported = (RedfishFirmware, noop.NoFirmware)
    supported_inspect_interfaces: Supported = (*GenericHardwareType.supported_inspect_interfaces, RedfishInspect)
    supported_management_interfaces: Supported = (RedfishManagement, noop.NoopManagement)
    supported_power_interfaces: Supported = (RedfishPower,)
    supported_raid_interfaces: Supported = (*GenericHardwareType.supported_raid_interfaces, RedfishRAID)
    supported_vendor_interfaces: Supported = (RedfishVendor, noop.NoVendor)
