"""Runs the plugin as DevStack does: in shells with its functions and variables, beside the services that it has."""

import contextlib
import json
import os
import pathlib
import signal
import subprocess
import sys
import time
import urllib.parse
from collections.abc import Mapping

import fixtures
import openstack
from openstack import connection

from ingot.rack import ports
from tests import database, disk_images, patience
from tests.functional import services
from tests.gate import client, cloud, environments, networking

_HERE = pathlib.Path(__file__).parent
_PLUGIN = environments.ROOT / "devstack"
_PHASE_S = patience.seconds(300)
_ADMINISTRATORS = {"devstack-system-admin": "system", "devstack-admin": "admin"}
"""Clouds that DevStack writes into clouds.yaml, with the scope of their administrator."""

_BEFORE = f"""
set -o errexit
trap 'echo "line $LINENO of ${{BASH_SOURCE[0]}} fails" >&2' ERR
source {_HERE}/contract.sh
source {_PLUGIN}/override-defaults
source {_PLUGIN}/settings
"""
_PHASES = ("pre-install", "install", "post-config", "extra", "test-config")


class DevStack(fixtures.Fixture):  # type: ignore[misc]
    """A host on which DevStack runs, with a real Keystone, database and broker.

    :param localrc: variables that its user sets.
    :param with_neutron: whether there is a real Neutron, too, with a fake switch.
    :ivar place: all files of the host. :ivar variables: what its shells have.
    """

    def __init__(self, localrc: Mapping[str, str], machines: int = 2, *, with_neutron: bool = False) -> None:
        super().__init__()
        self._localrc = localrc
        self._machines = machines
        self._with_neutron = with_neutron

    def _setUp(self) -> None:
        self.keystone = self.useFixture(cloud.Keystone())
        if self._with_neutron:
            self.neutron = self.useFixture(networking.Neutron(self.keystone))
        self.place = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        self.port = ports.tcp()
        self.rack_port = ports.tcp()
        self.variables = {**self._contract(), **self._make_machines(), **self._localrc}
        self.write_clouds()
        self.addCleanup(self._end_processes)

    def _contract(self) -> dict[str, str]:
        """Return what the shells need to keep DevStack's promises."""
        if database.SERVERS["mysql"] not in os.environ:
            services.broker_url()  # skips, and says how tests get servers
        programs = pathlib.Path(sys.executable).parent
        return {
            "PATH": f"{programs}:/usr/sbin:/usr/bin:/sbin:/bin",
            "HOME": str(self.place),
            "LC_ALL": "C.UTF-8",
            "no_proxy": "*",
            "PLACE": str(self.place),
            "PROGRAMS": str(programs),
            "PYTHON": sys.executable,
            "CLIENT": str(self.useFixture(client.warm_programs()).directory),
            "CALLS": str(self.place / "calls"),
            "HOST_IP": "127.0.0.1",
            "KEYSTONE_SERVICE_URI": self.keystone.url.removesuffix("/v3"),
            "SERVICE_PASSWORD": "service of the gate",
            "MYSQL_URL": os.environ[database.SERVERS["mysql"]],
            "RABBIT_URL": self._make_virtual_host(),
            "OS_CLIENT_CONFIG_FILE": str(self.place / "clouds.yaml"),
            "INGOT_DATABASE": services.unique_name("devstack").replace("-", "_"),
        }

    def _make_virtual_host(self) -> str:
        """Return the URL of a part of the broker that no other test has: all conductors have this computer's name."""
        url, name = urllib.parse.urlsplit(services.broker_url()), services.unique_name("devstack")
        services.control_broker("add_vhost", name)
        self.addCleanup(services.control_broker, "delete_vhost", name)
        services.control_broker("set_permissions", "-p", name, str(url.username), ".*", ".*", ".*")
        return url._replace(path=f"/{name}").geturl()

    def _make_machines(self) -> dict[str, str]:
        """Return the variables of machines, images and ports; by default these are those of every DevStack."""
        for name, content in {"disk": disk_images.gpt_image(), "kernel": b"kernel", "ramdisk": b"ramdisk"}.items():
            (self.place / name).write_bytes(content)
        return {
            "IRONIC_VM_COUNT": str(self._machines),
            "IRONIC_CONF_DIR": str(self.place / "etc" / "ingot"),
            "IRONIC_SERVICE_PORT": str(self.port),
            "IRONIC_HOSTPORT": f"127.0.0.1:{self.port}",
            "IRONIC_HTTP_PORT": str(ports.tcp()),
            "IRONIC_VBMC_PORT_RANGE_START": str(ports.udp(self._machines)),
            "IRONIC_REDFISH_EMULATOR_PORT": str(ports.tcp()),
            "INGOT_RACK_CONTROL_PORT": str(self.rack_port),
            "INGOT_DISK_IMAGE": str(self.place / "disk"),
            "IRONIC_DEPLOY_KERNEL": str(self.place / "kernel"),
            "IRONIC_DEPLOY_RAMDISK": str(self.place / "ramdisk"),
            "IRONIC_TEMPEST_BUILD_TIMEOUT": str(round(patience.seconds(60))),
        }

    def write_clouds(self) -> None:
        """Write clouds.yaml, which DevStack does once Keystone runs. JSON is YAML."""
        clouds = {
            name: {
                "auth": self.keystone.credentials(cloud.ADMINISTRATOR, scope),
                "region_name": cloud.REGION,
                "identity_interface": "public",
            }
            for name, scope in _ADMINISTRATORS.items()
        }
        (self.place / "clouds.yaml").write_text(json.dumps({"clouds": clouds}))

    def stack(self) -> str:
        """Run all phases in one shell, as ``stack.sh`` does; return what they print."""
        return self.run("".join(f"source {_PLUGIN}/plugin.sh stack {phase}\n" for phase in _PHASES))

    def unstack(self) -> str:
        """Run the phase of ``unstack.sh``."""
        return self.run(f"source {_PLUGIN}/plugin.sh unstack")

    def clean(self) -> str:
        """Run the phase of ``clean.sh``."""
        return self.run(f"source {_PLUGIN}/plugin.sh clean")

    def run(self, script: str, **more: str) -> str:
        """Return what a script prints in a shell that has the plugin's settings."""
        return self.run_program("bash", "-c", _BEFORE + script, **more)

    def run_program(self, *command: str | pathlib.Path, **more: str) -> str:
        """Return what a program prints with the variables of the host.

        :raises AssertionError: it fails; with its output and the ends of the services' logs.
        """
        outcome = subprocess.run(
            [str(word) for word in command],
            env={**self.variables, **more},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=_PHASE_S,
            check=False,
        )
        if outcome.returncode:
            raise AssertionError(f"status {outcome.returncode}:\n{outcome.stdout[-8000:]}\n{self._logs()}")
        return outcome.stdout

    def _logs(self) -> str:
        logs = sorted((self.place / "units").glob("*.log"))
        return "\n".join(f"--- {log.name}\n{log.read_text(errors='replace')[-3000:]}" for log in logs)

    def connect(self, name: str = "devstack-system-admin") -> connection.Connection:
        """Return a connection of openstacksdk to one of the clouds in clouds.yaml."""
        configuration = openstack.config.OpenStackConfig(config_files=[str(self.place / "clouds.yaml")])
        made = connection.Connection(config=configuration.get_one(name))
        self.addCleanup(made.close)
        return made

    def calls(self, function: str) -> list[str]:
        """Return the arguments with which a function of DevStack was called, in order."""
        lines = pathlib.Path(self.variables["CALLS"]).read_text().splitlines()
        return [line.removeprefix(function).strip() for line in lines if line.split(" ")[0] == function]

    def processes(self) -> dict[str, int]:
        """Return the services that run, with their process."""
        found = {path.stem: int(path.read_text()) for path in (self.place / "units").glob("*.pid")}
        return {name: pid for name, pid in found.items() if pathlib.Path(f"/proc/{pid}").exists()}

    def descendants(self) -> list[str]:
        """Return the command lines of all processes that know a file of the host: those of services, and theirs."""
        found = []
        for process in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
            try:
                line = process.read_bytes().replace(b"\0", b" ").decode(errors="replace")
            except OSError:
                continue
            if str(self.place) in line and "keystone" not in line:
                found.append(line)
        return found

    def _end_processes(self) -> None:
        """End what a test that failed has left."""
        self._send(signal.SIGTERM)
        until = time.monotonic() + patience.seconds(30)
        while self.processes() and time.monotonic() < until:
            time.sleep(0.1)
        self._send(signal.SIGKILL)

    def _send(self, number: int) -> None:
        for pid in self.processes().values():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)
