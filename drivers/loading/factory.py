"""Loads what is enabled, once, and composes the driver of each task from it.

Rules of specification 004: what is enabled and cannot be loaded stops the conductor; an interface that no enabled
hardware type supports is not loaded; the default interface of a type is the explicit one, else the first of the
hardware type's list that is enabled. Each class is made once, whichever hardware types and classic drivers use it.
"""

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
        unsupported; the message names option, value and choices.
    """

    def __init__(self, conf: cfg.ConfigOpts, source: entry_points.Source = entry_points.list_installed) -> None:
        self._conf = conf
        self._source = source
        priorities.check_overrides(conf)
        self._check_names()
        self._singletons: dict[type[BaseInterface], BaseInterface] = {}
        self.hardware_types = self._load_types()
        self._interfaces: dict[str, Links] = {}
        self._enabled: dict[tuple[str, str], Links] = {}
        self._defaults: dict[tuple[str, str], str] = {}
        for interface_type in interfaces.TYPES:
            self._load_interfaces(interface_type)
        self.classic_drivers = self._load_classic()
        self.drivers: frozenset[str] = frozenset((*self.hardware_types, *self.classic_drivers))
        """All names that a node's ``driver`` may have here."""
        self.periodics = [
            method
            for interface in self._singletons.values()
            for method in periodic.list_periodic_methods(interface, conf)
        ]

    def list_enabled(self) -> list[EnabledInterface]:
        """Return what the conductor registers: each enabled interface of each enabled hardware type."""
        return [
            EnabledInterface(hardware_type, interface_type, name, name == self._defaults[hardware_type, interface_type])
            for (hardware_type, interface_type), links in self._enabled.items()
            for name in links
        ]

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
        try:
            return self._interfaces[interface_type][name]
        except KeyError:
            enabled = ", ".join(self._interfaces[interface_type]) or "none"
            raise errors.InterfaceNotFound(
                interface_type=interface_type, name=name, driver="any", enabled=enabled
            ) from None

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
                links[interface_type] = enabled[name]
            else:
                missing = errors.InterfaceNotFound(
                    interface_type=interface_type, name=name, driver=node.driver, enabled=", ".join(enabled)
                )
                reasons[interface_type] = missing.message
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
                raise errors.ConfigurationError(
                    option=_CLASSIC,
                    value=name,
                    allowed=f"Classic driver {name} and hardware type {name} of {_TYPES} have one name, and a node's "
                    "driver could be either. Remove one of the two.",
                )

    def _load_types(self) -> dict[str, AbstractHardwareType]:
        types: dict[str, AbstractHardwareType] = {}
        for entry_point in entry_points.select(self._source, entry_points.TYPES, _TYPES, self._conf[_TYPES]):
            cls = entry_points.load(entry_point, _TYPES, AbstractHardwareType)
            types[entry_point.name] = entry_points.construct(cls, _TYPES, entry_point.name)
        return types

    def _load_classic(self) -> dict[str, Links]:
        drivers: dict[str, Links] = {}
        for entry_point in entry_points.select(self._source, entry_points.CLASSIC, _CLASSIC, self._conf[_CLASSIC]):
            name = entry_point.name
            cls = entry_points.load(entry_point, _CLASSIC, ClassicDriver)
            driver: ClassicDriver = entry_points.construct(cls, _CLASSIC, name)
            classes = entry_points.construct(driver.implementations, _CLASSIC, name)
            drivers[name] = {
                interface_type: self._singleton(one, _CLASSIC, name, self._entry_point_name(interface_type, one))
                for interface_type, one in classes.items()
            }
        return drivers

    def _load_interfaces(self, interface_type: str) -> None:
        option = f"enabled_{interfaces.FIELD[interface_type]}s"
        group = entry_points.interface_group(interface_type)
        supported = {
            entry_points.class_path(cls)
            for hardware_type in self.hardware_types.values()
            for cls in hardware_type.list_supported(interface_type)
        }
        classes: dict[str, type[BaseInterface]] = {}
        for entry_point in entry_points.select(self._source, group, option, self._conf[option]):
            if entry_point.value in supported:
                classes[entry_point.name] = entry_points.load(entry_point, option, BaseInterface)
            else:
                LOG.info("%s %s is not loaded: no enabled hardware type supports it", option, entry_point.name)
        links = {name: self._singleton(cls, option, name, name) for name, cls in classes.items()}
        self._interfaces[interface_type] = links
        for name, hardware_type in self.hardware_types.items():
            # In the hardware type's order of preference, whatever the option's.
            enabled = {
                entry: links[entry]
                for cls in hardware_type.list_supported(interface_type)
                for entry in classes
                if classes[entry] is cls
            }
            self._enabled[name, interface_type] = enabled
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

    def _entry_point_name(self, interface_type: str, cls: type[BaseInterface]) -> str:
        """Return what messages call an interface of a classic driver: its entry point, if it has one."""
        group = self._source(entry_points.interface_group(interface_type))
        return next((one.name for one in group if one.value == entry_points.class_path(cls)), cls.__name__)

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
        supported = {
            entry_points.class_path(cls) for cls in self.hardware_types[hardware_type].list_supported(interface_type)
        }
        group = self._source(entry_points.interface_group(interface_type))
        names = sorted(entry_point.name for entry_point in group if entry_point.value in supported)
        raise errors.ConfigurationError(
            option=f"enabled_{field}s",
            value=self._conf[f"enabled_{field}s"],
            allowed=f"Hardware type {hardware_type} needs at least one of: {', '.join(names)}.",
        )


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
    if not issubclass(cls, DeployInterface) or _has_steps(cls):
        return cls
    if not callable(getattr(cls, "deploy", None)):
        raise TypeError(f"{cls.__qualname__} has neither deploy steps nor a method deploy")
    LOG.warning(
        "Deploy interface %s declares no deploy steps; its deploy method runs as one step. This is deprecated: declare "
        "steps with deploy_step, and let running deployments end before an upgrade that removes it.",
        cls.__qualname__,
    )
    return type(cls.__name__, (SingleDeployStep, cls), {"__module__": cls.__module__})


def _has_steps(cls: type[BaseInterface]) -> bool:
    if cls.get_deploy_steps is not BaseInterface.get_deploy_steps:
        return True
    return any("deploy" in getattr(getattr(cls, name), "ingot_steps", {}) for name in dir(cls))
