"""A laboratory: Ingot's processes, a rack of machines, an image server, and a user of the API."""

import contextlib
import functools
import hashlib
import http.server
import os
import pathlib
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

import fixtures
import requests

from ingot.rack import ports, readback
from ingot.rack.process import RackProcess
from tests import disk_images, patience
from tests.functional import proxy, services
from tests.functional.deployment import forks
from tests.functional.rack.base import FAST

PATIENCE = patience.seconds(120.0)
"""Seconds after which a test gives up waiting; a passing test waits far less."""

HERE = pathlib.Path(sys.executable).parent
"""Where the commands of the tests' own environment are."""

MIRROR = {
    "raid_config": {
        "logical_disks": [{"size_gb": "MAX", "raid_level": "1", "controller": "software", "is_root_volume": True}]
    },
    "delete_existing": True,
}

# Quick enough for a test; an operator's figures are ten times these.
_CONDUCTOR = {
    "heartbeat_interval": 1,
    "sweep_interval": 1,
    "sync_power_state_interval": 5,
    "force_power_state_during_sync": False,  # tests switch machines themselves
}

MORTAL = {"conductor": {"heartbeat_timeout": 6}}
"""Options where others are to notice soon that a conductor was killed; elsewhere a pause of the machine kills none."""


_BOOT_PATHS = {
    "ipxe": "/boot/ipxe/{mac}",
    "grub": "/boot/grub/grub.cfg-01-{mac_colon}",
    "pxelinux": "/boot/pxelinux/pxelinux.cfg/01-{mac}",
    "petitboot": "/boot/petitboot/pxelinux.cfg/01-{mac}",
}
"""What machines ask the API for, by their loader."""


class Process:
    """A command of Ingot's, with its output in a file.

    :ivar programs: where the commands are that it is started from; those of another release replace it.
    :ivar directory: in which it is started; None: where the tests are.
    :ivar environment: its variables beside those of the tests.
    """

    def __init__(self, command: list[str], log: pathlib.Path) -> None:
        self.name = log.stem
        self.log = log
        self.programs = HERE
        self.directory: pathlib.Path | None = None
        self.environment: Mapping[str, str] = {}
        self._command = command
        self._process: subprocess.Popen[bytes] | forks.Forked | None = None

    def start(self) -> "Process":
        command = [str(self.programs / self._command[0]), *self._command[1:]]
        variables = {**os.environ, "PYTHONWARNINGS": "ignore", **self.environment}
        with self.log.open("ab") as output:
            if self._can_fork:
                self._process = forks.start(command, output, self.directory, variables)
            else:
                self._process = subprocess.Popen(
                    command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, cwd=self.directory, env=variables
                )
        return self

    @property
    def _can_fork(self) -> bool:
        """Whether it is a command of these tests' environment, with nothing that Python reads when it starts."""
        known = self.programs == HERE and self._command[0] in forks.COMMANDS
        given = {*self.environment, *({"PYTHONPATH"} & os.environ.keys())}
        return known and not any(name.startswith("PYTHON") for name in given)

    def wait(self) -> None:
        """Wait for a command that ends on its own.

        :raises AssertionError: it ended badly, or not in time.
        """
        if self._process is None or self._process.wait(PATIENCE) != 0:
            raise AssertionError(self.log.read_text())

    def send(self, number: int) -> None:
        """Send a signal if the process runs."""
        if self._process is not None:
            self._process.send_signal(number)

    def stop(self, number: int = signal.SIGTERM) -> int:
        """Send a signal and wait for the end; kill a process that does not end."""
        if self._process is None:
            return 0
        self._process.send_signal(number)
        try:
            return self._process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            return self._process.wait()

    @property
    def pid(self) -> int:
        """Its id while it runs; 0 before it was started."""
        return self._process.pid if self._process is not None else 0

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        """Drop the log of requests, to keep the test's output readable."""

    def copyfile(self, source: Any, outputfile: Any) -> None:
        """Let clients stop when they have what they need: this server knows no ranges."""
        with contextlib.suppress(ConnectionError):
            super().copyfile(source, outputfile)


class FileServer(fixtures.Fixture):
    """Serves a directory over HTTP: kernel, ramdisk, image."""

    def __init__(self, directory: pathlib.Path) -> None:
        super().__init__()
        self._directory = directory

    def _setUp(self) -> None:
        handler = functools.partial(_Quiet, directory=str(self._directory))
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.url = f"http://127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)


