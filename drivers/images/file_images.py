"""Images that are files of the conductor's host (``file://``): linked where a web server serves them to machines.

The operator says which directories such files may be in; a symbolic link out of them is followed before that is
checked, so that it leads nowhere.
"""

import contextlib
import os
import shutil
import urllib.parse
from pathlib import Path

from oslo_config import cfg

from ingot.common import errors
from ingot.drivers.interfaces.task import Task

_SCHEME = "file://"
_FOLDER = "ingot-images"


def is_file(source: str) -> bool:
    """Return whether an image is given as a file of this host."""
    return str(source).startswith(_SCHEME)


def find_path(source: str, conf: cfg.ConfigOpts) -> Path:
    """Return the file of a ``file://`` URL, links resolved.

    :raises Invalid: it is in no directory of ``[deploy] file_url_allowed_paths``, or nothing serves files.
    """
    options = conf.deploy
    if not (options.http_root and options.http_url):
        raise errors.Invalid(
            field="instance_info.image_source",
            value=source,
            allowed="An http or https URL; file:// needs the options [deploy] http_root and http_url.",
        )
    path = Path(os.path.realpath(urllib.parse.unquote(source.removeprefix(_SCHEME))))
    if not any(path.is_relative_to(os.path.realpath(allowed)) for allowed in options.file_url_allowed_paths):
        raise errors.Invalid(
            field="instance_info.image_source",
            value=source,
            allowed=f"A file in {', '.join(options.file_url_allowed_paths)} ([deploy] file_url_allowed_paths).",
        )
    return path


def publish(task: Task, source: str) -> str:
    """Publish the file of a ``file://`` URL for the task's node and return its address there. Safe to repeat.

    :raises ImageError: there is no such file on this host, or it cannot be linked.
    """
    path = find_path(source, task.conf)
    if not path.is_file():
        raise errors.ImageError(f"image_source: there is no file {path} on this conductor's host")
    link = _node_folder(task) / path.name
    try:
        link.parent.mkdir(parents=True, exist_ok=True)
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


def withdraw(task: Task) -> None:
    """Remove what :func:`publish` published for the node, if anything.

    :raises ImageError: it cannot be removed.
    """
    if not task.conf.deploy.http_root:
        return
    folder = _node_folder(task)
    try:
        with contextlib.suppress(FileNotFoundError):
            shutil.rmtree(folder)
    except OSError as exc:
        raise errors.ImageError(f"{folder} cannot be removed ([deploy] http_root): {exc.strerror}") from exc


def _node_folder(task: Task) -> Path:
    return Path(task.conf.deploy.http_root, _FOLDER, task.node.uuid)
