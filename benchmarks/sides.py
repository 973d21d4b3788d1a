"""What is compared, in which setup, and how each is configured, started and stopped.

All sides get the same database server, the same broker, the same number of processes and the same options.
"""

import base64
import contextlib
import json
import pathlib
import secrets
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import bcrypt
import requests

from benchmarks import loads, servers
from benchmarks.api import Api
from ingot.rack import ports
from tests.functional import services
from tests.functional.deployment import lab
from tests.gate import cloud, environments

Options = dict[str, dict[str, Any]]

START_S = 120
USER, PASSWORD = "operator", "of the benchmark"
BCRYPT_ROUNDS = 5
"""As htpasswd -B uses."""
PROCESSES, IRONIC_THREADS, RELEASE_THREADS = 2, 2, 8
"""Of the API; threads are of each process of gunicorn: as many as either product recommends."""
GUNICORN = "gunicorn==27.0.1"
IRONIC = pathlib.Path(__file__).with_name("ironic.txt")
"""What pip installs for Ironic."""

_WSGI = """
import sys
sys.argv = ["ironic-api", "--config-file", {config!r}]
from ironic.wsgi import application
"""
"""Ironic reads its command line, in which the web server has words of its own."""


class Setup(NamedTuple):
    """Where services are measured.

    :param alone: one process on SQLite, without a broker.
    :param authentication: how clients show who they are.
    :param only: the operations that are measured if none are named.
    :param without: sides that do not know it.
    """

    title: str
    alone: bool = False
    authentication: str = "noauth"
    tls: bool = False
    only: str | None = None
    without: tuple[str, ...] = ()


_REQUESTS = "GET /,node,node states,list of 1000,lookup,fake"
"""Where the way to the API differs and not what is behind it."""

SETUPS = {
    "cluster": Setup("2 API processes, 1 conductor, MariaDB, RabbitMQ"),
    "alone": Setup("API and conductor in one process, SQLite", alone=True),
    "http_basic": Setup("the cluster, with passwords", authentication="http_basic", only=_REQUESTS),
    "keystone": Setup("the cluster, with tokens of a real Keystone", authentication="keystone", only=_REQUESTS),
    "tls": Setup("the cluster, with an API that serves HTTPS", tls=True, only=_REQUESTS, without=("release",)),
}


@dataclass
class Site:
    """Where one service lives.

    :param more: options beside those that every side has.
    :ivar name: its own on the servers that it shares.
    """

    setup: Setup
    directory: pathlib.Path
    database: str
    keystone: Any = None
    more: Options = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.name = f"benchmark-{secrets.token_hex(4)}"
        self.port = ports.tcp()
        self.url = f"{'https' if self.setup.tls else 'http'}://127.0.0.1:{self.port}"
        self.config = self.directory / "service.conf"
        self.certificate, self.key = (str(self.directory / f"{name}.pem") for name in ("certificate", "key"))

    def headers(self) -> dict[str, str]:
        """Return what clients send to show who they are."""
        if self.setup.authentication == "keystone":
            return {"X-Auth-Token": self.keystone.connect("operator").auth_token}
        if self.setup.authentication == "http_basic":
            return {"Authorization": f"Basic {base64.b64encode(f'{USER}:{PASSWORD}'.encode()).decode()}"}
        return {}


Command = list[str]


class Side(NamedTuple):
    """A product that can be measured.

    :param distribution: its name in package indexes.
    :param programs: returns where its commands are; installs them first if need be.
    :param prepare: returns the command that makes the schema of the database.
    :param processes: returns the commands of its processes.
    :param charset: of its database.
    :param driver: with which it uses it.
    :param more: options beside those that every side has.
    """

    title: str
    distribution: str
    programs: Callable[[], pathlib.Path]
    prepare: Callable[[Site], Command]
    processes: Callable[[Site], list[Command]]
    charset: str = "utf8mb4"
    driver: str = "pymysql"
    more: Options = {}  # noqa: RUF012 a tuple's


def _ironic_programs() -> pathlib.Path:
    return environments.cached("ironic", "-r", str(IRONIC))


