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
