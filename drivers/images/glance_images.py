"""Images that are in Glance: checked there, and given to the node's machine by the API, as long as the node has a link,
or, where the operator says so, by Swift.

A link is a URL of the API with a secret ticket in it, for one node and one image. What the API serves is in ``links``
of the node's ``boot_config``, which is never shown and which nothing that a user writes gets into: ticket and id of
``kernel`` and ``initrd`` as long as the machine may boot them, of the ``image`` while it is written to disk.
"""

import secrets

from ingot.common import errors, glance
from ingot.common.conf import opts
from ingot.common.json_types import Json
from ingot.drivers.images import swift_urls
from ingot.drivers.interfaces.task import Task

_FOR_ALL = ("public", "community")
_READ_ALL = frozenset(("admin", "service"))
"""Roles with which Glance itself shows images of other projects."""

DOWNLOAD_SOURCE = "image_download_source"
_DOWNLOAD_SOURCES = ("http", "local", "swift")

_AS_INSTANCE_INFO = {
    "image_disk_format": "disk_format",
    "image_os_hash_algo": "os_hash_algo",
    "image_os_hash_value": "os_hash_value",
}


def is_glance_image(source: str) -> bool:
    """Return whether an image is given by its id in Glance."""
    return glance.ident(source) is not None


def read_image(task: Task, field: str, source: str) -> Json:
    """Return Glance's record of an image; an empty one if it is not in Glance.

    :param field: who names the image, for messages.
    :raises Invalid: it is not there, not active, or may not be read.
    :raises ImageServiceUnavailable: Glance does not answer.
    """
    if not is_glance_image(source):
        return {}
    image = glance.Image(task.conf, field, source)
    record = image.document()
    if record.get("status") != "active":
        raise image.refused_error(f"In Glance the image is {record.get('status')}; it can be used when it is active.")
    return record


def read_permitted_image(task: Task, field: str, source: str) -> Json:
    """Return what :func:`read_image` does, of an image that the task's user names.

    The user with which Ingot asks Glance may read more than the task's user may.

    :raises Invalid: also if the image is another project's, and not shared.
    """
    record = read_image(task, field, source)
    project = task.context.project_id
    if not record or project is None or record.get("visibility") in _FOR_ALL or record.get("owner") == project:
        return record
    if _READ_ALL & set(task.context.roles):
        return record
    image = glance.Image(task.conf, field, source)
    if not image.is_shared_with(project):
        raise image.refused_error(f"The image is another project's and not shared with project {project}.")
    return record


def read_instance_info(task: Task, source: str) -> Json:
    """Return what Glance knows of the image of a deployment, in the words of ``instance_info``.

    :raises IngotError: as :func:`read_permitted_image`; Invalid too for an image that is packed in something.
    """
    field = "instance_info.image_source"
    record = read_permitted_image(task, field, source)
    if record.get("container_format") != "bare":
        raise glance.Image(task.conf, field, source).refused_error(
            f"In Glance its container_format is {record.get('container_format')}; it must be bare."
        )
    field, where = find_download_source(task)
    lack = swift_urls.find_lack(task.conf) if where == "swift" else None
    if lack:
        raise errors.Invalid(field=field, value=where, allowed=lack)
    parts = record.get("kernel_id") or record.get("ramdisk_id") or record.get("img_type") == "partition"
    facts = {key: record[name] for key, name in _AS_INSTANCE_INFO.items() if record.get(name)}
    return {**facts, "image_type": "partition" if parts else "whole-disk"}


def find_download_source(task: Task) -> tuple[str, str]:
    """Return from where the node's machine downloads an image of Glance, after the option or field that says so.

    :raises Invalid: there is no such source.
    """
    for holder in ("instance_info", "driver_info"):
        if given := getattr(task.node, holder).get(DOWNLOAD_SOURCE):
            field = f"{holder}.{DOWNLOAD_SOURCE}"
            if given not in _DOWNLOAD_SOURCES:
                raise errors.Invalid(field=field, value=given, allowed=f"One of {', '.join(_DOWNLOAD_SOURCES)}.")
            return field, given
    return f"[agent] {DOWNLOAD_SOURCE}", task.conf.agent.image_download_source


def link_file(task: Task, name: str, source: str) -> str:
    """Return a kernel or initrd as the machine fetches it: through a new link if it is in Glance, or else as given.

    :param name: of the link, which replaces any other of that name.
    :raises IngotError: as :func:`read_image`.
    """
    return _create_link(task, name, source) if read_image(task, name, source) else source


def offer_image(task: Task, source: str) -> str:
    """Return a new link to the image of a deployment, in place of any other; it works when this returns.

    A signed URL of Swift ends later, and cannot be withdrawn before.
    """
    _field, where = find_download_source(task)
    if where == "swift":
        return swift_urls.build(task.conf, str(glance.ident(source)))
    link = _create_link(task, "image", source)
    task.save()
    return link


def withdraw_image(task: Task) -> None:
    """Revoke the link that :func:`offer_image` returned, if any."""
    links = dict(task.node.boot_config.get("links", {}))
    if links.pop("image", None):
        task.set(boot_config={**task.node.boot_config, "links": links})


def _create_link(task: Task, name: str, source: str) -> str:
    link = f"{secrets.token_urlsafe(32)}/{glance.ident(source)}"
    links = {**task.node.boot_config.get("links", {}), name: link}
    task.set(boot_config={**task.node.boot_config, "links": links})
    return f"{opts.agent_api_url(task.conf)}/boot/images/{task.node.uuid}/{link}"
