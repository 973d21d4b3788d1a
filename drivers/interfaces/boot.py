"""The boot interface: what a machine gets when it boots from the network, or from where it boots its instance."""

from collections.abc import Mapping

from ingot.common import errors
from ingot.drivers.interfaces import results
from ingot.drivers.interfaces.base import BaseInterface
from ingot.drivers.interfaces.task import Task

BOOT_MODES = ("uefi", "bios")


def find_boot_mode(task: Task) -> str:
    """Return the boot mode that the user requests, else the machine's, else ``[deploy] default_boot_mode``.

    :raises Invalid: a capability ``boot_mode`` that is neither uefi nor bios.
    """
    node, requested = task.node, task.node.instance_info
    mode = read_capability(requested.get("capabilities"), "boot_mode") or requested.get("deploy_boot_mode")
    mode = mode or read_capability(node.properties.get("capabilities"), "boot_mode") or node.boot_mode
    mode = mode or task.conf.deploy.default_boot_mode
    if mode not in BOOT_MODES:
        raise errors.Invalid(field="boot_mode", value=mode, allowed=f"One of {', '.join(BOOT_MODES)}.")
    return str(mode)


def read_capability(capabilities: object, capability: str) -> str | None:
    """Return one of capabilities: an object, or ``name:value`` pairs separated by commas."""
    if isinstance(capabilities, Mapping):
        found = capabilities.get(capability)
        return None if found is None else str(found)
    pairs = (pair.partition(":") for pair in str(capabilities or "").split(","))
    return next((value.strip() for name, _, value in pairs if name.strip() == capability), None)


class BootInterface(BaseInterface):
    interface_type = "boot"

    boots_images = False
    """Whether it boots images that users have made, ``instance_info.boot_iso``."""

    boots_from_network = False
    """Whether machines boot the agent by those of their ports that have ``pxe_enabled``."""

    def check_ramdisk(self, task: Task) -> results.Answer:
        """Find out, before :meth:`prepare_ramdisk`, whether the machine can fetch what it is to boot; may poll.

        :raises ImageError: it cannot.
        """
        return results.DONE

    def brings_token(self, task: Task) -> bool:
        """Return whether the agent has its token, ``agent_token`` of the node, from what it is booted from.

        If so, the token is there before :meth:`prepare_ramdisk`, and never given out on a lookup.
        """
        return False

    def repeat_network_boot(self, task: Task) -> None:
        """Set the boot device once more for a machine that did not boot what :meth:`prepare_ramdisk` prepared.

        :raises NotSupported: it does not boot from the network.
        """
        raise self.not_supported("repeat_network_boot")

    def prepare_ramdisk(self, task: Task, kernel_parameters: dict[str, str]) -> None:
        """Let the next boot start the agent; set the boot device to network, once.

        :param kernel_parameters: what the agent must find on its kernel command line, besides the configured ones.
        """
        raise NotImplementedError

    def clean_up_ramdisk(self, task: Task) -> None:
        """Undo :meth:`prepare_ramdisk`. Safe to repeat."""
        raise NotImplementedError

    def prepare_instance(self, task: Task) -> None:
        """Let every boot from now on start what the user deployed: from disk, or its ramdisk from the network."""
        raise NotImplementedError

    def clean_up_instance(self, task: Task) -> None:
        """Undo :meth:`prepare_instance`. Safe to repeat."""
        raise NotImplementedError
