"""A new field touches at most four files: proven by adding one to a copy of the product, as a developer would.

In each copy a resource gets the text field ``colour`` with a new API version: a column, its migration, a row in the
table of fields, a line in the history of versions. Then a process of its own uses it in every way that fields can be
used.
"""

import os
import pathlib
import shutil
import subprocess
import sys
from collections.abc import Mapping

import fixtures
import testtools

from ingot.api.web import versions
from ingot.db import schema

ROOT = pathlib.Path(__file__).parents[3]
PACKAGES = ("api", "common", "db", "rpcapi")
MOST_FILES = 4
NEW = versions.MAX + 1

MIGRATION = '''"""{table}: colour."""

import sqlalchemy as sa
from alembic import op

from ingot.db import models

revision = "9999"
down_revision = "{head}"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("{table}", sa.Column("colour", models.string(20)))


def downgrade() -> None:
    op.drop_column("{table}", "colour")
'''

USE = """
import sys
import unittest

from ingot.api.web import versions
from tests import api_case, described

PATH, BODY, OLD, NEW = sys.argv[1], eval(sys.argv[2]), f"1.{versions.MAX - 1}", f"1.{versions.MAX}"


class Colour(api_case.ApiCase):
    def test_can_be_used(self) -> None:
        if "node_uuid" in BODY:
            BODY["node_uuid"] = self.node()["uuid"]
        made = self.good("POST", PATH, {**BODY, "colour": "red"}, NEW)
        url = f"{PATH}/{made['uuid']}"
        self.assertEqual("red", made["colour"])
        self.assertEqual({"colour", "links"}, set(self.good("GET", f"{url}?fields=colour", version=NEW)))
        patch = [{"op": "replace", "path": "/colour", "value": "blue"}]
        self.assertEqual("blue", self.good("PATCH", url, patch, NEW)["colour"])
        self.assertIsNone(self.good("PATCH", url, [{"op": "remove", "path": "/colour"}], NEW)["colour"])
        self.assertIn("colour: 7 is not of type", self.refused(400, "POST", PATH, {**BODY, "colour": 7}, NEW))
        for query in ("sort_key=colour", "fields=colour", "detail=true"):
            self.good("GET", f"{PATH}?{query}", version=NEW)
        self.assertNotIn("colour", self.good("GET", url, version=OLD))
        for query in ("sort_key=colour", "fields=colour"):
            self.assertIn(NEW, self.refused(406, "GET", f"{PATH}?{query}", version=OLD))
        self.assertIn("colour", self.refused(406, "POST", PATH, {**BODY, "colour": "red"}, OLD))
        self.assertIn("colour", self.refused(406, "PATCH", url, patch, OLD))
        shown = described.document()["components"]["schemas"][PATH.rpartition("/")[2].rstrip("s").title()]
        self.assertEqual(
            {"type": ["string", "null"], "x-openstack": {"min-ver": NEW}}, shown["properties"]["colour"]
        )


unittest.main(argv=["colour"])
"""

VERSION = ("api/web/versions.py", "\n}\n\nMIN = 1", f'\n    {NEW}: "colour",\n}}\n\nMIN = 1')
FIELD = f'    Field("colour", {NEW}, fields.text(20), sortable=True),\n'
COLUMN = "    colour: str | None = column(string(20))\n"


class NewField(testtools.TestCase):
    def prove(self, table: str, path: str, body: Mapping[str, object], *edits: tuple[str, str, str]) -> None:
        """Check that these edits add a field, in a copy of the product.

        :param edits: file, what stands there, and what stands there afterwards.
        """
        folder = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        product = folder / "ingot"
        for package in PACKAGES:
            shutil.copytree(ROOT / package, product / package, ignore=shutil.ignore_patterns("__pycache__"))
        for name, before, after in (*edits, VERSION):
            text = (product / name).read_text()
            self.assertIn(before, text, name)
            (product / name).write_text(text.replace(before, after, 1))
        revision = product / "db" / "migrations" / "versions" / "9999_colour.py"
        revision.write_text(MIGRATION.format(table=table, head=schema.head()))
        changed = {
            found.relative_to(product)
            for found in product.rglob("*.py")
            if not (ROOT / found.relative_to(product)).exists()
            or found.read_bytes() != (ROOT / found.relative_to(product)).read_bytes()
        }
        self.assertLessEqual(len(changed), MOST_FILES, changed)
        environment = {**os.environ, "PYTHONPATH": f"{folder}{os.pathsep}{ROOT}"}
        command = [sys.executable, "-W", "ignore", "-c", USE, path, repr(dict(body))]
        done = subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True, check=False)
        self.assertEqual(0, done.returncode, done.stdout + done.stderr)

    def test_of_nodes(self) -> None:
        name = "    instance_name: str | None\n"
        row = '    Field("health", 109, sortable=True),\n'
        self.prove(
            "nodes",
            "/v1/nodes",
            {"driver": "fake-hardware"},
            ("db/models/node.py", name, name + COLUMN),
            ("api/nodes/node_fields.py", row, FIELD + row),
        )

    def test_of_ports(self) -> None:
        row = '    Field("extra", type=fields.OBJECT),\n'
        column = '    __tablename__ = "ports"\n\n'
        self.prove(
            "ports",
            "/v1/ports",
            {"node_uuid": "", "address": "52:54:00:00:00:01"},
            ("db/models/port.py", column, column + COLUMN),
            ("api/resources/ports.py", row, row + FIELD),
        )
