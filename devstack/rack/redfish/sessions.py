"""Sessions of a Redfish service: a token in exchange for a login, until it is given back or unused for long."""

import itertools
import secrets
import time
from dataclasses import dataclass, field

from ingot.rack.http_server import Response
from ingot.rack.redfish.messages import RedfishError
from ingot.rack.redfish.routing import ROOT, Call, Document, Route, collection, link, of_type, resource

SESSIONS = f"{ROOT}/SessionService/Sessions"
IDLE_S = 1800
MOST = 64


@dataclass
class Session:
    id: str
    username: str
    token: str = field(default_factory=lambda: secrets.token_hex(16), repr=False)
    used: float = field(default_factory=time.monotonic)


class Sessions:
    """The sessions of one service."""

    def __init__(self) -> None:
        self._numbers = itertools.count(1)
        self._by_token: dict[str, Session] = {}

    def __iter__(self) -> "itertools.chain[Session]":
        return itertools.chain(self._by_token.values())

    def open(self, username: str) -> Session:
        """Open a session. :raises RedfishError: the table is full."""
        oldest = time.monotonic() - IDLE_S
        self._by_token = {token: one for token, one in self._by_token.items() if one.used > oldest}
        if len(self._by_token) >= MOST:
            raise RedfishError("SessionLimitExceeded")
        session = Session(str(next(self._numbers)), username)
        self._by_token[session.token] = session
        return session

    def use(self, token: str) -> bool:
        """Note that a session is used; False: there is no such session."""
        session = self._by_token.get(token)
        now = time.monotonic()
        if session is None or session.used < now - IDLE_S:
            return False
        session.used = now
        return True

    def find(self, name: str) -> Session | None:
        return next((one for one in self if one.id == name), None)

    def close(self, session: Session) -> None:
        self._by_token.pop(session.token, None)

    def clear(self) -> None:
        self._by_token.clear()


def _service(call: Call) -> Document:
    return resource(
        f"{ROOT}/SessionService",
        "SessionService.v1_1_9.SessionService",
        "Session Service",
        ServiceEnabled=True,
        SessionTimeout=IDLE_S,
        Status={"State": "Enabled", "Health": "OK"},
        Sessions=link(SESSIONS),
    )


def _list(call: Call) -> Document:
    return collection(SESSIONS, "Session", [f"{SESSIONS}/{one.id}" for one in call.service.sessions])


def _find(call: Call) -> Session:
    found = call.service.sessions.find(call.ids["session"])
    if found is None:
        raise call.missing()
    return found


def _document(session: Session) -> Document:
    path = f"{SESSIONS}/{session.id}"
    return resource(path, "Session.v1_7_1.Session", "User Session", UserName=session.username, Password=None)


def _show(call: Call) -> Document:
    return _document(_find(call))


def _open(call: Call) -> Response:
    body = call.body()
    for name in ("UserName", "Password"):
        if name not in body:
            raise RedfishError("PropertyMissing", name, related=(f"#/{name}",))
    username, password = of_type(body, "UserName", str), of_type(body, "Password", str)
    board = call.service.members[0].board if call.service.alone else None
    if not call.service.check_login(username, password, board):
        raise RedfishError("NoValidSession")
    if board is not None and board.machine.faults.strike("redfish_session_table_full"):
        raise RedfishError("SessionLimitExceeded")
    session = call.service.sessions.open(username)
    headers = {"X-Auth-Token": session.token, "Location": f"{SESSIONS}/{session.id}"}
    return Response(_document(session), 201, headers)


def _close(call: Call) -> None:
    call.service.sessions.close(_find(call))


ROUTES = (
    Route("GET", "/SessionService", _service),
    Route("GET", "/SessionService/Sessions", _list),
    Route("POST", "/SessionService/Sessions", _open),
    Route("POST", "/SessionService/Sessions/Members", _open),
    Route("GET", "/SessionService/Sessions/{session}", _show),
    Route("DELETE", "/SessionService/Sessions/{session}", _close),
)
