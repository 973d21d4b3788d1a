"""The program that runs one playbook on one machine; it runs beside a conductor.

    python -m ingot.drivers.ansible.playbook_runner < job

The job is a :class:`Job` as JSON. Everything that it writes, keys and variables too, is in a directory that is removed
when it ends. A machine whose host key is not known is never listened to. What is said are lines of JSON: ``{"doing":
...}`` for each task, ``{"said": ...}`` for what Ansible prints, and, if it fails, ``{"failed": ...}``.
"""

import dataclasses
import json
import os
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import ansible_runner
import yaml

from ingot.common import masking

_LONGEST_SOCKET = 107 - len("/s.") - 16
"""Characters of a directory in which OpenSSH can have its socket: it adds a dot and 16 others to the name at first."""

_LIBRARY = Path(__file__).parent / "playbooks" / "library"


@dataclasses.dataclass(frozen=True, slots=True)
class Job:
    """Which playbook runs where.

    :param project: directory of playbooks. :param playbook: a path in it, or a whole one.
    :param tags: of the tasks that run; empty: all.
    :param host: name of the machine in the inventory. :param address, port, username: where and as whom to log in.
    :param key: a private key; or ``key_file``, where one is. :param known_hosts: what is known of hosts' keys.
    :param variables: what playbooks find as ``ironic``. :param configdrive: content of the config drive.
    :param arguments: further ones of the command line. :param config_file: of Ansible.
    """

    scratch: str
    project: str
    playbook: str
    tags: list[str]
    host: str
    address: str
    port: int
    username: str
    key: str
    key_file: str
    known_hosts: str
    variables: dict[str, Any]
    configdrive: str | None
    python: str | None
    verbosity: int
    arguments: str
    config_file: str


def main() -> int:
    """Do what the job on the standard input says. Exit code 1 and a reason if that fails."""
    job = Job(**json.load(sys.stdin))
    listener = _Listener()
    Path(job.scratch, "env").mkdir(mode=0o700)
    _keep(job, "env/extravars", _write_yaml({"ironic": _build_variables(job)}))  # where ansible-runner looks for them
    done = ansible_runner.interface.run(
        private_data_dir=job.scratch,
        project_dir=job.project,
        playbook=str(Path(job.project, job.playbook)),
        inventory=str(_keep(job, "inventory.yaml", _write_yaml(_build_inventory(job)))),
        envvars=_build_environment(job),
        cmdline=shlex.join([*(["--tags", ",".join(job.tags)] if job.tags else []), *shlex.split(job.arguments)]),
        verbosity=job.verbosity,
        quiet=True,
        event_handler=listener.hear,
    )
    if done.status == "successful" and listener.tasks:
        return 0
    reason = listener.failure or (
        "no task has run: no host, or no tag, fits" if done.status == "successful" else listener.last
    )
    _say(failed=masking.mask_text(reason or f"ansible-playbook ended with exit code {done.rc}"))
    return 1


def _say(**facts: object) -> None:
    print(json.dumps(facts), flush=True)  # noqa: T201 - the conductor reads it


class _Listener:
    """What Ansible says while it runs.

    :ivar tasks: how many have begun. :ivar failure: why one has failed. :ivar last: what was printed last.
    """

    def __init__(self) -> None:
        self.tasks, self.failure, self.last = 0, "", ""

    def hear(self, event: Mapping[str, Any]) -> bool:
        name, data = event.get("event"), event.get("event_data", {})
        if name == "playbook_on_task_start":
            self.tasks += 1
            _say(doing=str(data.get("task")))
        elif name in ("runner_on_failed", "runner_on_unreachable") and not data.get("ignore_errors"):
            self.failure = f"task {data.get('task')}: {_find_reason(data.get('res') or {})}"
        if text := str(event.get("stdout") or "").strip():
            self.last = text[-500:]
            _say(said=masking.mask_text(text)[:2000])
        return False  # nothing of it is kept


