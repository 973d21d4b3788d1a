"""Where images of deployments come from: what is known of one there, how it is looked into, and how a machine gets it.

A file of the conductor's host (``file://``) is linked where a web server serves it to machines.
"""

import base64
import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from oslo_config import cfg

from ingot.common import errors, fetching, glance
from ingot.common.json_types import Json
from ingot.drivers.images import contents, fetches, formats, glance_images, oci, published
from ingot.drivers.interfaces.task import Task

FILE = published.FILE
PULL_SECRET = "image_pull_secret"  # noqa: S105 - its name
_FIELD = "instance_info.image_source"

_SHORT = 10.0
"""Seconds at most that looking into an image of a web server takes, which the conductor may not reach at all."""


class Looked(NamedTuple):
    """What was found out about an image.

    :param found: None: it was not looked into.
    :param blob: where it is in a registry.
    """

    found: formats.Found | None
    blob: oci.Blob | None = None


Look = Callable[[], Looked]


class Source(NamedTuple):
    """A type of source.

    :param matches: whether an image is from a source of this type.
    :param check: checks it before a deployment, and returns what is known of it in the words of ``instance_info``.
    :param look: returns a function that finds out what it is, for a thread of its own, which must not have the task;
        and the seconds that it may take. It gets the format that the user asks for, too.
    :param offer: the URL at which the node's machine can fetch it from then on. Safe to repeat.
    :param is_reached: whether the conductor must reach it in any case.
    :param has_checksum: whether the user need not give one.
    :param is_private: whether what is found is the node's alone.
    """

    matches: Callable[[str], bool]
    check: Callable[[Task, str], Json]
    look: Callable[[Task, str, str | None], tuple[Look, float]]
    offer: Callable[[Task, str], str]
    is_reached: bool = True
    has_checksum: bool = False
    is_private: bool = False


def find_source(image: str) -> Source:
    """Return the type of source that an image is from; what is of no other type must be a URL."""
    return next(source for source in _SOURCES if source.matches(image))


def read_verify(conf: cfg.ConfigOpts, image: str) -> bool | str:
    """Return what verifies the server that an image is fetched from, as :func:`fetching.read_verify` does."""
    return fetching.read_verify(conf, conf.oci.verify_ca if image.startswith(oci.SCHEME) else None)


def _identify(opened: "contextlib.AbstractContextManager[formats.Content]") -> formats.Found:
    with opened as content:
        return formats.identify(content)


# Web servers


def _check_web(task: Task, source: str) -> Json:
    allowed = "An http, https, file or oci URL, or the id of an image of Glance."
    fetches.check_url(task, "image_source", source, allowed)
    return {}


def _look_web(task: Task, source: str, _requested: str | None) -> tuple[Look, float]:
    networks, verify = fetches.read_networks(task), read_verify(task.conf, source)
    seconds = min(_SHORT, task.conf.webserver_connection_timeout)

    def look() -> Looked:
        with fetching.limit(seconds, networks):
            return Looked(_identify(contents.open_web(source, seconds, networks, verify)))

    return look, seconds


# Files


def _check_file(task: Task, source: str) -> Json:
    find_file(task, source)
    return {}


def find_file(task: Task, source: str) -> Path:
    """Return the file of an image.

    :raises Invalid: as :func:`published.find`.
    """
    return published.find(task, _FIELD, source)


def _look_file(task: Task, source: str, _requested: str | None) -> tuple[Look, float]:
    path = find_file(task, source)
    return lambda: Looked(_identify(contents.open_file(path))), task.conf.webserver_connection_timeout


def _publish_file(task: Task, source: str) -> str:
    return published.publish(task, _FIELD, source, published.IMAGE)


# Glance


def _look_glance(task: Task, source: str, _requested: str | None) -> tuple[Look, float]:
    image = glance.Image(task.conf, "instance_info.image_source", source)
    seconds = task.conf.webserver_connection_timeout

    def look() -> Looked:
        with fetching.limit(seconds):
            return Looked(_identify(contents.open_glance(image)))

    return look, seconds