def _gunicorn(site: Site, threads: int) -> Command:
    """Return the command of an API in processes of gunicorn; the application is to follow."""
    certificate = ["--certfile", site.certificate, "--keyfile", site.key] if site.setup.tls else []
    workers = ["--workers", str(PROCESSES), "--worker-class", "gthread", "--threads", str(threads)]
    times = ["--keep-alive", "60", "--timeout", "120"]
    return ["gunicorn", "--bind", f"127.0.0.1:{site.port}", *workers, *times, *certificate]


def _ironic_processes(site: Site) -> list[Command]:
    configured = ["--config-file", str(site.config)]
    if site.setup.alone:
        return [["ironic", *configured]]
    (site.directory / "ironic_application.py").write_text(_WSGI.format(config=str(site.config)))
    api = [*_gunicorn(site, IRONIC_THREADS), "--pythonpath", str(site.directory), "ironic_application:application"]
    return [["ironic-conductor", *configured], api]


def _release_programs() -> pathlib.Path:
    """Return where the commands of the last release are: its own, and the web server of its API."""
    return environments.cached("release-measured", f"{environments.previous_wheel()}[mysql]", GUNICORN)


def _release_processes(site: Site) -> list[Command]:
    """Return what a cluster of the release before this one ran: its ingot-api was one process."""
    if site.setup.alone:
        return _ingot_processes(site)
    config = ["--env", f"INGOT_CONFIG_FILES={site.config}"]
    api = [*_gunicorn(site, RELEASE_THREADS), *config, "ingot.api.wsgi:application"]
    return [["ingot-conductor", "--config-file", str(site.config)], api]


def _ingot_processes(site: Site) -> list[Command]:
    commands = ["ingot"] if site.setup.alone else ["ingot-conductor", "ingot-api"]
    return [[command, "--config-file", str(site.config)] for command in commands]


def _ingot_schema(site: Site) -> Command:
    return ["ingot-dbsync", "--config-file", str(site.config), "upgrade"]


INGOT = Side("Ingot", "ingot", lambda: lab.HERE, _ingot_schema, _ingot_processes)
SIDES = {
    "ingot": INGOT,
    "release": Side(
        "last release",
        "ingot",
        _release_programs,
        _ingot_schema,
        _release_processes,
        more={"api": {"api_workers": 32}},  # there, they are threads
    ),
    "ironic": Side(
        "Ironic",
        "ironic",
        _ironic_programs,
        lambda site: ["ironic-dbsync", "--config-file", str(site.config), "create_schema"],
        _ironic_processes,
        charset="utf8mb3",
    ),
}


def options(site: Site) -> Options:
    """Return the configuration, the same for every side."""
    place = site.directory
    groups: Options = {
        "DEFAULT": {
            "auth_strategy": site.setup.authentication,
            "host": site.name,
            "my_ip": "127.0.0.1",
            "state_path": place,
            "rpc_transport": "none" if site.setup.alone else "oslo",
            "control_exchange": site.name,
            "enabled_hardware_types": "fake-hardware,ipmi",
            "enabled_bios_interfaces": "fake,no-bios",
            "enabled_boot_interfaces": "fake,ipxe",
            "enabled_deploy_interfaces": "fake,direct,ramdisk",
            "enabled_network_interfaces": "noop",
            "default_network_interface": "noop",
            "minimum_memory_warning_only": True,
        },
        "api": {"host_ip": "127.0.0.1", "port": site.port, "public_endpoint": site.url, "api_workers": PROCESSES},
        # The power of so few nodes would be read too often for a round, and too seldom for an average.
        "conductor": {"automated_clean": True, "sync_power_state_interval": 3600},
        "agent": {"require_tls": False},
        "deploy": {
            "erase_devices_priority": 0,
            "erase_devices_metadata_priority": 0,
            "http_root": place / "http",
            "http_url": "http://127.0.0.1:8088",
            "url_denied_networks": "",  # the image is on this machine
        },
        "dhcp": {"dhcp_provider": "none"},
        "pxe": {
            name: place / name for name in ("tftp_root", "images_path", "tftp_master_path", "instance_master_path")
        },
        "oslo_concurrency": {"lock_path": place / "locks"},
        "oslo_messaging_notifications": {"driver": "noop"},
        "service_catalog": {"endpoint_override": site.url},
        "database": {"connection": site.database},
    }
    if not site.setup.alone:
        groups["DEFAULT"]["transport_url"] = services.broker_url()
    for part in (_with_passwords, _with_tokens, _with_tls):
        part(site, groups)
    for group, values in site.more.items():
        groups.setdefault(group, {}).update(values)
    return groups


