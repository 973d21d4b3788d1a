"""What a node, or else the operator, says of Ansible: users, keys, and files in a directory of playbooks."""

from pathlib import Path

from ingot.common import errors
from ingot.drivers.interfaces.task import Task

_OWN = Path(__file__).parent / "playbooks"

PATH = "ansible_playbooks_path"
FILES = {
    "ansible_deploy_playbook": "default_deploy_playbook",
    "ansible_shutdown_playbook": "default_shutdown_playbook",
    "ansible_clean_playbook": "default_clean_playbook",
    "ansible_clean_steps_config": "default_clean_steps_config",
}
"""Key of driver_info that names a file in the directory of playbooks -> the option of [ansible] for other nodes."""


def read(task: Task, key: str, option: str) -> str | None:
    """Return what the node says, else what the operator says of all nodes."""
    found = task.node.driver_info.get(key) or task.conf.ansible[option]
    return str(found) if found else None


def _find_directory(task: Task) -> Path:
    """Return the node's directory of playbooks: the operator's, or one in it.

    What is in there runs on the conductor's host, and who may edit driver_info must not have another file run there.

    :raises Invalid: the node names one that is elsewhere.
    """
    general, own = Path(task.conf.ansible.playbooks_path or _OWN), task.node.driver_info.get(PATH)
    if not own:
        return general
    place = (general / str(own).replace("\0", "")).resolve()
    if not place.is_relative_to(general.resolve()):
        allowed = f"[ansible] playbooks_path, which is {general}, or a directory in it."
        raise errors.Invalid(field=f"driver_info.{PATH}", value=own, allowed=allowed)
    return place


def find_file(task: Task, key: str) -> Path:
    """Return the path of a file in the directory of playbooks.

    :raises Invalid: it is not there, or the name leads out of the directory.
    """
    directory, name = _find_directory(task), str(read(task, key, FILES[key]))
    if Path(name).name != name or not (directory / name).is_file():
        allowed = f"The name of a file in {directory} on the conductor's host ({PATH}, [ansible] playbooks_path)."
        raise errors.Invalid(field=f"driver_info.{key}", value=name, allowed=allowed)
    return directory / name
