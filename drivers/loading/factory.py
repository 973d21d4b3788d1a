"""Loads what is enabled, once, and composes the driver of each task from it.

Rules of specification 004: what is enabled and cannot be loaded stops the conductor; an interface that no enabled
hardware type supports is not loaded; the default interface of a type is the explicit one, else the first of the
hardware type's list that is enabled. Each class is made once, whichever hardware types and classic drivers use it.
"""

import logging
from collections.abc import Sequence

from oslo_config import cfg
from oslo_log import log

from ingot.common import errors, interfaces
from ingot.db import models
from ingot.db.conductors import EnabledInterface
from ingot.drivers.interfaces import base, periodic
from ingot.drivers.interfaces.base import BaseInterface
from ingot.drivers.interfaces.deploy import DeployInterface
from ingot.drivers.interfaces.hardware_type import AbstractHardwareType, ClassicDriver
from ingot.drivers.interfaces.results import Answer
from ingot.drivers.interfaces.task import BareDriver, Task
from ingot.drivers.loading import entry_points, priorities

LOG = log.getLogger(__name__)

_TYPES = "enabled_hardware_types"
_CLASSIC = "enabled_drivers"

Links = dict[str, BaseInterface]


class Hardware:
    """Everything that is enabled on this conductor.

    :param source: where entry points come from.
    :raises ConfigurationError: something enabled is missing, broken, of the wrong class, claimed by two packages, or
        unsupported; the message names option, value and choices of all that is.
    """

    def __init__(self, conf: cfg.ConfigOpts, source: entry_points.Source = entry_points.list_installed) -> None:
        self._conf = conf
        self._source = source
        self._refusals = errors.Refusals()
        with self._refusals.collect():
            priorities.check_overrides(conf)
        with self._refusals.collect():
            self._check_names()
        self._singletons: dict[type[BaseInterface], BaseInterface] = {}
        self.hardware_types = self._load_types()
        self._interfaces: dict[str, Links] = {}
        self._enabled: dict[tuple[str, str], Links] = {}
        self._defaults: dict[tuple[str, str], str] = {}
        for interface_type in interfaces.TYPES:
            self._load_interfaces(interface_type)
        self.classic_drivers = self._load_classic()
        self._refusals.finish()
        self.drivers: frozenset[str] = frozenset((*self.hardware_types, *self.classic_drivers))
        """All names that a node's ``driver`` may have here."""
        made = self._singletons.values()
        self.periodics = [method for one in made for method in periodic.list_periodic_methods(one, conf)]

    def list_enabled(self) -> list[EnabledInterface]:
        """Return what the conductor registers: each enabled interface of each enabled hardware type."""
        return [
            EnabledInterface(hardware_type, interface_type, name, name == self._defaults[hardware_type, interface_type])
            for (hardware_type, interface_type), links in self._enabled.items()
            for name in links
        ]

    def list_interfaces(self) -> list[BaseInterface]:
        """Return all interfaces that are enabled, or that drivers without hardware types have."""
        return [*self._singletons.values()]

    def default(self, hardware_type: str, interface_type: str) -> str:
        """Return the interface that a node gets when its record names none."""
        return self._defaults[hardware_type, interface_type]

    def properties(self, driver: str) -> dict[str, str]:
        """Return what a driver's interfaces read from driver_info, of a hardware type the default ones.

        :returns: key -> description.
        :raises NotFound: the driver is not enabled here.
        """
        properties: dict[str, str] = {}
        for interface_type in interfaces.TYPES:
            properties |= self.driver_interface(driver, interface_type).get_properties()
        return properties

    def driver_interface(self, driver: str, interface_type: str) -> BaseInterface:
        """Return the interface of a driver where no node is named: the calculated default of a hardware type.

        :raises NotFound: the driver is not enabled here.
        """
        if driver in self.classic_drivers:
            return self.classic_drivers[driver][interface_type]
        if driver in self.hardware_types:
            return self.interface(interface_type, self.default(driver, interface_type))
        raise errors.NotFound(noun="Driver", ident=driver)

    def interface(self, interface_type: str, name: str) -> BaseInterface:
        """Return an enabled interface.

        :raises InterfaceNotFound: it is not enabled here.
        """
        known = self._interfaces[interface_type]
        if name not in known:
            enabled = ", ".join(known) or "none"
            raise errors.InterfaceNotFound(interface_type=interface_type, name=name, driver="any", enabled=enabled)
        return known[name]

    def compose(self, node: models.Node) -> tuple[BareDriver, dict[str, str]]:
        """Return the driver of a node, and for each interface that it cannot have the reason."""
        if node.driver in self.classic_drivers:
            return _link(node.driver, self.classic_drivers[node.driver]), {}
        if node.driver not in self.hardware_types:
            return BareDriver(node.driver), dict.fromkeys(interfaces.TYPES, self._missing_driver_text(node.driver))
        links: Links = {}
        reasons: dict[str, str] = {}
        for interface_type in interfaces.TYPES:
            enabled = self._enabled[node.driver, interface_type]
            name = getattr(node, interfaces.FIELD[interface_type]) or self._defaults[node.driver, interface_type]
            if name in enabled:
                found = enabled[name]
                links[interface_type] = found.choose(node, enabled) if found.stands_for_others else found
            else:
                about = {"interface_type": interface_type, "name": name, "driver": node.driver}
                reasons[interface_type] = errors.InterfaceNotFound(**about, enabled=", ".join(enabled)).message
        return _link(node.driver, links), reasons

    def drivers_using(self, interface: BaseInterface) -> list[str]:
        """Return the hardware types that may, and the classic drivers that do use an interface."""
        of_type = interface.interface_type
        types = [name for name in self.hardware_types if interface in self._enabled[name, of_type].values()]
        return types + [name for name, links in self.classic_drivers.items() if links[of_type] is interface]

    def has_interface(self, node: models.Node, interface: BaseInterface) -> bool:
        """Return whether a node is composed of an interface.

        :param node: needs its driver and the one field of the interface's type.
        """
        if node.driver in self.classic_drivers:
            return self.classic_drivers[node.driver][interface.interface_type] is interface
        key = (node.driver, interface.interface_type)
        name = getattr(node, interfaces.FIELD[interface.interface_type]) or self._defaults.get(key, "")
        return self._enabled.get(key, {}).get(name) is interface

    def _missing_driver_text(self, name: str) -> str:
        types, classic = (", ".join(names) or "none" for names in (self.hardware_types, self.classic_drivers))
        return f"Driver {name} is not enabled on this conductor ({_TYPES}: {types}; {_CLASSIC}: {classic})."

    # Loading

    def _check_names(self) -> None:
        types, classic = self._conf[_TYPES], self._conf[_CLASSIC]
        if not types and not classic:
            raise errors.ConfigurationError(option=_TYPES, value=[], allowed="Name at least one hardware type.")
        for name in classic:
            if name in types:
                both = f"Classic driver {name} and hardware type {name} of {_TYPES} have one name"
                allowed = f"{both}, and a node's driver could be either. Remove one of the two."
                raise errors.ConfigurationError(option=_CLASSIC, value=name, allowed=allowed)

    def _load_types(self) -> dict[str, AbstractHardwareType]:
        types: dict[str, AbstractHardwareType] = {}
        for one in self._select(entry_points.TYPES, _TYPES):
            with self._refusals.collect():
                cls = entry_points.load(one, _TYPES, AbstractHardwareType)
                types[one.name] = entry_points.construct(cls, _TYPES, one.name)
        return types

    def _select(self, group: str, option: str) -> list[entry_points.EntryPoint]:
        return entry_points.select(self._source, group, option, self._conf[option], self._refusals)

    def _load_classic(self) -> dict[str, Links]:
        drivers: dict[str, Links] = {}
        for entry_point in self._select(entry_points.CLASSIC, _CLASSIC):
            with self._refusals.collect():
                drivers[entry_point.name] = self._link_classic(entry_point)
        return drivers

    def _link_classic(self, entry_point: entry_points.EntryPoint) -> Links:
        name = entry_point.name
        cls = entry_points.load(entry_point, _CLASSIC, ClassicDriver)
        driver: ClassicDriver = entry_points.construct(cls, _CLASSIC, name)
        links: Links = {}
        for interface_type, one in entry_points.construct(driver.implementations, _CLASSIC, name).items():
            # Messages call it by its entry point, if it has one.
            called = next(iter(self._list_installed(interface_type, [one])), one.__name__)
            links[interface_type] = self._singleton(one, _CLASSIC, name, called)
        return links

    def _load_interfaces(self, interface_type: str) -> None:
        option = f"enabled_{interfaces.FIELD[interface_type]}s"
        group = entry_points.interface_group(interface_type)
        supported = {name: of.list_supported(interface_type) for name, of in self.hardware_types.items()}
        paths = {entry_points.class_path(cls) for listed in supported.values() for cls in listed}
        classes: dict[str, type[BaseInterface]] = {}
        links: Links = {}
        # What an operator has not written is nothing to act on.
        place = self._conf.get_location(option)
        is_default = place is not None and place.location is cfg.Locations.opt_default
        for entry_point in self._select(group, option):
            name = entry_point.name
            if entry_point.value not in paths:
                level = logging.DEBUG if is_default else logging.INFO
                LOG.log(level, "%s %s is not loaded: no enabled hardware type supports it", option, name)
                continue
            with self._refusals.collect():
                cls = entry_points.load(entry_point, option, BaseInterface)
                links[name] = self._singleton(cls, option, name, name)
                classes[name] = cls
        self._interfaces[interface_type] = links
        for name, listed in supported.items():
            # In the hardware type's order of preference, whatever the option's.
            enabled = {entry: links[entry] for cls in listed for entry in classes if classes[entry] is cls}
            self._enabled[name, interface_type] = enabled
            for interface in enabled.values():
                with self._refusals.collect():
                    interface.check_enabled(enabled)
            with self._refusals.collect():
                self._defaults[name, interface_type] = self._calculate_default(name, interface_type, enabled)

    def _singleton(self, cls: type[BaseInterface], option: str, value: str, name: str) -> BaseInterface:
        """Return the one instance of an interface's class, made at first use.

        :param option: what requested it, with ``value``.
        """
        if cls not in self._singletons:
            interface = entry_points.construct(lambda: adapt_single_step(cls)(self._conf, name), option, value)
            priorities.check_clean_steps(self._conf, interface)
            self._singletons[cls] = interface
        return self._singletons[cls]

    def _list_installed(self, interface_type: str, classes: Sequence[type[BaseInterface]]) -> list[str]:
        """Return the entry points that interface classes are installed under."""
        paths = {entry_points.class_path(cls) for cls in classes}
        group = self._source(entry_points.interface_group(interface_type))
        return [entry_point.name for entry_point in group if entry_point.value in paths]

    def _calculate_default(self, hardware_type: str, interface_type: str, enabled: Links) -> str:
        """:param enabled: in the hardware type's order of preference."""
        field = interfaces.FIELD[interface_type]
        explicit: str | None = self._conf[f"default_{field}"]
        if explicit is None and enabled:
            return next(iter(enabled))
        if explicit in enabled:
            return str(explicit)
        if explicit is not None:
            choices = f"Enabled and supported by hardware type {hardware_type}: {', '.join(enabled) or 'none'}."
            raise errors.ConfigurationError(option=f"default_{field}", value=explicit, allowed=choices)
        option, supported = f"enabled_{field}s", self.hardware_types[hardware_type].list_supported(interface_type)
        names = ", ".join(sorted(self._list_installed(interface_type, supported)))
        choices = f"Hardware type {hardware_type} needs at least one of: {names}."
        raise errors.ConfigurationError(option=option, value=self._conf[option], allowed=choices)


