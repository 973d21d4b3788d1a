"""The fake-hardware type: machines that exist only in the database, for tests, trials and load measurements."""

from ingot.drivers.hardware_type import GenericHardwareType, Supported
from ingot.drivers.modules import fake, noop


class FakeHardware(GenericHardwareType):
    """Fakes first; the real ones after them let a real agent run on a machine whose power is fake."""

    supported_bios_interfaces: Supported = (fake.FakeBIOS, *GenericHardwareType.supported_bios_interfaces)
    supported_boot_interfaces: Supported = (fake.FakeBoot, *GenericHardwareType.supported_boot_interfaces)
    supported_console_interfaces: Supported = (
        fake.FakeConsole,
        fake.FakeGraphicalConsole,
        *GenericHardwareType.supported_console_interfaces,
    )
    supported_deploy_interfaces: Supported = (
        fake.FakeDeploy,
        *GenericHardwareType.supported_deploy_interfaces,
    )
    supported_firmware_interfaces: Supported = (
        fake.FakeFirmware,
        *GenericHardwareType.supported_firmware_interfaces,
    )
    supported_inspect_interfaces: Supported = (
        fake.FakeInspect,
        *GenericHardwareType.supported_inspect_interfaces,
    )
    supported_management_interfaces: Supported = (fake.FakeManagement, noop.NoopManagement)
    supported_power_interfaces: Supported = (fake.FakePower,)
    supported_raid_interfaces: Supported = (fake.FakeRAID, *GenericHardwareType.supported_raid_interfaces)
    supported_rescue_interfaces: Supported = (
        fake.FakeRescue,
        *GenericHardwareType.supported_rescue_interfaces,
    )
    supported_vendor_interfaces: Supported = (
        fake.FakeVendor,
        *GenericHardwareType.supported_vendor_interfaces,
    )
