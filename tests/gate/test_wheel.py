"""The product as a user installs it: built from what git tracks, put into an empty environment, every part tried."""

import configparser
import json
import os
import pathlib
import tempfile
import zipfile
from typing import ClassVar

import testtools

from tests.gate import environments
from tests.gate.environments import ROOT, make, run

NOT_IMPORTABLE = {
    # Alembic runs this file in the middle of a migration; on its own it has no configuration to import with.
    "ingot.db.migrations.env",
    # Programs of processes of their own, for which the extra ansible is installed.
    "ingot.drivers.ansible.playbook_runner",
    "ingot.drivers.ansible.playbooks.library.write_config_drive",
    "ingot.drivers.ansible.playbooks.library.write_image",
}

CARRIED = "agent-extensions"
"""A project of its own, which runs in ramdisks, where the agent is."""

KIT = "ingot.driver_kit"
"""What needs the extra driver-kit: the tests of the example driver, which install it, import all of it."""

IMPORT_EACH = """
import importlib, json, sys, traceback
failures = {}
for name in json.load(sys.stdin):
    try:
        importlib.import_module(name)
    except Exception:
        failures[name] = traceback.format_exc(limit=-1)
print()  # the service's logs go to standard output too
print(json.dumps(failures))
"""


class WheelTest(testtools.TestCase):
    """One wheel and one environment serve all tests: making them takes most of a minute."""

    work: ClassVar[pathlib.Path]
    wheel: ClassVar[pathlib.Path]
    programs: ClassVar[pathlib.Path]
    setup_cfg: ClassVar[configparser.ConfigParser]

    @classmethod
    def setUpClass(cls) -> None:
        super().setUpClass()
        cls.work = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory(prefix="ingot-wheel-")))
        cls.setup_cfg = configparser.ConfigParser(interpolation=None, delimiters=("=",))
        cls.setup_cfg.read(ROOT / "setup.cfg")
        cls.wheel = environments.wheel()
        cls.programs = cls.install()

    @classmethod
    def install(cls) -> pathlib.Path:
        """Install the wheel and what it requires, no more; return the directory of the programs."""
        return make(cls.work / "environment", cls.wheel)

    def names_in_wheel(self) -> set[str]:
        """Return what goes where modules go."""
        with zipfile.ZipFile(self.wheel) as archive:
            return {name for name in archive.namelist() if ".dist-info/" not in name and ".data/" not in name}

    def expected_names(self) -> set[str]:
        """Return every tracked file below a folder of package_dir, under the name of its package."""
        lines = self.setup_cfg["options"]["package_dir"].strip().splitlines()
        folders = {folder.strip(): name.strip() for name, folder in (line.split("=") for line in lines)}
        return {
            f"{name.replace('.', '/')}/{path.relative_to(folder)}"
            for path in environments.tracked_files()
            for folder, name in folders.items()
            if path.is_relative_to(folder)
        }

    def commands(self) -> list[str]:
        lines = self.setup_cfg["options.entry_points"]["console_scripts"].strip().splitlines()
        return [line.split("=")[0].strip() for line in lines]

    def configured(self) -> pathlib.Path:
        """Write a configuration file with a migrated database: importing the WSGI module starts the API."""
        config = self.work / "ingot.conf"
        config.write_text(
            f"[DEFAULT]\nauth_strategy = noauth\nstate_path = {self.work}\ntransport_url = rabbit://127.0.0.1/\n"
        )
        run(self.programs / "ingot-dbsync", "--config-file", config, "upgrade", cwd=self.work)
        return config

    def test_the_wheel_holds_every_file_of_the_packages_and_no_other(self) -> None:
        self.assertEqual(sorted(self.expected_names()), sorted(self.names_in_wheel()))

    def test_the_description_of_the_api_and_the_samples_come_along(self) -> None:
        for name in ("doc/openapi.json", "etc/api_audit_map.conf", "etc/ingot.conf.sample", "etc/policy.yaml.sample"):
            installed = self.programs.parent / "share" / "ingot" / pathlib.PurePath(name).name
            self.assertEqual((ROOT / name).read_text(), installed.read_text())

    def test_every_module_can_be_imported(self) -> None:
        paths = map(pathlib.PurePosixPath, self.names_in_wheel())
        files = [path for path in paths if path.suffix == ".py" and CARRIED not in path.parts]
        names = {".".join(f.parent.parts if f.stem == "__init__" else f.with_suffix("").parts) for f in files}
        importable = json.dumps(sorted(name for name in names - NOT_IMPORTABLE if not name.startswith(KIT)))
        environment = {**os.environ, "INGOT_CONFIG_FILES": str(self.configured())}
        answer = run(self.programs / "python", "-c", IMPORT_EACH, input=importable, cwd=self.work, env=environment)
        failures = json.loads(answer.splitlines()[-1])
        self.assertEqual([], sorted(failures), "\n".join(failures.values()))

    def test_every_command_explains_itself(self) -> None:
        for command in self.commands():
            self.assertIn("--", run(self.programs / command, "--help", cwd=self.work), command)

    def test_every_command_says_its_version(self) -> None:
        version = self.setup_cfg["metadata"]["version"]
        for command in self.commands():
            self.assertIn(version, run(self.programs / command, "--version", cwd=self.work), command)

    def test_requirements_of_the_environment_agree(self) -> None:
        run(*environments.UV, "pip", "check", "--python", self.programs.parent)
