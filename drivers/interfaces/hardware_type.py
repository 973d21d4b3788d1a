"""Hardware types and classic drivers: which interfaces machines are composed of (specification 004).

A hardware type is a class with one list of interface classes for each type of interface, in order of preference. The
first of a list that the operator has enabled is the default. To add one, subclass ``GenericHardwareType`` of
``drivers/generic``, register it as an entry point ``ingot.hardware.types`` and enable it in ``enabled_hardware_types``.

Hardware types let an operator choose; a classic driver, with one implementation of each type of interface, does not.
It is for a machine that works in one combination only, and for drivers that are older than hardware types. To add one,
subclass :class:`ClassicDriver`, register it as an entry point ``ingot.drivers`` and enable it in ``enabled_drivers``.
"""

import abc
from collections.abc import Sequence
from typing import ClassVar

from ingot.common import interfaces
from ingot.drivers.interfaces import noop
from ingot.drivers.interfaces.base import BaseInterface

Supported = Sequence[type[BaseInterface]]
Implementation = type[BaseInterface]


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

    def list_supported(self, interface_type: str) -> Supported:
        """Return the classes that the hardware type supports for a type of interface, best first."""
        classes: Supported = getattr(self, f"supported_{interface_type}_interfaces")
        return classes


class ClassicDriver:
    """A class attribute for each type of interface holds the class that implements it.

    Boot, deploy, management and power must be named; the others are missing unless they are. A node that names the
    driver has no ``*_interface`` fields: they are None.
    """

    boot: ClassVar[Implementation]
    deploy: ClassVar[Implementation]
    management: ClassVar[Implementation]
    power: ClassVar[Implementation]

    bios: ClassVar[Implementation] = noop.NoBIOS
    console: ClassVar[Implementation] = noop.NoConsole
    firmware: ClassVar[Implementation] = noop.NoFirmware
    inspect: ClassVar[Implementation] = noop.NoInspect
    network: ClassVar[Implementation] = noop.NoopNetwork
    raid: ClassVar[Implementation] = noop.NoRAID
    rescue: ClassVar[Implementation] = noop.NoRescue
    storage: ClassVar[Implementation] = noop.NoopStorage
    vendor: ClassVar[Implementation] = noop.NoVendor

    def implementations(self) -> dict[str, Implementation]:
        """Return the class of each type of interface.

        :raises TypeError: a type has none, or one of another type.
        """
        classes: dict[str, Implementation] = {}
        for name in interfaces.TYPES:
            cls = getattr(self, name, None)
            if not (isinstance(cls, type) and issubclass(cls, BaseInterface) and cls.interface_type == name):
                raise TypeError(f"{type(self).__qualname__}.{name} must be a class of {name} interfaces, it is {cls!r}")
            classes[name] = cls
        return classes
