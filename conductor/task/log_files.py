"""Writes the logs of agents into files, too, for what follows a directory: ``[agent] deploy_logs_local_path``.

Names are as Ironic's, which tools know that print such files.
"""

import contextlib
import pathlib
import re
import stat
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
    except OSError as exc:
        LOG.warning("Node %s: its agent's logs are not written to %s: %s", task.node.uuid, folder, _explain(exc))
        return
    try:
        _remove_old(task, folder)
    except OSError as exc:
        LOG.warning("Node %s: old logs of its agent stay in %s: %s", task.node.uuid, folder, _explain(exc))


def _explain(exc: OSError) -> str:
    return exc.strerror or type(exc).__name__


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
    own = []
    for path in folder.glob(f"{task.node.uuid}_*{_SUFFIX}"):
        with contextlib.suppress(FileNotFoundError):  # what follows the directory may remove files at any moment
            found = path.lstat()
            if stat.S_ISREG(found.st_mode):
                own.append((found.st_mtime_ns, path))
    for _moment, path in sorted(own)[: -task.conf.agent.deploy_logs_max_per_node]:
        path.unlink(missing_ok=True)
