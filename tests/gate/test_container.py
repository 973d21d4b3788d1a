"""The image of the container file, built with buildah from a Debian of the gate's own, and the file for compose."""

import base64
import json
import os
import pathlib
import re
import shutil
import stat
import subprocess
import sys
import time
from typing import Any, ClassVar

import bcrypt
import fixtures
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

AS_ENGINE = """
[ "$1" != unshare ] || exit 0
while [ "$1" != -I ]; do shift; done
exec {python} "$@"
"""
"""Runs what is to run in the image in this environment."""

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
        made = set(re.findall(r'"\$new/(\S+?)"', (FOLDER / "secrets.sh").read_text()))
        for name, secret in self.document["secrets"].items():
            self.assertIn(pathlib.Path(secret["file"]).name, made, name)
        mounted = self.document["x-ingot"]["volumes"]
        self.assertEqual(["./ingot.conf:/etc/ingot/ingot.conf:ro"], mounted)
        self.assertTrue((FOLDER / "ingot.conf").is_file())
        self.assertNotIn("configs", self.document, "not all programs that read this file know them")

    def test_all_come_back_after_a_restart_of_the_host(self) -> None:
        policies = {name: service["restart"] for name, service in self.document["services"].items()}
        self.assertEqual("on-failure", policies.pop("dbsync"))
        self.assertEqual({"unless-stopped"}, set(policies.values()), policies)

    def test_there_are_two_apis_and_three_conductors_of_different_names(self) -> None:
        services = self.document["services"]
        commands = [service["command"][0] for service in services.values() if "command" in service]
        self.assertEqual(["ingot-api"] * 2 + ["ingot-conductor"] * 3 + ["ingot-dbsync"], sorted(commands))
        names = [services[f"conductor-{number}"]["environment"]["OS_DEFAULT__HOST"] for number in (1, 2, 3)]
        self.assertEqual(["conductor-1", "conductor-2", "conductor-3"], names)

    def test_no_password_is_in_it(self) -> None:
        self.assertEqual([], re.findall(r'PASSWORD: (?!"1")', (FOLDER / "compose.yaml").read_text()))


class Secrets(testtools.TestCase):
    """The script that makes passwords, with programs in place of an engine."""

    def setUp(self) -> None:
        super().setUp()
        self.folder = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        self.script = shutil.copy(FOLDER / "secrets.sh", self.folder)
        self.made = self.folder / "secrets"

    def make(self, engine: str) -> int:
        """Run the script; return its exit code."""
        program = self.folder / "podman"
        program.write_text(f"#!/bin/sh\n{engine}\n")
        program.chmod(0o755)
        path = f"{self.folder}:{os.environ['PATH']}"
        command = ["sh", self.script, "mariadb"]
        ended = subprocess.run(command, env={"PATH": path, "ENGINE": str(program)}, capture_output=True, check=False)
        return ended.returncode

    def test_what_was_begun_in_vain_is_not_in_the_way(self) -> None:
        self.assertEqual(125, self.make("exit 125"))
        self.assertEqual({"podman", "secrets.sh"}, {path.name for path in self.folder.iterdir()})
        self.assertEqual(0, self.make(AS_ENGINE.format(python=sys.executable)))
        user, _colon, digest = (self.made / "htpasswd").read_text().strip().partition(":")
        password = (self.made / "admin_password").read_bytes()
        self.assertEqual(("admin", True), (user, bcrypt.checkpw(password, digest.encode())))
        self.assertEqual(32, len(base64.urlsafe_b64decode((self.made / "secrets.key").read_text())))
        self.assertEqual(0o400, stat.S_IMODE((self.made / "secrets.key").stat().st_mode))
        self.assertEqual(1, self.make("exit 0"), "passwords that are in use stay")
        self.assertEqual(password, (self.made / "admin_password").read_bytes())
