"""What boot loaders and BMCs read: addresses of files, kernel arguments; drivers check them, the API renders them."""

import re
import urllib.parse
from typing import NamedTuple

OWN_MAC = "${mac:hexhyp}"
"""In kernel arguments: the MAC address of the card that boots, with hyphens. iPXE fills it in itself."""

_WORD = re.compile(r'(?:"[^"]*"|[^\s"])+')


class Place(NamedTuple):
    """Where a file is.

    :param server: host, and port where one is given.
    :param path: without the slash that it begins with; with the query.
    """

    scheme: str
    server: str
    path: str


def parse_url(url: str) -> Place | None:
    """Return where a URL leads; None for what is no URL with a host and a path, or has a login in it."""
    try:
        parts = urllib.parse.urlsplit(url)
        known = parts.scheme and parts.hostname and len(parts.path) > 1 and parts.port != 0
    except ValueError:
        return None
    if not known or "@" in parts.netloc or re.search(r"[\s(),]", url):
        return None
    query = f"?{parts.query}" if parts.query else ""
    return Place(parts.scheme, parts.netloc, parts.path[1:] + query)


def read_scheme(url: str) -> str:
    """Return the scheme of a URL in small letters; an empty text for what is no URL with a host."""
    try:
        parts = urllib.parse.urlsplit(url)
    except ValueError:
        return ""
    return parts.scheme if parts.hostname else ""


def suits_grub(arguments: str) -> bool:
    """Return whether GRUB hands on a kernel's command line as it is: it changes apostrophes and backslashes."""
    return split_arguments(arguments) is not None and not set(arguments) & {"'", "\\"}


def split_arguments(arguments: str) -> list[str] | None:
    """Return the words of a kernel's command line, as the kernel reads them: quotation marks keep spaces together.

    :returns: None if a quotation mark has no end.
    """
    if arguments.count('"') % 2:
        return None
    return [word.replace('"', "") for word in _WORD.findall(arguments)]


def quote_for_grub(text: str) -> str:
    """Return a text as one word of GRUB's shell."""
    return "'" + text.replace("'", "'\\''") + "'"


def quote_arguments(arguments: str) -> str:
    """Return kernel arguments as words of GRUB's shell.

    It puts quotation marks around those with spaces, so that the kernel reads them as they were given.
    """
    words = split_arguments(arguments)
    return " ".join(map(quote_for_grub, arguments.split() if words is None else words))
