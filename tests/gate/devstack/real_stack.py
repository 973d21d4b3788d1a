"""Runs DevStack itself with the plugin, in a Debian and a network of its own: by hand, where its sources are.

    python -m tests.gate.devstack.real_stack SOURCES [--local-conf FILE] [--tests REGEX] [--log DIRECTORY]

SOURCES is a directory with ``openstack/devstack.git``, ``openstack/requirements.git`` and the other repositories that
the services of local.conf need. It takes root, mmdebstrap, systemd-nspawn and slirp4netns. What apt and pip of this
computer are configured for, those of the container reach.
"""

import argparse
import pathlib
import shlex
import subprocess
import sys
import tempfile
import time

import fixtures

from tests.gate import debian, environments, tempest

_PACKAGES = (
    *("acl", "adduser", "ca-certificates", "curl", "dbus", "genisoimage", "git", "gnupg", "iproute2", "iputils-ping"),
    *("kmod", "libpam-systemd", "locales", "lsb-release", "parted", "procps", "python3", "python3-dev"),
    *("python3-pip", "python3-venv", "sudo", "systemd-sysv", "uuid-runtime", "wget"),
)
_SOURCES = "/srv/git"
_PLUGIN = "/srv/ingot.git"
_ADDRESS = "10.0.2.100"
"""Of the container, in the network that slirp4netns makes for it."""
_CONSTRAINTS = "/opt/stack/requirements/upper-constraints.txt"
_NAME_SERVER = "10.0.2.3"
_AUTHORITIES = pathlib.Path("/etc/ssl/certs/ca-certificates.crt")
_PIP = pathlib.Path("/etc/pip.conf")

_LOCAL_CONF = f"""[[local|localrc]]
ADMIN_PASSWORD=secretadmin
DATABASE_PASSWORD=secretdatabase
RABBIT_PASSWORD=secretrabbit
SERVICE_PASSWORD=secretservice
HOST_IP={_ADDRESS}
IP_VERSION=4
GIT_BASE=file://{_SOURCES}
LOG_COLOR=False
SERVICE_TIMEOUT=300
ENABLED_SERVICES=key,mysql,rabbit,tempest
# Those of the network are not reached.
TEMPEST_VENV_UPPER_CONSTRAINTS={_CONSTRAINTS}
IRONIC_VM_COUNT=2
INGOT_CONDUCTORS=2
enable_plugin ingot file://{_PLUGIN} tested
"""

_SERVER = """
export OS_CLOUD=devstack
openstack server create --flavor baremetal --image ingot-disk --network private --wait one && \
    openstack server delete --wait one
"""
"""A server of a machine, made and removed by a user of the cloud."""

_LEFT = """
! ls -d /etc/ingot /opt/stack/data/ingot /etc/apache2/sites-*/ingot* /etc/systemd/system/devstack@ir-* && \
    ! pgrep -a -f 'ingot-(api|conductor|rack)|[h]ttpboot'
"""
"""Whether nothing is left: neither file nor process."""

_NEEDED = ("clone", "stack")
"""Steps without which the others are idle."""


