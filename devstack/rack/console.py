"""What a machine writes to its serial console, as lines for a log: no escape sequences of terminals, no secrets."""

import codecs
import re

# Control sequences of ECMA-48 and the two-character ones of terminals.
_SEQUENCE = re.compile(r"\x1b(\[[0-?]*[ -/]*(?P<final>[@-~])|[()*+][0-~]|[^\[()*+])")
_UNFINISHED = re.compile(r"\x1b(\[[0-?]*[ -/]*|[()*+])?$")
_MOVES_TO_ANOTHER_LINE = frozenset("HfABdJ")
_CONTROL = re.compile(r"[^\x20-\x7e\xa0-\U0010ffff]")
# The agent logs the addresses that it is asked for, and its protocol has the token there.
_TOKEN = re.compile(r"(agent_token=)[^&\s\"']+")
LONGEST = 500


class ConsoleText:
    """Makes lines of bytes that come in pieces, cut anywhere."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._rest = ""

    def feed(self, data: bytes) -> list[str]:
        """Return the lines that are now complete, without empty ones; a longer one than ``LONGEST`` comes in parts."""
        text = self._rest + self._decoder.decode(data)
        unfinished = _UNFINISHED.search(text)
        whole = text[: unfinished.start()] if unfinished else text
        *lines, last = re.split(r"[\r\n]", _SEQUENCE.sub(_plain, whole))
        while len(last) > LONGEST:
            lines.append(last[:LONGEST])
            last = last[LONGEST:]
        self._rest = last + (unfinished[0] if unfinished else "")
        return [line for line in map(_clean, lines) if line]

    @property
    def unfinished(self) -> str:
        """The last line as far as it has come: a machine that asks something ends no line before it is answered."""
        return _clean(_UNFINISHED.sub("", _SEQUENCE.sub(_plain, self._rest)))

    def end(self) -> list[str]:
        """Return what is left when nothing more comes."""
        rest, self._rest = self.unfinished, ""
        return [rest] if rest else []


def _plain(sequence: re.Match[str]) -> str:
    return "\n" if sequence["final"] in _MOVES_TO_ANOTHER_LINE else ""


def _clean(line: str) -> str:
    return _TOKEN.sub(r"\1***", _CONTROL.sub("", line).strip())
