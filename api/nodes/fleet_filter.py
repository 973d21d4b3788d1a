"""The language in which the fleet is filtered: what a person types, read into terms for the database.

A filter is terms, separated by blanks, all of which must match: ``state:failed -class:gold* since:>2h rack4``. Its page
is ``doc/source/operator/fleet.rst``; the table of keys below is where it gets them from.
"""

import datetime
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from ingot.api.nodes.nodes import FAULTS
from ingot.api.web import fields
from ingot.common import clock, errors, states
from ingot.common.triage import TITLES
from ingot.db.fleet import NEEDS, Pattern, Term, Test

LONGEST = 1000
"""Most characters of a filter."""

MOST_TERMS = 20

MOST_VALUES = 50
"""Most values of one term."""

_QUOTED = r'"(?:[^"\\]|\\.)*"'
_TERM = re.compile(rf'(?:{_QUOTED}|[^\s"])+')
_KEYED = re.compile(r"(?P<key>[A-Za-z_]+):(?P<values>.*)", re.DOTALL)
_VALUE = re.compile(rf'(?:{_QUOTED}|[^,"])+')
_PIECE = re.compile(rf'(?P<quoted>{_QUOTED})|(?P<plain>[^"]+)')
_BEGUN_UUID = re.compile(r"[0-9a-f][0-9a-f-]{0,35}")
_BEGUN_MAC = re.compile(r"[0-9a-f]{2}(?::[0-9a-f]{2}){0,5}:?")
_MAC_WORD = re.compile(r"[0-9a-f]{2}(?::[0-9a-f]{2}){1,5}:?\*?", re.IGNORECASE)
_SPAN = re.compile(r"(?P<sign>[<>])(?P<spans>(?:\d{1,9}[smhdw])+)")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}
_LONGEST_SPAN = 10 * 366 * 86400


class Filter(NamedTuple):
    """A filter that was read.

    :param terms: for the database.
    :param owners: for the hash ring: conductors that nodes must have, or must not have.
    """

    terms: tuple[Term, ...] = ()
    owners: tuple["Owner", ...] = ()

    def fits(self, owner: str | None) -> bool:
        """Return whether a node with this conductor matches, as far as that decides."""
        return all(one.fits(owner) for one in self.owners)


class Owner(NamedTuple):
    """A term about the conductors that own nodes."""

    patterns: tuple[Pattern, ...]
    negated: bool = False

    def fits(self, owner: str | None) -> bool:
        name = (owner or "").lower()
        found = any(
            (name.startswith(text) and bool(name)) if is_open else name == text for text, is_open in self.patterns
        )
        return found != self.negated


class _Refusal(Exception):
    """What is wrong with a value, in words."""


Read = Callable[[Sequence[Pattern]], tuple[Test, ...]]
"""Makes the tests of a term, of which one must hold, from its values."""


class Key(NamedTuple):
    """What stands before the colon of a term.

    :param about: what it asks for, in a few words.
    :param read: raises _Refusal; None: the term is about conductors.
    :param values: those that are known beforehand.
    :param column: where the database has its values, for those who complete a filter; None: they are not counted.
    """

    name: str
    about: str
    read: Read | None
    values: tuple[str, ...] = ()
    column: str | None = None


def _of_text(*columns: str) -> Read:
    return lambda patterns: tuple(Test("is", column, tuple(patterns)) for column in columns)


def _of_part(column: str) -> Read:
    def read(patterns: Sequence[Pattern]) -> tuple[Test, ...]:
        return (Test("holds", column, tuple(patterns)),)

    return read


def _of_choice(column: str, choices: Mapping[str, Iterable[str]]) -> Read:
    """Return what reads values of which all are known.

    :param choices: what each word stands for.
    """

    known = {_blur(word): values for word, values in choices.items()}

    def read(patterns: Sequence[Pattern]) -> tuple[Test, ...]:
        found = [pattern for pattern in patterns if not pattern.text]
        for text, is_open in (pattern for pattern in patterns if pattern.text):
            sought = _blur(text)
            meant = [word for word in known if (word.startswith(sought) if is_open else word == sought)]
            if not meant:
                raise _Refusal(f"Allowed are: {', '.join(choices)}; with a * at the end, the beginning of some.")
            found += (Pattern(value) for word in meant for value in known[word])
        return (Test("is_exactly", column, tuple(dict.fromkeys(found))),)

    return read


def _blur(word: str) -> str:
    """Return a word of several parts as those may write it who do not like quotes."""
    return word.lower().replace("-", " ").replace("_", " ")


def _of_flag(column: str, test: str) -> Read:
    def read(patterns: Sequence[Pattern]) -> tuple[Test, ...]:
        try:
            asked = {fields.parse_flag(column, pattern.text) for pattern in patterns}
        except errors.Invalid:
            raise _Refusal("Allowed are: yes, no.") from None
        return tuple(Test(test if flag else f"{test}_not", column) for flag in sorted(asked))

    return read