def _with_passwords(site: Site, groups: Options) -> None:
    if site.setup.authentication == "http_basic":
        users = site.directory / "users"
        hashed = bcrypt.hashpw(PASSWORD.encode(), bcrypt.gensalt(BCRYPT_ROUNDS)).decode()
        users.write_text(f"{USER}:{hashed}\n")
        groups["DEFAULT"]["http_basic_auth_user_file"] = users


def _with_tokens(site: Site, groups: Options) -> None:
    if site.setup.authentication == "keystone":
        service = {**site.keystone.credentials("ingot"), "auth_type": "password", "region_name": cloud.REGION}
        groups["keystone_authtoken"] = {**service, "www_authenticate_uri": site.keystone.url, "interface": "public"}
        groups["service_catalog"] |= service


def _with_tls(site: Site, groups: Options) -> None:
    if site.setup.tls:
        self_signed = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
        names = ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1", "-days", "2"]
        environments.run(*self_signed, *names, "-keyout", site.key, "-out", site.certificate)
        groups["api"] |= {"enable_ssl_api": True, "cert_file": site.certificate, "key_file": site.key}


@contextlib.contextmanager
def run(
    side: Side, setup: Setup, root: pathlib.Path, mariadb: servers.MariaDB | None, keystone: Any = None
) -> Iterator[loads.Subject]:
    """Start a service with an empty database, and yield it once it serves; stop it in the end."""
    place = (root / side.title.replace(" ", "-")).resolve()
    (place / "http").mkdir(parents=True, exist_ok=True)
    database = mariadb.create(side.charset, side.driver) if mariadb else f"sqlite:///{place}/service.sqlite"
    site = Site(setup, place, database, keystone, side.more)
    text = ""
    for group, values in options(site).items():
        text += "\n".join([f"[{group}]", *(f"{name} = {value}" for name, value in values.items()), ""])
    site.config.write_text(text)
    programs = side.programs()
    program, *words = side.prepare(site)
    environments.run(programs / program, *words, timeout=START_S)
    with contextlib.ExitStack() as stack:
        parts: dict[str, list[int]] = {}
        started = []
        for number, command in enumerate(side.processes(site)):
            process = lab.Process(command, place / f"{number}-{command[0]}.log")
            process.programs = programs
            process.directory = place  # gunicorn looks for packages where it was started: not in this checkout
            stack.callback(process.start().stop)
            started.append(process)
            part = "conductors" if "conductor" in command[0] else "API"
            parts.setdefault("service" if setup.alone else part, []).append(process.pid)
        headers = site.headers()
        subject = loads.Subject(side.title, Api(site.url, headers), parts, config=site.config)
        _wait_until_served(site, headers, started)
        if mariadb:
            parts |= {"database": mariadb.pids, "broker": servers.broker_pids()}
            subject.count = mariadb.count
        yield subject


def _wait_until_served(site: Site, headers: Mapping[str, str], started: list[lab.Process]) -> None:
    """Wait until all conductors are alive, by what the API says.

    :raises RuntimeError: a process has ended, or it takes too long; with the end of the logs.
    """
    until = time.monotonic() + START_S
    authority = site.certificate if site.setup.tls else True
    newest = {**headers, "X-OpenStack-Ironic-API-Version": "latest"}
    number = max(1, len(started) - 1)
    while True:
        with contextlib.suppress(requests.RequestException):
            answer = requests.get(f"{site.url}/v1/conductors", headers=newest, timeout=START_S, verify=authority)
            if answer.ok and sum(one["alive"] for one in answer.json()["conductors"]) >= number:
                return
        if time.monotonic() > until or not all(process.running for process in started):
            logs = "\n".join(path.read_text()[-3000:] for path in site.directory.glob("*.log"))
            raise RuntimeError(f"{site.url} does not serve:\n{logs}")
        time.sleep(0.2)


def packages(side: Side) -> dict[str, str]:
    """Return the versions of a product and of everything that is installed beside it."""
    listed = environments.run(side.programs() / "python", "-m", "pip", "list", "--format", "json")
    return {package["name"]: package["version"] for package in json.loads(listed)}
