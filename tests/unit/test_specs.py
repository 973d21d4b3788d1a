"""The tables of doc/specs: every requirement names code that exists and a test that exists; the guides keep up."""

import configparser
import functools
import importlib
import importlib.metadata
import itertools
import pathlib
import re
import sys
import textwrap
import types

import testtools
from oslo_db import options as db_opts
from oslo_messaging import opts as messaging_opts

from ingot.common import interfaces
from ingot.common.conf import opts
from ingot.drivers.interfaces import base
from ingot.drivers.interfaces.base import BaseInterface
from ingot.drivers.interfaces.power import PowerInterface
from ingot.drivers.loading import entry_points
from tests.spec_tables import ROOT, Row, defined_in, exists, rows_of
from tests.unit.drivers import fakes

TABLES = ROOT / "doc" / "specs"
GUIDES = ROOT / "doc" / "source"

# The fewest requirements that each specification was found to have; a table with less has lost rows.
FEWEST = {
    "000-in-band-deploy-steps": 73,
    "001-deployment-steps-framework": 46,
    "002-cleaning": 65,
    "003-deploy-templates": 50,
    "004-driver-composition": 85,
}

# What the specifications want operators and authors of drivers to read: headings of the guides.
HEADINGS = {
    "operator/cleaning.rst": (
        "In which order steps run",
        "Enabling, disabling, reprioritising",
        "After a failure: retry or skip",
        "What each step does",
        "Differences between interfaces",
        "Erasing disks",
        "Security problems that remain",
        "How long it takes",
    ),
    "operator/deploying.rst": (
        "Priorities for your own steps",
        "Templates and traits",
        "Configuring Nova flavors",
        "Telling users what a flavor does",
        "Commands and API",
        "Upgrades",
    ),
    "operator/hardware-types.rst": (
        "Enabling hardware",
        "Which interface a node gets",
        "The same on all conductors",
        "From classic drivers to hardware types",
        "Creating a hardware type",
    ),
    "contributor/writing-drivers.rst": ("Interfaces without steps",),
}
TEST = re.compile(r"(devstack\.)?tests(\.\w+){3,}\.test_\w+")


@functools.cache
def tables() -> dict[str, list[Row]]:
    return {path.stem: rows_of(path.read_text()) for path in sorted(TABLES.glob("*.rst"))}


def all_rows() -> list[Row]:
    return [row for rows in tables().values() for row in rows]


class TablesTest(testtools.TestCase):
    def test_no_table_has_lost_rows(self) -> None:
        self.assertEqual(set(FEWEST), set(tables()))
        lost = {name: len(rows) for name, rows in tables().items() if len(rows) < FEWEST[name]}
        self.assertEqual({}, lost)

    def test_every_id_is_used_once_and_in_its_table(self) -> None:
        idents = [row.ident for row in all_rows()]
        self.assertEqual([], sorted({ident for ident in idents if idents.count(ident) > 1}))
        strange = [
            row.ident
            for name, rows in tables().items()
            for row in rows
            if not re.fullmatch(f"{name[:3]}-\\d\\d+", row.ident)
        ]
        self.assertEqual([], strange)

    def test_every_row_says_what_is_required(self) -> None:
        self.assertEqual([], [row.ident for row in all_rows() if len(row.requirement.split()) < 4])

    def test_every_row_is_implemented_somewhere_that_exists(self) -> None:
        self.assertEqual([], [row.ident for row in all_rows() if not row.places])
        wrong = [
            f"{row.ident}: {path}: {name or 'no such file'}"
            for row in all_rows()
            for path, names in row.places
            for name in (names or [""])
            if not (ROOT / path).exists() or (name and name not in defined_in(ROOT / path))
        ]
        self.assertEqual([], wrong)

    def test_every_row_has_a_test(self) -> None:
        without = [row.ident for row in all_rows() if not row.tests or "MISSING" in row.proven]
        self.assertEqual([], without, "rows without proof")

    def test_every_test_exists(self) -> None:
        named = {test for row in all_rows() for test in row.tests}
        self.assertEqual([], sorted(test for test in named if not (TEST.fullmatch(test) and exists(test))))

    def test_every_table_is_in_the_guides(self) -> None:
        index = (GUIDES / "contributor" / "specifications" / "index.rst").read_text()
        for name in tables():
            page = GUIDES / "contributor" / "specifications" / f"{name}.rst"
            self.assertIn(f"   {name}\n", index)
            self.assertIn(f"specs/{name}.rst", page.read_text())

    def test_a_table_that_is_wrong_is_noticed(self) -> None:
        """What the tests above rely on: the parser sees rows, and what does not exist is found."""
        header = "   * - Id\n     - a\n     - b\n     - c\n     - d\n"
        text = f"{header}   * - 1\n     - two\n       lines\n     - ``x.py: a, B.c``\n     - ``t``\n     -\n"
        (row,) = rows_of(text)
        self.assertEqual(
            ("1", "two lines", [("x.py", ["a", "B.c"])], ["t"], ""), (*row[:2], row.places, row.tests, row[4])
        )
        self.assertRaises(ValueError, rows_of, "   * - 1\n     - two\n")
        self.assertTrue(exists(f"{__name__}.TablesTest.test_every_row_has_a_test"))
        self.assertFalse(exists(f"{__name__}.TablesTest.test_nothing") or exists("tests.no.such.Module.test_x"))
        self.assertIn("TablesTest.test_no_table_has_lost_rows", defined_in(pathlib.Path(__file__)))


def page(name: str) -> str:
    """Return a page of the guides, with its lines joined as a reader sees them."""
    return " ".join((GUIDES / name).read_text().split())