# Registries


def _parse_reference(task: Task, source: str) -> oci.Reference:
    """
    :raises Invalid: it is no address of an image, or one that may not be reached.
    """
    reference = oci.parse(source)
    allowed = "oci://host/name:tag or oci://host/name@sha256:..., names in lower case."
    if reference is not None and not fetches.read_networks(task).permit(reference.hostname):
        reference, allowed = None, fetches.DENIED
    if reference is None:
        raise errors.Invalid(field="instance_info.image_source", value=source, allowed=allowed)
    return reference


def _check_registry(task: Task, source: str) -> Json:
    _parse_reference(task, source)
    if "://" in str(task.node.instance_info.get("image_checksum")):
        raise errors.Invalid(
            field="instance_info.image_checksum",
            value=task.node.instance_info["image_checksum"],
            allowed="A registry has digests of its images: leave it out.",
        )
    _read_pull_secret(task)
    return {}


def _read_pull_secret(task: Task) -> tuple[str, str] | None:
    """Return the user's secret for registries, or the node's.

    :raises Invalid: it is no text.
    """
    for holder in ("instance_info", "driver_info"):
        given = getattr(task.node, holder).get(PULL_SECRET)
        if given and (not isinstance(given, str) or not given.isprintable()):
            allowed = "user:password, the same in base64, or a token."
            raise errors.Invalid(field=f"{holder}.{PULL_SECRET}", value=given, allowed=allowed)
        if given:
            return oci.read_secret(given)
    return None


def _look_registry(task: Task, source: str, requested: str | None) -> tuple[Look, float]:
    reference, options, own = _parse_reference(task, source), task.conf.oci, _read_pull_secret(task)
    networks, seconds = fetches.read_networks(task), task.conf.webserver_connection_timeout
    verify = read_verify(task.conf, source)
    looks, architecture = not task.conf.conductor.disable_deep_image_inspection, task.node.properties.get("cpu_arch")

    def look() -> Looked:
        shared = None if own else oci.find_shared_secret(options.authentication_config, reference.host)
        falls_back, trusted = options.permit_fallback_to_http_transport, options.secure_cdn_registries
        access = oci.Access(own, shared, verify, falls_back, trusted)
        with fetching.limit(seconds, networks), fetching.explain_errors(seconds):
            blob = oci.Registry(reference, access).find_blob(architecture, requested)
            if not looks:
                return Looked(None, blob)
            return Looked(_identify(contents.open_web(blob.url, seconds, networks, verify, blob.authorization)), blob)

    return look, seconds


def read_container(task: Task, source: str) -> str | None:
    """Return the secret with which an agent pulls a container, None if none is known.

    It is what stands in a file of secrets (base64 of user:password), once more in base64.

    :raises Invalid: the address, or the node's secret, cannot be used.
    :raises ImageError: the operator's secrets cannot be read.
    """
    reference, options = _parse_reference(task, source), task.conf.oci
    secret = _read_pull_secret(task) or oci.find_shared_secret(options.authentication_config, reference.host)
    if secret is None:
        return None
    auth = base64.b64encode(":".join(secret).encode())
    return base64.b64encode(auth).decode()


def _refuse_offer(_task: Task, _source: str) -> str:
    raise errors.ImageError("an image of a registry is fetched from where its blob is")


_SOURCES = (
    Source(lambda source: source.startswith(FILE), _check_file, _look_file, _publish_file, has_checksum=True),
    Source(lambda source: source.startswith(oci.SCHEME), _check_registry, _look_registry, _refuse_offer,
           has_checksum=True, is_private=True),
    Source(glance_images.is_glance_image, glance_images.read_instance_info, _look_glance, glance_images.offer_image),
    Source(lambda _source: True, _check_web, _look_web, lambda _task, source: source, is_reached=False),
)  # fmt: skip


def withdraw(task: Task) -> None:
    """Withdraw whatever image was offered to the node.

    :raises ImageError: a link cannot be removed.
    """
    published.withdraw(task, published.IMAGE)
    glance_images.withdraw_image(task)
