"""Ironic's names for Ingot's commands, as pip installs them: what units and web servers of Ironic start."""

import os
import pathlib
import shutil
import sqlite3
import sys

import fixtures
import testtools

from tests.functional.deployment import lab
from tests.gate import environments

SOURCE = environments.ROOT / "packaging" / "aliases"

REQUEST = """
from ironic.wsgi import application
from ironic.wsgi.api import application as same
from werkzeug.test import Client
assert same is application
print(Client(application).get("/").json["name"])
"""


class TestAliases(testtools.TestCase):
    def setUp(self) -> None:
        super().setUp()
        folder = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        place = folder / "installed"
        shutil.copytree(SOURCE, folder / "source", ignore=shutil.ignore_patterns("build", "*.egg-info"))
        pip = (sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", place, folder / "source")
        environments.run(*pip, timeout=environments.BUILD_TIMEOUT_S)
        self.programs = place / "bin"
        self.database = folder / "ironic.sqlite"
        (folder / ".ironic").mkdir()
        (folder / ".ironic" / "ironic.conf").write_text(
            f"[DEFAULT]\nauth_strategy = noauth\nstate_path = {folder}\nenabled_hardware_types = fake-hardware\n"
            "transport_url = rabbit://guest:guest@127.0.0.1:5672/\nlog_file = ironic.log\n"
            f"log_dir = {folder}\n[database]\nconnection = sqlite:///{self.database}\n"
        )
        path = f"{self.programs}:{lab.HERE}:{os.environ['PATH']}"
        self.environment = {"HOME": str(folder), "PATH": path, "PYTHONPATH": str(place)}

    def run_command(self, *words: str) -> str:
        return environments.run(self.programs / words[0], *words[1:], env=self.environment)

    def test_they_read_the_files_of_ironic(self) -> None:
        self.run_command("ironic-dbsync")
        self.assertIn("this release", self.run_command("ironic-dbsync", "version"))
        with sqlite3.connect(self.database) as connection:
            connection.execute("SELECT outbox FROM nodes")
        for program in ("ironic", "ironic-api", "ironic-conductor", "ironic-status"):
            self.assertIn("--config-file", self.run_command(program, "--help"))

    def test_web_servers_find_the_application(self) -> None:
        self.run_command("ironic-dbsync", "create_schema")
        said = environments.run(sys.executable, "-c", REQUEST, env=self.environment)
        self.assertEqual("Ingot Bare Metal API\n", said)
