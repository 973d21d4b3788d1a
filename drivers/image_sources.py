"""Where the image of a deployment comes from: a table, by how ``instance_info.image_source`` names it."""

import urllib.parse
from collections.abc import Callable
from typing import Any, NamedTuple

from ingot.common import errors
from ingot.drivers import glance_images, published
from ingot.drivers.task import Task


class Source(NamedTuple):
    """A kind of source.

    :param has: whether an image is of this kind.
    :param check: checks it before a deployment, and returns what is known of it in the words of ``instance_info``.
    :param offer: the URL at which the node's machine can fetch it from then on. Safe to repeat.
    :param withdraw: takes back what was offered to the node, if anything.
    """

    has: Callable[[str], bool]
    check: Callable[[Task, str], dict[str, Any]]
    offer: Callable[[Task, str], str]
    withdraw: Callable[[Task], None]


def check_url(key: str, value: Any, allowed: str) -> None:
    """
    :raises Invalid: a value of ``instance_info`` is no http or https URL.
    """
    try:
        parts = urllib.parse.urlsplit(str(value))
        usable = parts.scheme in ("http", "https") and bool(parts.hostname)
    except ValueError:
        usable = False
    if not usable:
        raise errors.Invalid(field=f"instance_info.{key}", value=value, allowed=allowed)


def _check_web(_task: Task, source: str) -> dict[str, Any]:
    check_url("image_source", source, "An http, https or file URL, or the id of an image of Glance.")
    return {}


def _check_file(task: Task, source: str) -> dict[str, Any]:
    published.path_of(source, task.conf)
    return {}


_KINDS = (
    Source(published.is_file, _check_file, published.url, published.withdraw),
    Source(glance_images.is_one, glance_images.facts, glance_images.offer, glance_images.withdraw),
    Source(lambda _source: True, _check_web, lambda _task, source: source, lambda _task: None),
)


def of(source: str) -> Source:
    """The kind of source that an image is from; what is of no other kind must be a URL."""
    return next(kind for kind in _KINDS if kind.has(source))


def withdraw(task: Task) -> None:
    """Takes back whatever image was offered to the node."""
    for kind in _KINDS:
        kind.withdraw(task)
