"""The access log: a line for each request, whatever server the API runs in."""

import logging
import re
import urllib.parse

ACCESS = logging.getLogger("ingot.api.access")

_UNUSUAL = re.compile(r"[^\w/:@!$&'()*+,;=\[\]<>.~-]+", re.ASCII)
_LONGEST_PATH = 500  # characters


def write(method: str, path: str, status: int, seconds: float, *, quiet: bool = False, **who: str | None) -> None:
    """Write the line of a request, also of one that is refused.

    :param seconds: from its arrival to the beginning of its answer.
    :param quiet: whether it is one of many that say nothing.
    :param who: address, user and request id, as far as they are known.
    """
    level = logging.DEBUG if quiet else logging.INFO
    if ACCESS.isEnabledFor(level):
        address, user, ident = (_quote(who.get(name) or "-") for name in ("address", "user", "request_id"))
        asked = _quote(method), _quote(path[:_LONGEST_PATH])
        ACCESS.log(
            level, "%s %s %d %.1f ms, user %s, from %s, %s", *asked, status, seconds * 1000, user, address, ident
        )


def _quote(text: str) -> str:
    """Return a text in which nothing can pass for another line, or another word of this one."""
    return _UNUSUAL.sub(lambda found: urllib.parse.quote(found[0], safe=""), text)
