"""Arrays built by the machine's controller over Redfish: at once where it can, else at a reboot within the step."""

from collections.abc import Mapping
from functools import partial

from ingot.common import errors
from ingot.common.json_types import Json
from ingot.drivers.interfaces import base, results
from ingot.drivers.interfaces.raid import RAIDInterface, record_arrays
from ingot.drivers.interfaces.task import Task
from ingot.drivers.redfish import connection, reboot, tasks, volumes
from ingot.drivers.redfish.base import RedfishInterface
from ingot.drivers.redfish.http import Response

_FACTOR = 3  # times read_timeout: controllers have many drives
_OPTION = "raid_config_timeout"

_CHOICES: base.ArgsInfo = {
    "create_root_volume": {"description": "Whether the root volume is built. Default: true.", "required": False},
    "create_nonroot_volumes": {"description": "Whether the other arrays are built. Default: true.", "required": False},
    "delete_existing": {
        "description": "Whether arrays that exist are deleted first. Default: false for create_configuration, true for "
        "apply_configuration.",
        "required": False,
    },
}
_APPLY: base.ArgsInfo = {
    "raid_config": {
        "description": "Object with logical_disks, a list of objects with raid_level, size_gb and more.",
        "required": True,
    },
    **_CHOICES,
}


def _delete(machine: connection.Machine, path: str, apply_time: str | None) -> Response:
    return machine.delete(path, {"@Redfish.OperationApplyTime": apply_time} if apply_time else None)


def _is_gone(machine: connection.Machine, path: str) -> bool:
    return all(path != one["@odata.id"] for storage in volumes.read_storages(machine) for one in storage.volumes)


def _is_there(machine: connection.Machine, planned: Json) -> bool:
    return volumes.find_created(volumes.read_storages(machine), planned) is not None


def _create(machine: connection.Machine, planned: Json) -> Response:
    return machine.post(planned["path"], planned["data"])


class RedfishRAID(RedfishInterface, RAIDInterface):
    """Steps need no ramdisk. What a controller does at the next start only is made by a reboot within the step."""

    def _check_disk(self, where: str, disk: object) -> None:
        super()._check_disk(where, disk)
        if not isinstance(disk, Mapping):
            return
        if disk["raid_level"] not in volumes.LEVELS:
            allowed = f"Controllers with Redfish have: {', '.join(volumes.LEVELS)}."
            raise errors.Invalid(field=f"{where}.raid_level", value=disk["raid_level"], allowed=allowed)
        if disk.get("controller") == "software":
            allowed = "The name of a controller: raid_interface agent builds software RAID."
            raise errors.Invalid(field=f"{where}.controller", value="software", allowed=allowed)

    @base.service_step(argsinfo=_APPLY, requires_ramdisk=False, idempotent=True)
    @base.deploy_step(priority=0, argsinfo=_APPLY, idempotent=True)
    def apply_configuration(
        self, task: Task, raid_config: Json, create_root_volume: bool = True, create_nonroot_volumes: bool = True,
        delete_existing: bool = True,
    ) -> results.Result:  # fmt: skip
        """Build the arrays of an argument."""
        return self._configure(task, raid_config, (create_root_volume, create_nonroot_volumes), delete_existing)

    @base.service_step(argsinfo=_CHOICES, requires_ramdisk=False, idempotent=True)
    @base.clean_step(priority=0, argsinfo=_CHOICES, requires_ramdisk=False)
    def create_configuration(
        self, task: Task, create_root_volume: bool = True, create_nonroot_volumes: bool = True,
        delete_existing: bool = False,
    ) -> results.Result:  # fmt: skip
        """Build the arrays of the node's ``target_raid_config``."""
        config = task.node.target_raid_config
        return self._configure(task, config, (create_root_volume, create_nonroot_volumes), delete_existing)

    @base.service_step(requires_ramdisk=False, idempotent=True)
    @base.clean_step(priority=0, requires_ramdisk=False)
    def delete_configuration(self, task: Task) -> results.Result:
        """Delete all arrays."""
        return self._run(task, [], deletes=True)

    def _configure(self, task: Task, config: Json, kinds: tuple[bool, bool], deletes: bool) -> results.Result:
        self.validate_raid_config(config)
        root, others = kinds
        disks = [one for one in config["logical_disks"] if (root if one.get("is_root_volume") else others)]
        return self._run(task, disks, deletes)

    def _run(self, task: Task, disks: list[Json], deletes: bool) -> results.Result:
        """Delete, then build: planned before anything is deleted, so that what cannot be built destroys nothing."""
        memory = task.memory
        reboot.note_power(task, memory)
        if "create" not in memory:
            storages = connection.call(task, volumes.read_storages, _FACTOR)
            doomed = [(one["@odata.id"], storage.apply_time) for storage in storages for one in storage.volumes]
            memory["create"] = list(volumes.plan(storages, disks, ignores_volumes=deletes))
            memory["delete"] = [{"path": path, "time": at, "job": {}} for path, at in doomed] if deletes else []
        deletions = [
            tasks.Job(f"deletion of {one['path']}", partial(_delete, path=one["path"], apply_time=one["time"]),
                      one["job"], partial(_is_gone, path=one["path"]))
            for one in memory["delete"]
        ]  # fmt: skip
        creations = [
            tasks.Job(f"array in {one['path']}", partial(_create, planned=one), one["job"],
                      partial(_is_there, planned=one))
            for one in memory["create"]
        ]  # fmt: skip
        return results.run_phases(
            task,
            *self._list_phases(deletions),
            *self._list_phases(creations),
            partial(self._record, planned=memory["create"], deletes=deletes),
            partial(reboot.restore_power, memory=memory),
        )

    def _list_phases(self, jobs: list[tasks.Job]) -> list[results.Phase]:
        """Return the phases of work that a controller does at once, or all of it at one reboot."""
        limit = self.conf.redfish.raid_config_timeout
        phases: list[results.Phase] = []
        for job in jobs:
            phases += [job.note, job.start, partial(job.follow, limit=limit, option=_OPTION, until_boot=True)]
        phases.append(partial(_reboot_if_needed, jobs=jobs))
        return phases + [partial(job.follow, limit=limit, option=_OPTION) for job in jobs]

    def _record(self, task: Task, planned: list[Json], deletes: bool) -> None:
        """Write down the arrays that the machine has now.

        :raises StepFailed: one that was created is not there, or one that was deleted is.
        """
        storages = connection.call(task, volumes.read_storages, _FACTOR)
        created = {}
        for one in planned:
            found = volumes.find_created(storages, one)
            if found is None:
                raise errors.StepFailed(f"the controller shows no array as requested: {one['disk']}")
            created[found[1]["@odata.id"]] = one["disk"]
        there = [(storage, volume) for storage in storages for volume in storage.volumes]
        left = [volume["@odata.id"] for _, volume in there if volume["@odata.id"] not in created]
        if deletes and left:
            raise errors.StepFailed(f"the controller still has the arrays {', '.join(left)}")
        known = created if planned else {}
        arrays = [volumes.describe(storage, volume, known.get(volume["@odata.id"], {})) for storage, volume in there]
        record_arrays(task, {"logical_disks": arrays} if arrays else {})


def _reboot_if_needed(task: Task, jobs: list[tasks.Job]) -> results.Result:
    """Restart the machine if there is work that waits for that."""
    return reboot.reboot(task) if any(job.kept.get("waits") for job in jobs) else results.DONE
