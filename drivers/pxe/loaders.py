"""Network boot with loaders that are not iPXE: GRUB and PXELINUX, or Petitboot of machines with OpenPOWER firmware.

They start no volumes. What is noted in the node is the same; each says which addresses and arguments its loader reads.
"""

from typing import ClassVar

from ingot.common import boot_files, errors
from ingot.common.conf import opts
from ingot.drivers.images import glance_images, ramdisks
from ingot.drivers.interfaces.base import get_interface
from ingot.drivers.interfaces.storage import StorageInterface
from ingot.drivers.interfaces.task import Task
from ingot.drivers.pxe import network


class _FileBoot(network.NetworkBoot):
    """Boots by a configuration file that the API renders for the loader that asks.

    :cvar loader: its name, for messages.
    :cvar schemes: of the URLs that it fetches.
    """

    loader: ClassVar[str]
    schemes: ClassVar[tuple[str, ...]]

    def validate(self, task: Task) -> None:
        super().validate(task)
        info = task.node.instance_info
        is_ramdisk = info.get("kernel") and info.get("ramdisk")
        if not is_ramdisk and get_interface(task, StorageInterface).boots_by_loader(task):
            raise errors.Invalid(
                field="boot_interface",
                value=self.name,
                allowed="Machines boot from iSCSI volumes (a volume target with boot_index 0) with the interface ipxe.",
            )

    def check_text(self, name: str, value: object) -> str:
        text = super().check_text(name, value)
        if name == network.ARGUMENTS:
            return self.check_arguments(text)
        # The API is asked for what is in Glance.
        url = opts.agent_api_url(self.conf) + "/boot" if glance_images.is_glance_image(text) else text
        place = boot_files.parse_url(url)
        if place is None or place.scheme not in self.schemes:
            schemes = " or ".join(self.schemes)
            of_api = f" of an API that machines reach by {schemes}: this one is at {url}" if url != text else ""
            allowed = f"{self.loader} fetches files by {schemes}: a URL like that, or the id of an image of Glance"
            raise errors.Invalid(field=name, value=value, allowed=f"{allowed}{of_api}.")
        return text

    def check_arguments(self, text: str) -> str:
        """Return kernel arguments that the loader hands on as they are.

        :raises Invalid: it would change them.
        """
        return text


class PXEBoot(_FileBoot):
    """The boot interface ``pxe``: GRUB of UEFI, also behind a signed shim, and PXELINUX of a BIOS."""

    loader = "GRUB"
    schemes = ("http", "tftp")

    def check_arguments(self, text: str) -> str:
        return ramdisks.check_arguments_of_grub(network.ARGUMENTS, text)


class PetitbootBoot(_FileBoot):
    """The boot interface ``petitboot``."""

    loader = "Petitboot"
    schemes = ("http", "https", "ftp", "tftp")

    def check_arguments(self, text: str) -> str:
        if "initrd=" in text.lower():
            allowed = "Without initrd=, which Petitboot takes for the address of another ramdisk."
            raise errors.Invalid(field=network.ARGUMENTS, value=text, allowed=allowed)
        return text
