"""The image of a deployment: what ``instance_info`` says of it, what is found in it, and what the agent gets of it."""

import base64
import dataclasses
import urllib.parse
from pathlib import Path
from typing import NamedTuple

from oslo_log import log
from oslo_utils import units

from ingot.common import errors, fetching, masking
from ingot.common.json_types import Json
from ingot.drivers.images import checksums, fetches, formats, glance_images, sources
from ingot.drivers.interfaces import boot, results
from ingot.drivers.interfaces.task import Task

LOG = log.getLogger(__name__)

_SUFFIXES = {"img": "raw", **{name: name for name in ("raw", "qcow2", "vmdk", "vdi", "vhdx", "iso")}}
"""Formats that the ends of names stand for; what is found in an image is right where the two differ."""

_ALIASES = {name: "raw" for name in ("ami", "aki", "ari")}
"""Formats of Glance that say what a raw image is for."""

withdraw = sources.withdraw


class Image(NamedTuple):
    """A whole-disk image, as it is requested.

    :param disk_format: what it is called, None: nothing.
    :param checksum: hexadecimal, or the URL of a file of checksums; None: its source has one.
    :param algorithm: sha256 or sha512; None: the checksum's length says which.
    """

    source: str
    disk_format: str | None
    checksum: str | None
    algorithm: str | None


@dataclasses.dataclass(frozen=True, slots=True)
class ReadyImage:
    """An image of which all is known that an agent needs.

    :ivar disk_format: raw for what is written as it is, else as qemu-img calls it; None: the agent finds out.
    :ivar url: where it is fetched; None: its source offers it.
    :ivar authorization: header with which it is fetched.
    """

    source: str
    disk_format: str | None
    algorithm: str
    checksum: str
    url: str | None = None
    authorization: str | None = dataclasses.field(default=None, repr=False)


def read_requested_image(task: Task) -> Image:
    """Return the image that a user requests, checked without fetching it.

    What ``instance_info`` does not say of it, its source may know.

    :raises MissingParameter: no image, or no checksum.
    :raises Invalid: a value that cannot be used, with its key.
    :raises ImageServiceUnavailable: the source does not answer.
    """
    source = task.node.instance_info.get("image_source")
    if not source:
        raise errors.MissingParameter(
            where="instance_info", names="image_source (URL, or id in Glance, of the image to write)"
        )
    source = str(source)
    glance_images.find_download_source(task)
    of_type = sources.find_source(source)
    info = {**of_type.check(task, source), **task.node.instance_info}
    if info.get("kernel") or info.get("image_type") == "partition":
        raise errors.Invalid(
            field="instance_info.image_type",
            value="partition",
            allowed="Whole-disk images can be deployed: leave out kernel, ramdisk and image_type.",
        )
    given = checksums.read_requested(task, info)
    if given is None and not of_type.has_checksum:
        raise errors.MissingParameter(
            where="instance_info",
            names="image_checksum (a SHA-256 or SHA-512, or the URL of a file with it), or image_os_hash_algo and "
            "image_os_hash_value",
        )
    return Image(source, _read_disk_format(task, info), *(given or (None, None)))


def _read_disk_format(task: Task, instance_info: Json) -> str | None:
    given = instance_info.get("image_disk_format")
    if given is None:
        return None
    permitted = formats.list_permitted(task.conf) & (formats.COPIED | set(formats.CONVERTED))
    found = _ALIASES.get(str(given), str(given))
    if found not in permitted:
        raise errors.Invalid(
            field="instance_info.image_disk_format",
            value=given,
            allowed=f"{', '.join(sorted(permitted))}, which [conductor] permitted_image_formats says; or leave it out, "
            "and it is found out.",
        )
    return found


def find_local_file(task: Task) -> Path | None:
    """Return where the requested image is on this host; None if it is fetched.

    :raises Invalid: it is where no image may be.
    """
    source = read_requested_image(task).source
    return sources.find_file(task, source) if source.startswith(sources.FILE) else None


# Looking into it


def check(task: Task) -> results.Answer:
    """Refuse an image that cannot be written to the node's machine; to be called again until it answers done.

    :raises ImageError: it is not there, is not what it is called, could do harm, or is too large.
    """
    image = read_requested_image(task)
    looked = _look(task, image)
    if isinstance(looked, results.PollAfter):
        return looked
    _choose_format(task, image, looked)
    if looked.found is not None:
        _check_fits(task, image, looked.found)
    return results.DONE


def examine(task: Task) -> ReadyImage | results.PollAfter:
    """Return what the agent must know of the requested image, or when to ask again.

    :raises ImageError: as :func:`check`; or its checksum cannot be had.
    """
    image = read_requested_image(task)
    checksum = _find_checksum(task, image)
    if isinstance(checksum, results.PollAfter):
        return checksum
    looked = _look(task, image)  # last: a registry's token does not live long
    if isinstance(looked, results.PollAfter):
        return looked
    disk_format, blob = _choose_format(task, image, looked), looked.blob
    algorithm = image.algorithm or checksums.LENGTHS.get(len(checksum), "")
    if blob is None:
        return ReadyImage(image.source, disk_format, algorithm, checksum)
    if not checksum:
        algorithm, checksum = blob.algorithm, blob.checksum
    if algorithm == blob.algorithm and checksum != blob.checksum:
        raise errors.ImageError(
            f"image {masking.mask_text(image.source)}: its digest is {blob.algorithm}:{blob.checksum}, and the "
            "checksum of instance_info is another one: leave that out"
        )
    return ReadyImage(image.source, disk_format, algorithm, checksum, blob.url, blob.authorization)