def image_info(files: str, checksum: str) -> dict[str, Any]:
    """Return the instance_info for the image of a file server.

    :param files: its address.
    """
    return {
        "image_source": f"{files}/image.raw",
        "image_os_hash_algo": "sha256",
        "image_os_hash_value": checksum,
        "image_disk_format": "raw",
    }


class Lab(fixtures.Fixture):
    """Everything for whole deployments.

    :param database_url: where the nodes are; None: SQLite in the lab's directory.
    :param rabbit_url: transport of the cluster; None: the all-in-one, without a bus.
    :param conductors: how many conductors the cluster has.
    :param apis: how many APIs the cluster has; of several, the user and the machines know the balancer before them.
    :param machines: how many machines the rack has.
    :param rack: further settings of the rack.
    :param options: further options of Ingot: {group: {name: value}}.
    :ivar names: the names of its conductors.
    :ivar programs: where its commands are that are not started yet; this environment's by default.
    """

    def __init__(
        self,
        database_url: str | None = None,
        rabbit_url: str | None = None,
        conductors: int = 1,
        apis: int = 1,
        machines: int = 1,
        rack: Mapping[str, Any] | None = None,
        options: Mapping[str, Mapping[str, Any]] | None = None,
    ) -> None:
        super().__init__()
        self._database_url = database_url
        self._rabbit_url = rabbit_url
        self.names = [f"conductor-{number}" for number in range(conductors)]
        if rabbit_url is not None:  # a queue has its conductor's name, and other laboratories use the same broker
            self.names = [services.unique_name(name) for name in self.names]
        self._rack_settings = {"machines": machines, **FAST, **(rack or {})}
        self._options = options or {}
        self.programs = HERE
        self._ports = {f"api-{number}": ports.tcp() for number in range(apis)}
        self.urls = [f"http://127.0.0.1:{port}" for port in self._ports.values()]
        self.addresses = {name: ("127.0.0.1", port) for name, port in self._ports.items()}
        self.conductors: dict[str, Process] = {}
        self.apis: dict[str, Process] = {}

    def _setUp(self) -> None:
        self.directory = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        files = self.directory / "files"
        files.mkdir()
        self.image = disk_images.gpt_image()
        self.checksum = hashlib.sha256(self.image).hexdigest()
        (files / "image.raw").write_bytes(self.image)
        (files / "original.raw").write_bytes(self.image)
        (files / "deploy.kernel").write_bytes(b"kernel")
        (files / "deploy.initramfs").write_bytes(b"ramdisk")
        self.files = self.useFixture(FileServer(files))
        self.balancer = self.useFixture(proxy.Proxy(*self.addresses.values()))
        self.url = f"http://127.0.0.1:{self.balancer.port}" if len(self.urls) > 1 else self.urls[0]
        self.rack = RackProcess(
            self.directory / "rack",
            boot_url=self.url + _BOOT_PATHS[self._rack_settings.get("boot_loader", "ipxe")],
            bmc_base_port=0,
            **self._rack_settings,
        )
        self.addCleanup(self.rack.stop)
        self.rack.start()
        self._start_processes()
        self.user = self.make_user()
        self.wait_until_served()

    def make_user(self) -> "User":
        """Return a user of the API; laboratories with logins give credentials."""
        return User(self.url)

    def _start_processes(self) -> None:
        if self._rabbit_url is None:
            self.process = self.make(["ingot"], self.names[0])
            self.conductors[self.names[0]] = self.process
            self.process.start()
            return
        self.make(["ingot-dbsync"], "dbsync", "upgrade").start().wait()
        for name in self.names:
            self.conductors[name] = self.make(["ingot-conductor"], name)
            self.conductors[name].start()
        for name in self._ports:
            self.apis[name] = self.make(["ingot-api"], name)
            self.apis[name].start()
        self.process = self.apis["api-0"]

    def make(self, command: list[str], name: str, *arguments: str) -> Process:
        """Make a process with its own configuration, not started yet; it ends with the lab."""
        config = self.directory / f"{name}.conf"
        config.write_text(self._configuration(name))
        process = Process([*command, "--config-file", str(config), *arguments], self.directory / f"{name}.log")
        process.programs = self.programs
        self.addCleanup(process.stop)
        return process

    def _configuration(self, host: str) -> str:
        groups: dict[str, dict[str, Any]] = {
            "DEFAULT": {
                "host": host,
                "my_ip": "127.0.0.1",
                "auth_strategy": "noauth",
                "state_path": self.directory,
                "debug": True,
                "enabled_hardware_types": "ipmi,fake-hardware",
                "hash_ring_reset_interval": 1,
            },
            "api": {"host_ip": "127.0.0.1", "port": self._ports.get(host, self._ports["api-0"])},
            "service_catalog": {"endpoint_override": self.url},
            "conductor": dict(_CONDUCTOR),
            "deploy": {
                "deploy_kernel": f"{self.files.url}/deploy.kernel",
                "deploy_ramdisk": f"{self.files.url}/deploy.initramfs",
                "url_denied_networks": "",
            },
        }
        if self._database_url:
            groups["database"] = {"connection": self._database_url}
        if self._rabbit_url:
            groups["DEFAULT"]["transport_url"] = self._rabbit_url
        for options in (self._options, self.own_options(host)):
            for group, values in options.items():
                groups.setdefault(group, {}).update(values)
        lines = [
            line
            for group, values in groups.items()
            for line in (f"[{group}]", *(f"{name} = {value}" for name, value in values.items()))
        ]
        return "\n".join(lines) + "\n"

    def own_options(self, name: str) -> Mapping[str, Mapping[str, Any]]:
        """Return options that only one process has; for laboratories in which they differ."""
        return {}

    def wait_until_served(self) -> None:
        """Wait until the API answers and all conductors are alive."""

        def check() -> bool:
            known = self.user.get("/v1/conductors")["conductors"]
            return sum(conductor["alive"] for conductor in known) >= len(self.names)

        self.eventually(check, "API and conductors are up")

    def eventually(self, check: Callable[[], Any], what: str) -> Any:
        """Call :func:`eventually` with :data:`PATIENCE` and the ends of all logs."""
        return eventually(check, what, PATIENCE, self.logs)

    def logs(self, lines: int = 60) -> str:
        """Return the ends of the logs of all processes and machines."""
        parts = []
        for log in sorted(self.directory.glob("*.log")):
            parts += [f"--- {log.name}", *log.read_text(errors="replace").splitlines()[-lines:]]
        for machine in self.rack.machines:
            parts += [f"--- {machine['name']}", *self.rack.control.log(machine["name"])[-20:]]
        return "\n".join(parts)

    # What a user does

    def access(self, index: int = 0) -> dict[str, Any]:
        """Return the ``driver_info`` of a machine of the rack."""
        machine = self.rack.machines[index]
        return {
            "ipmi_address": machine["bmc_address"],
            "ipmi_port": machine["bmc_port"],
            "ipmi_username": "admin",
            "ipmi_password": "password",
        }

    def enroll(self, index: int = 0, **fields: Any) -> str:
        """Enroll a machine of the rack with its port; return the node's uuid."""
        machine = self.rack.machines[index]
        body = {"name": machine["name"], "driver": "ipmi", "driver_info": self.access(index), **fields}
        if body["driver"] == "ipmi":  # these are chosen: their defaults do nothing
            body = {"raid_interface": "agent", "rescue_interface": "agent", **body}
        uuid: str = self.user.post("/v1/nodes", body)["uuid"]
        for mac in machine["macs"]:
            self.user.post("/v1/ports", {"node_uuid": uuid, "address": mac})
        return uuid

    def make_available(self, uuid: str) -> None:
        """Send the verbs manage and provide; the second one cleans."""
        self.user.provision(uuid, "manage")
        self.reach(uuid, "manageable")
        self.user.provision(uuid, "provide")
        self.reach(uuid, "available")

    def set_image(self, uuid: str, **more: Any) -> None:
        self.user.patch(f"/v1/nodes/{uuid}", {"/instance_info": self.image_info(**more)})

    def image_info(self, **more: Any) -> dict[str, Any]:
        """Return the instance_info for the lab's image."""
        return {**image_info(self.files.url, self.checksum), **more}

    def reach(self, uuid: str, state: str) -> dict[str, Any]:
        """Wait until a node is in a provision state; fail as soon as the flow has failed instead.

        What was asked for before has begun by now: a verb is answered when the node's state says so.
        """

        def check() -> dict[str, Any] | None:
            node = self.user.node(uuid)
            found = node["provision_state"]
            if (found.endswith("failed") or found == "error") and found != state:
                raise AssertionError(f"{found} instead of {state}: {node['last_error']}\n{self.logs()}")
            return node if found == state and node["reservation"] is None else None

        node: dict[str, Any] = self.eventually(check, f"node {uuid} is {state}")
        return node

    def step_runs(self, uuid: str) -> list[dict[str, Any]]:
        """Return the steps of the node's latest run, from its timeline."""
        steps: list[dict[str, Any]] = self.user.get(f"/ingot/v1/nodes/{uuid}/timeline")["steps"]
        return steps

    def ipmitool(self, *words: str, index: int = 0) -> str:
        """Query a machine's BMC with ipmitool; return the output."""
        machine = self.rack.machines[index]
        address = ["-H", machine["bmc_address"], "-p", str(machine["bmc_port"])]
        command = ["ipmitool", "-I", "lanplus", *address, "-U", "admin", "-P", "password", *words]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    def holds_image(self, index: int, disk: int = 0) -> bool:
        """Return whether a disk of a machine holds the image, byte by byte."""
        expected = readback.content_digest(self.directory / "files" / "original.raw", len(self.image))
        return readback.content_digest(self._disk(index, disk), len(self.image)) == expected

    def config_drive(self, index: int) -> bytes:
        """Return the config drive on the first disk of a machine; empty without one."""
        return readback.config_drive(self._disk(index, 0)) or b""

    def _disk(self, index: int, disk: int) -> str:
        path: str = self.rack.control.machine(self.rack.machines[index]["name"])["disks"][disk]["path"]
        return path


