"""The image of a deployment: what ``instance_info`` says, checked, where it comes from, and what the agent gets of it.

A file of the conductor's host (``file://``) is linked where a web server serves it to machines. The operator says which
directories such files may be in.
"""

import contextlib
import os
import re
import shutil
import urllib.parse
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from ingot.common import errors, masking
from ingot.common.json_types import Json
from ingot.drivers.images import fetches, glance_images
from ingot.drivers.interfaces import boot, results
from ingot.drivers.interfaces.task import Task

_FORMATS = {"qcow2": "qcow2", "raw": "raw", "img": "raw"}
_LENGTHS = {64: "sha256", 128: "sha512"}
_CHECKSUM_FILE_LIMIT = 1024 * 1024

_CHECKSUM = "instance_info.image_checksum"
_FILE = "file://"
_FOLDER = "ingot-images"

_BSD_LINE = re.compile(r"^(SHA\d+)\s*\((?P<name>.+)\)\s*=\s*(?P<value>[0-9a-fA-F]+)$")
_GNU_LINE = re.compile(r"^(?P<value>[0-9a-fA-F]+)(?:\s+\*?(?P<name>.+))?$")


class Image(NamedTuple):
    """A whole-disk image.

    :param checksum: hexadecimal, or the URL of a file of checksums.
    :param algorithm: sha256 or sha512; None: the checksum's length says which.
    """

    source: str
    disk_format: str
    checksum: str
    algorithm: str | None


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
    info = {**_find_source(source).check(task, source), **task.node.instance_info}
    if info.get("kernel") or info.get("image_type") == "partition":
        raise errors.Invalid(
            field="instance_info.image_type",
            value="partition",
            allowed="Whole-disk images can be deployed: leave out kernel, ramdisk and image_type.",
        )
    checksum, algorithm = _read_checksum(task, info)
    return Image(source, _find_disk_format(info, source), checksum, algorithm)


def _read_checksum(task: Task, instance_info: Json) -> tuple[str, str | None]:
    value, algorithm = instance_info.get("image_os_hash_value"), instance_info.get("image_os_hash_algo")
    if value:
        if algorithm not in _LENGTHS.values():
            raise errors.Invalid(
                field="instance_info.image_os_hash_algo", value=algorithm, allowed="One of sha256, sha512."
            )
        return _check_hexadecimal("image_os_hash_value", value, algorithm), algorithm
    checksum = instance_info.get("image_checksum")
    if not checksum:
        raise errors.MissingParameter(
            where="instance_info",
            names="image_checksum (a SHA-256 or SHA-512, or the URL of a file with it), or image_os_hash_algo and "
            "image_os_hash_value",
        )
    if "://" in str(checksum):
        _check_url(task, "image_checksum", checksum, "An http or https URL.")
        return checksum, None
    return _check_hexadecimal("image_checksum", checksum, None), None


def _check_hexadecimal(key: str, value: object, algorithm: str | None) -> str:
    found = _LENGTHS.get(len(str(value))) if re.fullmatch("[0-9a-fA-F]+", str(value)) else None
    if found is None or algorithm not in (None, found):
        raise errors.Invalid(
            field=f"instance_info.{key}",
            value=value,
            allowed="A SHA-256 (64) or SHA-512 (128 hexadecimal digits) as image_os_hash_algo names it.",
        )
    return str(value).lower()


def _find_disk_format(instance_info: Json, source: str) -> str:
    requested = instance_info.get("image_disk_format")
    suffix = urllib.parse.urlsplit(source).path.rpartition(".")[2].lower()
    found = _FORMATS.get(suffix) if requested is None else requested
    if found not in ("raw", "qcow2"):
        raise errors.Invalid(
            field="instance_info.image_disk_format",
            value=requested,
            allowed="raw or qcow2. It can be left out when image_source ends in .qcow2, .raw or .img.",
        )
    return str(found)


def read_checksum(task: Task) -> str | results.PollAfter:
    """Return the checksum of the requested image, or when to ask again for the file that has it.

    :raises ImageError: the file of checksums cannot be fetched or does not have the image.
    :raises IngotError: as :func:`read_requested_image`.
    """
    image = read_requested_image(task)
    if "://" not in image.checksum:
        return image.checksum
    content = fetches.fetch(task, _CHECKSUM, image.checksum, _CHECKSUM_FILE_LIMIT)
    return content if isinstance(content, results.PollAfter) else _find_checksum(content, image)


