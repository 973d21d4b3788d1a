"""The servers that functional tests need: how each is found, prepared, started and greeted.

For `devstack/services.py`, which runs them. To add one, describe it and put it in SERVERS.
"""

import glob
import os
import pathlib
import secrets
import shlex
import shutil
import signal
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from rack import ports

USER = "ingot"
UNPRIVILEGED = "nobody"


@dataclass(frozen=True)
class Site:
    """Where one server lives: its directory, its port, the password of its only user."""

    directory: pathlib.Path
    port: int
    password: str = field(default_factory=lambda: secrets.token_hex(12), repr=False)

    def write(self, name: str, text: str) -> pathlib.Path:
        """Write a file that only the server's account may read."""
        path = self.directory / name
        path.touch(mode=0o600)
        path.write_text(text)
        hand_over(path)
        return path


@dataclass(frozen=True)
class Server:
    """How one kind of server is found, prepared, started, and asked whether it is ready.

    `prepare` answers the commands to run once before the server, `command` the server itself in the
    foreground, `helper` another process that it needs. It is ready when `hello`, sent to its port, is
    answered by something that starts with `answer`. On `stop_signal` it ends in order, though clients are connected.
    `more` are its other addresses, and the command that controls it, by the variables of the environment that have
    them.
    """

    name: str
    package: str
    binaries: tuple[str, ...]
    variable: str
    url: Callable[[Site], str]
    prepare: Callable[[Site], list[list[str]]]
    command: Callable[[Site], list[str]]
    hello: bytes
    answer: bytes
    environment: Callable[[Site], Mapping[str, str]] = lambda site: {}
    helper: Callable[[Site], list[str]] | None = None
    stop_signal: int = signal.SIGTERM
    more: Mapping[str, Callable[[Site], str]] = field(default_factory=dict)


def hand_over(path: pathlib.Path) -> None:
    if os.geteuid() == 0:
        shutil.chown(path, UNPRIVILEGED)


def find(*patterns: str) -> str:
    """Return the newest program that one of the patterns names, "" when there is none."""
    for pattern in patterns:
        if paths := sorted(glob.glob(pattern)):
            return paths[-1]
    return ""


def binary(name: str) -> str:
    """Return a server's program; Debian keeps some out of the PATH, and those match what else it installed."""
    return (
        find(f"/usr/lib/postgresql/*/bin/{name}", f"/usr/lib/rabbitmq/lib/*/sbin/{name}")
        or shutil.which(name, path="/usr/sbin:/usr/bin:/usr/local/sbin:/usr/local/bin")
        or ""
    )


def mariadb_prepare(site: Site) -> list[list[str]]:
    site.write(
        "init.sql",
        # It is run at each start, and has a statement a line.
        f"CREATE USER IF NOT EXISTS '{USER}'@'127.0.0.1' IDENTIFIED BY '{site.password}';\n"
        f"GRANT ALL PRIVILEGES ON *.* TO '{USER}'@'127.0.0.1' WITH GRANT OPTION;\n",
    )
    data = f"--datadir={site.directory}/data"
    return [[binary("mariadb-install-db"), "--no-defaults", data, "--skip-test-db", "--skip-name-resolve"]]


def mariadb_command(site: Site) -> list[str]:
    place = site.directory
    return [
        binary("mariadbd"),
        "--no-defaults",
        f"--datadir={place}/data",
        f"--tmpdir={place}",
        f"--socket={place}/socket",
        f"--pid-file={place}/server.pid",
        f"--init-file={place}/init.sql",
        "--bind-address=127.0.0.1",
        f"--port={site.port}",
        "--skip-name-resolve",
        "--skip-log-bin",
        "--character-set-server=utf8mb4",
        "--max-connections=300",
        "--innodb-buffer-pool-size=128M",
        "--innodb-flush-log-at-trx-commit=0",
        "--innodb-doublewrite=0",
    ]


def postgresql_prepare(site: Site) -> list[list[str]]:
    password = site.write("password", site.password)
    return [
        [
            binary("initdb"),
            f"--pgdata={site.directory}/data",
            f"--username={USER}",
            f"--pwfile={password}",
            "--auth=scram-sha-256",
            "--encoding=UTF8",
            "--locale=C.UTF-8",
            "--no-sync",
        ]
    ]


def postgresql_command(site: Site) -> list[str]:
    settings = {
        "listen_addresses": "127.0.0.1",
        "unix_socket_directories": str(site.directory),
        "max_connections": "300",
        "fsync": "off",
        "synchronous_commit": "off",
        "full_page_writes": "off",
    }
    options = [f"--{name}={value}" for name, value in settings.items()]
    return [binary("postgres"), "-D", f"{site.directory}/data", "-p", str(site.port), *options]


def postgresql_hello() -> bytes:
    """Return a start-up packet, protocol 3.0: answered "R" (authenticate) once the server takes connections."""
    body = (3 << 16).to_bytes(4, "big") + f"user\0{USER}\0database\0postgres\0\0".encode()
    return (len(body) + 4).to_bytes(4, "big") + body


