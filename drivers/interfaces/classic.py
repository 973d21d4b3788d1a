"""Classic drivers: fixed compositions, one implementation of each type of interface in the code (specification 004).

Hardware types let an operator choose; a classic driver does not. It is for a machine that works in exactly one
combination, and for drivers that were written before there were hardware types. To add one, subclass
:class:`ClassicDriver`, register it as an entry point ``ingot.drivers`` and enable it with ``enabled_drivers``.
"""

from typing import ClassVar

from ingot.common import interfaces
from ingot.drivers.interfaces import noop
from ingot.drivers.interfaces.base import BaseInterface
from ingot.drivers.interfaces.boot import BootInterface
from ingot.drivers.interfaces.deploy import DeployInterface
from ingot.drivers.interfaces.management import ManagementInterface
from ingot.drivers.interfaces.power import PowerInterface

Implementation = type[BaseInterface]


class ClassicDriver:
    """A class attribute for each type of interface holds the class that implements it.

    Boot, deploy, management and power must be named; the others are missing unless they are. A node that names the
    driver has no ``*_interface`` fields: they are None.
    """

    boot: ClassVar[type[BootInterface]]
    deploy: ClassVar[type[DeployInterface]]
    management: ClassVar[type[ManagementInterface]]
    power: ClassVar[type[PowerInterface]]

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