def _link(name: str, links: Links) -> BareDriver:
    return BareDriver(name, **links, all_interfaces=tuple(links.values()))


class SingleDeployStep:
    """Comes before the class of a deploy interface without steps (specification 001): ``deploy`` becomes a step."""

    @base.deploy_step(priority=100)
    def deploy(self, task: Task) -> Answer:
        """Run what the interface did before there were steps."""
        answer: Answer = super().deploy(task)  # type: ignore[misc]  # of the class this one is put before
        return answer


def adapt_single_step(cls: type[BaseInterface]) -> type[BaseInterface]:
    """Return the class itself, or, for a deploy interface that knows nothing of steps, one that has a single step.

    :raises TypeError: a deploy interface has neither steps nor a method ``deploy``.
    """
    if not issubclass(cls, DeployInterface) or cls.get_deploy_steps is not BaseInterface.get_deploy_steps:
        return cls
    if any("deploy" in getattr(getattr(cls, name), "ingot_steps", {}) for name in dir(cls)):
        return cls
    if not callable(getattr(cls, "deploy", None)):
        raise TypeError(f"{cls.__qualname__} has neither deploy steps nor a method deploy")
    LOG.warning(
        "Deploy interface %s declares no deploy steps; its deploy method runs as one step. This is deprecated: declare "
        "steps with deploy_step, and let running deployments end before an upgrade that removes it.",
        cls.__qualname__,
    )
    return type(cls.__name__, (SingleDeployStep, cls), {"__module__": cls.__module__})
