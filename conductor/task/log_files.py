"""Writes the logs of agents into files, too, for what follows a directory: ``[agent] deploy_logs_local_path``.

Names are as Ironic's, which tools know that print such files.
"""

import contextlib
import pathlib
import re
from collections.abc import Iterator

from oslo_log import log

from ingot.common import clock
from ingot.conductor.task.task_manager import Task

LOG = log.getLogger(__name__)

_SUFFIX = ".tar.gz"
_UNFIT = re.compile(r"[^A-Za-z0-9.~-]")
_MOST_OF_A_SECOND = 10


def write(task: Task, flow_name: str, content: bytes) -> None:
    """Write logs into a file of the node's, and remove its oldest ones; nothing is raised that concerns files.

    At most ``[agent] deploy_logs_max_per_node`` files of a node stay.
    """
    place = task.conf.agent.deploy_logs_local_path
    if not place:
        return
    folder = pathlib.Path(place)
    try:
        folder.mkdir(mode=0o750, parents=True, exist_ok=True)
        path = _write_new(folder, _build_name(task, flow_name), content)
        LOG.info("Node %s: %d bytes of its agent's logs are in %s", task.node.uuid, len(content), path)
        _remove_old(task, folder)
    except OSError as exc:
        reason = exc.strerror or type(exc).__name__
        LOG.warning("Node %s: its agent's logs are not written to %s: %s", task.node.uuid, folder, reason)


def _build_name(task: Task, flow_name: str) -> str:
    """Return a name of letters that no shell minds: uuid, name and instance of the node, flow, time."""
    node = task.node
    parts = (node.uuid, node.name, node.instance_uuid, flow_name, clock.now().strftime("%Y-%m-%d-%H-%M-%S"))
    return "_".join(_UNFIT.sub("-", str(part))[:100] for part in parts if part)


def _write_new(folder: pathlib.Path, name: str, content: bytes) -> pathlib.Path:
    """Write a new file, by its last name: what watches the directory reads a file when it is closed.

    :raises OSError: that is not possible.
    """
    for path in _list_names(folder, name):
        with contextlib.suppress(FileExistsError), path.open("xb") as file:
            file.write(content)
            return path
    raise FileExistsError(0, "there are too many of this second")


def _list_names(folder: pathlib.Path, name: str) -> Iterator[pathlib.Path]:
    yield folder / f"{name}{_SUFFIX}"
    for number in range(2, _MOST_OF_A_SECOND):
        yield folder / f"{name}-{number}{_SUFFIX}"


def _remove_old(task: Task, folder: pathlib.Path) -> None:
    own = [path for path in folder.glob(f"{task.node.uuid}_*{_SUFFIX}") if path.is_file() and not path.is_symlink()]
    own.sort(key=lambda path: path.stat().st_mtime_ns)
    for path in own[: -task.conf.agent.deploy_logs_max_per_node]:
        path.unlink(missing_ok=True)
