"""The commands of Ironic, and what Ingot's are asked for in their place."""

import argparse
import importlib
import pathlib
import sys
from typing import Any

import fixtures
import testtools

from ingot.db.cmd import dbsync

ROOT = pathlib.Path(__file__).parents[2]


class Aliases(testtools.TestCase):
    def setUp(self) -> None:
        super().setUp()
        self.useFixture(fixtures.MonkeyPatch("sys.path", [str(ROOT / "packaging" / "aliases"), *sys.path]))
        self.main: Any = importlib.import_module("ingot_ironic_commands.main")
        self.home = pathlib.Path(self.useFixture(fixtures.TempHomeDir()).path)

    def check(self, expected: str, line: str) -> None:
        program, *words = line.split()
        self.assertEqual(expected.split(), self.main.translate(program, words))

    def test_each_is_the_command_with_the_same_ending(self) -> None:
        self.check("ingot --config-dir /etc/ironic", "ironic --config-dir /etc/ironic")
        self.check("ingot-api --config-file=/x", "ironic-api --config-file=/x")
        self.check("ingot-conductor --help", "ironic-conductor --help")
        self.check("ingot-status --config-file /x upgrade check", "ironic-status --config-file /x upgrade check")

    def test_the_schema_is_made_by_the_words_of_ironic(self) -> None:
        for line in ("create_schema", "upgrade", ""):
            self.check("ingot-dbsync --config-file /x upgrade", f"ironic-dbsync --config-file /x {line}")
        self.check("ingot-dbsync --config-file=/x version", "ironic-dbsync --config-file=/x version")
        self.check("ingot-dbsync --help", "ironic-dbsync --help")
        self.check(
            "ingot-dbsync --config-file /x --log-file /y upgrade", "ironic-dbsync --config-file /x --log-file /y"
        )

    def test_each_command_of_the_schema_is_known(self) -> None:
        parser = argparse.ArgumentParser()
        subparsers = parser.add_subparsers()
        dbsync._add_parsers(subparsers)
        self.assertEqual(set(subparsers.choices), self.main.COMMANDS)

    def test_files_are_searched_where_ironic_has_them(self) -> None:
        folder = self.home / ".ironic"
        (folder / "ironic.conf.d").mkdir(parents=True)
        (folder / "ironic.conf").touch()
        found = f"--config-file={folder}/ironic.conf --config-dir={folder}/ironic.conf.d"
        self.check(f"ingot-api {found} --debug", "ironic-api --debug")
        self.check(f"ingot-dbsync {found} version", "ironic-dbsync version")
