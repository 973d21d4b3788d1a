"""Requests to Keystone: within one deadline for each client, and no answer of a proxy passes for one of Keystone's.

keystonemiddleware waits for each attempt, and by default for ever. Where Keystone is silent, that would take one thread
after the other from the API. Here all attempts for one client's request share a deadline, and while Keystone has just
been silent, other clients whose tokens are not cached learn so at once.
"""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import requests
from keystoneauth1 import exceptions
from keystonemiddleware import auth_token

DEADLINE_S = 30.0
"""Seconds that a client's request waits for Keystone, with all attempts."""

SILENCE_S = 5.0
"""Seconds after an attempt without an answer in which no further client waits for one."""

_TOKENS = "/auth/tokens"


class Unreachable(exceptions.ClientException):
    """Keystone gave no answer in time, or something answers that is not Keystone."""


class Calls(requests.Session):
    """Sends requests to Keystone.

    :ivar count: requests that were sent.
    """

    def __init__(self) -> None:
        super().__init__()
        self.count = 0
        self._silent_until = 0.0
        self._work = threading.local()

    @contextmanager
    def limit(self) -> Iterator[None]:
        """Have all that this thread sends in the block share a deadline."""
        self._work.until, self._work.waits = time.monotonic() + DEADLINE_S, False
        try:
            yield
        finally:
            del self._work.until

    def request(self, method: str | bytes, url: str | bytes, **kwargs: Any) -> requests.Response:  # type: ignore[override]
        """Send a request.

        :raises Unreachable: the deadline is over, Keystone has just been silent, or what answers is not Keystone.
        """
        kwargs["timeout"] = self._find_timeout(kwargs.get("timeout"))
        self.count += 1
        try:
            answer = super().request(method, url, **kwargs)
        except requests.Timeout:
            self._silent_until = time.monotonic() + SILENCE_S
            raise
        self._silent_until = 0.0
        _check(str(method), answer)
        return answer

    def _find_timeout(self, usual: float | None) -> float:
        now = time.monotonic()
        left = getattr(self._work, "until", now + DEADLINE_S) - now
        if left <= 0:
            raise Unreachable("no answer in time, with all attempts")
        if now < self._silent_until and not getattr(self._work, "waits", False):
            raise Unreachable("it did not answer a moment ago; it is asked again in some seconds")
        self._work.waits = True  # further attempts are this thread's own
        return min(left, usual or left)


def _check(method: str, answer: requests.Response) -> None:
    """Refuse what only a proxy before Keystone can have answered: it says nothing about a token.

    Keystone says with 404 that it knows no token. A proxy that has lost it says 404 to everything.
    """
    url = answer.url.partition("?")[0]
    if not url.rstrip("/").endswith(_TOKENS) or method.upper() not in ("GET", "POST"):
        return
    if answer.status_code == 404 and (method.upper() == "POST" or "error" not in _parse(answer)):
        raise Unreachable(f"{url} answers 404, which is none of Keystone's: is this its address?")
    if answer.status_code in (200, 201, 203) and "token" not in _parse(answer):
        raise Unreachable(f"{url} answers {answer.status_code} without a token, which is none of Keystone's")


def _parse(answer: requests.Response) -> dict[str, Any]:
    try:
        found = answer.json()
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


class Protocol(auth_token.AuthProtocol):  # type: ignore[misc]  # it has no types
    """The middleware, which asks Keystone through :class:`Calls`.

    :ivar calls: what it asks with.
    """

    def _create_session(self, **kwargs: Any) -> Any:
        self.calls = Calls()
        return super()._create_session(session=self.calls, **kwargs)
