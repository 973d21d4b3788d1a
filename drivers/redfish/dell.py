"""What BMCs of Dell do in their own way, whatever the hardware type of the node: virtual drives."""

import asyncio
import itertools
import re

from ingot.common import errors
from ingot.drivers.interfaces import bmc_loop
from ingot.drivers.redfish import connection, fields, tasks

_IMPORT = "#OemManager.ImportSystemConfiguration"
_PAUSES = (0.2, 0.5, 1.0)
"""Seconds between two looks at the job of an import; the last of them again and again."""

_FIRST_WITH_ONE_SLOT = 17  # generation of servers, those with an iDRAC 10
_ONLY_SLOT = "1"


def boot_virtual_drive(machine: connection.Machine, persistent: bool) -> None:
    """Have the machine boot from its virtual CD drive, which no boot target of Redfish means: ``Cd`` is a drive in it.

    Safe to repeat. The job that does it is waited for.

    :raises HardwareError: the BMC does not do it.
    """
    manager = machine.manager
    what = f"Choosing the virtual drive by {machine.describe(manager.path)}"
    actions = fields.part(manager.json, "Actions", "Oem")
    names = [name for name in actions if name.endswith(_IMPORT)]
    target = fields.path(fields.part(actions, names[0]), "target") if names else None
    if target is None:
        raise errors.HardwareError(what=what, reason=f"it has no action {_IMPORT}")
    once = "Disabled" if persistent else "Enabled"
    # Between the elements nothing may stand, no space either.
    buffer = (
        f'<SystemConfiguration><Component FQDD="{manager.identity}">'
        f'<Attribute Name="ServerBoot.1#BootOnce">{once}</Attribute>'
        '<Attribute Name="ServerBoot.1#FirstBootDevice">VCD-DVD</Attribute>'
        "</Component></SystemConfiguration>"
    )
    data = {"ShareParameters": {"Target": ["ALL"]}, "ImportBuffer": buffer}
    job = tasks.find_place(machine.post(target, data, repeatable=True))
    if job is not None:
        _await_job(machine, what, job)


def _await_job(machine: connection.Machine, what: str, job: str) -> None:
    pauses = itertools.chain(_PAUSES, itertools.repeat(_PAUSES[-1]))
    while (progress := tasks.read(machine, job)).running:  # until the deadline of the call
        bmc_loop.wait(asyncio.sleep(next(pauses)))
    if progress.failed:
        raise errors.HardwareError(what=what, reason=f"the job {job} has ended as {progress.state}: {progress.text}")


def find_only_slot(machine: connection.Machine) -> str | None:
    """Return the name of the only virtual drive that takes images, of those that an iDRAC 10 shows; None: all do."""
    if not str(machine.system.manufacturer or "").lower().startswith("dell"):
        return None
    generation = re.match(r"(\d+)G", fields.text(machine.manager.json, "Model") or "")
    return _ONLY_SLOT if generation and int(generation[1]) >= _FIRST_WITH_ONE_SLOT else None
