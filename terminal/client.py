"""The API as these commands use it: two kinds of requests, and the stream of events."""

import datetime
import email.utils
import json
from collections.abc import Iterator
from typing import cast

import requests

from ingot.common import clock
from ingot.common.json_types import Json
from ingot.terminal.access import Door, NotReached

_ANSWER_S = 60
_SILENCE_S = 90
"""Seconds without a byte after which a stream is dead: the API sends a line much more often."""

_CLOCKS_DIFFER = datetime.timedelta(seconds=2)


class Refused(NotReached):
    """The API refuses a request.

    :ivar status: of the answer.
    """

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class Client:
    """A client of the API."""

    def __init__(self, door: Door) -> None:
        self.endpoint = door.endpoint
        self._http = requests.Session()
        self._http.auth = door.signing or (lambda request: request)  # or credentials in a .netrc would be sent
        self._http.verify = door.verify
        self._ahead = datetime.timedelta()

    def now(self) -> datetime.datetime:
        """Return this moment by the API's clock, to which all moments in its answers belong."""
        return clock.now() + self._ahead

    def get(self, path: str) -> Json:
        """Return the JSON of an answer.

        :param path: below the endpoint.
        :raises NotReached: there is none that is good.
        """
        answer = self._send(path, _ANSWER_S)
        try:
            return cast(Json, answer.json())
        except requests.JSONDecodeError as exc:
            raise NotReached(f"What answers at {self.endpoint} is no Ingot: {path} is no JSON.") from exc

    def follow(self, seen: str | None) -> Iterator[str]:
        """Yield the id of each event as it happens; first an empty one, when the stream stands.

        :param seen: the id of the last event that was seen.
        :raises NotReached: there is no stream, or it has broken.
        """
        headers = {"Accept": "text/event-stream", **({"Last-Event-ID": seen} if seen else {})}
        with self._send("/ingot/v1/events", _SILENCE_S, headers) as answer:
            yield ""
            try:
                for line in answer.iter_lines(decode_unicode=True):
                    name, _, value = line.partition(":")
                    if name == "id":
                        yield value.strip()
            except requests.RequestException as exc:
                raise NotReached(f"The stream of events broke: {_name_cause(exc)}") from exc

    def _send(self, path: str, timeout: float, headers: dict[str, str] | None = None) -> requests.Response:
        try:
            answer = self._http.get(self.endpoint + path, headers=headers, timeout=(10, timeout), stream=bool(headers))
        except requests.RequestException as exc:
            raise NotReached(f"{self.endpoint} does not answer: {_name_cause(exc)}. Set OS_ENDPOINT.") from exc
        self._note_clock(answer)
        if answer.status_code == requests.codes.unauthorized:
            raise Refused(401, self._describe_refused_login(answer))
        if not answer.ok:
            raise Refused(answer.status_code, f"{path}: {answer.status_code}, {_read_message(answer)}")
        return answer

    def _note_clock(self, answer: requests.Response) -> None:
        """Note how far the API's clock is ahead of this one; less than two seconds are those of the header."""
        if stamp := email.utils.parsedate_tz(answer.headers.get("Date", "")):
            moment = datetime.datetime.fromtimestamp(email.utils.mktime_tz(stamp), datetime.UTC).replace(tzinfo=None)
            ahead = moment - clock.now()
            self._ahead = ahead if abs(ahead) >= _CLOCKS_DIFFER else datetime.timedelta()

    def _describe_refused_login(self, answer: requests.Response) -> str:
        if "basic" in answer.headers.get("WWW-Authenticate", "").lower():
            return f"{self.endpoint} refuses user and password: set OS_USERNAME and OS_PASSWORD."
        return f"{self.endpoint} asks for a token of Keystone: set OS_CLOUD, or OS_AUTH_URL, OS_USERNAME, OS_PASSWORD."


def _name_cause(exc: Exception) -> str:
    """Return the last of the causes that a library has put into each other."""
    return str(exc).rpartition(": ")[2].rstrip("\"')")


def _read_message(answer: requests.Response) -> str:
    try:
        body = answer.json()
        inner = json.loads(body["error_message"]) if "error_message" in body else body
        return str(inner.get("faultstring") or inner.get("description") or inner)
    except (ValueError, TypeError, AttributeError, requests.RequestException):
        return answer.reason
