"""The hooks for disks: which one a system goes to."""

from oslo_log import log

from ingot.common import errors
from ingot.common.json_types import Json
from ingot.conductor.inspection import disk_hints, facts
from ingot.conductor.inspection.draft import Draft
from ingot.conductor.inspection.hooks.base import InspectionHook

LOG = log.getLogger(__name__)

_GIB = 1024**3
_ROOT = "root_device"


class RootDevice(InspectionHook):
    """The hook ``root-device``: sets the property local_gb to the size of the disk that hints lead to, in GiB.

    Without hints that is the disk which the agent would take; 0 where there is none. The disk is noted as
    ``plugin_data`` ``root_disk``.
    """

    def run(self, draft: Draft) -> None:
        hints = draft.node["properties"].get(_ROOT)
        if hints:
            draft.plugin_data["root_disk"] = self._find_disk(draft, hints)
        disk = draft.plugin_data.get("root_disk")
        size = disk.get("size") if isinstance(disk, dict) else None
        found = size // _GIB if isinstance(size, int) and size > 0 else 0
        if found and self.conf.inspector.disk_partitioning_spacing:
            found -= 1
        draft.plugin_data["local_gb"] = draft.node["properties"]["local_gb"] = found

    @staticmethod
    def _find_disk(draft: Draft, hints: object) -> Json:
        disks = facts.read_objects(draft.inventory.get("disks"))
        skipped = draft.node["properties"].get("skip_block_devices") or []
        for number, skip in enumerate(skipped if isinstance(skipped, list) else [skipped]):
            found = disk_hints.find(disks, skip, f"properties.skip_block_devices[{number}]")
            left_out = set(map(id, found))  # a machine may send any number, and comparing each with each takes hours
            disks = [disk for disk in disks if id(disk) not in left_out]
        fitting = disk_hints.find(disks, hints, f"properties.{_ROOT}")
        if not fitting:
            raise errors.StepFailed(f"the machine has no disk that properties.{_ROOT} {hints} fits")
        return fitting[0]


class RaidDevice(InspectionHook):
    """The hook ``raid-device``: takes the one disk that the inspection before did not find for the root device.

    That is for arrays of which a BMC does not say what they become: inspect before and after they are built.
    """

    def run(self, draft: Draft) -> None:
        before, properties = draft.serials_before, draft.node["properties"]
        if _ROOT in properties or before is None:
            return
        known = set(before)
        new = [serial for serial in facts.list_serials(draft.inventory) if serial not in known]
        if len(new) == 1:
            properties[_ROOT] = {"serial": new[0]}
            return
        LOG.warning(
            "Node %s: the hook raid-device finds no root device: %d disks are new since the inspection before",
            *(draft.node["uuid"], len(new)),
        )
