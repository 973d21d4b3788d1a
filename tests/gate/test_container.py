"""The image of the container file, built with buildah from a Debian of the gate's own, and the file for compose."""

import json
import pathlib
import re
import subprocess
import time
from typing import Any, ClassVar

import jsonschema
import psutil
import testtools
import yaml

from ingot.rack import ports
from tests import patience
from tests.gate import containers, debian, environments

FOLDER = environments.ROOT / "packaging/container"
IMAGE = "localhost/ingot"
SCHEMA = "usr/lib/python3/dist-packages/compose/config/compose_spec.json"
COMMANDS = ("ingot", "ingot-api", "ingot-conductor", "ingot-dbsync", "ingot-status", "ingot-boot")
PATIENCE = patience.seconds(60)

OPTIONS = """
[DEFAULT]
auth_strategy = noauth
host = container
my_ip = 127.0.0.1
enabled_hardware_types = fake-hardware
[api]
host_ip = 127.0.0.1
port = {port}
"""


class Image(testtools.TestCase):
    store: ClassVar[containers.Store]
    container: ClassVar[str]

    @classmethod
    def setUpClass(cls) -> None:
        super().setUpClass()
        cls.store = cls.enterClassContext(containers.Store())
        cls.store.add_base()
        cls.store.build(environments.ROOT, "packaging/container/Containerfile", debian.wheels(), IMAGE)
        cls.container = cls.store.create(IMAGE)

    def run_inside(self, *command: str) -> str:
        return self.store.run("run", "--isolation", "chroot", self.container, "--", *command)

    def describe(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.store.run("inspect", "--type", "image", IMAGE))
        return found["Docker"]["config"]

    def test_it_has_no_root_and_a_health_check(self) -> None:
        config = self.describe()
        self.assertEqual(("ingot", ["ingot"]), (config["User"], config["Cmd"]))
        self.assertEqual("CMD", config["Healthcheck"]["Test"][0])
        self.assertEqual({"6385/tcp": {}}, config["ExposedPorts"])
        self.assertEqual("42385", self.run_inside("id", "-u"))

    def test_all_commands_are_there(self) -> None:
        said = self.run_inside("sh", "-ec", 'for command; do "$command" --help; done', "sh", *COMMANDS)
        self.assertEqual(set(), {command for command in COMMANDS if f"usage: {command} " not in said})

    def test_it_serves_and_its_health_check_knows(self) -> None:
        port = ports.tcp()
        self.store.mount(self.container).joinpath("etc/ingot/ingot.conf").write_text(OPTIONS.format(port=port))
        command = self.store.command("run", "--isolation", "chroot", self.container, "--", "ingot")
        service = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(_stop, service)
        check = self.describe()["Healthcheck"]["Test"][1:]
        address = f"INGOT_HEALTHCHECK=http://127.0.0.1:{port}/healthcheck"
        until = time.monotonic() + PATIENCE
        while True:
            try:
                self.assertEqual("OK", self.run_inside("env", address, *check))
                break
            except AssertionError as exc:
                if time.monotonic() > until:
                    raise
                self.assertIn("refused", str(exc))
                time.sleep(0.5)
        nowhere = f"INGOT_HEALTHCHECK=http://127.0.0.1:{ports.tcp()}/healthcheck"
        self.assertRaises(AssertionError, self.run_inside, "env", nowhere, *check)


def _stop(container: "subprocess.Popen[bytes]") -> None:
    """Stop the service that runs in a container, as an engine does."""
    for process in psutil.Process(container.pid).children(recursive=True):
        if process.name() == "ingot":
            process.terminate()
    container.wait(PATIENCE)


class Compose(testtools.TestCase):
    """The file is checked by the schema of Debian's docker-compose, and by what its services need."""

    document: ClassVar[dict[str, Any]]

    @classmethod
    def setUpClass(cls) -> None:
        super().setUpClass()
        cls.document = yaml.safe_load((FOLDER / "compose.yaml").read_text())

    def test_it_is_what_compose_reads(self) -> None:
        validator = jsonschema.Draft7Validator(json.loads(debian.find_in_package("docker-compose", SCHEMA).read_text()))
        self.assertEqual([], [f"{list(error.path)}: {error.message}" for error in validator.iter_errors(self.document)])

    def test_what_services_name_is_there(self) -> None:
        made = set(re.findall(r'"\$here/(\S+?)"', (FOLDER / "secrets.sh").read_text()))
        for name, secret in self.document["secrets"].items():
            self.assertIn(pathlib.Path(secret["file"]).name, made, name)
        for config in self.document["configs"].values():
            self.assertTrue((FOLDER / config["file"]).is_file(), config)

    def test_there_are_two_apis_and_three_conductors_of_different_names(self) -> None:
        services = self.document["services"]
        commands = [service["command"][0] for service in services.values() if "command" in service]
        self.assertEqual(["ingot-api"] * 2 + ["ingot-conductor"] * 3 + ["ingot-dbsync"], sorted(commands))
        names = [services[f"conductor-{number}"]["environment"]["OS_DEFAULT__HOST"] for number in (1, 2, 3)]
        self.assertEqual(["conductor-1", "conductor-2", "conductor-3"], names)

    def test_no_password_is_in_it(self) -> None:
        self.assertEqual([], re.findall(r'PASSWORD: (?!"1")', (FOLDER / "compose.yaml").read_text()))
