"""Finds and makes the inspection hooks that are enabled."""

import functools
from collections.abc import Iterator

from oslo_config import cfg

from ingot.common import errors
from ingot.conductor.inspection.hooks.base import InspectionHook
from ingot.drivers.loading import entry_points

GROUP = "ingot.inspection.hooks"
"""The entry points of hooks."""

_OPTION = "[inspector] hooks"


class Hooks:
    """The hooks that ``[inspector] hooks`` names, in its order.

    :param source: where entry points come from.
    :raises ConfigurationError: one is missing, broken, or named before one that it needs; the message names all.
    """

    def __init__(self, conf: cfg.ConfigOpts, source: entry_points.Source = entry_points.list_installed) -> None:
        names: list[str] = conf.inspector.hooks
        refusals = errors.Refusals()
        found: dict[str, InspectionHook] = {}
        for entry_point in entry_points.select(source, GROUP, _OPTION, names, refusals):
            with refusals.collect():
                hook = entry_points.load(entry_point, _OPTION, InspectionHook)
                make = functools.partial(hook, conf)
                found[entry_point.name] = entry_points.construct(make, _OPTION, entry_point.name)
        for number, name in enumerate(names):
            lacking = set(found[name].dependencies) - set(names[:number]) if name in found else ()
            if lacking:
                allowed = f"{name} needs {', '.join(sorted(lacking))} before it."
                refusals.add(option=_OPTION, value=",".join(names), allowed=allowed)
        refusals.finish()
        self._hooks = [found[name] for name in dict.fromkeys(names)]

    def __iter__(self) -> Iterator[InspectionHook]:
        return iter(self._hooks)
