"""Each page of the guides whose commands are typed is a test."""

import atexit
import collections
import functools
import pathlib
import re
from typing import Any

import fixtures
import testtools

from tests.gate.environments import ROOT
from tests.gate.pages import shown, typed
from tests.gate.pages.environments import ENVIRONMENTS, MOST_UNTYPED, Environment
from tests.gate.pages.shell import Shell

SOURCE = ROOT / "doc" / "source"
ELSEWHERE = "elsewhere"
SERVERS = ("systemd", "physical", "ironic")
"""Environments that are servers of their own."""

TYPED_BY = re.compile(r"(tests/\S+\.py|devstack/gate\.sh) types them\b")
"""How the reason begins of what another test types, or a step of the gate."""


def pages() -> list[pathlib.Path]:
    """Return the pages that have commands."""
    return [page for page in sorted(SOURCE.rglob("*.rst")) if typed.count_blocks(page.read_text())]


@functools.cache
def _make(name: str) -> tuple[Environment, Exception | None]:
    """Return an environment of this process, which ends with it; and why it did not come up."""
    made = ENVIRONMENTS[name]()
    try:
        made.setUp()
    except Exception as exc:  # noqa: BLE001  whatever it is, each page of this environment fails with it
        return made, exc
    atexit.register(made.cleanUp)
    return made, None


def environment(name: str) -> Environment:
    made, failure = _make(name)
    if failure is not None:
        raise AssertionError(f"there is no environment {name}: {failure}") from failure
    return made


class _Typist(testtools.TestCase):
    """What a page says is what happens. There is a method for each page."""

    def type(self, page: pathlib.Path) -> None:
        directory = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        shells: dict[str, Shell] = {}
        for section in typed.read(page.read_text()):
            name = section.environment
            if name != ELSEWHERE and name not in shells:
                shells[name] = self._open(name, directory / name)
            for command in section.commands if name != ELSEWHERE else ():
                self._check(page, command, *shells[name].run(command.text))

    def _open(self, name: str, place: pathlib.Path) -> Shell:
        place.mkdir()
        where = environment(name)
        self.addCleanup(where.forget)
        return self.useFixture(where.open(place))

    def _check(self, page: pathlib.Path, command: typed.Command, status: int | None, printed: str) -> None:
        where = f"{page.relative_to(ROOT)}:{command.line}: {command.text}"
        if status != command.status:
            said = "did not end" if status is None else f"ended with {status} instead of {command.status}"
            self.fail(f"{where}\n{said}:\n{printed}")
        if missing := shown.find_difference(command.shown, printed):
            self.fail(f"{where}\nthe page shows, and this did not come:\n{missing}\nbut:\n{printed}")


def _is_typed_there(reason: str | None) -> bool:
    """Return whether a reason names another test that types the commands."""
    named = TYPED_BY.match(reason or "")
    return named is not None and (ROOT / named[1]).is_file()


class PagesTest(_Typist):
    """Those of the other environments."""


class TutorialsTest(_Typist):
    """Those that install Ingot first: they have a worker of their own, as that takes time."""


class ServersTest(_Typist):
    """Those that have a server of their own, a container: root runs these tests, in the gate's step ``packaging``."""


class AllPagesTest(testtools.TestCase):
    def test_each_page_says_where_its_commands_are_typed(self) -> None:
        wrong = []
        for page in sorted(SOURCE.rglob("*.rst")):
            try:
                names = {section.environment for section in typed.read(page.read_text())}
            except typed.PageError as exc:
                wrong.append(f"{page.relative_to(ROOT)}: {exc}")
            else:
                wrong += [f"{page.relative_to(ROOT)}: {name}" for name in names - {ELSEWHERE, *ENVIRONMENTS}]
        self.assertEqual([], wrong)

    def test_commands_that_another_test_types_are_typed_there(self) -> None:
        for page in pages():
            for section in typed.read(page.read_text()):
                if found := TYPED_BY.match(section.reason or ""):
                    self._check_other(page, section, found[1])

    def _check_other(self, page: pathlib.Path, section: typed.Section, other: str) -> None:
        text = (ROOT / other).read_text()
        if other.endswith(".sh"):
            self.assertEqual([], [one.text for one in section.commands if one.text not in text], page.name)
        else:
            self.assertRegex(text, rf'type\("{re.escape(page.stem)}"\)|\b{re.escape(page.name)}"', other)

    def test_few_commands_are_not_typed_and_each_says_why(self) -> None:
        found = collections.Counter(
            section.reason
            for page in pages()
            for section in typed.read(page.read_text())
            if section.environment == ELSEWHERE and not _is_typed_there(section.reason)
        )
        self.assertNotIn(None, found)
        self.assertLessEqual(found.total(), MOST_UNTYPED, found)


def _find_class(page: pathlib.Path) -> type[_Typist]:
    if re.search(rf"^ *\.\. console: ({'|'.join(SERVERS)})$", page.read_text(), re.MULTILINE):
        return ServersTest
    return TutorialsTest if page.is_relative_to(SOURCE / "tutorial") else PagesTest


def _add_tests() -> None:
    for page in pages():
        name = "test_" + re.sub(r"\W+", "_", str(page.relative_to(SOURCE).with_suffix("")))

        def test(self: Any, page: pathlib.Path = page) -> None:
            self.type(page)

        setattr(_find_class(page), name, test)


_add_tests()
