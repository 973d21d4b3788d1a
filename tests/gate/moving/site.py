"""One rack, first of real Ironic, then of Ingot, at the same address and with the same files for network boot."""

import hashlib
import os
import pathlib
import time
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import fixtures
import requests
import sqlalchemy as sa

from ingot.rack import ports
from ingot.rack.process import RackProcess
from tests import database, disk_images, patience
from tests.functional import proxy, services
from tests.functional.deployment import lab
from tests.functional.rack.base import FAST
from tests.gate import environments

REQUIREMENTS = environments.ROOT / "benchmarks" / "ironic.txt"
"""Real Ironic with all that it needs, as it is installed for the benchmarks, too."""

PATIENCE = patience.seconds(120)

_STEP = {"interface": "deploy", "step": "erase_devices_metadata"}

Options = Mapping[str, Mapping[str, object]]

_WSGI = """
import sys
sys.argv = ["ironic-api", "--config-file", {config!r}]
from ironic.wsgi import application
"""
"""Ironic reads its command line, in which the web server has words of its own."""


class Outcome(NamedTuple):
    """What a command took.

    :param output: what it printed.
    :param memory_mib: the most that it had in memory.
    """

    output: str
    seconds: float
    memory_mib: float


def render(options: Options) -> str:
    """Return a configuration file."""
    groups = [
        [f"[{group}]", *(f"{name} = {value}" for name, value in values.items())] for group, values in options.items()
    ]
    return "\n".join(line for group in groups for line in (*group, "")) + "\n"


