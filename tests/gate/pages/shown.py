"""Compares what a page shows below a command with what the command prints."""

import re

_ANY = (
    (r"\.\.\.", r".*?"),
    (r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", r"[0-9a-f-]{36}"),
    (
        r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d)?(?:\.\d+)?(?:Z|[+-]\d\d:?\d\d)?",
        r"\d{4}-\d\d-\d\dT?[\d:.]+(?:Z|[+-][\d:]+)?",
    ),
    (r"\b\d+\.[0-9a-f]{8,}-[0-9a-f]{8,}\b", r"[0-9.a-f-]+"),
    (r"(?:(?<=^id: )|(?<=\"id\":))\d+\b", r"\d+"),
    (r"\d+(?:\.\d+)?(?= (?:ms|s|min|MB|GB|MiB|GiB|%)\b)", r"\d+(?:\.\d+)?"),
)
"""What stands for another of its type: how it is found in a page, and what it may be in the output."""

_VARIABLE = re.compile("|".join(f"({found})" for found, _ in _ANY))


def _squeeze(text: str) -> str:
    return "".join(text.split())


def _pattern(line: str) -> re.Pattern[str]:
    """Return what a line of a page matches in output without blanks."""
    parts, end = [], 0
    for found in _VARIABLE.finditer(line):
        parts.append(re.escape(_squeeze(line[end : found.start()])))
        parts.append(_ANY[(found.lastindex or 1) - 1][1])
        end = found.end()
    return re.compile("".join([*parts, re.escape(_squeeze(line[end:]))]))


def find_difference(shown: list[str], printed: str) -> str | None:
    """Return the first line of a page that does not come in the output after those before it; None: all do.

    Blanks and ends of lines do not count: pages wrap what a program prints on one line.
    """
    text, at = _squeeze(printed), 0
    for line in shown:
        if line.strip() == "...":
            continue
        found = _pattern(line).search(text, at)
        if found is None:
            return line
        at = found.end()
    return None
