"""Pieces of reStructuredText, for the directives that generate the reference."""

import re
from collections.abc import Iterator, Sequence


def heading(title: str, underline: str) -> Iterator[str]:
    """Yield the lines of a title."""
    yield from ("", title, underline * len(title), "")


def table(titles: Sequence[str], rows: Sequence[Sequence[str]], widths: Sequence[int]) -> Iterator[str]:
    """Yield the lines of a table.

    :param widths: of its columns, in percent.
    """
    yield from (".. list-table::", "   :header-rows: 1", f"   :widths: {' '.join(map(str, widths))}", "")
    for row in (titles, *rows):
        yield from (f"   {'*' if number == 0 else ' '} - {cell}" for number, cell in enumerate(row))
    yield ""


def escape(text: str) -> str:
    """Return plain text so that none of it is markup; literals in double backquotes stay literals."""
    parts = re.split(r"(``[^`]+``)", " ".join(text.split()))
    return "".join(part if part.startswith("``") else re.sub(r"([\\*`|_])", r"\\\1", part) for part in parts)


def literal(text: str) -> str:
    """Return text as a literal, on one line; what no literal can hold, escaped."""
    text = " ".join(text.split())
    return escape(text) if not text or "`" in text or text.endswith("\\") else f"``{text}``"
