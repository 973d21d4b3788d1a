"""How an operator uses an API that may be away: 503 is asked again, and where an answer was lost he looks what became
of the request instead of asking blindly."""

import time
from collections import Counter
from collections.abc import Collection, Mapping
from typing import Any

import requests

from tests import patience as waiting
from tests.functional.deployment import lab

_PAUSE_S = 0.5
_ANSWER_S = waiting.seconds(90)


class Refused(Exception):
    """The API does not do what was asked for."""


class Overdue(Exception):
    """Something that was accepted has not ended in time."""


class Operator(lab.User):
    """A patient client.

    :param patience: seconds after which what is not done is stuck.
    :ivar tally: how often what happened to requests.
    """

    def __init__(self, url: str, patience: float) -> None:
        super().__init__(url)
        self._session.headers["Connection"] = "close"  # so that the balancer may choose another API each time
        self._patience = patience
        self.tally: Counter[str] = Counter()

    def request(self, method: str, path: str, body: Any = None) -> requests.Response:
        """Repeat one request until it is answered, and not by 503.

        Only for requests that may be repeated.
        """
        until = time.monotonic() + self._patience
        while (answer := self._attempt(method, path, body)) is None or answer.status_code in (409, 503):
            if time.monotonic() > until:
                raise Overdue(f"{method} {path}: {answer.text if answer is not None else 'no answer'}")
            time.sleep(_pause(answer))
        return answer

    def create(self, path: str, body: Mapping[str, Any]) -> None:
        """Create an object with its own identity: if an answer was lost, the object still exists once."""
        until = time.monotonic() + self._patience
        while True:
            answer = self._attempt("POST", path, body)
            if answer is not None and (answer.status_code == 201 or "already exists" in answer.text):
                return
            if answer is not None and answer.status_code not in (409, 503):
                raise Refused(f"POST {path}: {answer.status_code} {answer.text}")
            if time.monotonic() > until:
                raise Overdue(f"POST {path}: {answer.text if answer is not None else 'no answer'}")
            time.sleep(_pause(answer))

    def provision(self, uuid: str, target: str, **more: Any) -> str:
        """Request a verb once.

        :returns: how it is known that the request was accepted: ``202``, or ``seen`` where the answer was lost.
        :raises Refused: it was not.
        """
        before = self.node(uuid)
        until = time.monotonic() + self._patience
        while True:
            path = f"/v1/nodes/{uuid}/states/provision"
            answer = self._attempt("PUT", path, {"target": target, **more})
            if answer is not None and answer.status_code == 202:
                return "202"
            if _moved(before, self.node(uuid)):
                return "seen"
            if answer is not None and answer.status_code not in (409, 503):
                raise Refused(f"{target}: {answer.status_code} {answer.text}")
            if time.monotonic() > until:
                raise Overdue(f"{target} was not accepted: {answer.text if answer is not None else 'no answer'}")
            time.sleep(_pause(answer))

    def end_of(self, uuid: str, states: Collection[str]) -> Mapping[str, Any]:
        """Return the node once it is in one of some states, unlocked and without pending work.

        :raises Overdue: it does not come there.
        """
        until = time.monotonic() + self._patience
        while True:
            node = self.node(uuid)
            if node["provision_state"] in states and node["reservation"] is None:
                return node
            if time.monotonic() > until:
                shown = {name: node[name] for name in ("provision_state", "reservation", "deploy_step", "clean_step")}
                raise Overdue(f"node {uuid} did not reach {sorted(states)} in {self._patience:.0f} s: {shown}")
            time.sleep(_PAUSE_S)

    def _attempt(self, method: str, path: str, body: Any) -> requests.Response | None:
        """Send a request once; return None if there was no answer."""
        try:
            answer = self._session.request(method, self.url + path, json=body, timeout=_ANSWER_S)
        except requests.RequestException:
            self.tally["no answer"] += 1
            return None
        self.tally[f"{answer.status_code}"] += 1
        return answer


def _pause(answer: requests.Response | None) -> float:
    return float(answer.headers.get("Retry-After", _PAUSE_S)) if answer is not None else _PAUSE_S


def _moved(before: Mapping[str, Any], now: Mapping[str, Any]) -> bool:
    """Return whether a request was accepted since the last call."""
    return any(before[name] != now[name] for name in ("provision_state", "provision_updated_at"))
