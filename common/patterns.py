"""Regular expressions of operators, matched in linear time against whatever strangers send (used by api, conductor).

RE2 matches them: its time grows with pattern times text and never beyond, and other threads run meanwhile. What cannot
be matched so is no part of its syntax: look-around and references to groups.
"""

import functools
import re
from typing import TYPE_CHECKING, Protocol

from ingot.common import errors, later

if TYPE_CHECKING:
    import re2
else:
    re2 = later.Module("re2")

LONGEST_TEXT = 1024**2
"""Characters of a text that is searched: with the longest pattern that takes some seconds."""

_LONGEST = 1000  # characters of a pattern
_MOST_MEMORY = 1024**2
_MOST_INSTRUCTIONS = 5000  # of the program that a pattern becomes

_VARIABLE = re.compile(r"\{(node|inventory|plugin_data|item)\b")


class Pattern(Protocol):
    """A compiled regular expression."""

    programsize: int

    def fullmatch(self, text: str) -> object:
        """Return a match of the whole text, or None."""

    def search(self, text: str) -> object:
        """Return a match of some part of the text, or None."""


def check(field: str, regex: object) -> Pattern:
    """Return a regular expression, compiled.

    :raises Invalid: RE2 does not understand it, or it is too large; the message has the field.
    """
    if not isinstance(regex, str) or len(regex) > _LONGEST:
        raise errors.Invalid(
            field=field, value=regex, allowed=f"A regular expression of {_LONGEST} characters at most."
        )
    try:
        found = _compile(regex)
    except (re2.error, UnicodeError) as exc:
        reason = exc.args[0].decode(errors="replace") if isinstance(exc.args[0], bytes) else str(exc)
        raise errors.Invalid(
            field=field,
            value=regex,
            allowed=f"Not a regular expression of RE2: {reason}. RE2 has neither look-around ((?=, (?!, (?<) nor "
            "references to groups (\\1), and \\z, not \\Z, for the end of the text.",
        ) from None
    if found.programsize > _MOST_INSTRUCTIONS:
        raise errors.Invalid(field=field, value=regex, allowed="Its repetitions multiply to too many: use fewer.")
    return found


def check_unfilled(field: str, regex: object) -> None:
    """Check a regular expression of an inspection rule, unless it is known only when its variables are.

    :raises Invalid: see :func:`check`.
    """
    if not (isinstance(regex, str) and _VARIABLE.search(regex)):
        check(field, regex)


def match(field: str, regex: object, value: object, whole: bool) -> bool:
    """Return whether a regular expression matches a value, printed.

    :param whole: whether all of it must match, or some part.
    :raises Invalid: see :func:`check`; or the text is longer than :data:`LONGEST_TEXT`.
    """
    pattern, text = check(field, regex), str(value)
    if len(text) > LONGEST_TEXT:
        raise errors.Invalid(
            field="value", value=text, allowed=f"A text of {LONGEST_TEXT} characters at most is searched: name a part."
        )
    text = text.encode("utf-8", "replace").decode()  # halves of surrogate pairs are no text
    return (pattern.fullmatch(text) if whole else pattern.search(text)) is not None


@functools.lru_cache(maxsize=256)
def _compile(regex: str) -> Pattern:
    options = re2.Options()
    options.log_errors = False
    options.max_mem = _MOST_MEMORY
    pattern: Pattern = re2.compile(regex, options=options)
    return pattern