class Host(fixtures.Fixture):  # type: ignore[misc]
    """A Debian with a user ``stack``, the sources, and this commit of Ingot.

    :param sources: repositories of OpenStack. :param local_conf: what DevStack's user has configured.
    """

    def __init__(self, sources: pathlib.Path, local_conf: str) -> None:
        super().__init__()
        self._sources = sources
        self._local_conf = local_conf

    def _setUp(self) -> None:
        place = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        place.chmod(0o755)
        root = place / "root"
        self.addCleanup(environments.run, "rm", "-rf", "--one-file-system", root, timeout=1200)
        packages = f"--include={','.join(_PACKAGES)}"
        environments.run("mmdebstrap", "--variant=minbase", packages, "bookworm", root, timeout=3600)
        self._prepare(root)
        self.debian = self.useFixture(debian.Debian(root))
        self._connect()

    def _prepare(self, root: pathlib.Path) -> None:
        environments.run(
            "useradd", "--root", root, "--create-home", "--home-dir", "/opt/stack", "-s", "/bin/bash", "stack"
        )
        (root / "opt" / "stack").chmod(0o755)
        (root / "etc" / "sudoers.d" / "stack").write_text("stack ALL=(ALL) NOPASSWD: ALL\n")
        (root / "etc" / "resolv.conf").write_text(f"nameserver {_NAME_SERVER}\n")
        (root / "etc" / "hostname").write_text("devstack\n")
        (root / "etc" / "hosts").write_text("127.0.0.1 localhost devstack\n")
        for file in (_AUTHORITIES, _PIP):
            if file.exists():
                (root / file.relative_to("/")).write_bytes(file.read_bytes())
        _write_unit_condition(root, "iscsid", "/sys/class/iscsi_transport")
        environments.run("git", "config", "--file", root / "etc" / "gitconfig", "safe.directory", "*")
        environments.run("cp", "-rL", self._sources, root / _SOURCES.lstrip("/"))
        plugin = root / _PLUGIN.lstrip("/")
        environments.run("git", "clone", "-q", "--bare", environments.ROOT, plugin)
        head = environments.run("git", "-C", environments.ROOT, "rev-parse", "HEAD").strip()
        environments.run("git", "--git-dir", plugin, "branch", "--force", "tested", head)
        environments.run("chmod", "-R", "a+rX", root / "srv")
        (root / "opt" / "stack" / "local.conf").write_text(self._local_conf)

    def _connect(self) -> None:
        """Give the container a way out, and none to this computer."""
        process = self.debian.enter()[2]  # nsenter --target PROCESS
        command = ["slirp4netns", "--configure", "--mtu=1500", "--disable-host-loopback", process, "tap0"]
        network = subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(network.wait)
        self.addCleanup(network.terminate)

    def run(self, command: str, log: pathlib.Path) -> int:
        """Run a command as DevStack's user, with its output in a file; return its status."""
        words = [*self.debian.enter(), "runuser", "--login", "stack", "--command", command]
        with log.open("wb") as output:
            return subprocess.run(words, stdin=subprocess.DEVNULL, stdout=output, stderr=output, check=False).returncode


def _write_unit_condition(root: pathlib.Path, service: str, path: str) -> None:
    """Have a service not started where this computer's kernel lacks what it needs: Nova restarts iscsid."""
    place = root / "etc" / "systemd" / "system" / f"{service}.service.d"
    place.mkdir(parents=True)
    (place / "kernel.conf").write_text(f"[Unit]\nConditionPathExists={path}\n")


def _steps(tests: str, local_conf: str) -> dict[str, str]:
    """Return what is done, by the name of its log."""
    devstack = "/opt/stack/devstack"
    excluded = shlex.join(tempest.EXCLUDE)
    has_nova = "VIRT_DRIVER=ironic" in local_conf.splitlines()
    return {
        "clone": f"git clone -q file://{_SOURCES}/openstack/devstack.git {devstack} && cp local.conf {devstack}",
        "stack": f"cd {devstack} && ./stack.sh",
        "nodes": "openstack --os-cloud devstack-system-admin baremetal node list",
        **({"server": _SERVER} if has_nova else {}),
        # With other constraints than stack.sh had, tox would make the environment anew, without the plugin.
        "tempest": f"cd /opt/stack/tempest && UPPER_CONSTRAINTS_FILE={_CONSTRAINTS} tox -e all -- {tests} {excluded}",
        "unstack": f"cd {devstack} && ./unstack.sh",
        "clean": f"cd {devstack} && ./clean.sh",
        "left": _LEFT,
    }


def main() -> int:
    """Do all steps, but no other after one without which it is idle has failed; return 0 when none has."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("sources", type=pathlib.Path)
    parser.add_argument("--local-conf", type=pathlib.Path)
    parser.add_argument("--tests", default=tempest.TESTS)
    parser.add_argument("--log", type=pathlib.Path)
    given = parser.parse_args()
    local_conf = given.local_conf.read_text() if given.local_conf else _LOCAL_CONF
    logs = given.log or pathlib.Path(tempfile.mkdtemp(prefix="ingot-devstack-"))
    logs.mkdir(parents=True, exist_ok=True)
    failed = False
    with Host(given.sources, local_conf) as host:
        for name, command in _steps(given.tests, local_conf).items():
            began = time.monotonic()
            status = host.run(command, logs / f"{name}.log")
            print(f"{name}: status {status} in {time.monotonic() - began:.0f} s, {logs / name}.log", flush=True)
            failed |= bool(status)
            if status and name in _NEEDED:
                break
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