def _of_beginning(test: str, column: str, form: re.Pattern[str], longest: int, allowed: str) -> Read:
    """Return what reads values that are known by their beginning, such as a UUID."""

    def read(patterns: Sequence[Pattern]) -> tuple[Test, ...]:
        lowered = [pattern._replace(text=pattern.text.lower()) for pattern in patterns]
        for text, _is_open in lowered:
            if text and not form.fullmatch(text):
                raise _Refusal(allowed)
        return (Test(test, column, tuple(one._replace(open=_is_begun(one, longest)) for one in lowered)),)

    return read


def _is_begun(pattern: Pattern, longest: int) -> bool:
    return pattern.open or 0 < len(pattern.text) < longest


def _of_trait(patterns: Sequence[Pattern]) -> tuple[Test, ...]:
    return (Test("has_row", "trait", tuple(one._replace(text=one.text.upper()) for one in patterns)),)


def _of_age(patterns: Sequence[Pattern]) -> tuple[Test, ...]:
    """Return the tests of how long ago something was."""
    tests = []
    for text, _is_open in patterns:
        found = _SPAN.fullmatch(text.lower())
        spans = re.findall(r"(\d+)([smhdw])", found["spans"]) if found else ()
        seconds = sum(int(count) * _SECONDS[unit] for count, unit in spans)
        if not found or seconds > _LONGEST_SPAN:
            raise _Refusal("Allowed is > or < with a time of at most ten years: >1h, <5m, >1d12h; units are s m h d w.")
        moments: tuple[datetime.datetime, ...] = (clock.after(-seconds),)
        tests.append(Test("before" if found["sign"] == ">" else "after", "provision_updated_at", moments))
    return tuple(tests)


_STATES: Mapping[str, Iterable[str]] = {
    **{state: (state,) for state in sorted(states.ALL)},
    "failed": (*sorted(states.FAILED), states.ERROR),
    "held": sorted(states.HELD),
    "waiting": sorted(states.WAITING),
    "working": sorted(states.WORKING),
}
"""States, and what they have in common."""

_TARGETS = {state: (state,) for state in sorted(set(states.TARGETS.values()))}
_POWER = {
    **{state: (state,) for state in (states.POWER_OFF, states.POWER_ON, states.REBOOT, states.ERROR)},
    "off": (states.POWER_OFF,),
    "on": (states.POWER_ON,),
}
_CAUSES = {str(cause): (str(cause),) for cause in TITLES}
_FAULTS = {fault: (fault,) for fault in FAULTS}

_YES_NO = ("yes", "no")
_UUID_HINT = "Send a UUID or its beginning, in hex digits and hyphens."
_MAC_HINT = "Send a MAC address or its beginning, in pairs of hex digits with colons."

_UUID_OF_NODE = _of_beginning("is_exactly", "uuid", _BEGUN_UUID, 36, _UUID_HINT)
_UUID_OF_INSTANCE = _of_beginning("is_exactly", "instance_uuid", _BEGUN_UUID, 36, _UUID_HINT)
_ADDRESS = _of_beginning("has_row", "port", _BEGUN_MAC, 17, _MAC_HINT)

KEYS: Mapping[str, Key] = {
    key.name: key
    for key in (
        Key("name", "its name", _of_text("name")),
        Key("uuid", "its UUID, or the beginning of it", _UUID_OF_NODE),
        Key(
            "state",
            "its provision state; failed, held, waiting and working are several states each",
            _of_choice("provision_state", _STATES),
            tuple(_STATES),
            "provision_state",
        ),
        Key(
            "target",
            "the provision state that it is heading for",
            _of_choice("target_provision_state", _TARGETS),
            tuple(_TARGETS),
            "target_provision_state",
        ),
        Key("power", "its power state", _of_choice("power_state", _POWER), tuple(_POWER), "power_state"),
        Key("driver", "its driver", _of_text("driver"), column="driver"),
        Key("class", "its resource class", _of_text("resource_class"), column="resource_class"),
        Key("group", "its conductor group", _of_text("conductor_group"), column="conductor_group"),
        Key("conductor", "the conductor that owns it now", None),
        Key("owner", "the project that owns it", _of_text("owner"), column="owner"),
        Key("lessee", "the project that has it on lease", _of_text("lessee"), column="lessee"),
        Key("project", "its owner or its lessee", _of_text("owner", "lessee")),
        Key("maintenance", "whether it is in maintenance", _of_flag("maintenance", "is_true"), _YES_NO),
        Key("fault", "its fault", _of_choice("fault", _FAULTS), tuple(FAULTS), "fault"),
        Key("needs", "why the overview shows it", _of_choice(NEEDS, _CAUSES), tuple(_CAUSES)),
        Key("locked", "whether a conductor holds its lock", _of_flag("reservation", "is_set"), _YES_NO),
        Key("shard", "its shard", _of_text("shard"), column="shard"),
        Key("instance", "the UUID of its instance, or the beginning of it", _UUID_OF_INSTANCE),
        Key("trait", "a trait that it has", _of_trait, column="trait"),
        Key("mac", "the MAC address of a port that it has, or the beginning of it", _ADDRESS),
        Key("description", "words in its description", _of_part("description")),
        Key("since", "for how long it is in its provision state: >1h for longer, <5m for less", _of_age),
    )
}
"""All keys by name."""


