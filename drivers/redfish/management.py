"""What a BMC keeps beside the power, over Redfish: how the machine boots, its lights, its media, the BMC itself."""

import datetime
import time
from collections.abc import Callable

from ingot.common import clock, errors
from ingot.common.json_types import Json
from ingot.common.waits import Wait
from ingot.drivers.interfaces import base, results
from ingot.drivers.interfaces.management import BootDevice, Indicator, ManagementInterface
from ingot.drivers.interfaces.sensors import Sensor
from ingot.drivers.interfaces.task import Task
from ingot.drivers.redfish import boot_device, connection, fields, indicators, sensors, tasks, virtual_media
from ingot.drivers.redfish.base import RedfishInterface

_SOURCES = (None, "http")

_CLOCK: base.ArgsInfo = {
    "target_datetime": {"description": "The time in ISO 8601. Default: that of the conductor, UTC.", "required": False},
    "datetime_local_offset": {"description": "Offset from UTC that the BMC shows, as +00:00.", "required": False},
}

_IMPORT_FACTOR = 4  # times read_timeout: for the job with which Dell chooses a virtual drive

_LONGEST_FAREWELL = 20.0  # seconds that a BMC may go on answering after the command to restart

_TOLERATED = 1.0  # seconds that the clock of a BMC may differ


class RedfishManagement(RedfishInterface, ManagementInterface):
    # How the machine boots

    def get_supported_boot_devices(self, task: Task) -> list[str]:
        return list(boot_device.TARGETS)

    def set_boot_device(self, task: Task, device: str, persistent: bool = False) -> None:
        choice = boot_device.choose(task, device, persistent)
        takes_job = device == boot_device.VIRTUAL and connection.call(task, boot_device.needs_import)
        factor = _IMPORT_FACTOR if takes_job else 1
        lasts = connection.call(task, lambda machine: boot_device.write(machine, choice), factor)
        boot_device.note(task, choice, lasts)

    def get_boot_device(self, task: Task) -> BootDevice:
        device, persistent = connection.call(task, boot_device.read)
        return {"boot_device": device, "persistent": persistent}

    def set_boot_mode(self, task: Task, mode: str) -> None:
        expected = boot_device.MODES[mode]

        def write(machine: connection.Machine) -> None:
            fields = machine.system.boot
            if fields is None or fields.mode is None or fields.mode.value != expected:
                machine.system.set_system_boot_options(mode=machine.constant("BootSourceOverrideMode", expected))

        connection.call(task, write)

    def set_secure_boot(self, task: Task, enabled: bool) -> None:
        def write(machine: connection.Machine) -> None:
            if "SecureBoot" not in machine.system.json:
                raise self.not_supported("set_secure_boot of this machine, whose BMC has no SecureBoot,")
            secure_boot = machine.system.secure_boot
            if secure_boot.enabled is not enabled:
                secure_boot.set_enabled(enabled)

        connection.call(task, write)

    @base.verify_step(priority=2)
    def read_boot_mode(self, task: Task) -> None:
        """Note with which firmware the machine boots, and whether it boots only what is signed."""

        def read(machine: connection.Machine) -> tuple[str | None, bool | None]:
            system = machine.system
            mode = system.boot.mode.value if system.boot is not None and system.boot.mode is not None else None
            secure = None
            if "SecureBoot" in system.json:
                try:
                    enabled = system.secure_boot.enabled
                    secure = enabled if isinstance(enabled, bool) else None
                except machine.refusals:  # announced by machines that have it in one mode only
                    secure = None
            return mode, secure

        found, secure_boot = connection.call(task, read)
        task.set(boot_mode=boot_device.name_mode(found) or task.node.boot_mode, secure_boot=secure_boot)

    def inject_nmi(self, task: Task) -> None:
        connection.call(task, lambda machine: machine.system.reset_system(machine.constant("ResetType", "Nmi")))

    # Keys of secure boot

    @base.deploy_step(priority=0, idempotent=True)
    @base.clean_step(priority=0, requires_ramdisk=False)
    def reset_secure_boot_keys_to_default(self, task: Task) -> None:
        """Install the keys that the vendor has delivered."""
        self._reset_keys(task, "ResetAllKeysToDefault")

    @base.deploy_step(priority=0, idempotent=True)
    @base.clean_step(priority=0, requires_ramdisk=False)
    def clear_secure_boot_keys(self, task: Task) -> None:
        """Delete all keys, so that the machine is in setup mode."""
        self._reset_keys(task, "DeleteAllKeys")

    @staticmethod
    def _reset_keys(task: Task, kind: str) -> None:
        def reset(machine: connection.Machine) -> None:
            machine.system.secure_boot.reset_keys(machine.constant("SecureBootResetKeysType", kind))

        connection.call(task, reset)

    # Indicators

    def get_supported_indicators(self, task: Task) -> list[Indicator]:
        return connection.call(task, indicators.find)

    def get_indicator_state(self, task: Task, indicator: Indicator) -> str:
        return connection.call(task, lambda machine: indicators.read(machine, indicator))

    def set_indicator_state(self, task: Task, indicator: Indicator, state: str) -> None:
        connection.call(task, lambda machine: indicators.write(machine, indicator, state))

    # Sensors

    def get_sensors(self, task: Task) -> list[Sensor]:
        return connection.call(task, sensors.read, sensors.FACTOR)

    # Virtual media

    def attach_virtual_media(self, task: Task, device_type: str, image_url: str, source: str | None) -> None:
        virtual_media.check_url(image_url)
        if source not in _SOURCES:
            raise errors.Invalid(field="image_download_source", value=source, allowed="Allowed: http.")
        protocol = virtual_media.read_protocol(task.node.driver_info)
        connection.call(task, lambda machine: virtual_media.insert(machine, device_type, image_url, protocol), factor=2)

    def detach_virtual_media(self, task: Task, device_types: list[str]) -> None:
        connection.call(task, lambda machine: virtual_media.eject(machine, device_types), factor=2)

    def get_virtual_media(self, task: Task) -> list[Json]:
        return connection.call(task, virtual_media.describe_drives)

    # The BMC itself

    @base.service_step(argsinfo=_CLOCK, requires_ramdisk=False)
    @base.clean_step(priority=0, argsinfo=_CLOCK, requires_ramdisk=False)
    def set_bmc_clock(
        self, task: Task, target_datetime: str | None = None, datetime_local_offset: str | None = None
    ) -> None:
        """Set the clock of the BMC."""
        try:
            moment = clock.now() if target_datetime is None else datetime.datetime.fromisoformat(target_datetime)
        except (TypeError, ValueError):
            allowed = "A date and time in ISO 8601, as 2030-01-31T12:00:00+00:00."
            raise errors.Invalid(field="target_datetime", value=target_datetime, allowed=allowed) from None
        connection.call(task, lambda machine: _set_clock(machine, moment, datetime_local_offset))

    @base.verify_step(priority=1)
    def verify_bmc_clock(self, task: Task) -> None:
        """Correct the clock of the BMC, if ``[redfish] enable_verify_bmc_clock`` says so."""
        if not self.conf.redfish.enable_verify_bmc_clock:
            return

        def correct(machine: connection.Machine) -> None:
            shown = fields.text(machine.manager.json, "DateTime")
            if shown is None:
                raise errors.HardwareError(what=machine.describe(machine.manager.path), reason="it has no clock")
            if abs((_parse_moment(shown) - _with_zone(clock.now())).total_seconds()) > _TOLERATED:
                _set_clock(machine, clock.now(), None)

        connection.call(task, correct)

    @base.service_step(requires_ramdisk=False)
    @base.clean_step(priority=0, requires_ramdisk=False)
    def reset_bmc(self, task: Task) -> results.Result:
        """Restart the BMC and wait until it answers again.

        :raises HardwareUnreachable: it does not in time.
        """
        return self._restart_bmc(task, _reset_manager, lambda machine: bool(machine.manager.path))

    def _restart_bmc(
        self, task: Task, send: Callable[[connection.Machine], None], is_ready: Callable[[connection.Machine], bool]
    ) -> results.Result:
        """Send what restarts the BMC, once, and wait until it is ready again."""
        memory = task.memory
        if "sent" not in memory:
            connection.call(task, send)
            memory["sent"] = time.time()
        waited, limit = time.time() - memory["sent"], self.conf.redfish.bmc_restart_timeout
        try:
            ready = connection.call(task, is_ready)
        except errors.HardwareUnreachable:
            if waited >= limit:
                raise
            memory["was_away"] = True
        else:
            # Until it goes away it answers, and one that was back in no time was perhaps not seen away.
            if ready and ("was_away" in memory or waited >= _LONGEST_FAREWELL):
                return results.DONE
            if waited >= limit:
                raise errors.StepFailed(
                    f"the BMC is not ready {limit} s after its restart ([redfish] bmc_restart_timeout)"
                )
        return results.PollAfter(min(1.0 + waited / 4, 10.0), waits_for=Wait.HARDWARE, until=memory["sent"] + limit)

    @base.service_step(requires_ramdisk=False)
    @base.clean_step(priority=0, requires_ramdisk=False)
    def clear_job_queue(self, task: Task) -> None:
        """Delete the tasks of the BMC that have not ended, as far as it lets them be deleted."""
        connection.call(task, _clear_tasks, factor=2)


