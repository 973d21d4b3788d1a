"""Hardware types: which interfaces a family of machines supports, in order of preference (specification 004).

A hardware type is a class with one list of interface classes for each kind. The first of a list that the operator has
enabled is the default of that kind. To add one, subclass :class:`GenericHardwareType`, register it as an entry point
``ingot.hardware.types`` and enable it with ``enabled_hardware_types``.
"""

import abc
from collections.abc import Sequence

from ingot.drivers.interfaces.base import BaseInterface
from ingot.drivers.modules import agent_inspect, agent_raid, agent_rescue, direct, external_storage, ipxe, noop, ramdisk

Supported = Sequence[type[BaseInterface]]


class AbstractHardwareType(abc.ABC):
    """Without boot, deploy, management and power nothing can be deployed; all other kinds may be missing."""

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

    def supported(self, kind: str) -> Supported:
        """The classes that the type supports for a kind of interface, best first."""
        classes: Supported = getattr(self, f"supported_{kind}_interfaces")
        return classes


class GenericHardwareType(AbstractHardwareType):
    """Machines that boot from the network and run the agent: what nearly all have in common."""

    supported_boot_interfaces: Supported = (ipxe.IPXEBoot,)
    supported_deploy_interfaces: Supported = (direct.DirectDeploy, ramdisk.RamdiskDeploy)
    supported_inspect_interfaces: Supported = (agent_inspect.AgentInspect, noop.NoInspect)
    supported_raid_interfaces: Supported = (agent_raid.AgentRAID, noop.NoRAID)
    supported_rescue_interfaces: Supported = (agent_rescue.AgentRescue, noop.NoRescue)
    supported_storage_interfaces: Supported = (noop.NoopStorage, external_storage.ExternalStorage)