def _find_checksum(task: Task, image: Image) -> str | results.PollAfter:
    """Return the checksum of an image, empty for one of a registry without another."""
    if image.checksum is not None:
        return checksums.find(task, image.source, image.checksum)
    if image.source.startswith(sources.FILE):
        return checksums.read_file(task, sources.find_file(task, image.source))
    return ""


def _look(task: Task, image: Image) -> sources.Looked | results.PollAfter:
    """Return what is found in an image, or when to ask again.

    What a conductor does not reach is left to the agent, if the operator allows that and it is known how to write it.
    """
    options, source = task.conf.conductor, sources.find_source(image.source)
    if options.disable_deep_image_inspection and not source.is_private:
        return sources.Looked(None)
    look, seconds = source.look(task, image.source, image.disk_format)
    ask = fetches.ask_for_node if source.is_private else fetches.ask_for_all
    where = f"image {masking.mask_text(image.source)}"
    try:
        return ask(task, f"what {image.source} is", seconds, look)
    except errors.ImageError as exc:
        raise errors.ImageError(f"{where}: {exc.message}") from None
    except fetching.NotThere as exc:
        raise errors.ImageError(f"{where}: {exc.message}; check instance_info.image_source") from None
    except fetching.FetchError as exc:
        if source.is_reached or options.conductor_always_validates_images:
            raise errors.ImageError(f"{where}: {exc.message}") from None
        if _guess_format(image) is None:
            raise errors.ImageError(
                f"{where} cannot be looked into by the conductor: {exc.message}. Say what it is: image_disk_format"
            ) from None
        LOG.warning("Node %s: %s is left to the agent to look into: %s", task.node.uuid, where, exc.message)
        return sources.Looked(None)


def _guess_format(image: Image) -> str | None:
    """Return what an image is called, or what the end of its name says."""
    suffix = urllib.parse.urlsplit(image.source).path.rpartition(".")[2].lower()
    return image.disk_format or _SUFFIXES.get(suffix)


def _choose_format(task: Task, image: Image, looked: sources.Looked) -> str | None:
    """Return as what an image is written; None: nothing is known, and the agent is to find out.

    :raises ImageError: it cannot be written.
    """
    of_registry = looked.blob.disk_format if looked.blob else None
    if looked.found is None:
        known = image.disk_format or of_registry or _guess_format(image)
        return "raw" if known in formats.COPIED else known
    try:
        return formats.choose_format(task.conf, looked.found, image.disk_format or of_registry)
    except errors.ImageError as exc:
        raise errors.ImageError(f"image {masking.mask_text(image.source)}: {exc.message}") from None


def _check_fits(task: Task, image: Image, found: formats.Found) -> None:
    """Refuse an image that is larger than any disk that the last inspection found in the machine.

    :raises ImageError: it is. A machine with arrays may have others by now.
    """
    if found.size is None or task.node.raid_config or task.node.target_raid_config:
        return
    known = task.inventory()
    disks = known.inventory.get("disks") if known is not None else None
    sizes = [disk.get("size") for disk in disks if isinstance(disk, dict)] if isinstance(disks, list) else []
    largest = max((size for size in sizes if isinstance(size, int)), default=0)
    if 0 < largest < found.size:
        raise errors.ImageError(
            f"image {masking.mask_text(image.source)}: it makes a disk of {found.size / units.Gi:.1f} GiB, and the "
            f"largest that was found in the machine has {largest / units.Gi:.1f}; inspect it again if that has changed"
        )


# What the agent gets

PROPERTIES = {
    **{
        f"image_{scheme}_proxy": f"URL of the proxy through which the agent fetches from {scheme} URLs. Optional."
        for scheme in ("http", "https")
    },
    "image_no_proxy": "Hosts, addresses and domains, separated by commas, that it asks without a proxy. Optional.",
    glance_images.DOWNLOAD_SOURCE: "From where the agent downloads images of Glance: http or local, from the "
    "API; swift, by signed URLs of Swift. Default: [agent] image_download_source. Optional.",
    sources.PULL_SECRET: "Secret for registries of images (oci://) of instances that bring none. Optional.",
}
"""Keys of driver_info that are about how the agent gets images."""


def read_proxies(task: Task) -> dict[str, object]:
    """Return the proxies through which the agent fetches images, as it knows them; none where none are given.

    :raises Invalid: one is no URL.
    """
    info = task.node.driver_info
    proxies = {scheme: info[key] for scheme in ("http", "https") if info.get(key := f"image_{scheme}_proxy")}
    for scheme, url in proxies.items():
        if urllib.parse.urlsplit(str(url)).scheme not in ("http", "https"):
            allowed = "It must be an http or https URL."
            raise errors.Invalid(field=f"driver_info.image_{scheme}_proxy", value=url, allowed=allowed)
    excluded = {"no_proxy": str(info["image_no_proxy"])} if proxies and info.get("image_no_proxy") else {}
    return {"proxies": proxies, **excluded} if proxies else {}


def build_image_info(task: Task, image: ReadyImage) -> dict[str, object]:
    """Return what the agent is given about the image, and have the image's source offer it to the machine.

    :raises ImageError: the image's file is not there or cannot be published.
    """
    authorization = base64.b64encode(image.authorization.encode()).decode() if image.authorization else None
    return {
        "id": image.source.rpartition("/")[2] or image.source,
        "urls": [image.url or sources.find_source(image.source).offer(task, image.source)],
        "disk_format": image.disk_format,
        "container_format": "bare",
        "image_type": "whole-disk",
        "os_hash_algo": image.algorithm,
        "os_hash_value": image.checksum,
        "checksum": None,
        "stream_raw_images": image.disk_format == "raw" and task.conf.agent.stream_raw_images,
        "node_uuid": task.node.uuid,
        "deploy_boot_mode": boot.find_boot_mode(task),
        **({"image_request_authorization": authorization} if authorization else {}),
        **read_proxies(task),
    }