class Site(fixtures.Fixture):
    """The rack, its files, and the two services, none of which runs at first.

    :ivar url: of the API, whichever service has it.
    """

    def _setUp(self) -> None:
        self.directory = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        self.port = ports.tcp()
        self.url = f"http://127.0.0.1:{self.port}"
        self.user = lab.User(self.url)
        self._programs = {"ironic": environments.cached("ironic", "-r", str(REQUIREMENTS)), "ingot": lab.HERE}
        self._running: list[lab.Process] = []
        self.addCleanup(self.stop)
        self._make_files()
        self._make_rack()
        self.databases = {name: self._create_database(name) for name in ("ironic", "ingot")}
        self.configs = {name: self.directory / f"{name}.conf" for name in self.databases}
        self.configs["ironic"].write_text(render(self._shared("ironic") | self._of_ironic()))
        self.configs["ingot"].write_text(render(self._shared("ingot") | self._of_ingot()))

    def _make_files(self) -> None:
        self.http = self.directory / "http"
        (self.http / "boot").mkdir(parents=True)
        (self.http / "pxelinux.cfg").mkdir()
        # Machines ask for /boot/ipxe/MAC, of Ingot's API or here: that is where Ironic writes its scripts.
        (self.http / "boot" / "ipxe").symlink_to(self.http / "pxelinux.cfg")
        self.image = disk_images.gpt_image()
        for name, content in (("image.raw", self.image), ("kernel", b"kernel"), ("ramdisk", b"ramdisk")):
            (self.http / name).write_bytes(content)
        self.files = self.useFixture(lab.FileServer(self.http))

    def _make_rack(self) -> None:
        self.boot = self.useFixture(proxy.Proxy())
        boot_url = f"http://127.0.0.1:{self.boot.port}/boot/ipxe/{{mac}}"
        self.rack = RackProcess(self.directory / "rack", boot_url=boot_url, bmc_base_port=0, machines=2, **FAST)
        self.addCleanup(self.rack.stop)
        self.rack.start()

    def _create_database(self, name: str) -> str:
        """Create a database on the server of the tests, and return its address."""
        url = sa.make_url(os.environ[database.SERVERS["mysql"]])
        unique = services.unique_name(name).replace("-", "_")
        engine = sa.create_engine(url, isolation_level="AUTOCOMMIT")
        with engine.connect() as connection:
            connection.exec_driver_sql(f"CREATE DATABASE {unique} CHARACTER SET utf8mb4")
        engine.dispose()
        return url.set(database=unique).render_as_string(hide_password=False)

    def _shared(self, service: str) -> dict[str, dict[str, object]]:
        """Return the options that both services have: those of the site."""
        return {
            "DEFAULT": {
                "auth_strategy": "noauth",
                "host": f"conductor-{service}",
                "my_ip": "127.0.0.1",
                "state_path": self.directory / service,
                "transport_url": services.broker_url(),
                "control_exchange": services.unique_name(service),
                "enabled_hardware_types": "fake-hardware,ipmi",
                "enabled_bios_interfaces": "fake,no-bios",
                "enabled_boot_interfaces": "fake,ipxe",
                "enabled_deploy_interfaces": "fake,direct",
            },
            "api": {"host_ip": "127.0.0.1", "port": self.port, "public_endpoint": self.url},
            "conductor": {"automated_clean": False, "sync_power_state_interval": 2},
            "database": {"connection": self.databases[service]},
            "deploy": {"url_denied_networks": "", "http_root": self.http, "http_url": self.files.url},
            "service_catalog": {"endpoint_override": self.url},
        }

    def _of_ironic(self) -> dict[str, dict[str, object]]:
        place = self.directory / "ironic"
        names = ("tftp_root", "images_path", "tftp_master_path", "instance_master_path")
        for name in (*names, "locks"):
            (place / name).mkdir(parents=True)
        shared = self._shared("ironic")
        shared["DEFAULT"] |= {
            "rpc_transport": "oslo",
            "enabled_network_interfaces": "noop,flat",
            "default_network_interface": "noop",
            "minimum_memory_warning_only": True,
        }
        return {
            "DEFAULT": shared["DEFAULT"],
            "dhcp": {"dhcp_provider": "none"},
            "pxe": {name: place / name for name in names},
            # As soon as the simulated machine can: the defaults are for BMCs that need time between two commands.
            "ipmi": {"min_command_interval": 1},
            "agent": {"require_tls": False, "post_deploy_get_power_state_retry_interval": 1},
            "oslo_concurrency": {"lock_path": place / "locks"},
            "oslo_messaging_notifications": {"driver": "noop"},
        }

    def _of_ingot(self) -> dict[str, dict[str, object]]:
        shared = self._shared("ingot")
        shared["conductor"] |= {"heartbeat_interval": 1, "sweep_interval": 1, "force_power_state_during_sync": True}
        return {"conductor": shared["conductor"]}

    def run(self, service: str, program: str, *arguments: str) -> Outcome:
        """Run a command of a service, which must succeed."""
        command = [self._programs[service] / program, "--config-file", self.configs[service], *arguments]
        output = self.directory / "output"
        begun = time.monotonic()
        with output.open("wb") as file:
            streams = [(os.POSIX_SPAWN_DUP2, file.fileno(), number) for number in (1, 2)]
            child = os.posix_spawn(command[0], [*map(str, command)], {**os.environ}, file_actions=streams)
            _pid, status, usage = os.wait4(child, 0)
        said = output.read_text()
        if status:
            raise AssertionError(f"{command} ended with {os.waitstatus_to_exitcode(status)}:\n{said}")
        return Outcome(said, time.monotonic() - begun, usage.ru_maxrss / 1024)

    def execute(self, service: str, statement: str, **values: str) -> None:
        """Execute a statement in the database of a service."""
        engine = sa.create_engine(self.databases[service])
        with engine.begin() as connection:
            connection.execute(sa.text(statement), values)
        engine.dispose()

    def describe_schema(self) -> dict[str, dict[str, str]]:
        """Return the tables of a new database of the same Ironic on SQLite: by name, the types of their columns."""
        url = f"sqlite:///{self.directory}/schema.sqlite"
        config = self.directory / "schema.conf"
        config.write_text(self.configs["ironic"].read_text().replace(self.databases["ironic"], url))
        environments.run(self._programs["ironic"] / "ironic-dbsync", "--config-file", config, "create_schema")
        inspector = sa.inspect(sa.create_engine(url))
        return {
            table: {column["name"]: str(column["type"]).lower() for column in inspector.get_columns(table)}
            for table in inspector.get_table_names()
        }

    def machine_state(self, index: int = 0) -> str:
        """Return what a machine of the rack does: ``off``, ``agent``, ``os`` ..."""
        return str(self.rack.control.machine(self.rack.machines[index]["name"])["state"])

    def fill(self, nodes: int) -> None:
        """Write a fleet into Ironic's database, by Ironic's own objects."""
        script = pathlib.Path(__file__).with_name("fleet.py")
        python = self._programs["ironic"] / "python"
        environments.run(python, "-W", "ignore", script, self.configs["ironic"], str(nodes), timeout=PATIENCE)

    def start_ironic(self, conductor: bool = True) -> None:
        """Start Ironic's API, and its conductor."""
        place = self.directory / "ironic"
        (place / "ironic_application.py").write_text(_WSGI.format(config=str(self.configs["ironic"])))
        worker = ["--worker-class", "gthread", "--threads", "2", "--workers", "2", "--timeout", "120"]
        api = ["gunicorn", "--bind", f"127.0.0.1:{self.port}", *worker, "--pythonpath", str(place)]
        commands = [[*api, "ironic_application:application"]]
        if conductor:
            commands.append(["ironic-conductor", "--config-file", str(self.configs["ironic"])])
        self.boot.targets = [("127.0.0.1", int(self.files.url.rsplit(":", 1)[1]))]
        self._start("ironic", commands, conductor)

    def start_ingot(self, conductor: bool = True) -> None:
        """Start Ingot's API, and its conductor."""
        configured = ["--config-file", str(self.configs["ingot"])]
        commands = [["ingot-api", *configured], *([["ingot-conductor", *configured]] if conductor else [])]
        self.boot.targets = [("127.0.0.1", self.port)]
        self._start("ingot", commands, conductor)

    def _start(self, service: str, commands: Sequence[list[str]], conductor: bool) -> None:
        for command in commands:
            process = lab.Process(command, self.directory / f"{service}-{command[0]}.log")
            process.programs = self._programs[service]
            process.directory = self.directory / service
            process.directory.mkdir(exist_ok=True)
            self._running.append(process.start())
        lab.eventually(lambda: self._serves(conductor), f"{service} serves", PATIENCE, self.logs)

    def _serves(self, conductor: bool) -> bool:
        answer = requests.get(f"{self.url}/v1/conductors", headers=lab_headers(), timeout=PATIENCE)
        return answer.ok and (not conductor or any(one["alive"] for one in answer.json()["conductors"]))

    def stop(self) -> None:
        """Stop what runs, in an orderly way."""
        for process in reversed(self._running):
            process.stop()
        self._running.clear()

    def logs(self) -> str:
        """Return the ends of all logs."""
        ends = [
            f"--- {log.name}\n" + log.read_text(errors="replace")[-4000:]
            for log in sorted(self.directory.glob("*.log"))
        ]
        machines = [line for one in self.rack.machines for line in self.rack.control.log(one["name"])[-20:]]
        return "\n".join([*ends, *machines])

    def reach(self, uuid: str, state: str) -> dict[str, Any]:
        """Wait until a node is in a provision state; fail as soon as its flow has failed."""

        def check() -> dict[str, Any] | None:
            node = self.user.node(uuid)
            if node["last_error"]:
                raise AssertionError(f"{node['provision_state']}: {node['last_error']}\n{self.logs()}")
            return node if node["provision_state"] == state and node["reservation"] is None else None

        found: dict[str, Any] = lab.eventually(check, f"node {uuid} is {state}", PATIENCE, self.logs)
        return found

    def enroll(self, index: int) -> str:
        """Enroll a machine of the rack, and have it managed; return its uuid."""
        machine = self.rack.machines[index]
        access = {"ipmi_username": "admin", "ipmi_password": "password"}
        info = {"deploy_kernel": f"{self.files.url}/kernel", "deploy_ramdisk": f"{self.files.url}/ramdisk"}
        address = {"ipmi_address": machine["bmc_address"], "ipmi_port": machine["bmc_port"]}
        node = self.user.post(
            "/v1/nodes",
            {
                "name": f"rack-{index}",
                "driver": "ipmi",
                "boot_interface": "ipxe",
                "driver_info": {**access, **info, **address},
            },
        )
        for mac in machine["macs"]:
            self.user.post("/v1/ports", {"node_uuid": node["uuid"], "address": mac})
        self.user.provision(node["uuid"], "manage")
        self.reach(node["uuid"], "manageable")
        return str(node["uuid"])

    def begin_to_wait(self, index: int, uuid: str) -> None:
        """Have a machine cleaned by an agent that hangs, while its heart beats."""
        self.rack.control.order_fault(self.rack.machines[index]["name"], "agent_hangs_at_step", _STEP["step"])
        self.user.provision(uuid, "clean", clean_steps=[_STEP])

        def check() -> bool:
            node = self.user.node(uuid)
            return node["clean_step"].get("step") == _STEP["step"] and node["provision_state"] == "clean wait"

        lab.eventually(check, "the agent cleans", PATIENCE, self.logs)

    def deploy(self, uuid: str) -> None:
        """Deploy the image."""
        checksum = hashlib.sha256(self.image).hexdigest()
        self.user.patch(f"/v1/nodes/{uuid}", {"/instance_info": lab.image_info(self.files.url, checksum)})
        self.user.provision(uuid, "active")
        self.reach(uuid, "active")


def lab_headers() -> dict[str, str]:
    """Return what asks for the newest version of the API."""
    return {"X-OpenStack-Ironic-API-Version": "latest"}