def parse(name: str, text: str) -> Filter:
    """Return what a filter asks for.

    :param name: of the parameter, for messages.
    :raises Invalid: a term cannot be read; the message says which, where it stands, and what is allowed.
    """
    fields.parse_text(name, text)
    if len(text) > LONGEST:
        raise errors.Invalid(field=name, value=text, allowed=f"A filter has at most {LONGEST} characters.")
    terms: list[Term] = []
    owners: list[Owner] = []
    for place, given in _split(name, text):
        if len(terms) + len(owners) == MOST_TERMS:
            raise _refusal_error(name, given, place, f"A filter has at most {MOST_TERMS} terms.")
        try:
            term = _read_term(given)
        except _Refusal as exc:
            raise _refusal_error(name, given, place, str(exc)) from exc
        if isinstance(term, Owner):
            owners.append(term)
        else:
            terms.append(term)
    return Filter(tuple(terms), tuple(owners))


def _refusal_error(name: str, given: str, place: int, allowed: str) -> errors.Invalid:
    return errors.Invalid(field=name, value=given, allowed=f"This stands at character {place + 1}. {allowed}")


def _split(name: str, text: str) -> Iterable[tuple[int, str]]:
    """Yield each term with the place where it begins."""
    place = 0
    while place < len(text):
        if text[place].isspace():
            place += 1
            continue
        found = _TERM.match(text, place)
        rest = text[found.end() :] if found else text[place:]
        if found is None or rest.startswith('"'):
            raise _refusal_error(name, text[place:], place, "A quote is opened here and not closed.")
        yield place, found[0]
        place = found.end()


def _read_term(given: str) -> Term | Owner:
    body = given.removeprefix("-")
    negated = body != given
    keyed = None if _MAC_WORD.fullmatch(body) else _KEYED.fullmatch(body)
    if keyed is None:
        return Term(_read_word(body), negated)
    key = KEYS.get(keyed["key"].lower())
    if key is None:
        raise _Refusal(f"Keys are: {', '.join(KEYS)}. Put a word that has a colon in quotes.")
    patterns = _read_values(keyed["values"])
    if key.read is None:
        return Owner(tuple(one._replace(text=one.text.lower()) for one in patterns), negated)
    return Term(key.read(patterns), negated)


def _read_word(body: str) -> tuple[Test, ...]:
    """Return the tests of a word without a key: of all that people call a machine by."""
    patterns = _read_values(body)
    if not all(pattern.text for pattern in patterns):
        raise _Refusal("A word has at least one letter.")
    if _MAC_WORD.fullmatch(body):
        return _ADDRESS(patterns)
    tests = [Test("holds", "name", tuple(patterns)), Test("holds", "description", tuple(patterns))]
    begun = [one._replace(text=one.text.lower(), open=True) for one in patterns]
    if uuids := tuple(one for one in begun if _BEGUN_UUID.fullmatch(one.text)):
        tests += [Test("is_exactly", column, uuids) for column in ("uuid", "instance_uuid")]
    return tuple(tests)


def _read_values(given: str) -> list[Pattern]:
    values = _VALUE.findall(given)
    if not values or ",".join(values) != given:
        raise _Refusal("A value is missing: key:value, or key:one,other for any of several.")
    if len(values) > MOST_VALUES:
        raise _Refusal(f"A term has at most {MOST_VALUES} values.")
    return [_read_value(value) for value in values]


def _read_value(given: str) -> Pattern:
    text, is_open = "", False
    for piece in _PIECE.finditer(given):
        if is_open or "*" in (piece["plain"] or "")[:-1]:
            raise _Refusal("A * stands for what follows: only at the end of a value, or in quotes as itself.")
        if piece["quoted"]:
            text += re.sub(r"\\(.)", r"\1", piece["quoted"][1:-1], flags=re.DOTALL)
        else:
            is_open = piece["plain"].endswith("*")
            text += piece["plain"].removesuffix("*")
    return Pattern(text, is_open)