def eventually(
    check: Callable[[], Any], what: str, limit: float, logs: Callable[[], str], longest_pause: float = 0.3
) -> Any:
    """Return the first true answer of ``check``; fail with logs after ``limit`` seconds.

    While no process listens at the API there is no answer. The longer it takes, the longer are the pauses between two
    checks: these take processor time from what is waited for.

    :param longest_pause: in seconds.
    """
    began = time.monotonic()
    while not (answer := _heard(check)):
        waited = time.monotonic() - began
        if waited > limit:
            raise AssertionError(f"not within {limit:.0f} s: {what}\n{logs()}")
        time.sleep(min(longest_pause, max(0.1, waited / 20)))
    return answer


def _heard(check: Callable[[], Any]) -> Any:
    try:
        return check()
    except requests.ConnectionError:
        return None


class User:
    """A user of the API over HTTP, at its newest version.

    :param credentials: name and password; None: the API asks for none.
    """

    def __init__(self, url: str, credentials: tuple[str, str] | None = None) -> None:
        self.url = url
        self._session = requests.Session()
        self._session.trust_env = False
        self._session.auth = credentials
        self._session.headers["X-OpenStack-Ironic-API-Version"] = "latest"

    def request(self, method: str, path: str, body: Any = None) -> requests.Response:
        return self._session.request(method, self.url + path, json=body, timeout=PATIENCE)

    def _ok(self, method: str, path: str, body: Any = None) -> Any:
        answer = self.request(method, path, body)
        if answer.status_code >= 400:
            raise AssertionError(f"{method} {path}: {answer.status_code} {answer.text}")
        return answer.json() if answer.content else None

    def get(self, path: str) -> Any:
        return self._ok("GET", path)

    def post(self, path: str, body: Any) -> Any:
        return self._ok("POST", path, body)

    def put(self, path: str, body: Any) -> Any:
        return self._ok("PUT", path, body)

    def delete(self, path: str) -> Any:
        return self._ok("DELETE", path)

    def patch(self, path: str, values: Mapping[str, Any]) -> Any:
        return self._ok("PATCH", path, [{"op": "add", "path": name, "value": value} for name, value in values.items()])

    def node(self, uuid: str) -> dict[str, Any]:
        node: dict[str, Any] = self.get(f"/v1/nodes/{uuid}")
        return node

    def provision(self, uuid: str, target: str, **more: Any) -> None:
        self.put(f"/v1/nodes/{uuid}/states/provision", {"target": target, **more})
