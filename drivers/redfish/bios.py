"""Settings of the machine's firmware over Redfish: read with what may be written, set, and set back."""

import time
from functools import partial

from oslo_log import log

from ingot.common import errors
from ingot.common.json_types import Json
from ingot.common.waits import Wait
from ingot.drivers.interfaces import base, results
from ingot.drivers.interfaces.bios import BIOSInterface
from ingot.drivers.interfaces.task import Task
from ingot.drivers.redfish import attributes, connection, fields, reboot, tasks
from ingot.drivers.redfish.base import RedfishInterface

LOG = log.getLogger(__name__)

_SETTINGS: base.ArgsInfo = {"settings": {"description": "List of objects with name and value.", "required": True}}

_FIRST_PAUSE, _LONGEST_PAUSE = 2.0, 15.0

_FACTOR = 3  # times read_timeout: registries are large
_LONGEST = 255  # characters of a setting's name


def _read_settings(machine: connection.Machine) -> list[Json]:
    """Return the settings as columns of ``BiosSetting``; none where the machine has no Bios."""
    document = machine.read_linked(machine.system.json, "Bios")
    registry = attributes.read_registry(machine, fields.text(document, "AttributeRegistry"))
    return [attributes.describe(name, value, registry.get(name)) for name, value in _current(document).items()]


def _current(document: Json) -> Json:
    """Return what settings the machine has; no value is an object or a list."""
    found = fields.part(document, "Attributes").items()
    return {name: value for name, value in found if len(name) <= _LONGEST and not isinstance(value, dict | list)}


def _find_bios(machine: connection.Machine) -> str:
    """Return the path of the machine's Bios.

    :raises HardwareError: it has none.
    """
    place = fields.link(machine.system.json, "Bios")
    if not place:
        raise errors.HardwareError(what=machine.describe(machine.system_path), reason="it has no Bios settings")
    return place


def _check(machine: connection.Machine, settings: object) -> Json:
    """Return the settings that differ from what the machine has, with values of their own types.

    :raises Invalid: a setting that the machine does not have, or a value that it does not accept.
    """
    document = machine.read(_find_bios(machine))
    registry = attributes.read_registry(machine, fields.text(document, "AttributeRegistry"))
    current = _current(document)
    requested = attributes.parse_settings(settings, current, registry)
    return {name: value for name, value in requested.items() if current.get(name) != value}


def _submit(machine: connection.Machine, requested: Json, known: list[str]) -> None:
    """Have the machine take over settings at its next boot.

    :param known: paths of the tasks that there were before. Some BMCs make a task of it, and refuse it a second time.
    """
    path = _find_bios(machine)
    future = fields.part(machine.read(path), "@Redfish.Settings")
    place = fields.link(future, "SettingsObject") or path
    if any(task not in known for task in tasks.list_paths(machine)):
        pending = _current(machine.read(place))
        if place != path and all(pending.get(name) == value for name, value in requested.items()):
            return
    change: Json = {"Attributes": requested}
    if "OnReset" in fields.texts(future, "SupportedApplyTimes"):
        change["@Redfish.SettingsApplyTime"] = {"ApplyTime": "OnReset"}
    machine.patch(place, change, machine.read_etag(place))


def _reset(machine: connection.Machine) -> None:
    path = _find_bios(machine)
    machine.act(path, machine.read(path), "#Bios.ResetBios", {}, repeatable=True)


def _list_missing(machine: connection.Machine, requested: Json) -> tuple[list[str], list[str]]:
    """Return which settings the machine has not taken over, and what it says of that."""
    document = machine.read(_find_bios(machine))
    current = _current(document)
    said = tasks.read_texts(fields.part(document, "@Redfish.Settings"))
    return [name for name, value in requested.items() if current.get(name) != value], said


class RedfishBIOS(RedfishInterface, BIOSInterface):
    """Steps reboot the machine themselves, and end when it has taken over what was set."""

    @base.service_step(argsinfo=_SETTINGS, requires_ramdisk=False, idempotent=True)
    @base.deploy_step(priority=0, argsinfo=_SETTINGS, idempotent=True)
    @base.clean_step(priority=0, argsinfo=_SETTINGS, requires_ramdisk=False)
    def apply_configuration(self, task: Task, settings: list[Json]) -> results.Result:
        memory = task.memory
        reboot.note_power(task, memory)
        if "requested" not in memory:
            memory["requested"] = connection.call(task, lambda machine: _check(machine, settings), _FACTOR)
        requested: Json = memory["requested"]
        if not requested:
            self.cache_bios_settings(task)
            return results.DONE

        def submit(task: Task) -> None:
            connection.call(task, lambda machine: _submit(machine, requested, memory["job"]["known"]))

        return self._restart(task, memory, submit, requested)

    @base.service_step(requires_ramdisk=False, idempotent=True)
    @base.deploy_step(priority=0, idempotent=True)
    @base.clean_step(priority=0, requires_ramdisk=False)
    def factory_reset(self, task: Task) -> results.Result:
        memory = task.memory
        reboot.note_power(task, memory)
        return self._restart(task, memory, lambda task: connection.call(task, _reset), {})

    def _restart(self, task: Task, memory: Json, submit: results.Phase, requested: Json) -> results.Result:
        """Run the phases that every change has, when it is saved what there was before."""
        note = partial(tasks.note_known, kept=memory.setdefault("job", {}))
        return results.run_phases(
            task,
            lambda task: results.run_phases(task, note, submit),
            reboot.reboot,
            partial(self._await, requested=requested),
            partial(reboot.restore_power, memory=memory),
        )

    def _await(self, task: Task, requested: Json) -> results.Result:
        """Wait until the machine has taken over its settings.

        :raises StepFailed: it has not in time.
        """
        limit = self.conf.redfish.bios_settings_timeout
        began = task.memory.setdefault("began", time.time())
        waited = time.time() - began
        try:
            missing, said = connection.call(task, lambda machine: _list_missing(machine, requested))
        except errors.HardwareUnreachable:
            if waited >= limit:
                raise
            missing, said = sorted(requested), []
        if not missing:
            self.cache_bios_settings(task)
            return results.DONE
        if waited >= limit:
            reason = f"; the BMC says: {' '.join(said)}" if said else ""
            raise errors.StepFailed(
                f"the machine has not taken over {', '.join(missing)} within {limit} s of its reboot ([redfish] "
                f"bios_settings_timeout){reason}"
            )
        pause = min(_FIRST_PAUSE + waited / 4, _LONGEST_PAUSE)
        return results.PollAfter(pause, waits_for=Wait.HARDWARE, until=began + limit)

    @base.verify_step(priority=10)
    def cache_bios_settings(self, task: Task) -> None:
        """Read the settings; what the BMC does not give is left out, as it is no reason not to manage the machine."""
        try:
            task.keep_bios_settings(connection.call(task, _read_settings, _FACTOR))
        except errors.HardwareUnreachable:
            raise
        except errors.HardwareError as exc:
            LOG.warning("Node %s: its BIOS settings could not be read: %s", task.node.uuid, exc.message)