def rabbitmq_prepare(site: Site) -> list[list[str]]:
    place = site.directory
    _mapper, _distribution, encrypted = reserved_ports(site)
    site.write(
        "rabbitmq.conf",
        f"listeners.tcp.1 = 127.0.0.1:{site.port}\n"
        f"listeners.ssl.1 = 127.0.0.1:{encrypted}\n"
        f"ssl_options.certfile = {place}/certificate.pem\n"
        f"ssl_options.keyfile = {place}/key.pem\n"
        f"default_user = {USER}\n"
        f"default_pass = {site.password}\n"
        "disk_free_limit.absolute = 50MB\n",
    )
    site.write("plugins", "[].\n")
    site.write("environment", "")
    self_signed = ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"]
    owner = ["-subj", "/CN=broker", "-addext", "subjectAltName=IP:127.0.0.1"]
    files = ["-keyout", f"{place}/key.pem", "-out", f"{place}/certificate.pem"]
    return [[binary("openssl"), *self_signed, *owner, *files]]


def rabbitmq_url(site: Site, port: int | str) -> str:
    return f"rabbit://{USER}:{site.password}@127.0.0.1:{port}/"


def rabbitmq_environment(site: Site) -> Mapping[str, str]:
    """Return a node's environment, its own in every respect: name, port mapper, cookie (in HOME), files."""
    place = str(site.directory)
    mapper, distribution, _encrypted = reserved_ports(site)
    return {
        "HOME": place,
        "ERL_EPMD_ADDRESS": "127.0.0.1",
        "ERL_EPMD_PORT": mapper,
        "RABBITMQ_CONFIG_FILE": f"{place}/rabbitmq.conf",
        "RABBITMQ_CONF_ENV_FILE": f"{place}/environment",
        "RABBITMQ_DIST_PORT": distribution,
        "RABBITMQ_ENABLED_PLUGINS_FILE": f"{place}/plugins",
        "RABBITMQ_GENERATED_CONFIG_DIR": f"{place}/generated",
        "RABBITMQ_LOG_BASE": f"{place}/log",
        "RABBITMQ_LOGS": "-",
        "RABBITMQ_MNESIA_BASE": f"{place}/data",
        "RABBITMQ_NODENAME": f"ingot-{site.port}@localhost",
        "RABBITMQ_PID_FILE": f"{place}/server.pid",
    }


def rabbitmq_control(site: Site) -> str:
    """Return the command that controls the node, for a shell. It needs the account of the node, or root."""
    own = [f"{name}={value}" for name, value in rabbitmq_environment(site).items()]
    return shlex.join(["env", *own, binary("rabbitmqctl")])


def reserved_ports(site: Site) -> list[str]:
    """Return the ports of Erlang's mapper, of the node's distribution, and for TLS: chosen once, kept in a file."""
    path = site.directory / "ports"
    if not path.exists():
        path.write_text(" ".join(str(port) for port in (ports.tcp(), ports.tcp(), ports.tcp())))
    return path.read_text().split()


def epmd_command(site: Site) -> list[str]:
    """Return the port mapper's command: Erlang would start it as a daemon, as our child it ends with us."""
    return [binary("epmd"), "-address", "127.0.0.1", "-port", reserved_ports(site)[0]]


SERVERS = (
    Server(
        name="MariaDB",
        package="mariadb-server",
        binaries=("mariadbd", "mariadb-install-db"),
        variable="INGOT_TEST_MYSQL_URL",
        url=lambda site: f"mysql+pymysql://{USER}:{site.password}@127.0.0.1:{site.port}/?charset=utf8mb4",
        more={
            "INGOT_TEST_MYSQLCLIENT_URL": lambda site: (
                f"mysql+mysqldb://{USER}:{site.password}@127.0.0.1:{site.port}/?charset=utf8mb4"
            )
        },
        prepare=mariadb_prepare,
        command=mariadb_command,
        hello=b"",
        answer=b"",
    ),
    Server(
        name="PostgreSQL",
        package="postgresql",
        binaries=("postgres", "initdb"),
        variable="INGOT_TEST_POSTGRESQL_URL",
        url=lambda site: f"postgresql+psycopg://{USER}:{site.password}@127.0.0.1:{site.port}/postgres",
        prepare=postgresql_prepare,
        command=postgresql_command,
        hello=postgresql_hello(),
        answer=b"R",
        stop_signal=signal.SIGINT,  # on SIGTERM it waits for its clients to leave
    ),
    Server(
        name="RabbitMQ",
        package="rabbitmq-server",
        binaries=("rabbitmq-server", "epmd"),
        variable="INGOT_TEST_RABBIT_URL",
        url=lambda site: rabbitmq_url(site, site.port),
        more={
            "INGOT_TEST_RABBIT_TLS_URL": lambda site: rabbitmq_url(site, reserved_ports(site)[-1]),
            "INGOT_TEST_RABBIT_CONTROL": rabbitmq_control,
        },
        prepare=rabbitmq_prepare,
        # Debian's wrapper in /usr/sbin insists on the account of the system's own instance.
        command=lambda site: [binary("rabbitmq-server")],
        hello=b"AMQP\x00\x00\x09\x01",
        answer=b"\x01",
        environment=rabbitmq_environment,
        helper=epmd_command,
    ),
)
