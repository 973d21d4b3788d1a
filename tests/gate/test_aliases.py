"""Ironic's names for Ingot's commands, as pip installs them: what units and web servers of Ironic start."""

import os
import pathlib
import shutil
import sqlite3
import sys
from typing import ClassVar

import fixtures
import requests
import testtools

from ingot.rack import ports
from tests import patience
from tests.functional.deployment import lab
from tests.gate import environments
from tests.gate.moving.site import lab_headers

SOURCE = environments.ROOT / "packaging" / "aliases"

PATIENCE = patience.seconds(60)

REQUEST = """
from ironic.wsgi import application
from ironic.wsgi.api import application as same
from werkzeug.test import Client
assert same is application
print(Client(application).get("/").json["name"])
"""


class TestAliases(testtools.TestCase):
    """The tests share what is installed; each has a home of its own."""

    installed: ClassVar[pathlib.Path]

    @classmethod
    def setUpClass(cls) -> None:
        super().setUpClass()
        folder = pathlib.Path(cls.enterClassContext(fixtures.TempDir()).path)
        cls.installed = folder / "installed"
        shutil.copytree(SOURCE, folder / "source", ignore=shutil.ignore_patterns("build", "*.egg-info"))
        pip = (sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", cls.installed, folder / "source")
        environments.run(*pip, timeout=environments.BUILD_TIMEOUT_S)

    def setUp(self) -> None:
        super().setUp()
        folder = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        self.programs = self.installed / "bin"
        self.database, self.log = folder / "ironic.sqlite", folder / "ironic.log"
        (folder / ".ironic").mkdir()
        (folder / ".ironic" / "ironic.conf").write_text(
            f"[DEFAULT]\nauth_strategy = noauth\nstate_path = {folder}\nenabled_hardware_types = fake-hardware\n"
            "transport_url = rabbit://guest:guest@127.0.0.1:5672/\nlog_file = ironic.log\n"
            f"log_dir = {folder}\n[database]\nconnection = sqlite:///{self.database}\n"
        )
        path = f"{self.programs}:{lab.HERE}:{os.environ['PATH']}"
        self.environment = {"HOME": str(folder), "PATH": path, "PYTHONPATH": str(self.installed)}

    def run_command(self, *words: str) -> str:
        return environments.run(self.programs / words[0], *words[1:], env=self.environment)

    def test_they_read_the_files_of_ironic(self) -> None:
        self.run_command("ironic-dbsync")
        self.assertIn("this release", self.run_command("ironic-dbsync", "version"))
        with sqlite3.connect(self.database) as connection:
            connection.execute("SELECT outbox FROM nodes")
        for program in ("ironic", "ironic-api", "ironic-conductor", "ironic-status"):
            self.assertIn("--config-file", self.run_command(program, "--help"))

    def test_they_serve(self) -> None:
        """Start the units of a site: of one process, and of two."""
        self.run_command("ironic-dbsync")
        for programs in (("ironic",), ("ironic-api", "ironic-conductor")):
            port = ports.tcp()
            running = [self.start(program, port) for program in programs]
            lab.eventually(lambda port=port: self.is_served(port), f"{programs} serve", PATIENCE, self.read_log)
            self.assertEqual([0] * len(running), [process.stop() for process in running], self.read_log())

    def start(self, program: str, port: int) -> lab.Process:
        own = {"OS_API__HOST_IP": "127.0.0.1", "OS_API__PORT": str(port), "OS_DEFAULT__TRANSPORT_URL": "fake:/"}
        process = lab.Process([program], self.log.with_name("output"))
        process.programs, process.environment = self.programs, {**self.environment, **own}
        self.addCleanup(process.stop)
        return process.start()

    def is_served(self, port: int) -> bool:
        answer = requests.get(f"http://127.0.0.1:{port}/v1/conductors", headers=lab_headers(), timeout=PATIENCE)
        return answer.ok and any(one["alive"] for one in answer.json()["conductors"])

    def read_log(self) -> str:
        """Return the ends of the services' log and of what they print."""
        files = [file for file in (self.log, self.log.with_name("output")) if file.exists()]
        return "\n".join(file.read_text(errors="replace")[-4000:] for file in files)

    def test_web_servers_find_the_application(self) -> None:
        self.run_command("ironic-dbsync", "create_schema")
        said = environments.run(sys.executable, "-c", REQUEST, env=self.environment)
        self.assertEqual("Ingot Bare Metal API\n", said)
