"""Loads what is enabled, once, and composes the driver of each task from it.

Rules of specification 004: what is enabled and cannot be loaded stops the conductor; an interface that no enabled type
supports is not loaded; the default of a kind is the explicit one, else the first of the type's list that is enabled.
Each class is made once, whichever hardware types and classic drivers use it.
"""

from oslo_config import cfg
from oslo_log import log

from ingot.common import errors, interfaces
from ingot.db import records
from ingot.db.conductors import EnabledInterface
from ingot.drivers import driver, entry_points, periodic, priorities, single_step
from ingot.drivers.classic import ClassicDriver
from ingot.drivers.hardware_type import AbstractHardwareType
from ingot.drivers.interfaces.base import BaseInterface

LOG = log.getLogger(__name__)

_TYPES = "enabled_hardware_types"
_CLASSIC = "enabled_drivers"

Links = dict[str, BaseInterface]


class Hardware:
    """Everything that is enabled on this conductor.

    :param source: where entry points come from.
    :raises ConfigurationError: something enabled is missing, broken, of the wrong class, claimed by two packages, or
        unsupported; the message names option, value and choices.
    """

    def __init__(self, conf: cfg.ConfigOpts, source: entry_points.Source = entry_points.installed) -> None:
        self._conf = conf
        self._source = source
        priorities.check_overrides(conf)
        self._check_names()
        self._singletons: dict[type[BaseInterface], BaseInterface] = {}
        self.hardware_types = self._load_types()
        self._interfaces: dict[str, Links] = {}
        self._enabled: dict[tuple[str, str], Links] = {}
        self._defaults: dict[tuple[str, str], str] = {}
        for kind in interfaces.KINDS:
            self._load_kind(kind)
        self.classic_drivers = self._load_classic()
        self.drivers: frozenset[str] = frozenset((*self.hardware_types, *self.classic_drivers))
        """All names that a node's ``driver`` may have here."""
        self.periodics = [one for made in self._singletons.values() for one in periodic.declared(made, conf)]

    def enabled(self) -> list[EnabledInterface]:
        """What the conductor registers: each enabled interface of each enabled type, and whether it is the default."""
        return [
            EnabledInterface(hardware_type, kind, name, default=name == self._defaults[hardware_type, kind])
            for (hardware_type, kind), found in self._enabled.items()
            for name in found
        ]

    def default(self, hardware_type: str, kind: str) -> str:
        """The interface that a node gets when its record names none."""
        return self._defaults[hardware_type, kind]

    def properties(self, name: str) -> dict[str, str]:
        """What the interfaces of a classic driver, or the default ones of a hardware type, read from driver_info:
        key -> description.

        :raises NotFound: the driver is not enabled here.
        """
        found: dict[str, str] = {}
        for kind in interfaces.KINDS:
            found |= self.of_driver(name, kind).get_properties()
        return found

    def of_driver(self, name: str, kind: str) -> BaseInterface:
        """The interface that stands for a driver where no node is named: the calculated default of a hardware type.

        :raises NotFound: the driver is not enabled here.
        """
        if name in self.classic_drivers:
            return self.classic_drivers[name][kind]
        if name in self.hardware_types:
            return self.interface(kind, self.default(name, kind))
        raise errors.NotFound(noun="Driver", ident=name)

    def interface(self, kind: str, name: str) -> BaseInterface:
        """An enabled interface.

        :raises InterfaceNotFound: it is not enabled here.
        """
        try:
            return self._interfaces[kind][name]
        except KeyError:
            enabled = ", ".join(self._interfaces[kind]) or "none"
            raise errors.InterfaceNotFound(kind=kind, name=name, driver="any", enabled=enabled) from None

    def compose(self, node: records.Record) -> tuple[driver.BareDriver, dict[str, str]]:
        """The driver of a node, and for each interface that it cannot have the reason."""
        if node.driver in self.classic_drivers:
            return driver.BareDriver(node.driver, **self.classic_drivers[node.driver]), {}
        if node.driver not in self.hardware_types:
            return driver.BareDriver(node.driver), dict.fromkeys(interfaces.KINDS, self._why_no_driver(node.driver))
        links: Links = {}
        reasons: dict[str, str] = {}
        for kind in interfaces.KINDS:
            enabled = self._enabled[node.driver, kind]
            name = getattr(node, interfaces.field(kind)) or self._defaults[node.driver, kind]
            if name in enabled:
                links[kind] = enabled[name]
            else:
                missing = errors.InterfaceNotFound(kind=kind, name=name, driver=node.driver, enabled=", ".join(enabled))
                reasons[kind] = missing.message
        return driver.BareDriver(node.driver, **links), reasons

    def drivers_using(self, interface: BaseInterface) -> list[str]:
        """The hardware types that may, and the classic drivers that do use an interface."""
        may = [name for name in self.hardware_types if interface in self._enabled[name, interface.kind].values()]
        return may + [name for name, links in self.classic_drivers.items() if links[interface.kind] is interface]

    def uses(self, node: records.Record, interface: BaseInterface) -> bool:
        """Whether a node is composed of an interface.

        :param node: needs its driver and the one field of the interface's kind.
        """
        if node.driver in self.classic_drivers:
            return self.classic_drivers[node.driver][interface.kind] is interface
        of_type = (node.driver, interface.kind)
        name = getattr(node, interfaces.field(interface.kind)) or self._defaults.get(of_type, "")
        return self._enabled.get(of_type, {}).get(name) is interface

    def _why_no_driver(self, name: str) -> str:
        types, classic = (", ".join(names) or "none" for names in (self.hardware_types, self.classic_drivers))
        return f"Driver {name} is not enabled on this conductor ({_TYPES}: {types}; {_CLASSIC}: {classic})."

    # Loading

    def _check_names(self) -> None:
        types, classic = self._conf[_TYPES], self._conf[_CLASSIC]
        if not types and not classic:
            raise errors.ConfigurationError(option=_TYPES, value=[], allowed="Name at least one hardware type.")
        for name in classic:
            if name in types:
                raise errors.ConfigurationError(
                    option=_CLASSIC,
                    value=name,
                    allowed=f"Classic driver {name} and hardware type {name} of {_TYPES} have one name, and a node's "
                    "driver could be either. Remove one of the two.",
                )

    def _load_types(self) -> dict[str, AbstractHardwareType]:
        found: dict[str, AbstractHardwareType] = {}
        for entry_point in entry_points.select(self._source, entry_points.TYPES, _TYPES, self._conf[_TYPES]):
            cls = entry_points.load(entry_point, _TYPES, AbstractHardwareType)
            found[entry_point.name] = entry_points.construct(cls, _TYPES, entry_point.name)
        return found

    def _load_classic(self) -> dict[str, Links]:
        found: dict[str, Links] = {}
        for entry_point in entry_points.select(self._source, entry_points.CLASSIC, _CLASSIC, self._conf[_CLASSIC]):
            cls = entry_points.load(entry_point, _CLASSIC, ClassicDriver)
            made: ClassicDriver = entry_points.construct(cls, _CLASSIC, entry_point.name)
            fixed = entry_points.construct(made.implementations, _CLASSIC, entry_point.name)
            found[entry_point.name] = {
                kind: self._singleton(one, _CLASSIC, entry_point.name, self._name_of(kind, one))
                for kind, one in fixed.items()
            }
        return found

    def _load_kind(self, kind: str) -> None:
        option = f"enabled_{interfaces.field(kind)}s"
        wanted = {entry_points.target(cls) for one in self.hardware_types.values() for cls in one.supported(kind)}
        classes: dict[str, type[BaseInterface]] = {}
        for entry_point in entry_points.select(self._source, entry_points.of_kind(kind), option, self._conf[option]):
            if entry_point.value in wanted:
                classes[entry_point.name] = entry_points.load(entry_point, option, BaseInterface)
            else:
                LOG.info("%s %s is not loaded: no enabled hardware type supports it", option, entry_point.name)
        self._interfaces[kind] = {name: self._singleton(cls, option, name, name) for name, cls in classes.items()}
        for hardware_type, one in self.hardware_types.items():
            # In the type's order of preference, whatever the option's.
            enabled = {
                name: self._interfaces[kind][name]
                for cls in one.supported(kind)
                for name in classes
                if classes[name] is cls
            }
            self._enabled[hardware_type, kind] = enabled
            self._defaults[hardware_type, kind] = self._calculated_default(hardware_type, kind, enabled)

    def _singleton(self, cls: type[BaseInterface], option: str, value: str, name: str) -> BaseInterface:
        """The one instance of an interface's class, made at first use.

        :param option: what asked for it, with ``value``.
        """
        if cls not in self._singletons:
            made = entry_points.construct(lambda: single_step.adapted(cls)(self._conf, name), option, value)
            priorities.check_clean_steps(self._conf, made)
            self._singletons[cls] = made
        return self._singletons[cls]

    def _name_of(self, kind: str, cls: type[BaseInterface]) -> str:
        """What messages call an interface that is in the code of a classic driver: its entry point, if it has one."""
        group = self._source(entry_points.of_kind(kind))
        return next((one.name for one in group if one.value == entry_points.target(cls)), cls.__name__)

    def _calculated_default(self, hardware_type: str, kind: str, enabled: Links) -> str:
        """:param enabled: in the type's order of preference."""
        option = f"default_{interfaces.field(kind)}"
        explicit: str | None = self._conf[option]
        if explicit is None and enabled:
            return next(iter(enabled))
        if explicit in enabled:
            return str(explicit)
        choices = f"Enabled and supported by hardware type {hardware_type}: {', '.join(enabled) or 'none'}."
        if explicit is not None:
            raise errors.ConfigurationError(option=option, value=explicit, allowed=choices)
        supported = {entry_points.target(cls) for cls in self.hardware_types[hardware_type].supported(kind)}
        group = self._source(entry_points.of_kind(kind))
        names = sorted(entry_point.name for entry_point in group if entry_point.value in supported)
        raise errors.ConfigurationError(
            option=f"enabled_{interfaces.field(kind)}s",
            value=self._conf[f"enabled_{interfaces.field(kind)}s"],
            allowed=f"Hardware type {hardware_type} needs at least one of: {', '.join(names)}.",
        )
