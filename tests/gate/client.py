"""A running Ingot with fake hardware, and the command line of OpenStack as its users install it."""

import functools
import json
import os
import pathlib
import subprocess
from collections.abc import Mapping
from typing import Any

import bcrypt
import fixtures
import requests

from ingot.rack import ports
from tests.functional.deployment import lab
from tests.gate import environments, warm

REQUIREMENTS = ("python-ironicclient>=6.0", "python-openstackclient>=10.0")
NEWEST = "from ironicclient.common import http; print(http.LATEST_VERSION)"
PLUGINS = (
    *("openstack.cli", "openstack.cli.base", "openstack.cli.extension", "openstack.common", "openstack.baremetal.v1"),
    *("cliff.formatter.list", "cliff.formatter.show", "keystoneauth1.plugin"),
)
USER = "operator"
PATIENCE_S = lab.PATIENCE


def programs() -> pathlib.Path:
    """Return the directory of the client's programs."""
    return environments.cached("client", *REQUIREMENTS)


def warm_programs() -> warm.Warm:
    """Return what has ``openstack`` start fast."""
    return warm.Warm(programs(), "openstack", PLUGINS)


class Cli:
    """``openstack baremetal`` with the options that say where Ingot is and who asks."""

    def __init__(self, programs: pathlib.Path, home: pathlib.Path, options: Mapping[str, str]) -> None:
        self._program = programs / "openstack"
        self._home = home
        self._options = [word for name, value in options.items() for word in (f"--os-{name}", value)]

    def run(
        self, words: str, *values: str, given: str | None = None, options: tuple[str, ...] = ()
    ) -> subprocess.CompletedProcess[str]:
        """Run a command to its end, successful or not.

        :param words: the command and its arguments, in one text; what has spaces in it follows in ``values``.
        :param given: what the command reads from its standard input.
        :param options: further ones of the program, not of the command.
        """
        command = [str(self._program), *self._options, *options, "baremetal", *words.split(), *values]
        environment = {"PATH": os.defpath, "HOME": str(self._home), "LC_ALL": "C.UTF-8", "NO_PROXY": "*"}
        return subprocess.run(
            command,
            input=given or "",
            capture_output=True,
            text=True,
            timeout=environments.COMMAND_TIMEOUT_S,
            check=False,
            cwd=self._home,
            env=environment,
        )

    def __call__(self, words: str, *values: str, given: str | None = None, options: tuple[str, ...] = ()) -> str:
        """Return the output of a command, which must succeed without any complaint."""
        return environments.read_output(self.run(words, *values, given=given, options=options))

    def show(self, words: str, *values: str, given: str | None = None) -> Any:
        """Return the parsed output of a command that shows or lists something."""
        return json.loads(self(words, *values, "-f", "json", given=given))

    def refused(self, words: str, *values: str) -> str:
        """Return the error message of a command, which must fail."""
        outcome = self.run(words, *values)
        if not outcome.returncode:
            raise AssertionError(f"{words} should have failed; it said:\n{outcome.stdout}")
        return outcome.stderr


class Ingot(fixtures.Fixture):
    """The all-in-one on SQLite.

    :param password: of its one user; None: every client may do everything.
    :param options: further ones: {group: {name: value}}.
    """

    def __init__(self, password: str | None = None, options: Mapping[str, Mapping[str, Any]] | None = None) -> None:
        super().__init__()
        self._password = password
        self._options = options or {}

    def _setUp(self) -> None:
        self.directory = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        port = ports.tcp()
        self.url = f"http://127.0.0.1:{port}"
        config = self.directory / "ingot.conf"
        lines = []
        for group, options in self._configuration(port).items():
            lines += [f"[{group}]", *(f"{name} = {value}" for name, value in options.items())]
        config.write_text("\n".join(lines) + "\n")
        self.process = lab.Process(["ingot", "--config-file", str(config)], self.directory / "ingot.log")
        self.addCleanup(self.process.stop)
        self.process.start()
        self.session = requests.Session()
        self.addCleanup(self.session.close)
        self.session.trust_env = False
        self.session.headers["X-OpenStack-Ironic-API-Version"] = "latest"
        if self._password is not None:
            self.session.auth = (USER, self._password)
        self.eventually(lambda: any(one["alive"] for one in self.get("/v1/conductors")["conductors"]), "it serves")

    @functools.cached_property
    def cli(self) -> Cli:
        """The command line of OpenStack, for the one who may do everything."""
        return Cli(self.useFixture(warm_programs()).directory, self.directory, self._credentials())

    def _credentials(self) -> dict[str, str]:
        """Return the client's options for its credentials and its server."""
        who = {"auth-type": "none"}
        if self._password is not None:
            who = {"auth-type": "http_basic", "username": USER, "password": self._password}
        return {**who, "endpoint": self.url}

    def _configuration(self, port: int) -> dict[str, dict[str, Any]]:
        # The classic driver is the example's, which the gate installs.
        settings: dict[str, dict[str, Any]] = {
            "DEFAULT": {
                "host": "conductor-0",
                "my_ip": "127.0.0.1",
                "auth_strategy": "noauth",
                "state_path": self.directory,
                "enabled_hardware_types": "fake-hardware,ipmi",
                "enabled_drivers": "example_classic",
            },
            "api": {"host_ip": "127.0.0.1", "port": port},
            "conductor": {"heartbeat_interval": 1, "sweep_interval": 1},
            "service_catalog": {"endpoint_override": f"http://127.0.0.1:{port}"},
        }
        if self._password is not None:
            users = self.directory / "users"
            users.write_text(f"{USER}:{bcrypt.hashpw(self._password.encode(), bcrypt.gensalt(4)).decode()}\n")
            settings["DEFAULT"] |= {"auth_strategy": "http_basic", "http_basic_auth_user_file": users}
        for group, options in self._options.items():
            settings[group] = {**settings.get(group, {}), **options}
        return settings

    def get(self, path: str) -> Any:
        """Return the API's answer to a plain HTTP request."""
        answer = self.session.get(self.url + path, timeout=PATIENCE_S)
        answer.raise_for_status()
        return answer.json()

    def eventually(self, check: Any, what: str) -> Any:
        """Return the first true answer of ``check``; fail with the log after a while."""
        return lab.eventually(check, what, PATIENCE_S, lambda: self.process.log.read_text()[-5000:])

    def reach(self, node: str, state: str) -> dict[str, Any]:
        """Wait until a node is in a provision state and unlocked."""

        def check() -> dict[str, Any] | None:
            found: dict[str, Any] = self.get(f"/v1/nodes/{node}")
            return found if found["provision_state"] == state and found["reservation"] is None else None

        found: dict[str, Any] = self.eventually(check, f"{node} is {state}: {self.get(f'/v1/nodes/{node}')}")
        return found
