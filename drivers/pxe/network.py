"""Network boot: this notes in the node what the machine's next network boot gets.

The API renders it when the machine's loader asks (``api/agents/boot.py``), from ``node.boot_config``:
``target`` (``ramdisk``, ``instance``, ``image``, ``volume`` or ``disk``), and for the first two ``kernel``, ``initrd``
and ``kernel_args``. What a volume needs, the API looks up. Kernels and ramdisks that are in Glance the API passes on.
"""

from ingot.common import boot_files, errors
from ingot.common.conf import opts
from ingot.drivers.images import glance_images, published
from ingot.drivers.images.ramdisks import RamdiskBoot
from ingot.drivers.interfaces.base import get_interface
from ingot.drivers.interfaces.storage import StorageInterface
from ingot.drivers.interfaces.task import Task
from ingot.drivers.pxe import dhcp

ARGUMENTS = "kernel_args"
"""What arguments are called where they are checked."""

IMAGE = "image"
"""The target of an image that a user has made."""

_FILES = ("kernel", "initrd")

# The loader, or the API for it, fills in the address of the card that booted; the agent uses that card for its lookup.
_BOOTIF = f"BOOTIF=01-{boot_files.OWN_MAC}"


def check_line(name: str, value: object) -> str:
    """Return a value that may stand in a line for a loader.

    :raises Invalid: it is no text, or has more than one line.
    """
    if not isinstance(value, str) or not value.isprintable():
        raise errors.Invalid(field=name, value=value, allowed="It must be one line of text.")
    return value


class NetworkBoot(RamdiskBoot):
    """Boots the agent, or a user's ramdisk, from the network."""

    parameters_option = ("pxe", "kernel_append_params")
    boots_from_network = True

    def validate(self, task: Task) -> None:
        self.validate_files(task)
        dhcp.check(task)
        if not any(port.pxe_enabled for port in task.ports):
            raise errors.Invalid(
                field="ports",
                value=[port.address for port in task.ports],
                allowed="A node that boots from the network needs at least one port with pxe_enabled.",
            )

    def check_text(self, name: str, value: object) -> str:
        return check_line(name, value)

    def check_local_file(self, task: Task, name: str, url: str) -> None:
        published.find(task, name, url)

    def prepare_ramdisk(self, task: Task, kernel_parameters: dict[str, str]) -> None:
        agent = {"ipa-api-url": opts.agent_api_url(self.conf), **kernel_parameters}
        self._boot(task, "ramdisk", self.choose_ramdisk(task), agent)
        dhcp.admit(task, dhcp.choose_chain(self.name))
        self.set_boot_device(task, "pxe", persistent=False)

    def repeat_network_boot(self, task: Task) -> None:
        dhcp.admit(task, dhcp.choose_chain(self.name))
        self.set_boot_device(task, "pxe", persistent=False)

    def clean_up_ramdisk(self, task: Task) -> None:
        self.note_doubts(task, [])
        if task.node.boot_config.get("target") == "ramdisk":
            task.set(boot_config={})
            published.withdraw(task, published.BOOT)
        dhcp.bar(task)

    def prepare_instance(self, task: Task) -> None:
        """Boot a deployed image from disk; a user's ramdisk, in ``instance_info``, and a volume from the network."""
        info, device = task.node.instance_info, "pxe"
        if info.get("kernel") and info.get("ramdisk"):
            self._boot(task, "instance", (info["kernel"], info["ramdisk"]), {})
        elif get_interface(task, StorageInterface).boots_by_loader(task):
            task.set(boot_config={"target": "volume"}, boot_address=None)
        else:
            device = "disk"  # firmware finds a volume of Fibre Channel as one
            task.set(boot_config={"target": "disk"})
        if device == "pxe":
            dhcp.admit(task, dhcp.choose_chain(self.name))
        self.set_boot_device(task, device, persistent=True)

    def clean_up_instance(self, task: Task) -> None:
        if task.node.boot_config.get("target") in ("instance", IMAGE, "volume", "disk"):
            task.set(boot_config={})
            published.withdraw(task, published.BOOT)
        dhcp.bar(task)

    def _boot(self, task: Task, target: str, files: tuple[str, str], parameters: dict[str, str]) -> None:
        task.set(boot_config={"target": target})  # links to what was fetched for the last boot end
        published.withdraw(task, published.BOOT)
        config = {name: self._offer(task, name, given) for name, given in zip(_FILES, files, strict=True)}
        config[ARGUMENTS] = " ".join([*self.build_arguments(task, target, parameters), _BOOTIF])
        checked = {name: self.check_text(name, value) for name, value in config.items()}
        task.set(boot_config={**task.node.boot_config, **checked})

    @staticmethod
    def _offer(task: Task, name: str, given: str) -> str:
        """Return the address from which the machine fetches a file, which this host or Glance may have."""
        if given.startswith(published.FILE):
            return published.publish(task, name, given, published.BOOT, prefix=f"{name}-")
        return glance_images.link_file(task, name, given)
