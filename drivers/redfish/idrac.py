"""The hardware type idrac: Dell's BMCs, which speak Redfish and have a job queue and a controller of their own besides.

What BMCs of Dell do otherwise in Redfish itself, all interfaces ``redfish`` know: settings wait for a job, work is a
job that may wait for a boot, an occupied drive refuses an image, a virtual one is chosen by a job. Here is what only
Dell has. The other interfaces differ in their name, under which nodes and configuration files have them.
"""

from ingot.common import errors
from ingot.common.json_types import Json
from ingot.drivers.interfaces import base, noop, results
from ingot.drivers.interfaces.hardware_type import Supported
from ingot.drivers.interfaces.task import Task
from ingot.drivers.redfish import connection, fields
from ingot.drivers.redfish.bios import RedfishBIOS
from ingot.drivers.redfish.firmware import RedfishFirmware
from ingot.drivers.redfish.hardware import RedfishHardware
from ingot.drivers.redfish.inspect import RedfishInspect
from ingot.drivers.redfish.management import RedfishManagement
from ingot.drivers.redfish.media_boot import RedfishVirtualMediaBoot
from ingot.drivers.redfish.power import RedfishPower
from ingot.drivers.redfish.raid import RedfishRAID
from ingot.drivers.redfish.vendor import RedfishVendor

_JOBS, _CARD, _CONTROLLER = "DellJobService", "DelliDRACCardService", "DellLCService"
_ALL_JOBS = "JID_CLEARALL_FORCE"


def _call_service(machine: connection.Machine, service: str, action: str, data: Json) -> Json:
    """Return what an action of one of Dell's services answers.

    :raises HardwareError: the BMC has no such service: it is not Dell's, or too old.
    """
    path = fields.link(machine.manager.json, "Links", "Oem", "Dell", service)
    if not path:
        raise errors.HardwareError(what=machine.describe(machine.manager.path), reason=f"it has no {service}")
    return machine.act(path, machine.read(path), f"#{service}.{action}", data, repeatable=True).read_object()


def _clear_jobs(machine: connection.Machine) -> None:
    _call_service(machine, _JOBS, "DeleteJobQueue", {"JobID": _ALL_JOBS})


def _reset(machine: connection.Machine) -> None:
    _call_service(machine, _CARD, "iDRACReset", {"Force": "Graceful"})


def _is_ready(machine: connection.Machine) -> bool:
    """Return whether the controller that does the jobs takes new ones."""
    return _call_service(machine, _CONTROLLER, "GetRemoteServicesAPIStatus", {}).get("LCStatus") == "Ready"


class IDRACManagement(RedfishManagement):
    """Deletes jobs that have not begun too, and waits after a reset until the BMC does jobs again."""

    @base.service_step(requires_ramdisk=False)
    @base.clean_step(priority=0, requires_ramdisk=False)
    @base.verify_step(priority=0)
    def clear_job_queue(self, task: Task) -> None:
        """Delete all jobs, those that run too."""
        connection.call(task, _clear_jobs)

    @base.service_step(requires_ramdisk=False)
    @base.clean_step(priority=0, requires_ramdisk=False)
    @base.verify_step(priority=0)
    def reset_idrac(self, task: Task) -> results.Result:
        """Restart the BMC, and wait until it does jobs again."""
        return self._restart_bmc(task, _reset, _is_ready)

    @base.service_step(requires_ramdisk=False)
    @base.clean_step(priority=0, requires_ramdisk=False)
    @base.verify_step(priority=0)
    def known_good_state(self, task: Task) -> results.Result:
        """Restart the BMC and delete all jobs, so that nothing from before keeps it."""
        return results.run_phases(task, self.reset_idrac, self.clear_job_queue)


class IDRACBIOS(RedfishBIOS):
    """``idrac-redfish``, like the others below."""


class IDRACVirtualMediaBoot(RedfishVirtualMediaBoot):
    """A name only: how Dell chooses a virtual drive, :mod:`ingot.drivers.redfish.dell` knows, also for ``redfish``."""


class IDRACFirmware(RedfishFirmware):
    pass


class IDRACInspect(RedfishInspect):
    pass


class IDRACPower(RedfishPower):
    pass


class IDRACRAID(RedfishRAID):
    pass


class IDRACVendor(RedfishVendor):
    pass


class IDRACHardware(RedfishHardware):
    """Has what redfish has, which nodes of Metal3 name, and its own first."""

    supported_bios_interfaces: Supported = (IDRACBIOS, *RedfishHardware.supported_bios_interfaces)
    supported_boot_interfaces: Supported = (*RedfishHardware.supported_boot_interfaces, IDRACVirtualMediaBoot)
    supported_firmware_interfaces: Supported = (IDRACFirmware, *RedfishHardware.supported_firmware_interfaces)
    supported_inspect_interfaces: Supported = (*RedfishHardware.supported_inspect_interfaces, IDRACInspect)
    supported_management_interfaces: Supported = (IDRACManagement, RedfishManagement, noop.NoopManagement)
    supported_power_interfaces: Supported = (IDRACPower, RedfishPower)
    supported_raid_interfaces: Supported = (*RedfishHardware.supported_raid_interfaces, IDRACRAID)
    supported_vendor_interfaces: Supported = (IDRACVendor, *RedfishHardware.supported_vendor_interfaces)
