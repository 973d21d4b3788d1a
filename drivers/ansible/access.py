"""How Ansible gets into a machine: a key that the agent lets in, and the host key that the agent vouches for."""

import re
import urllib.parse
from pathlib import Path
from typing import NamedTuple

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ed25519

from ingot.common import errors
from ingot.drivers.agent import answers, client
from ingot.drivers.ansible import driver_info
from ingot.drivers.interfaces.task import Task

_HOST_KEY = re.compile("[a-z0-9@.-]+ [A-Za-z0-9+/]+={0,2}")
_SSH = 22
"""The port without which known_hosts has names of hosts."""


class Way(NamedTuple):
    """How a machine is reached.

    :param key: a private key; empty if ``key_file`` has it.
    :param host_keys: of the machine; None: the operator's file knows them.
    :param root_device: the disk that a system is written to, as the agent says.
    """

    key: str
    key_file: str
    host_keys: list[str] | None
    root_device: str | None


def read_user(task: Task) -> str:
    return str(driver_info.read(task, "ansible_username", "default_username"))


def find_host(task: Task) -> str:
    return str(urllib.parse.urlsplit(str(task.node.agent_url)).hostname)


def open_way(task: Task) -> Way:
    """Have the agent let a key in, and say which host key its machine has.

    :raises StepFailed: it cannot, and the operator has not said which host keys are right.
    """
    key_file = driver_info.read(task, "ansible_key_file", "default_key_file") or ""
    key, public = _make_key() if not key_file else ("", _read_public_key(key_file))
    params = {"username": read_user(task), "public_key": public, "port": task.conf.ansible.ssh_port}
    try:
        host_keys, root_device = client.AgentClient(task).ask_for("ssh.start_server", params, _read_answer)
    except client.CommandNotFound as exc:
        if not (key_file and task.conf.ansible.known_hosts_file):
            raise errors.StepFailed(
                "the agent has no extension ssh: its ramdisk needs ingot-agent-extensions, or [ansible] "
                f"known_hosts_file and default_key_file ({exc.message})"
            ) from exc
        return Way("", key_file, None, None)
    return Way(key, key_file, host_keys, root_device)


def _make_key() -> tuple[str, str]:
    """Return a new private key and its public one, as OpenSSH writes them."""
    key = ed25519.Ed25519PrivateKey.generate()
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.OpenSSH, serialization.NoEncryption()
    )
    public = key.public_key().public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
    return private.decode(), public.decode()


def _read_public_key(path: str) -> str:
    try:
        key = serialization.load_ssh_private_key(Path(path).read_bytes(), password=None)
    except (OSError, ValueError, TypeError) as exc:
        reason = f"driver_info.ansible_key_file {path} is no private key without a passphrase: {exc}"
        raise errors.StepFailed(reason) from exc
    public = key.public_key().public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
    return public.decode()


def _read_answer(answer: object) -> tuple[list[str], str | None]:
    """Return host keys and root device of what an agent answers; nothing in it can become another line of a file."""
    found = answers.read_object("result", answer)
    keys = [answers.read_text("host_keys", key) for key in answers.read_list("host_keys", found.get("host_keys"))]
    for key in keys:
        if not _HOST_KEY.fullmatch(key):
            raise answers.Malformed("host_keys", key, "it must be a public key of OpenSSH")
    device = found.get("root_device")
    return keys, None if device is None else answers.read_text("root_device", device)


def read_known_hosts(task: Task, way: Way) -> str:
    """Return what OpenSSH is to know of hosts' keys.

    :raises StepFailed: the operator's file cannot be read.
    """
    if way.host_keys is None:
        try:
            return Path(task.conf.ansible.known_hosts_file).read_text()
        except (OSError, UnicodeDecodeError) as exc:
            raise errors.StepFailed(f"[ansible] known_hosts_file cannot be read: {exc}") from exc
    host, port = find_host(task), task.conf.ansible.ssh_port
    name = host if port == _SSH else f"[{host}]:{port}"
    return "".join(f"{name} {key}\n" for key in way.host_keys)
