"""Loads the hardware types and interfaces that are enabled, once, and composes the driver of each task from them.

Rules of specification 004: what is enabled and cannot be loaded stops the conductor; an interface that no enabled type
supports is not loaded; the default of a kind is the explicit one, else the first of the type's list that is enabled.
"""

import importlib.metadata
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

from oslo_config import cfg
from oslo_log import log
from stevedore import named

from ingot.common import errors, interfaces
from ingot.db import records
from ingot.db.conductors import EnabledInterface
from ingot.drivers import driver, single_step
from ingot.drivers.hardware_type import AbstractHardwareType
from ingot.drivers.interfaces.base import BaseInterface

LOG = log.getLogger(__name__)

EntryPoint = importlib.metadata.EntryPoint
TYPES = "ingot.hardware.types"


def installed(group: str) -> Iterable[EntryPoint]:
    """The entry points of a group that any installed distribution has; none of them is loaded by looking."""
    found: list[EntryPoint] = named.NamedExtensionManager(
        group, names=[], warn_on_missing_entrypoint=False
    ).list_entry_points()
    return found


class Hardware:
    """Everything that is enabled on this conductor.

    :param entry_points: returns the entry points of a group.
    :raises ConfigurationError: something enabled is missing, broken, of the wrong class, claimed by two packages, or
        unsupported; the message names option, value and choices.
    """

    def __init__(self, conf: cfg.ConfigOpts, entry_points: Callable[[str], Iterable[EntryPoint]] = installed) -> None:
        self._conf = conf
        self._entry_points = entry_points
        self.hardware_types: dict[str, AbstractHardwareType] = self._load_types()
        self._interfaces: dict[str, dict[str, BaseInterface]] = {}
        self._enabled: dict[tuple[str, str], dict[str, BaseInterface]] = {}
        self._defaults: dict[tuple[str, str], str] = {}
        for kind in interfaces.KINDS:
            self._load_kind(kind)

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

    def properties(self, hardware_type: str) -> dict[str, str]:
        """What the default interfaces of a hardware type read from driver_info: key -> description.

        :raises NotFound: the hardware type is not enabled here.
        """
        if hardware_type not in self.hardware_types:
            raise errors.NotFound(noun="Driver", ident=hardware_type)
        found: dict[str, str] = {}
        for kind in interfaces.KINDS:
            found |= self.interface(kind, self.default(hardware_type, kind)).get_properties()
        return found

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
        if node.driver not in self.hardware_types:
            reason = (
                f"Hardware type {node.driver} is not enabled on this conductor (enabled_hardware_types: "
                f"{', '.join(self.hardware_types)})."
            )
            return driver.BareDriver(node.driver), dict.fromkeys(interfaces.KINDS, reason)
        links: dict[str, BaseInterface] = {}
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

    # Loading

    def _load_types(self) -> dict[str, AbstractHardwareType]:
        option = "enabled_hardware_types"
        found: dict[str, AbstractHardwareType] = {}
        for entry_point in self._named(TYPES, option, self._conf[option]):
            loaded = _loaded(entry_point, option, AbstractHardwareType)
            found[entry_point.name] = _constructed(loaded, entry_point, option)
        if not found:
            raise errors.ConfigurationError(option=option, value=[], allowed="Name at least one hardware type.")
        return found

    def _load_kind(self, kind: str) -> None:
        option = f"enabled_{interfaces.field(kind)}s"
        wanted = {_target(cls) for hardware in self.hardware_types.values() for cls in hardware.supported(kind)}
        loaded: dict[str, tuple[type[BaseInterface], BaseInterface]] = {}
        for entry_point in self._named(f"ingot.hardware.interfaces.{kind}", option, self._conf[option]):
            if entry_point.value in wanted:
                cls = _loaded(entry_point, option, BaseInterface)
                made = _constructed(single_step.adapted(cls), entry_point, option, self._conf, entry_point.name)
                self._check_clean_steps(made)
                loaded[entry_point.name] = (cls, made)
            else:
                LOG.info("%s %s is not loaded: no enabled hardware type supports it", option, entry_point.name)
        self._interfaces[kind] = {name: made for name, (cls, made) in loaded.items()}
        for name, hardware in self.hardware_types.items():
            by_class = {cls: (label, made) for label, (cls, made) in loaded.items()}
            enabled = dict(by_class[cls] for cls in hardware.supported(kind) if cls in by_class)
            self._enabled[name, kind] = enabled
            self._defaults[name, kind] = self._calculated_default(name, kind, enabled)

    def _calculated_default(self, hardware_type: str, kind: str, enabled: dict[str, BaseInterface]) -> str:
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
        supported = {_target(cls) for cls in self.hardware_types[hardware_type].supported(kind)}
        group = self._entry_points(f"ingot.hardware.interfaces.{kind}")
        names = sorted(entry_point.name for entry_point in group if entry_point.value in supported)
        raise errors.ConfigurationError(
            option=f"enabled_{interfaces.field(kind)}s",
            value=self._conf[f"enabled_{interfaces.field(kind)}s"],
            allowed=f"Hardware type {hardware_type} needs at least one of: {', '.join(names)}.",
        )

    def _named(self, group: str, option: str, names: list[str]) -> list[EntryPoint]:
        known: dict[str, EntryPoint] = {}
        for entry_point in self._entry_points(group):
            other = known.setdefault(entry_point.name, entry_point)
            if other.value != entry_point.value and entry_point.name in names:
                raise errors.ConfigurationError(
                    option=option,
                    value=entry_point.name,
                    allowed=f"Two installed packages use this name: {other.value} and {entry_point.value}. Remove one.",
                )
        for name in names:
            if name not in known:
                raise errors.ConfigurationError(
                    option=option, value=name, allowed=f"Installed are: {', '.join(sorted(known))}."
                )
        return [known[name] for name in dict.fromkeys(names)]

    def _check_clean_steps(self, interface: BaseInterface) -> None:
        """Specification 002: two steps of one interface with one priority have no order."""
        overrides = self._conf.conductor.clean_step_priority_override
        steps = interface.declared_steps("clean")
        priorities = {one["step"]: overrides.get(f"{interface.kind}.{one['step']}", one["priority"]) for one in steps}
        for priority, count in Counter(priorities.values()).items():
            if priority and count > 1:
                clashing = sorted(step for step, value in priorities.items() if value == priority)
                raise errors.ConfigurationError(
                    option="[conductor] clean_step_priority_override",
                    value=overrides,
                    allowed=f"Clean steps {', '.join(clashing)} of {interface.kind} interface {interface.name} have "
                    f"the same priority {priority}. Give them different ones, or 0.",
                )