def _find_reason(result: Mapping[str, Any]) -> str:
    """Return why a task has failed, as its module says it."""
    words = [str(result.get(key) or "").strip() for key in ("msg", "stderr", "module_stderr")]
    return "; ".join(word[-1000:] for word in words if word) or "it says nothing"


class _Text(str):
    """A text that Ansible does not take for a template, whatever is in it."""


class _Dumper(yaml.SafeDumper):  # type: ignore[misc]  # it has no types
    def ignore_aliases(self, _data: object) -> bool:
        return True


_Dumper.add_representer(_Text, lambda dumper, text: dumper.represent_scalar("!unsafe", str(text), style='"'))


def _write_yaml(value: Mapping[str, Any]) -> str:
    """Return variables for Ansible: a template among them, from a node, user or machine, would run on this host."""
    return str(yaml.dump(_mark(value), Dumper=_Dumper))


def _mark(value: object) -> object:
    if isinstance(value, Mapping):
        return {key: _mark(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_mark(one) for one in value]
    return _Text(value) if isinstance(value, str) else value


def _build_inventory(job: Job) -> dict[str, Any]:
    """Return an inventory with the machine as the only one of group ``ironic``, beside this host as ``conductor``."""
    key = Path(job.key_file or _keep(job, "key", job.key))
    machine: dict[str, object] = {
        "ansible_host": job.address,
        "ansible_port": job.port,
        "ansible_user": job.username,
        "ansible_ssh_private_key_file": str(key),
        "ansible_ssh_extra_args": _join(_share_connection(job)),
        **({"ansible_python_interpreter": job.python} if job.python else {}),
    }
    conductor = {"ansible_connection": "local", "ansible_python_interpreter": sys.executable}
    return {"all": {"hosts": {"conductor": conductor}, "children": {"ironic": {"hosts": {job.host: machine}}}}}


def _build_variables(job: Job) -> dict[str, Any]:
    if job.configdrive is None:
        return job.variables
    drive = {"type": "file", "location": str(_keep(job, "configdrive", job.configdrive))}
    return {**job.variables, "configdrive": drive}


def _keep(job: Job, name: str, content: str) -> Path:
    path = Path(job.scratch, name)
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(content)
    return path


def _share_connection(job: Job) -> dict[str, str]:
    """Return options of OpenSSH that have all tasks share one connection, if the name of its socket is short enough.

    They are for the machine only: a task that is delegated elsewhere must not come by this connection.
    """
    if len(job.scratch) > _LONGEST_SOCKET:
        return {"ControlMaster": "no"}
    return {"ControlMaster": "auto", "ControlPersist": "60", "ControlPath": f"{job.scratch}/s"}


def _join(options: Mapping[str, str]) -> str:
    return shlex.join(word for name, value in options.items() for word in ("-o", f"{name}={value}"))


def _build_environment(job: Job) -> dict[str, str]:
    """Return the settings of Ansible, which are stronger than those of its files."""
    options = {
        "StrictHostKeyChecking": "yes",
        "UserKnownHostsFile": str(_keep(job, "known_hosts", job.known_hosts)),
        "GlobalKnownHostsFile": "/dev/null",
        "IdentitiesOnly": "yes",
        "PasswordAuthentication": "no",
        "ForwardAgent": "no",
        "ConnectTimeout": "30",
        "ServerAliveInterval": "15",
        "ServerAliveCountMax": "4",
    }
    return {
        "ANSIBLE_CONFIG": job.config_file or str(_keep(job, "ansible.cfg", "")),  # else it looks for one
        "ANSIBLE_SSH_ARGS": f"-F /dev/null {_join(options)}",
        "ANSIBLE_HOST_KEY_CHECKING": "True",
        "ANSIBLE_PIPELINING": "True",
        "ANSIBLE_LIBRARY": str(_LIBRARY),
        "ANSIBLE_HOME": f"{job.scratch}/home",
        "ANSIBLE_LOCAL_TEMP": f"{job.scratch}/local",
        "ANSIBLE_RETRY_FILES_ENABLED": "False",
        "ANSIBLE_NOCOLOR": "True",
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
    }


if __name__ == "__main__":
    sys.exit(main())
