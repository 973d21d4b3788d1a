"""Boot media of a node: the conductor notes what is on one, and the API makes it while it sends it.

The link has a ticket in it, which ends with the boot: when the next medium replaces this one, or it is withdrawn.
"""

import secrets

from oslo_utils import strutils

from ingot.common import boot_files, errors
from ingot.common.conf import opts
from ingot.common.json_types import MediaConfig
from ingot.drivers.images import glance_images, ramdisks
from ingot.drivers.interfaces.task import Task

_TICKET_BYTES = 16  # some BMCs take short URLs only

PROPERTIES = {
    "external_http_url": "Address of the API as the BMC reaches it. Default: [deploy] external_http_url. Optional.",
    "bootloader": "URL, or id in Glance, of a file system image with a boot loader for UEFI. Default: [deploy] "
    "bootloader_by_arch or bootloader, or else Debian's signed one. Optional.",
    "deploy_iso": "URL, or id in Glance, of a finished image with the agent, instead of deploy_kernel and "
    "deploy_ramdisk. It must know the address of the API. Optional.",
    "rescue_iso": "The same for rescues. Optional.",
    "config_via_removable": "Whether the agent of a finished image gets its settings (address of the API, token, "
    "kernel_append_params, network_data) on a virtual USB stick or floppy disk. Default false. Optional.",
    "ramdisk_image_download_source": "Where the BMC fetches finished images: local, from the API; http, from where "
    "they are. Default: [deploy] ramdisk_image_download_source. Optional.",
}

BOOT, SECOND = "boot.iso", "config.img"
"""What links to media end with."""

_SOURCES = ("local", "http")
_ARCHITECTURES = {"amd64": "x86_64", "arm64": "aarch64"}


def find_architecture(task: Task) -> str:
    """Return the architecture of a node's machine, in the words of Linux; x86_64 if it is not known."""
    given = str(task.node.properties.get("cpu_arch") or "x86_64")
    return _ARCHITECTURES.get(given, given)


def find_bootloader(task: Task) -> tuple[str | None, bool]:
    """Return the image with the loader, None for the signed one, and whether the node names it."""
    if own := task.node.driver_info.get("bootloader"):
        return str(own), True
    options = task.conf.deploy
    return options.bootloader_by_arch.get(find_architecture(task)) or options.bootloader, False


def check_file(task: Task, name: str, value: object, of_user: bool) -> str:
    """Return a file of a medium, checked without fetching it.

    :raises IngotError: it is no URL and no image of Glance, or one that the user may not have.
    """
    if not isinstance(value, str) or not value.isprintable() or " " in value:
        raise errors.Invalid(field=name, value=value, allowed="An http, https or file URL, or the id of an image.")
    if not value.startswith(("http://", "https://", "file://")):
        read = glance_images.read_permitted_image if of_user else glance_images.read_image
        if not read(task, name, value):
            raise errors.Invalid(field=name, value=value, allowed="An http, https or file URL, or the id of an image.")
    return value


def check_place(task: Task) -> None:
    """
    :raises Invalid: a word of the node that says where its BMC fetches media cannot be used.
    """
    info = task.node.driver_info
    place = info.get("external_http_url")
    if place is not None and boot_files.read_scheme(str(place)) not in ("http", "https"):
        raise errors.Invalid(field="driver_info.external_http_url", value=place, allowed="An http or https URL.")
    source = info.get("ramdisk_image_download_source")
    if source is not None and source not in _SOURCES:
        raise errors.Invalid(
            field="driver_info.ramdisk_image_download_source", value=source, allowed=f"One of {', '.join(_SOURCES)}."
        )


def has_second_drive(task: Task) -> bool:
    """Return whether the agent of a finished image gets its settings in a second drive.

    :raises Invalid: the node has no word for it that there is.
    """
    given = task.node.driver_info.get("config_via_removable")
    try:
        return given is not None and bool(strutils.bool_from_string(str(given), strict=True))
    except ValueError:
        field = "driver_info.config_via_removable"
        raise errors.Invalid(field=field, value=given, allowed="true or false.") from None


def offer(task: Task, target: str, media: MediaConfig) -> str:
    """Return the URL of a new medium, in place of any other; it works when this returns.

    :param target: whose it is: ``ramdisk`` or ``instance``, or ``trial`` where no machine boots from it.
    :param media: what is on it, without a ticket.
    """
    info, ticket = task.node.driver_info, secrets.token_urlsafe(_TICKET_BYTES)
    image = media.get("image", "")
    source = info.get("ramdisk_image_download_source") or task.conf.deploy.ramdisk_image_download_source
    task.set(boot_config={"target": target, "media": {**media, "ticket": ticket}})
    task.save()  # the BMC may ask for it at once
    if source == "http" and image.startswith(("http://", "https://")):
        return image
    return link(task, BOOT)


def link(task: Task, name: str) -> str:
    """Return the URL of one of the media that are offered: ``BOOT`` or ``SECOND``."""
    base = task.node.driver_info.get("external_http_url") or task.conf.deploy.external_http_url
    base = base or opts.agent_api_url(task.conf)
    return f"{str(base).rstrip('/')}/boot/media/{task.node.uuid}/{task.node.boot_config['media']['ticket']}/{name}"


def is_offered(task: Task, url: str) -> bool:
    """Return whether a URL is the link to the node's medium, and not that of an image elsewhere."""
    ticket = task.node.boot_config.get("media", {}).get("ticket")
    return bool(ticket) and f"/{ticket}/" in url


def build(task: Task, kernel: str, ramdisk: str, arguments: list[str], of_user: list[str]) -> MediaConfig:
    """Return what is on a medium that boots a kernel.

    :param of_user: which of the two a user names.
    :raises Invalid: GRUB would change the arguments.
    """
    loader, is_own = find_bootloader(task)
    media: MediaConfig = {
        "kernel": kernel,
        "ramdisk": ramdisk,
        "arguments": ramdisks.check_arguments_of_grub("kernel_append_params", " ".join(arguments)),
        "architecture": find_architecture(task),
        "of_user": [*of_user, *(["bootloader"] if is_own else [])],
    }
    if loader:
        media["bootloader"] = loader
    return media
