"""A driver with a step that must not be carried out twice: it engraves a plate, here a line of a file.

The conductors of the suite load it as they load any package of drivers: see ``Site``.
"""

import os
import pathlib
import time

from ingot.drivers.interfaces import base
from ingot.drivers.interfaces.task import Task
from ingot.drivers.interfaces.vendor import VendorInterface
from ingot.drivers.ipmi.hardware import IPMIHardware

PLATES = "INGOT_FAULTS_PLATES"
"""Environment variable that names the file."""

_ENGRAVES_S = 0.5


class Engraver(VendorInterface):
    """What is engraved cannot be undone, so the step must not be repeated, also if its conductor dies in the middle."""

    @base.deploy_step(priority=0, idempotent=False)
    @base.service_step(requires_ramdisk=False)
    def engrave(self, task: Task) -> None:
        """Append the node and its run to the file.

        The pause gives the conductor an opportunity to die.
        """
        with pathlib.Path(os.environ[PLATES]).open("a") as plates:
            plates.write(f"{task.node.uuid} {task.node.run_id}\n")
        time.sleep(_ENGRAVES_S)


class EngravedHardware(IPMIHardware):
    """A machine with IPMI, and a plate."""

    supported_vendor_interfaces = (Engraver,)