PROPERTIES = {
    **{
        f"image_{scheme}_proxy": f"URL of the proxy through which the agent fetches from {scheme} URLs. Optional."
        for scheme in ("http", "https")
    },
    "image_no_proxy": "Hosts, addresses and domains, separated by commas, that it asks without a proxy. Optional.",
    "image_download_source": "Accepted and not used: the agent fetches images from where they are, as with http.",
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


def build_image_info(task: Task, checksum: str) -> dict[str, object]:
    """Return what the agent is given about the image, and have the image's source offer it to the machine.

    :param checksum: as :func:`read_checksum` returned it.
    :raises ImageError: the image's file is not there or cannot be published.
    :raises IngotError: as :func:`read_requested_image`.
    """
    image = read_requested_image(task)
    raw = image.disk_format == "raw"
    return {
        "id": image.source.rpartition("/")[2] or image.source,
        "urls": [_find_source(image.source).offer(task, image.source)],
        "disk_format": image.disk_format,
        "container_format": "bare",
        "image_type": "whole-disk",
        "os_hash_algo": image.algorithm or _LENGTHS[len(checksum)],
        "os_hash_value": checksum,
        "checksum": None,
        "stream_raw_images": raw and task.conf.agent.stream_raw_images,
        "node_uuid": task.node.uuid,
        "deploy_boot_mode": boot.find_boot_mode(task),
        **read_proxies(task),
    }


def _find_checksum(content: bytes, image: Image) -> str:
    """Return an image's checksum from a file that ``sha256sum`` or its like wrote, or that has nothing but it."""
    name, url = urllib.parse.urlsplit(image.source).path.rpartition("/")[2], masking.mask_text(image.checksum)
    try:
        lines = [line.strip() for line in content.decode().splitlines()]
    except UnicodeDecodeError:
        raise errors.ImageError(f"{_CHECKSUM}: {url} is not a file of checksums: it is not text") from None
    found = [match for line in lines if (match := _BSD_LINE.match(line) or _GNU_LINE.match(line))]
    fitting = [match for match in found if (match["name"] or "").rpartition("/")[2] == name]
    if not fitting and len(found) == 1 and not found[0]["name"]:
        fitting = found
    values = [match["value"].lower() for match in fitting if len(match["value"]) in _LENGTHS]
    if not values:
        raise errors.ImageError(
            f"the file of checksums {url} has no SHA-256 or SHA-512 of {name}; check instance_info.image_checksum "
            "and image_source"
        )
    return max(values, key=len)


class _Source(NamedTuple):
    """A type of source.

    :param matches: whether an image is from a source of this type.
    :param check: checks it before a deployment, and returns what is known of it in the words of ``instance_info``.
    :param offer: the URL at which the node's machine can fetch it from then on. Safe to repeat.
    """

    matches: Callable[[str], bool]
    check: Callable[[Task, str], Json]
    offer: Callable[[Task, str], str]


def _check_url(task: Task, key: str, value: object, allowed: str) -> None:
    """Check that a value of ``instance_info`` is an http or https URL that may be used.

    Where a name leads to is checked when it is connected to.

    :raises Invalid: it is not.
    """
    try:
        parts = urllib.parse.urlsplit(str(value))
        is_url = parts.scheme in ("http", "https") and bool(parts.hostname) and "\0" not in str(value)
    except ValueError:
        is_url = False
    if is_url and not fetches.read_networks(task).permit(str(parts.hostname)):
        is_url, allowed = False, fetches.DENIED
    if not is_url:
        raise errors.Invalid(field=f"instance_info.{key}", value=value, allowed=allowed)


def _check_web(task: Task, source: str) -> Json:
    _check_url(task, "image_source", source, "An http, https or file URL, or the id of an image of Glance.")
    return {}


def _check_file(task: Task, source: str) -> Json:
    _find_file(task, source)
    return {}


def _find_file(task: Task, source: str) -> Path:
    """Return the file of a ``file://`` URL, links resolved, so that none leads out of where files may be."""
    options, allowed = task.conf.deploy, None
    given = urllib.parse.unquote(source.removeprefix(_FILE))
    path = Path(os.path.realpath(given.replace("\0", "")))
    if "\0" in given:
        allowed = "No name of a file holds a NUL (%00)."
    elif not (options.http_root and options.http_url):
        allowed = "An http or https URL; file:// needs the options [deploy] http_root and http_url."
    elif not any(path.is_relative_to(os.path.realpath(place)) for place in options.file_url_allowed_paths):
        allowed = f"A file in {', '.join(options.file_url_allowed_paths)} ([deploy] file_url_allowed_paths)."
    if allowed is not None:
        raise errors.Invalid(field="instance_info.image_source", value=source, allowed=allowed)
    return path


def _publish_file(task: Task, source: str) -> str:
    """Link a file where a web server serves it, and return its address there.

    :raises ImageError: there is no such file on this host, or it cannot be linked.
    """
    path = _find_file(task, source)
    link = _node_folder(task) / path.name
    try:
        if not path.is_file():
            raise errors.ImageError(f"image_source: there is no file {path} on this conductor's host")
        for folder in (link.parent.parent, link.parent):
            folder.mkdir(parents=True, exist_ok=True)
            folder.chmod(0o755)  # a web server of another user reads them
        link.unlink(missing_ok=True)
        try:
            os.link(path, link)
        except OSError:  # another file system, or one without hard links
            link.symlink_to(path)
    except OSError as exc:
        raise errors.ImageError(
            f"image_source: {path} cannot be published at {link} ([deploy] http_root): {exc}"
        ) from exc
    return f"{task.conf.deploy.http_url.rstrip('/')}/{_FOLDER}/{task.node.uuid}/{urllib.parse.quote(path.name)}"


def _node_folder(task: Task) -> Path:
    return Path(task.conf.deploy.http_root, _FOLDER, task.node.uuid)


_SOURCES = (
    _Source(lambda source: source.startswith(_FILE), _check_file, _publish_file),
    _Source(glance_images.is_glance_image, glance_images.read_instance_info, glance_images.offer_image),
    _Source(lambda _source: True, _check_web, lambda _task, source: source),
)


def _find_source(image: str) -> _Source:
    """Return the type of source that an image is from; what is of no other type must be a URL."""
    return next(source for source in _SOURCES if source.matches(image))


def withdraw(task: Task) -> None:
    """Withdraw whatever image was offered to the node.

    :raises ImageError: a link cannot be removed.
    """
    if task.conf.deploy.http_root:
        folder = _node_folder(task)
        try:
            with contextlib.suppress(FileNotFoundError):
                shutil.rmtree(folder)
        except OSError as exc:
            raise errors.ImageError(f"{folder} cannot be removed ([deploy] http_root): {exc.strerror}") from exc
    glance_images.withdraw_image(task)