def _reset_manager(machine: connection.Machine) -> None:
    manager = machine.manager
    if not fields.part(manager.json, "Actions", "#Manager.Reset"):
        raise errors.HardwareError(what=machine.describe(manager.path), reason="it cannot be reset")
    allowed = {one.value for one in manager.get_allowed_reset_manager_values()}
    kind = "GracefulRestart" if "GracefulRestart" in allowed else "ForceRestart"
    manager.reset_manager(machine.constant("ResetType", kind))


def _with_zone(moment: datetime.datetime) -> datetime.datetime:
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=datetime.UTC)


def _parse_moment(text: str) -> datetime.datetime:
    return _with_zone(datetime.datetime.fromisoformat(text))


def _set_clock(machine: connection.Machine, moment: datetime.datetime, offset: str | None) -> None:
    manager = machine.manager
    shown = fields.text(manager.json, "DateTime")
    has_fractions = shown is not None and _parse_moment(shown).microsecond
    exact = _with_zone(moment) if has_fractions else _with_zone(moment).replace(microsecond=0)
    data = {"DateTime": exact.isoformat(), **({"DateTimeLocalOffset": offset} if offset is not None else {})}
    machine.patch(manager.path, data)
    now = fields.text(machine.read(manager.path), "DateTime")
    if now is None or abs((_parse_moment(now) - _with_zone(moment)).total_seconds()) > 60:
        raise errors.HardwareError(
            what=f"Setting the clock of {machine.describe(manager.path)}", reason=f"it shows {now} afterwards"
        )


_ENDED = frozenset(("Completed", "Killed", "Exception", "Cancelled", "Service"))


def _clear_tasks(machine: connection.Machine) -> None:
    place = tasks.find_list(machine)
    for one in machine.read_members(place) if place else ():
        path = fields.link(one)
        if path and fields.text(one, "TaskState") not in _ENDED:
            machine.delete(path)
