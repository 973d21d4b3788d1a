"""Which firmware a machine boots with: uefi or bios."""

from collections.abc import Mapping
from typing import Any

from ingot.common import errors
from ingot.drivers.task import Task

MODES = ("uefi", "bios")


def of(task: Task) -> str:
    """The boot mode that the user asks for, else the machine's, else ``[deploy] default_boot_mode``.

    :raises Invalid: a capability ``boot_mode`` that is neither.
    """
    node = task.node
    asked = _capability(node.instance_info.get("capabilities")) or node.instance_info.get("deploy_boot_mode")
    mode = asked or _capability(node.properties.get("capabilities")) or node.boot_mode
    mode = mode or task.conf.deploy.default_boot_mode
    if mode not in MODES:
        raise errors.Invalid(field="boot_mode", value=mode, allowed=f"One of {', '.join(MODES)}.")
    return str(mode)


def _capability(capabilities: Any) -> str | None:
    """``boot_mode`` of capabilities in either form: an object, or ``name:value`` pairs separated by commas."""
    if isinstance(capabilities, Mapping):
        found = capabilities.get("boot_mode")
        return None if found is None else str(found)
    pairs = (pair.partition(":") for pair in str(capabilities or "").split(","))
    return next((value.strip() for name, _, value in pairs if name.strip() == "boot_mode"), None)
