"""What a page has its readers type: its blocks of the type ``console``, and the comments that prepare them."""

import dataclasses
import pathlib
import re
from collections.abc import Iterator

BLOCK = re.compile(r"^( *)\.\. code-block:: console$")
COMMENT = re.compile(r"^( *)\.\. console: (\w+)(?:: (.+))?$")
OTHER_SHELLS = re.compile(r"^ *\.\. (?:code-block|highlight|prompt):: *(?:bash|sh|shell|shell-session)\b")
PROMPT = re.compile(r"^ +\$ ")
REPLACEMENT = re.compile(r"^(\S+) => (\S.*)$")
EXIT = re.compile(r"^exit (\d+)$")


class PageError(Exception):
    """A page that cannot be typed, with the line that is wrong."""


@dataclasses.dataclass
class Command:
    """
    :ivar line: number of the line of the page.
    :ivar shown: what the page shows below it, by line.
    :ivar status: which exit status it must end with.
    :ivar hidden: whether readers do not see it.
    """

    line: int
    text: str
    shown: list[str] = dataclasses.field(default_factory=list)
    status: int = 0
    hidden: bool = False


@dataclasses.dataclass
class Section:
    """Commands that are typed in one environment.

    :ivar reason: why they are not typed, where the environment is ``elsewhere``.
    """

    environment: str
    reason: str | None
    commands: list[Command] = dataclasses.field(default_factory=list)


class _Reader:
    """Reads a page line by line."""

    def __init__(self, text: str) -> None:
        self.lines = text.splitlines()
        self.sections: list[Section] = []
        self._replaced: dict[str, str] = {}
        self._status = 0

    def read(self) -> list[Section]:
        number = 0
        while number < len(self.lines):
            line = self.lines[number]
            block, comment = BLOCK.match(line), COMMENT.match(line)
            if OTHER_SHELLS.match(line):
                raise PageError(f"line {number + 1}: what is typed stands in `.. code-block:: console`")
            if PROMPT.match(line):
                raise PageError(f"line {number + 1}: a prompt outside `.. code-block:: console`")
            body = self._body(number, len((block or comment)[1])) if block or comment else []  # type: ignore[index]
            if block:
                self._read_block(number, body)
            elif comment:
                self._read_comment(number, comment[2], comment[3], body)
            number += 1 + len(body)
        return self.sections

    def _body(self, number: int, indent: int) -> list[str]:
        """Return the lines after one that are indented more, and the empty ones among them."""
        body = []
        for line in self.lines[number + 1 :]:
            if line.strip() and len(line) - len(line.lstrip()) <= indent:
                break
            body.append(line)
        return body

    def _section(self, number: int) -> Section:
        if not self.sections:
            raise PageError(
                f"line {number + 1}: no comment `.. console: ENVIRONMENT` before it says where this is typed"
            )
        return self.sections[-1]

    def _read_comment(self, number: int, environment: str, reason: str | None, body: list[str]) -> None:
        self._status = 0
        if not self.sections or (environment, reason) != (self.sections[-1].environment, self.sections[-1].reason):
            self.sections.append(Section(environment, reason))
        for offset, line in enumerate(body, number + 2):
            said = line.strip()
            if replacement := REPLACEMENT.match(said):
                self._replaced[replacement[1]] = replacement[2]
            elif status := EXIT.match(said):
                self._status = int(status[1])
            elif said.startswith("$ "):
                self._add(offset, said[2:], hidden=True)
            elif said:
                raise PageError(f"line {offset}: {said!r} is no command, `WORD => TEXT` or `exit STATUS`")

    def _read_block(self, number: int, body: list[str]) -> None:
        section = self._section(number)
        start = min((len(line) - len(line.lstrip()) for line in body if line.strip()), default=0)
        goes_on = False
        for offset, line in enumerate((line[start:] for line in body), number + 2):
            if line.startswith("$ "):
                self._add(offset, line[2:])
            elif goes_on or line.startswith("> ") or line == ">":
                more = line.removeprefix(">").removeprefix(" ") if line.startswith(">") else line
                section.commands[-1].text += "\n" + self._replace(more)
            elif line.strip() and not line.startswith(":"):
                if not section.commands:
                    raise PageError(f"line {offset}: output before the first command")
                section.commands[-1].shown.append(line)
            goes_on = line.endswith("\\") and (line.startswith("$ ") or goes_on)

    def _add(self, line: int, text: str, hidden: bool = False) -> None:
        self.sections[-1].commands.append(Command(line, self._replace(text), status=self._status, hidden=hidden))
        self._status = 0

    def _replace(self, text: str) -> str:
        for old, new in self._replaced.items():
            text = text.replace(old, new)
        return text


def read(text: str) -> list[Section]:
    """Return what a page has its readers type.

    :raises PageError: some of it does not say where, or is not in a block of the type ``console``.
    """
    return _Reader(text).read()


def read_for(file: str, text: str) -> list[Command]:
    """Return the commands of a page that another test types, as the page says.

    :param file: the test's, whose name is in the reason why the commands are not typed here.
    :raises PageError: there are none: the test would type nothing, and pass.
    """
    named = f"/{pathlib.Path(file).name} types them"
    found = [command for section in read(text) if named in (section.reason or "") for command in section.commands]
    if not found:
        raise PageError(f"no comment of the page says `elsewhere: ...{named}`")
    return found


def count_blocks(text: str) -> int:
    """Return how many blocks of the type ``console`` a page has."""
    return sum(1 for _ in _blocks(text))


def _blocks(text: str) -> Iterator[str]:
    yield from (line for line in text.splitlines() if BLOCK.match(line))
