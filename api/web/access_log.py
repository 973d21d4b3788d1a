"""The access log: a line for each request, also for those that are refused, whatever server the API runs in."""

import logging
import urllib.parse

from oslo_log import log

LOG = log.getLogger("ingot.api.access")

_LONGEST = 500  # characters of a path
_UNKNOWN = "-"


def write(method: str, path: str, status: int, seconds: float, *, quiet: bool = False, **who: str | None) -> None:
    """Log a request.

    :param seconds: from its arrival to the beginning of its answer.
    :param quiet: whether it is one of many that say nothing, unless it is refused.
    :param who: address, user and request id, as far as they are known.
    """
    level = logging.DEBUG if quiet and status < 400 else logging.INFO
    if LOG.isEnabledFor(level):
        address, user, ident = (_quote(who.get(name) or _UNKNOWN) for name in ("address", "user", "request_id"))
        asked = _quote(method), _quote(path[:_LONGEST])
        LOG.log(level, "%s %s %d %.1f ms, user %s, from %s, %s", *asked, status, seconds * 1000, user, address, ident)


def _quote(text: str) -> str:
    """Return a text in which nothing can pass for another line, or another word of this one."""
    return urllib.parse.quote(text, safe="/:@!$&'()*+,;=[]<>")
