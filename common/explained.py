"""An explanation of a node as lines of text, for commands (used by db, terminal)."""

import datetime
import re

from ingot.common import clock
from ingot.common.json_types import Json

_WIDTH = 13
_CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f]")


def render(explanation: Json, now: datetime.datetime) -> list[str]:
    """Return an explanation as lines of text.

    :param explanation: as ``ingot.db.explanations`` makes it, or as the API shows that.
    :param now: by the clock of who made it.
    """
    sign = explanation["last_sign"]
    rows = {
        "State": explanation["provision_state"],
        "Step": explanation["step"] and f"{explanation['step']} of flow {explanation['flow']}",
        "Waits for": explanation["waits_for"],
        "Since": describe_moment(explanation["since"], now),
        "Until": describe_moment(explanation["until"], now),
        "Last sign": sign and f"{sign['what']}, {describe_moment(sign['at'], now)}",
        "Next": explanation["next"],
        "If it lasts": explanation["advice"],
    }
    lines = [f"{name + ':':<{_WIDTH}}{value}" for name, value in rows.items() if value]
    for title, key in (("Usual causes:", "usual_causes"), ("Notes:", "notes")):
        lines += [title, *(f"  - {line}" for line in explanation[key])] if explanation[key] else []
    return list(map(clean, lines))


def clean(line: str) -> str:
    """Return a line without what terminals obey: agents and BMCs write some of it."""
    return _CONTROLS.sub("\ufffd", " ".join(line.splitlines()))


def read_moment(moment: str | datetime.datetime | None) -> datetime.datetime | None:
    """Return a moment as the database keeps them, of one that may be as the API shows it."""
    if moment is None or isinstance(moment, datetime.datetime):
        return moment
    return datetime.datetime.fromisoformat(moment).astimezone(datetime.UTC).replace(tzinfo=None)


def describe_moment(moment: str | datetime.datetime | None, now: datetime.datetime) -> str | None:
    """Return a moment with how far away it is: ``2026-01-31T12:00:00+00:00, 3 min 20 s ago``."""
    if (found := read_moment(moment)) is None:
        return None
    seconds = (now - found).total_seconds()
    span = clock.spell(abs(seconds))
    return f"{clock.iso(found)}, {f'{span} ago' if seconds >= 0 else f'in {span}'}"
