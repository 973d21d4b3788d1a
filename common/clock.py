"""Time in the one form the database keeps: UTC without zone, whole microseconds (used by db, conductor, api)."""

import datetime


def now() -> datetime.datetime:
    """Return this moment."""
    return datetime.datetime.now(datetime.UTC).replace(tzinfo=None)


def after(seconds: float) -> datetime.datetime:
    """Return the moment ``seconds`` from now; the first or the last that calendars have for one beyond them."""
    try:
        return now() + datetime.timedelta(seconds=seconds)
    except OverflowError:
        return datetime.datetime.max if seconds > 0 else datetime.datetime.min


def iso(moment: datetime.datetime | None) -> str | None:
    """Return the wire form of a stored moment: ISO 8601 with the zone +00:00; None stays None."""
    return None if moment is None else moment.replace(tzinfo=datetime.UTC).isoformat()


_UNITS = (("day", 86_400), ("h", 3600), ("min", 60), ("s", 1))


def spell(seconds: float) -> str:
    """Return a span of time in the two largest units that it has: ``3 min 20 s``, ``2 days 4 h``, ``0.4 s``."""
    if seconds < 10:
        return f"{max(seconds, 0):.1f} s".replace(".0", "")
    left, parts = round(seconds), list[str]()
    for name, size in _UNITS:
        count, left = divmod(left, size)
        if count or parts:
            parts.append(f"{count} {name}{'s' if name == 'day' and count > 1 else ''}" if count else "")
    return " ".join(filter(None, parts[:2]))
