"""Finds and loads what installed packages offer as entry points; every failure names the option that requested it."""

import importlib.metadata
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from oslo_log import log
from stevedore import named

from ingot.common import errors, interfaces

LOG = log.getLogger(__name__)

EntryPoint = importlib.metadata.EntryPoint
Source = Callable[[str], Iterable[EntryPoint]]
"""Returns the entry points of a group."""

Made = TypeVar("Made")

TYPES = "ingot.hardware.types"
CLASSIC = "ingot.drivers"


def interface_group(interface_type: str) -> str:
    """Return the group of the interfaces of a type."""
    return f"ingot.hardware.interfaces.{interface_type}"


def list_installed(group: str) -> Iterable[EntryPoint]:
    """Return the entry points of a group that any installed distribution has, without loading them."""
    listed: list[EntryPoint] = named.NamedExtensionManager(
        group, names=[], warn_on_missing_entrypoint=False
    ).list_entry_points()
    return listed


def class_path(cls: type) -> str:
    """Return how an entry point names a class."""
    return f"{cls.__module__}:{cls.__qualname__}"


def select(source: Source, group: str, option: str, names: list[str], refusals: errors.Refusals) -> list[EntryPoint]:
    """Return the entry points that an option names, in its order, without those that it cannot name.

    :param refusals: gets those that are not installed, and names that two packages claim.
    """
    known: dict[str, EntryPoint] = {}
    for entry_point in source(group):
        other = known.setdefault(entry_point.name, entry_point)
        if other.value != entry_point.value and entry_point.name in names:
            both = f"Two installed packages use this name: {other.value} and {entry_point.value}. Remove one."
            refusals.add(option=option, value=entry_point.name, allowed=both)
    if missing := [name for name in dict.fromkeys(names) if name not in known]:
        choices = f"Installed are: {', '.join(sorted(known)) or 'none'}.{''.join(map(interfaces.advise, missing))}"
        refusals.add(option=option, value=", ".join(missing), allowed=choices)
    return [known[name] for name in dict.fromkeys(names) if name in known]


def load(entry_point: EntryPoint, option: str, base: type) -> type[Any]:
    """Return the class that an entry point stands for.

    :raises ConfigurationError: it cannot be imported, or is no subclass of ``base``.
    """
    try:
        loaded = entry_point.load()
    except Exception as exc:  # any code runs at an import
        LOG.exception("Cannot load %s", entry_point.value)
        reason = f"{entry_point.value} cannot be loaded: {type(exc).__name__}: {exc}."
        raise errors.ConfigurationError(option=option, value=entry_point.name, allowed=reason) from exc
    if not (isinstance(loaded, type) and issubclass(loaded, base)):
        reason = f"{entry_point.value} is not a subclass of {base.__name__}."
        raise errors.ConfigurationError(option=option, value=entry_point.name, allowed=reason)
    return loaded


def construct(make: Callable[[], Made], option: str, name: str) -> Made:
    """Return what a plug-in's class (or function) makes.

    :raises ConfigurationError: it raised something; the message is the plug-in's own.
    """
    try:
        return make()
    except errors.ConfigurationError:
        raise  # it says everything already
    except Exception as exc:  # a plug-in's own code
        LOG.exception("Cannot set up %s of %s", name, option)
        reason = f"It cannot be set up: {type(exc).__name__}: {exc}."
        raise errors.ConfigurationError(option=option, value=name, allowed=reason) from exc
