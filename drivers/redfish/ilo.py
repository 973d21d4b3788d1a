"""The hardware type ilo: HPE's BMCs from iLO 5 on, which speak Redfish.

What BMCs of HPE do otherwise in Redfish itself, all interfaces ``redfish`` know: virtual drives have numbers and refuse
a second image, eject needs an empty object, changes while the firmware starts are answered "try later", arrays wait for
a reset. Here is what only HPE has: a drive with an image can be marked to be booted from at the next start.
"""

from ingot.drivers.interfaces import base, noop, results
from ingot.drivers.interfaces.hardware_type import Supported
from ingot.drivers.interfaces.task import Task
from ingot.drivers.redfish import connection, fields, virtual_media
from ingot.drivers.redfish.hardware import RedfishHardware
from ingot.drivers.redfish.management import RedfishManagement

_MARK = "BootOnNextServerReset"


def _read_mark(drive: connection.Resource) -> object:
    return fields.part(drive.json, "Oem", "Hpe").get(_MARK)


def _find_loaded_drives(machine: connection.Machine) -> list[connection.Resource]:
    """Return the virtual CD drives with an image that can be marked."""
    kinds = virtual_media.MEDIA_TYPES["cdrom"]
    return [
        drive
        for drive in virtual_media.find_drives(machine)
        if drive.inserted
        and _read_mark(drive) is not None
        and any(one.value in kinds for one in drive.media_types or ())
    ]


def _mark_drive(machine: connection.Machine, marked: bool) -> None:
    """Mark the first drive that has an image, or take the mark away."""
    for drive in _find_loaded_drives(machine)[:1]:
        if _read_mark(drive) is not marked:
            machine.patch(drive.path, {"Oem": {"Hpe": {_MARK: marked}}})


class ILOManagement(RedfishManagement):
    """The mark goes with the boot override; it is taken away when another device is set."""

    def set_boot_device(self, task: Task, device: str, persistent: bool = False) -> None:
        super().set_boot_device(task, device, persistent)
        marked = device == "cdrom" and not persistent
        connection.call(task, lambda machine: _mark_drive(machine, marked), factor=2)

    @base.service_step(requires_ramdisk=False)
    @base.clean_step(priority=0, requires_ramdisk=False)
    def reset_ilo(self, task: Task) -> results.Result:
        """Restart the BMC and wait until it answers again, as ``reset_bmc``."""
        return self.reset_bmc(task)


class ILOHardware(RedfishHardware):
    supported_management_interfaces: Supported = (ILOManagement, RedfishManagement, noop.NoopManagement)
