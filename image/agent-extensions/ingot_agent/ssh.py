"""Lets the conductor in by SSH, with a key that it names; before that nothing listens.

The host's keys are made for this run of the ramdisk. They go to the conductor in the answer, under the agent's TLS,
so that it never has to believe a machine that only says to be this one.
"""

import os
import pwd
import re

from ironic_python_agent import errors, hardware, utils
from ironic_python_agent.extensions import base
from oslo_concurrency import processutils
from oslo_log import log

LOG = log.getLogger(__name__)

_PLACE = "/run/ingot-ssh"
_SERVER = "/usr/sbin/sshd"
_NAME = re.compile("[a-z_][a-z0-9_-]{0,30}")
_KEY = re.compile("(ssh|ecdsa|sk-ssh|sk-ecdsa)-[A-Za-z0-9@.-]+ [A-Za-z0-9+/]+={0,2}( [ -~]*)?")
# Modes are not asked for: the root directory of a ramdisk is often open to all users, as /tmp is, of whom it has none.
_CONFIGURATION = """\
Port {port}
HostKey {place}/host_key
AuthorizedKeysFile {place}/authorized_keys
StrictModes no
AllowUsers {username}
PermitRootLogin prohibit-password
PasswordAuthentication no
KbdInteractiveAuthentication no
UsePAM no
AllowTcpForwarding no
X11Forwarding no
PidFile {place}/sshd.pid
Subsystem sftp internal-sftp
"""


class SshExtension(base.BaseAgentExtension):
    """The commands ``ssh.*``."""

    @base.sync_command("start_server")
    def start_server(self, username, public_key, port=22):
        """Let a user in who has the private key; who was let in before is not any more.

        :raises InvalidCommandParamsError: a parameter cannot be used.
        :raises CommandExecutionError: the server does not start.
        """
        if not _NAME.fullmatch(str(username)) or not _KEY.fullmatch(str(public_key)):
            raise errors.InvalidCommandParamsError("start_server needs a user's name and one public key of OpenSSH")
        try:
            self._start(username, public_key, int(port))
            with open(f"{_PLACE}/host_key.pub") as file:
                return {"host_keys": [" ".join(file.read().split()[:2])], "root_device": _find_root_device()}
        except (OSError, processutils.ProcessExecutionError) as exc:
            raise errors.CommandExecutionError(f"sshd cannot be started: {exc}") from exc

    def _start(self, username, public_key, port):
        os.makedirs(_PLACE, mode=0o755, exist_ok=True)
        os.makedirs("/run/sshd", mode=0o755, exist_ok=True)
        _make_user(username)
        if not os.path.exists(f"{_PLACE}/host_key"):
            _run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", f"{_PLACE}/host_key")
        _stop()
        _write("authorized_keys", f"{public_key}\n")
        options = _CONFIGURATION.format(port=port, place=_PLACE, username=username)
        _write("sshd_config", options)
        _run(_SERVER, "-f", f"{_PLACE}/sshd_config")
        LOG.info("%s may log in at port %s", username, port)


def _find_root_device():
    """Return the disk that a system is written to; None if there is none, which not every playbook minds."""
    try:
        return hardware.dispatch_to_managers("get_os_install_device", permit_refresh=True)
    except errors.DeviceNotFound as exc:
        LOG.warning("no disk for a system: %s", exc)
        return None


def _make_user(username):
    """Make a user who may do everything, unless there is one of that name: a ramdisk has no sudo."""
    try:
        pwd.getpwnam(username)
    except KeyError:
        _run(
            *("useradd", "--key", "UID_MIN=0", "--non-unique", "--uid", "0", "--gid", "0", "--password", "*"),
            *("--home-dir", "/root", "--shell", "/bin/bash", username),
        )


def _stop():
    try:
        with open(f"{_PLACE}/sshd.pid") as file:
            os.kill(int(file.read()), 15)
    except (OSError, ValueError):
        return  # there is none


def _write(name, text):
    with open(os.open(f"{_PLACE}/{name}", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        file.write(text)


def _run(*command):
    """Run a command, with its error output in what is raised."""
    _, said = utils.execute(*command)
    if said:
        LOG.info("%s: %s", command[0], said)