def _target(cls: type) -> str:
    """How an entry point names a class."""
    return f"{cls.__module__}:{cls.__qualname__}"


def _loaded(entry_point: EntryPoint, option: str, base: type) -> type[Any]:
    try:
        loaded = entry_point.load()
    except Exception as exc:  # any code runs at an import
        LOG.exception("Cannot load %s", entry_point.value)
        raise errors.ConfigurationError(
            option=option,
            value=entry_point.name,
            allowed=f"{entry_point.value} cannot be loaded: {type(exc).__name__}: {exc}.",
        ) from exc
    if not (isinstance(loaded, type) and issubclass(loaded, base)):
        raise errors.ConfigurationError(
            option=option,
            value=entry_point.name,
            allowed=f"{entry_point.value} is not a subclass of {base.__name__}.",
        )
    return loaded


def _constructed(cls: type[Any], entry_point: EntryPoint, option: str, *arguments: Any) -> Any:
    try:
        return cls(*arguments)
    except Exception as exc:  # a plug-in's own code
        LOG.exception("Cannot set up %s", entry_point.value)
        raise errors.ConfigurationError(
            option=option,
            value=entry_point.name,
            allowed=f"{entry_point.value} cannot be set up: {type(exc).__name__}: {exc}.",
        ) from exc
