"""Paths and names that the documents of contributors mention are there: recipes stay literally true."""

import pathlib
import re
from collections.abc import Iterator
from typing import NamedTuple

import testtools

from tests import spec_tables

ROOT = pathlib.Path(__file__).parents[2]
SECURITY = ROOT / "doc" / "source" / "operator" / "security.rst"
DOCUMENTS = (
    "README.md",
    "CONTRIBUTING.md",
    "benchmarks/README.md",
    "tests/gate/faults/README.md",
    "doc/source/contributor/*.rst",
)
LITERAL = re.compile(r"(?<!`)(`{1,2})(?!`)([^`\n]+)\1(?!`)")
MENTION = re.compile(r"([\w.-]*\w/[\w./-]*|[\w-]+\.(?:py|sh|cfg|toml))(?:: ([\w., ]+))?")
"""A path, with a slash or the ending of a file; after a colon names that the file defines."""

NOT_HERE = (".gate", ".venv", "v1/", "ingot/", "bin/", "__init__.py")
"""Beginnings of paths that the documents mention and that no checkout has."""

LISTENS = re.compile(r"\b(create|start)_(unix_)?server\(|\w\.bind\(|\bHTTPServer\(|\bmake_server\(")
"""What opens a socket for others. A call of ``inspect.signature(...).bind`` does not."""


class Mention(NamedTuple):
    document: pathlib.Path
    path: str
    names: list[str]

    @property
    def found(self) -> pathlib.Path | None:
        """What it means: from the root of the checkout, or beside the document."""
        places = (ROOT / self.path, self.document.parent / self.path)
        return next((place for place in places if place.exists()), None)

    @property
    def missing(self) -> list[str]:
        """What is not there: the path, or names in it."""
        if self.found is None:
            return [self.path]
        known = spec_tables.defined_in(self.found) if self.names else frozenset()
        return [f"{self.path}: {name}" for name in self.names if name not in known]


def mentions() -> Iterator[Mention]:
    for pattern in DOCUMENTS:
        for document in sorted(ROOT.glob(pattern)):
            for _, text in LITERAL.findall(document.read_text()):
                if (found := MENTION.fullmatch(text)) and not text.startswith(NOT_HERE):
                    names = [name.strip() for name in (found[2] or "").split(",")]
                    yield Mention(document, found[1], [name for name in names if name])


class DocumentsTest(testtools.TestCase):
    def test_what_they_mention_exists(self) -> None:
        wrong = {f"{one.document.name}: {missing}" for one in mentions() for missing in one.missing}
        self.assertEqual([], sorted(wrong))

    def test_mentions_are_found(self) -> None:
        paths = {one.path for one in mentions()}
        self.assertLessEqual({"common/states.py", "conductor/flows.py", "doc/specs/"}, paths)


class SecurityTest(testtools.TestCase):
    """What operators read of security is proved: each claim names tests, and they exist."""

    def test_each_claim_has_a_test_that_exists(self) -> None:
        heading, table = SECURITY.read_text().split("* - Claim\n     - Tests\n")
        claims = [row.split("\n     - ") for row in table.split("   * - ")[1:]]
        named = {claim: [test for _, test in LITERAL.findall(proof)] for claim, proof in claims}
        wrong = {claim: [test for test in tests if not spec_tables.exists(test)] for claim, tests in named.items()}

        self.assertGreater(len(claims), 50)
        self.assertEqual([], [claim for claim, tests in named.items() if not tests])
        self.assertEqual({}, {claim: tests for claim, tests in wrong.items() if tests})
        self.assertEqual([], re.findall(r"tests\.\w+\.[\w.]*test_\w+", heading), "tests are named in the table")

    def test_nothing_but_the_api_listens(self) -> None:
        packages = ("api", "common", "conductor", "db", "drivers", "rpcapi")
        modules = [path for package in packages for path in (ROOT / package).rglob("*.py")]
        listening = [path for path in modules if LISTENS.search(path.read_text())]

        self.assertEqual([ROOT / "api" / "server.py"], listening)
