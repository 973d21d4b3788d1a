"""The project uses the words of its field: replaced words stay out of names, comments, texts and documents."""

import ast
import functools
import io
import pathlib
import re
import tokenize
from collections.abc import Iterator
from fnmatch import fnmatch
from typing import NamedTuple

import testtools

ROOT = pathlib.Path(__file__).parents[2]
FOLDERS = ("api", "common", "conductor", "console", "db", "drivers", "rpcapi", "benchmarks", "devstack", "doc", "tests")
DOCUMENTS = (".md", ".rst", ".sh", ".ts", ".tsx", ".mjs")
MADE = {"build", "node_modules"}
"""Folders of what is not written here."""
THIS = "tests/unit/test_words.py"

USE_INSTEAD = {
    "bell": "wake-up",
    "bells": "wake-ups",
    "rung": "notified",
    "doorbell": "wake-up",
    "news": "events, messages",
    "told": "message, event, entry; to send, report, list, show",
    "journal": "step runs",
    "silences": "circuit breakers",
    "namesake": "host name conflict",
    "namesakes": "host name conflicts",
    "lane": "queue set",
    "lanes": "queue sets",
    "talk": "exchange; to send, call, connect",
    "talks": "sends, calls, connects",
    "carried on": "run in loop",
    "mend": "fix",
    "mends": "fixes",
    "mended": "fixed",
    "sign of life": "heartbeat, keepalive",
    "signs of life": "heartbeats",
    "look again": "poll, reconcile",
    "wanted": "requested, expected, target",
    "wishes": "requests, options",
    "taken aside": "unavailable reason",
    "by itself": "default steps; automatically, on its own",
    "somebody": "the role: operator, user, client, conductor",
    "nobody": "no user, no client, no conductor; unowned, unknown",
    "whoever": "the role; whichever conductor, every client",
    "anybody": "any user, any client",
    "everybody": "every user, every client",
}
"""Replaced words and what says the same. Words in a row are also found inside names: look_again, LookAgain."""

OF_FUNCTIONS = {"due": "next_check"}
OF_TYPES = {"stay": "agent session phase", "stays": "agent session phase"}


class Kept(NamedTuple):
    """Places where a replaced word may stand.

    :param paths: a pattern of paths.
    :param containing: what the name or the text has.
    """

    word: str
    paths: str
    containing: str
    why: str


KEPT: tuple[Kept, ...] = (
    Kept("journal", "db/engine.py", "journal_mode", "a word of SQLite"),
    Kept("journal", "devstack/rack/logs.py", '"journal"', "the systemd journal in the logs of an agent"),
    Kept("journal", "tests/functional/*", "journal", "the systemd journal in the logs of an agent"),
    Kept("journal", "tests/gate/faults/results/*.md", "", "results as they were recorded"),
    Kept("nobody", "devstack/servers.py", '"nobody"', "the account of Unix"),
    Kept("told", "tests/unit/test_house.py", "begun|chosen", "a pattern of names that are refused"),
    Kept("told", "common/json_types.py", "was_told_the_password", "a key that is persisted in nodes"),
    Kept("told", "drivers/agent/rescue.py", "was_told_the_password", "a key that is persisted in nodes"),
    Kept("told", "drivers/agent/booting.py", '"told"', "a key that is persisted in the memory of steps"),
)


class Found(NamedTuple):
    path: str
    word: str
    text: str


@functools.lru_cache(maxsize=100_000)
def parts(text: str) -> tuple[str, ...]:
    """Return words and parts of names, in lower case: LookAgain and look_again are both look, again."""
    return tuple(part.lower() for part in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+", text))


@functools.cache
def forms() -> dict[str, list[tuple[str, ...]]]:
    """Return the replaced words as parts, by the first part."""
    found: dict[str, list[tuple[str, ...]]] = {}
    for word in USE_INSTEAD:
        found.setdefault(word.split()[0], []).append(tuple(word.split()))
    return found


def replaced_words(text: str) -> Iterator[str]:
    inside = parts(text)
    for at, part in enumerate(inside):
        for form in forms().get(part, ()):
            if inside[at : at + len(form)] == form:
                yield " ".join(form)


def files() -> Iterator[pathlib.Path]:
    yield from (ROOT / name for name in ("README.md", "CONTRIBUTING.md"))
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*")):
            name = path.relative_to(ROOT)
            if path.suffix in (*DOCUMENTS, ".py") and MADE.isdisjoint(name.parts) and str(name) != THIS:
                yield path


def texts(source: str) -> Iterator[str]:
    """Return the names, strings and comments of a module; comments in a row are one text."""
    comment = ""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            comment += f" {token.string}"
            continue
        if comment and token.type not in (tokenize.NL, tokenize.INDENT, tokenize.DEDENT):
            yield comment
            comment = ""
        if token.type in (tokenize.NAME, tokenize.STRING):
            yield token.string
    yield comment


def found_in(path: pathlib.Path) -> Iterator[Found]:
    name, text = str(path.relative_to(ROOT)), path.read_text()
    pieces = texts(text) if path.suffix == ".py" else [" ".join(part.split()) for part in text.split("\n\n")]
    for piece in (path.stem, *pieces):
        for word in replaced_words(piece):
            yield Found(name, word, piece)
    if path.suffix == ".py":
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                special = OF_TYPES if isinstance(node, ast.ClassDef) else OF_FUNCTIONS
                for word in special.keys() & set(parts(node.name)) if not node.name.startswith("test_") else ():
                    yield Found(name, word, node.name)


@functools.cache
def all_found() -> tuple[Found, ...]:
    return tuple(one for path in files() for one in found_in(path))


def is_kept(found: Found, kept: Kept) -> bool:
    return found.word == kept.word and fnmatch(found.path, kept.paths) and kept.containing in found.text


class WordsTest(testtools.TestCase):
    def test_replaced_words_stay_out(self) -> None:
        instead = {**USE_INSTEAD, **OF_FUNCTIONS, **OF_TYPES}
        left = [
            f"{one.path}: {one.word!r} in {one.text.strip()[:80]!r}: use {instead[one.word]}"
            for one in all_found()
            if not any(is_kept(one, kept) for kept in KEPT)
        ]
        self.assertEqual([], left, "\n".join(left))

    def test_every_exemption_is_needed(self) -> None:
        self.assertEqual([], [kept for kept in KEPT if not any(is_kept(one, kept) for one in all_found())])
