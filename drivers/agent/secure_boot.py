"""Secure boot: on for as long as an instance is deployed that asks for it by its capability ``secure_boot``."""

from oslo_log import log
from oslo_utils import strutils

from ingot.common import errors
from ingot.drivers.interfaces import boot
from ingot.drivers.interfaces.base import get_interface
from ingot.drivers.interfaces.management import ManagementInterface
from ingot.drivers.interfaces.task import Task

LOG = log.getLogger(__name__)


def is_requested(task: Task) -> bool:
    """Return whether the instance boots only what is signed."""
    given = boot.read_capability(task.node.instance_info.get("capabilities"), "secure_boot")
    return bool(strutils.bool_from_string(given))


def switch(task: Task, enabled: bool) -> None:
    """Have the machine's firmware check signatures from the next boot on, or no more, if the instance asks for it.

    A machine that cannot is used as it is, as in Ironic.
    """
    if not is_requested(task):
        return
    try:
        get_interface(task, ManagementInterface).set_secure_boot(task, enabled)
    except errors.UnsupportedInterface as exc:
        LOG.warning("Node %s: its instance asks for secure boot, and has none: %s", task.node.uuid, exc.message)
    else:
        task.set(secure_boot=enabled)
