"""Where the image of a deployment comes from: a table, by how ``instance_info.image_source`` names it."""

import urllib.parse
from collections.abc import Callable
from typing import NamedTuple

from ingot.common import errors
from ingot.common.json_types import Json
from ingot.drivers.images import file_images, glance_images
from ingot.drivers.interfaces.task import Task


class Source(NamedTuple):
    """A type of source.

    :param matches: whether an image is from a source of this type.
    :param check: checks it before a deployment, and returns what is known of it in the words of ``instance_info``.
    :param offer: the URL at which the node's machine can fetch it from then on. Safe to repeat.
    :param withdraw: withdraws what was offered to the node, if anything.
    """

    matches: Callable[[str], bool]
    check: Callable[[Task, str], Json]
    offer: Callable[[Task, str], str]
    withdraw: Callable[[Task], None]


def check_url(key: str, value: object, allowed: str) -> None:
    """Check that a value of ``instance_info`` is an http or https URL.

    :raises Invalid: it is not.
    """
    try:
        parts = urllib.parse.urlsplit(str(value))
        is_url = parts.scheme in ("http", "https") and bool(parts.hostname)
    except ValueError:
        is_url = False
    if not is_url:
        raise errors.Invalid(field=f"instance_info.{key}", value=value, allowed=allowed)


def _check_web(_task: Task, source: str) -> Json:
    check_url("image_source", source, "An http, https or file URL, or the id of an image of Glance.")
    return {}


def _check_file(task: Task, source: str) -> Json:
    file_images.find_path(source, task.conf)
    return {}


_SOURCES = (
    Source(file_images.is_file, _check_file, file_images.publish, file_images.withdraw),
    Source(
        glance_images.is_glance_image,
        glance_images.read_instance_info,
        glance_images.offer_image,
        glance_images.withdraw_image,
    ),
    Source(lambda _source: True, _check_web, lambda _task, source: source, lambda _task: None),
)


def find_source(image: str) -> Source:
    """Return the type of source that an image is from; what is of no other type must be a URL."""
    return next(source for source in _SOURCES if source.matches(image))


def withdraw(task: Task) -> None:
    """Withdraw whatever image was offered to the node."""
    for source in _SOURCES:
        source.withdraw(task)
