"""Versions of the machine's firmware over Redfish, and their update: the BMC fetches the image and installs it."""

import time
from functools import partial

from oslo_log import log

from ingot.common import errors
from ingot.common.json_types import Json
from ingot.common.waits import Wait
from ingot.drivers.interfaces import base, results
from ingot.drivers.interfaces.firmware import FirmwareInterface
from ingot.drivers.interfaces.task import Task
from ingot.drivers.redfish import connection, fields, reboot, tasks, virtual_media
from ingot.drivers.redfish.base import RedfishInterface
from ingot.drivers.redfish.http import Response

LOG = log.getLogger(__name__)

_UPDATES: base.ArgsInfo = {
    "settings": {
        "description": "List of objects with component (bios, bmc or nic:NAME) and url; wait, the seconds before the "
        "reboot, and source, http, may be given.",
        "required": True,
    }
}
_KEYS = frozenset(("component", "url", "wait", "source"))
_UPDATE = "#UpdateService.SimpleUpdate"
_NIC = "nic:"
_LONGEST = 255  # characters of a component's name
_FACTOR = 3  # times read_timeout: a machine has several network adapters
_FAREWELL = 20.0  # seconds that a BMC may go on answering after an update for which it restarts
_OPTION = "firmware_update_overall_timeout"


def _list_members(machine: connection.Machine, document: Json, part: str) -> list[Json]:
    place = fields.link(document, part)
    return machine.read_members(place) if place else []


def _read_components(machine: connection.Machine) -> list[Json]:
    """Return the components of the machine as columns of ``FirmwareComponent``; without those of no known version."""
    system, manager = machine.system.json, machine.manager.json
    found = [
        {"component": "bios", "current_version": fields.text(system, "BiosVersion")},
        {
            "component": "bmc",
            "current_version": fields.text(manager, "FirmwareVersion"),
            "model": fields.text(manager, "Model"),
        },
    ]
    for path in fields.links(fields.part(system, "Links"), "Chassis"):
        for adapter in _list_members(machine, machine.read_optional(path), "NetworkAdapters"):
            versions = [fields.text(one, "FirmwarePackageVersion") for one in fields.parts(adapter, "Controllers")]
            found.append(
                {
                    "component": f"{_NIC}{fields.text(adapter, 'Id') or ''}"[:_LONGEST],
                    "current_version": next(filter(None, versions), None),
                    "vendor": fields.text(adapter, "Manufacturer"),
                    "model": fields.text(adapter, "Model"),
                    "serial_number": fields.text(adapter, "SerialNumber"),
                }
            )
    return [{"initial_version": one["current_version"], **one} for one in found if one["current_version"]]


def _parse(settings: object, known: list[str]) -> list[Json]:
    """Return the updates of the step's argument.

    :raises Invalid: an update that cannot be made; it names the entry and what is allowed.
    """
    if not isinstance(settings, list) or not settings:
        raise errors.Invalid(field="settings", value=settings, allowed="A list of at least one object.")
    for number, one in enumerate(settings):
        where = f"settings[{number}]"
        if not isinstance(one, dict) or set(one) - _KEYS:
            raise errors.Invalid(field=where, value=one, allowed=f"An object with {', '.join(sorted(_KEYS))}; the BMC "
                                 "fetches the image itself.")  # fmt: skip
        if one.get("component") not in known:
            raise errors.Invalid(
                field=f"{where}.component", value=one.get("component"), allowed=f"This machine has: {', '.join(known)}."
            )
        if not isinstance(one.get("url"), str):
            raise errors.Invalid(field=f"{where}.url", value=one.get("url"), allowed="A URL of http or https.")
        virtual_media.check_url(one["url"])
        if one.get("source", "http") != "http":
            raise errors.Invalid(field=f"{where}.source", value=one["source"], allowed="http.")
        wait = one.get("wait", 0)
        if isinstance(wait, bool) or not isinstance(wait, int) or wait < 0:
            raise errors.Invalid(field=f"{where}.wait", value=wait, allowed="Seconds, an integer of at least 0.")
    return [dict(one) for one in settings]


def _send(machine: connection.Machine, component: str, url: str) -> Response:
    """Have the BMC install an image.

    :raises HardwareError: it cannot.
    """
    service = machine.read_linked(machine.service.json, "UpdateService")
    action = fields.part(service, "Actions", _UPDATE)
    data: Json = {"ImageURI": url}
    protocol = url.partition(":")[0].upper()
    if protocol in (fields.texts(action, "TransferProtocol@Redfish.AllowableValues") or (protocol,)):
        data["TransferProtocol"] = protocol
    # One that has a single machine finds the component by the image, and often refuses to be given it.
    if len(machine.service.get_system_collection().members_identities) > 1:
        data["Targets"] = [_find_target(machine, service, component)]
    return machine.act(fields.link(service) or "UpdateService", service, _UPDATE, data)


def _find_target(machine: connection.Machine, service: Json, component: str) -> str:
    """Return the path of a component among the firmware of all machines of the BMC; else that of what it is part of."""
    chassis = fields.links(fields.part(machine.system.json, "Links"), "Chassis")
    parts = {"bios": [machine.system_path], "bmc": [str(machine.manager.path)]}.get(component, chassis)
    for one in _list_members(machine, service, "FirmwareInventory"):
        path = fields.link(one)
        if path and set(parts).intersection(fields.links(one, "RelatedItem")):
            return path
    return parts[0]