def _ours(group: str) -> importlib.metadata.EntryPoints:
    """Return the product's own part of a group of entry points; other packages may be installed beside it."""
    return importlib.metadata.distribution("ingot").entry_points.select(group=group)


class GuidesTest(testtools.TestCase):
    """What the specifications want documented is, and grows with the code."""

    def assertDocumented(self, name: str, *parts: str) -> None:
        text = page(name)
        self.assertEqual([], [words for words in parts if words not in text], f"{name} does not say this")

    def _installed(self, kind: str) -> list[BaseInterface]:
        conf = fakes.configuration()
        return [entry.load()(conf, entry.name) for entry in _ours(entry_points.interface_group(kind))]

    def test_guides_contain_what_the_specifications_require(self) -> None:
        for name, headings in HEADINGS.items():
            lines = (GUIDES / name).read_text().splitlines()
            titles = {line for line, below in itertools.pairwise(lines) if re.fullmatch(r"([-=])\1{3,}", below)}
            self.assertEqual([], sorted(set(headings) - titles), f"headings of {name}")

    def test_guides_name_no_option_that_does_not_exist(self) -> None:
        declared = (*opts.list_opts(), *db_opts.list_opts(), *messaging_opts.list_opts())
        known = {f"[{group or 'DEFAULT'}] {option.name}" for group, options in declared for option in options}
        named = {
            (path.name, option)
            for path in sorted(GUIDES.rglob("*.rst"))
            for option in re.findall(r"``(\[\w+\] \w+)``", path.read_text())
        }
        self.assertGreater(len(named), 10)
        self.assertEqual([], sorted(pair for pair in named if pair[1] not in known))

    def test_guides_name_every_core_step(self) -> None:
        core = {step["step"]: step["priority"] for step in self._direct() if step["priority"]}
        self.assertEqual(base.CORE_DEPLOY_STEPS, set(core))
        self.assertDocumented("operator/deploying.rst", *(f"``{name}`` {priority}" for name, priority in core.items()))
        places = base.IN_BAND_DEPLOY_PRIORITIES
        self.assertDocumented(
            "operator/deploying.rst", f"{places.start} to {places.stop - 1}", "99 to 81", "79 to 61", "59 to 41"
        )

    def _direct(self) -> list[dict[str, object]]:
        (direct,) = (one for one in self._installed("deploy") if one.name == "direct")
        return direct.declared_steps("deploy")

    def test_guides_name_every_clean_step(self) -> None:
        declared = {
            f"``{kind}.{step['step']}``"
            for kind in interfaces.TYPES
            for interface in self._installed(kind)
            for step in interface.declared_steps("clean")
        }
        self.assertGreater(len(declared), 5)
        self.assertDocumented("operator/cleaning.rst", *declared)

    def test_guides_tell_the_order_of_ties(self) -> None:
        order = sorted(interfaces.TIE_ORDER, key=lambda kind: interfaces.TIE_ORDER[kind])
        self.assertDocumented("operator/cleaning.rst", ", ".join(order))

    def test_guides_name_every_hardware_type_and_interface(self) -> None:
        groups = [entry_points.TYPES, *map(entry_points.interface_group, interfaces.TYPES)]
        names = {f"``{entry.name}``" for group in groups for entry in _ours(group)}
        self.assertGreater(len(names), 15)
        self.assertDocumented("operator/hardware-types.rst", *names)

    def test_guides_name_every_decorator(self) -> None:
        decorators = [f"``{kind}_step``" for kind in base.KINDS]
        hooks = [name for name in dir(base) if name.startswith("post_")]
        self.assertGreater(len(hooks), 2)
        self.assertDocumented("contributor/writing-drivers.rst", *decorators, *(f"``{name}``" for name in hooks))


def examples(path: pathlib.Path, language: str) -> list[str]:
    """Return the code blocks of a page."""
    found = re.findall(rf"^( *)\.\. code-block:: {language}\n\n((?:\1   .*\n|\n)+)", path.read_text(), re.MULTILINE)
    return [textwrap.dedent(block) for _indent, block in found]


class ExamplesTest(testtools.TestCase):
    """What readers copy out of the guides works."""

    def test_python(self) -> None:
        package, power = types.ModuleType("acme"), types.ModuleType("acme.power")
        vars(power)["AcmePower"] = PowerInterface  # a class of the reader's own package
        for module in (package, power):  # a copy of sys.modules, put back, would forget what examples import
            sys.modules[module.__name__] = module
            self.addCleanup(sys.modules.pop, module.__name__)
        self.addCleanup(base._HOOKS.pop, ("deploy", "management", "set_fans"), None)
        blocks = 0
        for path in sorted(GUIDES.rglob("*.rst")):
            names: dict[str, object] = {}
            for block in examples(path, "python"):
                exec(compile(block, path.name, "exec"), names)  # noqa: S102 - our own documentation
                blocks += 1
        self.assertGreater(blocks, 5)

    def test_options(self) -> None:
        groups = {group: {option.dest for option in options} for group, options in opts.list_opts()}
        unknown, known = [], 0
        for path in sorted(GUIDES.rglob("*.rst")):
            for block in examples(path, "ini"):
                parser = configparser.ConfigParser(default_section="")
                parser.read_string(block)
                for group in (group for group in parser.sections() if group in groups):
                    unknown += [f"{path.name}: {name}" for name in parser[group] if name not in groups[group]]
                    known += len(parser[group])
        self.assertEqual([], unknown)
        self.assertGreater(known, 5)
