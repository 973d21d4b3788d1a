"""The hook for what the agent's collector extra-hardware finds, of each part of a machine."""

import re
from typing import TypeGuard

from oslo_log import log

from ingot.common.json_types import Json
from ingot.conductor.inspection.draft import Draft
from ingot.conductor.inspection.hooks.base import InspectionHook

LOG = log.getLogger(__name__)

_SIZE = 4
_NUMBER = re.compile(r"\s*[+-]?[0-9]{1,19}\s*")
_LARGEST = 2**63 - 1  # what a JSON document is written with


class ExtraHardware(InspectionHook):
    """The hook ``extra-hardware``: makes of the records in ``plugin_data`` ``data`` the objects in ``extra``.

    A record is a list of part, element, name and value. Records that are none are left out; with ``[inspector]
    extra_hardware_strict`` none are read then.
    """

    def run(self, draft: Draft) -> None:
        data, is_strict = draft.plugin_data.get("data"), self.conf.inspector.extra_hardware_strict
        if data is None:
            return
        records: list[object] = data if isinstance(data, list) else [None]
        good = [one for one in records if _is_record(one)]
        left_out = len(records) - len(good)
        if left_out:
            LOG.warning("Node %s: %d records of extra-hardware are none", draft.node["uuid"], left_out)
        if good and not (left_out and is_strict):
            draft.plugin_data["extra"] = _nest(good)
        if good or is_strict:
            del draft.plugin_data["data"]


def _is_record(one: object) -> TypeGuard[list[object]]:
    return isinstance(one, list) and len(one) >= _SIZE and all(isinstance(name, str) for name in one[:3])


def _nest(records: list[list[object]]) -> Json:
    found: Json = {}
    for part, element, name, value, *_rest in records:
        found.setdefault(str(part), {}).setdefault(str(element), {})[str(name)] = _read_value(value)
    return found


def _read_value(value: object) -> object:
    """Return a number for a text that is one, as long as it fits into JSON."""
    if isinstance(value, str) and _NUMBER.fullmatch(value):
        number = int(value)
        return number if abs(number) <= _LARGEST else value
    return value
