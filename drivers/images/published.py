"""Files of the conductor's host (``file://``) for machines: they are linked where a web server serves them.

The operator says which directories such files may be in.
"""

import contextlib
import os
import shutil
import urllib.parse
from pathlib import Path

from ingot.common import errors
from ingot.drivers.interfaces.task import Task

FILE = "file://"
IMAGE, BOOT = "ingot-images", "ingot-boot"
"""Directories below ``[deploy] http_root``: for what is written to disks, and for what machines boot."""


def find(task: Task, field: str, source: str) -> Path:
    """Return the file of a ``file://`` URL, links resolved, so that none leads out of where files may be.

    :param field: what has the URL, for messages.
    :raises Invalid: it is elsewhere.
    """
    options, allowed = task.conf.deploy, None
    given = urllib.parse.unquote(source.removeprefix(FILE))
    path = Path(os.path.realpath(given.replace("\0", "")))
    if "\0" in given:
        allowed = "No name of a file holds a NUL (%00)."
    elif not (options.http_root and options.http_url):
        allowed = "An http or https URL; file:// needs the options [deploy] http_root and http_url."
    elif not any(path.is_relative_to(os.path.realpath(place)) for place in options.file_url_allowed_paths):
        allowed = f"A file in {', '.join(options.file_url_allowed_paths)} ([deploy] file_url_allowed_paths)."
    if allowed is not None:
        raise errors.Invalid(field=field, value=source, allowed=allowed)
    return path


def publish(task: Task, field: str, source: str, folder: str, prefix: str = "") -> str:
    """Link a file where a web server serves it, and return its address there. Safe to repeat.

    :param folder: one of ``IMAGE`` and ``BOOT``.
    :param prefix: of the link's name, which tells apart files of one name.
    :raises ImageError: there is no such file on this host, or it cannot be linked.
    """
    path = find(task, field, source)
    link = _find_folder(task, folder) / f"{prefix}{path.name}"
    try:
        if not path.is_file():
            raise errors.ImageError(f"{field}: there is no file {path} on this conductor's host")
        for one in (link.parent.parent, link.parent):
            one.mkdir(parents=True, exist_ok=True)
            one.chmod(0o755)  # a web server of another user reads them
        link.unlink(missing_ok=True)
        try:
            os.link(path, link)
        except OSError:  # another file system, or one without hard links
            link.symlink_to(path)
    except OSError as exc:
        raise errors.ImageError(f"{field}: {path} cannot be published at {link} ([deploy] http_root): {exc}") from exc
    base = task.conf.deploy.http_url.rstrip("/")
    return f"{base}/{folder}/{task.node.uuid}/{urllib.parse.quote(link.name)}"


def withdraw(task: Task, folder: str) -> None:
    """Withdraw whatever is published for the node in a folder.

    :raises ImageError: a link cannot be removed.
    """
    if not task.conf.deploy.http_root:
        return
    place = _find_folder(task, folder)
    try:
        with contextlib.suppress(FileNotFoundError):
            shutil.rmtree(place)
    except OSError as exc:
        raise errors.ImageError(f"{place} cannot be removed ([deploy] http_root): {exc.strerror}") from exc


def _find_folder(task: Task, folder: str) -> Path:
    return Path(task.conf.deploy.http_root, folder, task.node.uuid)
