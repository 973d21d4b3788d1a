"""Requests to Keystone: within one deadline for each client, and no answer of a proxy passes for one of Keystone's.

keystonemiddleware waits for each attempt, and by default for ever. Where Keystone is silent, that would take one thread
after the other from the API. Here all attempts for one client's request share a deadline. Once Keystone was silent, one
client at a time waits for it; others whose tokens are not cached learn so at once, until it answers.
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
"""Seconds after an attempt without an answer in which no further client waits for one. Then one may."""

_TOKENS = "/auth/tokens"


class Unreachable(exceptions.ClientException):
    """Keystone gave no answer in time, or something answers that is not Keystone."""


class Calls(requests.Session):
    """Sends requests to Keystone."""

    def __init__(self) -> None:
        super().__init__()
        self._silent_until = 0.0  # of the monotonic clock; 0: it has answered the last time
        self._lock = threading.Lock()
        self._work = threading.local()

    @contextmanager
    def limit(self) -> Iterator[None]:
        """Have all that this thread sends in the block share a deadline."""
        self._work.until = time.monotonic() + DEADLINE_S
        try:
            yield
        finally:
            del self._work.until

    def take_turn(self) -> None:
        """Let a thread wait for Keystone, alone if that was silent the last time.

        :raises Unreachable: others have to find out first whether it answers again.
        """
        with self._lock:
            now = time.monotonic()
            if now < self._silent_until:
                raise Unreachable("it did not answer a moment ago; it is asked again in some seconds")
            if self._silent_until:
                self._silent_until = now + self._count_left()

    def request(self, method: str | bytes, url: str | bytes, **kwargs: Any) -> requests.Response:  # type: ignore[override]
        """Send a request.

        :raises Unreachable: the deadline is over, or what answers is not Keystone.
        """
        left = self._count_left()
        if left <= 0:
            raise Unreachable("no answer in time, with all attempts")
        kwargs["timeout"] = min(left, kwargs.get("timeout") or left)
        silent_until = 0.0
        try:
            answer = super().request(method, url, **kwargs)
        except requests.Timeout:
            silent_until = time.monotonic() + SILENCE_S
            raise
        finally:
            self._silent_until = silent_until
        _check(str(method), answer)
        return answer

    def _count_left(self) -> float:
        now = time.monotonic()
        return float(getattr(self._work, "until", now + DEADLINE_S) - now)


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

    def _create_identity_server(self) -> Any:
        """Have each question about a token take its turn before it waits for the lock of Ingot's own token."""
        server = super()._create_identity_server()
        verify = server.verify_token

        def verify_in_turn(*given: Any, **named: Any) -> Any:
            self.calls.take_turn()
            return verify(*given, **named)

        server.verify_token = verify_in_turn
        return server
