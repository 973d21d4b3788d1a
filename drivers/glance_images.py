"""Images that are in Glance: checked there, and given to the node's machine by the API, as long as the node has a link.

A link is a URL of the API with a ticket in it that nobody can guess, for one node and one image. What the API serves is
in ``links`` of the node's ``boot_config``, which nobody is shown and nothing that a user writes gets into: ticket and
id of ``kernel`` and ``initrd`` as long as the machine may boot them, of the ``image`` while it is written to disk.
"""

import secrets
from typing import Any

from ingot.common import glance
from ingot.common.conf import loader
from ingot.drivers.task import Task

_LINKS = "links"
_FOR_ALL = ("public", "community")
_READ_ALL = frozenset(("admin", "service"))
"""Roles with which Glance itself shows images of other projects."""

_AS_INSTANCE_INFO = {
    "image_disk_format": "disk_format",
    "image_os_hash_algo": "os_hash_algo",
    "image_os_hash_value": "os_hash_value",
}


def is_one(source: str) -> bool:
    """Whether an image is given by its id in Glance."""
    return glance.ident(source) is not None


def usable(task: Task, field: str, source: str) -> dict[str, Any]:
    """What Glance tells of an image; nothing of one that is not in Glance.

    :param field: who names the image, for messages.
    :raises Invalid: it is not there, not active, or may not be read.
    :raises ImageServiceUnavailable: Glance does not answer.
    """
    if not is_one(source):
        return {}
    image = glance.Image(task.conf, field, source)
    told = image.document()
    if told.get("status") != "active":
        raise image.refused(f"In Glance the image is {told.get('status')}; it can be used when it is active.")
    return told


def check(task: Task, field: str, source: str) -> dict[str, Any]:
    """As :func:`usable`, of an image that is named by whoever the task works for: the user with whom Glance is asked
    may read more than they may.

    :raises Invalid: also if the image is another project's, and not shared.
    """
    told = usable(task, field, source)
    project = task.context.project_id
    if not told or project is None or told.get("visibility") in _FOR_ALL or told.get("owner") == project:
        return told
    if _READ_ALL & set(task.context.roles):
        return told
    image = glance.Image(task.conf, field, source)
    if not image.is_shared_with(project):
        raise image.refused(f"The image is another project's and not shared with project {project}.")
    return told


def facts(task: Task, source: str) -> dict[str, Any]:
    """What Glance tells of the image of a deployment, in the words of ``instance_info``.

    :raises IngotError: as :func:`check`; Invalid too for an image that is packed in something.
    """
    field = "instance_info.image_source"
    told = check(task, field, source)
    if told.get("container_format") != "bare":
        raise glance.Image(task.conf, field, source).refused(
            f"In Glance its container_format is {told.get('container_format')}; it must be bare."
        )
    parts = told.get("kernel_id") or told.get("ramdisk_id") or told.get("img_type") == "partition"
    known = {key: told[name] for key, name in _AS_INSTANCE_INFO.items() if told.get(name)}
    return {**known, "image_type": "partition" if parts else "whole-disk"}


def linked(task: Task, name: str, source: str) -> str:
    """A kernel or initrd as the machine fetches it: through a new link if it is in Glance, or else as it is given.

    :param name: of the link, which replaces any other of that name.
    :raises IngotError: as :func:`usable`.
    """
    return _link(task, name, source) if usable(task, name, source) else source


def offer(task: Task, source: str) -> str:
    """A new link to the image of a deployment, in place of any other; it works when this returns."""
    link = _link(task, "image", source)
    task.save()
    return link


def withdraw(task: Task) -> None:
    """Takes back what :func:`offer` gave, if anything."""
    links = task.node.boot_config.get(_LINKS, {})
    if "image" in links:
        _keep(task, {name: link for name, link in links.items() if name != "image"})


def _link(task: Task, name: str, source: str) -> str:
    link = f"{secrets.token_urlsafe(32)}/{glance.ident(source)}"
    _keep(task, {**task.node.boot_config.get(_LINKS, {}), name: link})
    return f"{loader.agent_api_url(task.conf)}/boot/images/{task.node.uuid}/{link}"


def _keep(task: Task, links: dict[str, str]) -> None:
    task.set(boot_config={**task.node.boot_config, _LINKS: links})
