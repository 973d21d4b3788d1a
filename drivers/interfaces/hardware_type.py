"""Hardware types: which interfaces a family of machines supports, in order of preference (specification 004).

A hardware type is a class with one list of interface classes for each type of interface. The first of a list that the
operator has enabled is the default. To add one, subclass ``ingot.drivers.generic.hardware_type.GenericHardwareType``,
register it as an entry point ``ingot.hardware.types`` and enable it with ``enabled_hardware_types``.
"""

import abc
from collections.abc import Sequence

from ingot.drivers.interfaces import noop
from ingot.drivers.interfaces.base import BaseInterface

Supported = Sequence[type[BaseInterface]]


class AbstractHardwareType(abc.ABC):
    """Without boot, deploy, management and power nothing can be deployed; the other interfaces may be missing."""

    @property
    @abc.abstractmethod
    def supported_boot_interfaces(self) -> Supported: ...

    @property
    @abc.abstractmethod
    def supported_deploy_interfaces(self) -> Supported: ...

    @property
    @abc.abstractmethod
    def supported_management_interfaces(self) -> Supported: ...

    @property
    @abc.abstractmethod
    def supported_power_interfaces(self) -> Supported: ...

    supported_bios_interfaces: Supported = (noop.NoBIOS,)
    supported_console_interfaces: Supported = (noop.NoConsole,)
    supported_firmware_interfaces: Supported = (noop.NoFirmware,)
    supported_inspect_interfaces: Supported = (noop.NoInspect,)
    supported_network_interfaces: Supported = (noop.NoopNetwork,)
    supported_raid_interfaces: Supported = (noop.NoRAID,)
    supported_rescue_interfaces: Supported = (noop.NoRescue,)
    supported_storage_interfaces: Supported = (noop.NoopStorage,)
    supported_vendor_interfaces: Supported = (noop.NoVendor,)

    def supported(self, interface_type: str) -> Supported:
        """Return the classes that the hardware type supports for a type of interface, best first."""
        classes: Supported = getattr(self, f"supported_{interface_type}_interfaces")
        return classes
