"""Finds and makes the inspection hooks that are enabled."""

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
                found[entry_point.name] = _build(entry_point, conf)
        for number, name in enumerate(names):
            lacking = set(found[name].dependencies) - set(names[:number]) if name in found else ()
            if lacking:
                allowed = f"{name} needs {', '.join(sorted(lacking))} before it."
                refusals.add(option=_OPTION, value=",".join(names), allowed=allowed)
        refusals.finish()
        self._hooks = [found[name] for name in dict.fromkeys(names)]

    def __iter__(self) -> Iterator[InspectionHook]:
        return iter(self._hooks)


def _build(entry_point: entry_points.EntryPoint, conf: cfg.ConfigOpts) -> InspectionHook:
    """
    :raises ConfigurationError: it is no hook, or refuses an option.
    """
    hook: type[InspectionHook] = entry_points.load(entry_point, _OPTION, InspectionHook)
    return entry_points.construct(lambda: hook(conf), _OPTION, entry_point.name)
