"""Failed log-ins: each is one line of the log, and guessing passwords is slowed down."""

import collections
import ipaddress
import threading
import time

from oslo_log import log

from ingot.common import errors

LOG = log.getLogger(__name__)

_SECONDS = 60.0
_MOST_PLACES = 10_000  # that are remembered; with more, the oldest is forgotten
_LONGEST_NAME = 80
_OF_ONE_CLIENT = 64  # bits of an address of IPv6: a client has all those that begin so


class TooManyLogins(errors.NotAuthenticated):
    code = 429
    template = "Too many failed log-ins from {address}: none is checked for {seconds} s ([api] max_failed_logins)."


class FailedLogins:
    """Counts failed log-ins by address, for a minute from the first.

    :param most: after which none from the address is checked until the minute is over; 0: there is no limit.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._places: collections.OrderedDict[str, tuple[float, int]] = collections.OrderedDict()

    def check(self, address: str) -> None:
        """Check that a log-in from an address may be tried.

        :raises TooManyLogins: it may not, for now.
        """
        with self._lock:
            began, count = self._places.get(_find_place(address), (0.0, 0))
        left = began + _SECONDS - time.monotonic()
        if self._most and count >= self._most and left > 0:
            raise TooManyLogins(address=address or "this address", seconds=int(left) + 1)

    def note(self, address: str, name: str) -> None:
        """Log a failed log-in, and count it."""
        now, place = time.monotonic(), _find_place(address)
        with self._lock:
            began, count = self._places.get(place, (now, 0))
            began, count = (now, 1) if began + _SECONDS < now else (began, count + 1)
            self._places[place] = (began, count)
            if len(self._places) > _MOST_PLACES:
                self._places.popitem(last=False)
        ending = "; no more are checked for a while" if count == self._most else ""
        LOG.warning("Failed log-in of user %r from %s%s", name[:_LONGEST_NAME], address or "a local client", ending)


def _find_place(address: str) -> str:
    """Return what all addresses that one client may have have in common."""
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return address
    if found.version == 4:
        return address
    return str(ipaddress.ip_network((int(found), _OF_ONE_CLIENT), strict=False))