def _find_version(task: Task, component: str) -> str | None:
    found = connection.call(task, _read_components, _FACTOR)
    return next((str(one["current_version"]) for one in found if one["component"] == component), None)


def _is_updated(machine: connection.Machine, component: str, kept: Json) -> bool:
    """Return whether another version runs than before, though the BMC knows of no update anymore, or keeps no tasks."""
    found = (one["current_version"] for one in _read_components(machine) if one["component"] == component)
    return bool(next(found, kept["version"]) != kept["version"])


class RedfishFirmware(RedfishInterface, FirmwareInterface):
    """Updates are made one after the other; the machine reboots for those that are not of the BMC."""

    @base.service_step(argsinfo=_UPDATES, requires_ramdisk=False, idempotent=True)
    @base.deploy_step(priority=0, argsinfo=_UPDATES, idempotent=True)
    @base.clean_step(priority=0, argsinfo=_UPDATES, requires_ramdisk=False)
    def update(self, task: Task, settings: list[Json]) -> results.Result:
        memory = task.memory
        reboot.note_power(task, memory)
        if "updates" not in memory:
            found = connection.call(task, _read_components, _FACTOR)
            updates = _parse(settings, [one["component"] for one in found])
            memory["updates"] = [{**one, "job": {}} for one in updates]
        phases = [partial(self._update_one, update=update) for update in memory["updates"]]
        return results.run_phases(task, *phases, partial(reboot.restore_power, memory=memory))

    def _update_one(self, task: Task, update: Json) -> results.Result:
        component = update["component"]
        send = partial(_send, component=component, url=update["url"])
        is_done = partial(_is_updated, component=component, kept=update["job"])
        job = tasks.Job(f"update of {component}", send, update["job"], is_done)
        limit = self.conf.redfish.firmware_update_overall_timeout
        follow = partial(job.follow, limit=limit, option=_OPTION)
        if component == "bmc":
            ending: tuple[results.Phase, ...] = ()
        else:
            ending = (partial(_pause, seconds=update.get("wait", 0)), reboot.reboot, follow)
        return results.run_phases(
            task,
            partial(self._note, job=job, component=component),
            job.start,
            partial(follow, until_boot=component != "bmc"),
            *ending,
            partial(self._settle, update=update),
        )

    def _note(self, task: Task, job: tasks.Job, component: str) -> results.Result:
        """Note what is there before the update: by tasks or version it shows later whether it was requested."""
        if "known" not in job.kept:
            job.kept["version"] = _find_version(task, component)
        return job.note(task)

    def _settle(self, task: Task, update: Json) -> results.Result:
        """Wait until the BMC shows the version that runs, and keep it.

        :raises StepFailed: the BMC has forgotten the task, and runs what it did before, or shows no version anymore.
        """
        component, job = update["component"], update["job"]
        began = task.memory.setdefault("began", time.time())
        waited, limit = time.time() - began, self.conf.redfish.bmc_restart_timeout
        try:
            version = _find_version(task, component)
        except errors.HardwareUnreachable:
            if waited >= limit:
                raise
            version = None
        # A BMC answers for some seconds more; another component has its version when the machine starts.
        if version == job["version"] and waited >= _FAREWELL and not job["sure"]:
            raise errors.StepFailed(
                f"update of {component}: the BMC has forgotten the task {job['place']}, and shows version {version} as "
                "before"
            )
        if version is None and waited >= limit:
            raise errors.StepFailed(
                f"update of {component}: the BMC shows no version of it after {limit} s ([redfish] bmc_restart_timeout)"
            )
        if version is None or (version == job["version"] and waited < _FAREWELL):
            return results.PollAfter(min(1.0 + waited / 4, 10.0), waits_for=Wait.HARDWARE, until=began + limit)
        LOG.info("Node %s: %s has version %s now, %s before", task.node.uuid, component, version, job["version"])
        self._keep(task, {component: version})
        return results.DONE

    def _keep(self, task: Task, flashed: dict[str, str]) -> None:
        found = connection.call(task, _read_components, _FACTOR)
        for one in found:
            if one["component"] in flashed:
                one["last_version_flashed"] = flashed[one["component"]]
        task.keep_firmware_components(found)

    @base.verify_step(priority=10)
    def cache_firmware_components(self, task: Task) -> None:
        """Read the versions; what the BMC does not give is left out, as it is no reason not to manage the machine."""
        try:
            self._keep(task, {})
        except errors.HardwareUnreachable:
            raise
        except errors.HardwareError as exc:
            LOG.warning("Node %s: its versions of firmware could not be read: %s", task.node.uuid, exc.message)


def _pause(task: Task, seconds: int) -> results.Result:
    """Wait as long as the update says, before the reboot."""
    until = task.memory.setdefault("until", time.time() + seconds)
    left = until - time.time()
    return results.DONE if left <= 0 else results.PollAfter(left, waits_for=Wait.HARDWARE, until=until)
