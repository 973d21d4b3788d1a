"""A Redfish service: the machines that it has, the logins that it takes, and how a request becomes an answer."""

import asyncio
import base64
import binascii
import hashlib
import hmac
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from ingot.rack.http_server import CutOff, Request, Response, Silence
from ingot.rack.redfish.board import Board
from ingot.rack.redfish.events import Subscriptions
from ingot.rack.redfish.messages import RedfishError
from ingot.rack.redfish.routing import ROOT, Call, Document, Handler, Router
from ingot.rack.redfish.sessions import Sessions
from ingot.rack.vendors import Vendor

_PUBLIC = {
    ("GET", "/redfish"),
    ("GET", ROOT),
    ("GET", f"{ROOT}/odata"),
    ("POST", f"{ROOT}/SessionService/Sessions"),
    ("POST", f"{ROOT}/SessionService/Sessions/Members"),
}
_ANSWER_S = 0.05
# What changes without a change of the resource is no part of its ETag.
_VOLATILE = {"DateTime", "PercentComplete"}


@dataclass(frozen=True)
class Member:
    """A machine in a service; the paths of its resources depend on the service.

    :param prefix: of the names that all machines of a service share.
    """

    board: Board
    system: str
    manager: str
    chassis: str
    prefix: str

    @property
    def vendor(self) -> Vendor:
        return self.board.vendor


class Service:
    """What one port serves: all machines by their UUIDs, or one machine by the names of its vendor.

    :param alone: it is one machine's own, so that machine's faults are those of every request.
    """

    def __init__(self, boards: list[Board], router: Router, alone: bool) -> None:
        self.members = [_member(board, alone) for board in boards]
        self.alone = alone
        self.sessions = Sessions()
        self.subscriptions = Subscriptions(self)
        self._router = router
        self._config = boards[0].machine.site.config
        kinds = ("system", "manager", "chassis")
        self._ids = {kind: {getattr(m, kind).rpartition("/")[2]: m for m in self.members} for kind in kinds}
        if alone:
            boards[0].on_restart.append(self.sessions.clear)

    @staticmethod
    def error_body(status: int, message: str) -> Any:
        return RedfishError("GeneralError", message, code=status).response().body

    def find(self, kind: str, name: str) -> Member | None:
        """Return the machine whose ``system``, ``manager`` or ``chassis`` has a name."""
        return self._ids[kind].get(name)

    def after(self, work: Callable[[], None]) -> None:
        """Do something when the answer to the present request is on its way."""
        asyncio.get_running_loop().call_later(_ANSWER_S, work)

    async def handle(self, request: Request) -> Response:
        """Answer a request, as its machine's faults allow."""
        board = self._board_of(request.path)
        try:
            if board is not None:
                await _hold(board, request, done=False)
                _misbehave(board, request)
            answer = self._answer(request, board)
        except RedfishError as error:
            answer = error.response()
        answer.headers.setdefault("OData-Version", "4.0")
        if board is not None:
            await _hold(board, request, done=True)
            _spoil(board, request, answer)
        return answer

    def _board_of(self, path: str) -> Board | None:
        """Return whose faults a request meets."""
        if self.alone:
            return self.members[0].board
        kind, _, rest = path.removeprefix(f"{ROOT}/").partition("/")
        found = self.find({"Systems": "system", "Managers": "manager"}.get(kind, "chassis"), rest.partition("/")[0])
        return found.board if found else None

    def _answer(self, request: Request, board: Board | None) -> Response:
        path = request.path.rstrip("/")
        if (request.method, path) not in _PUBLIC:
            self._authenticate(request, board)
        found = self._router.find(path)
        if found is None:
            raise RedfishError("ResourceMissingAtURI", request.path)
        methods, ids = found
        call = Call(self, request, ids)
        if request.method not in methods:
            raise RedfishError("OperationNotAllowed", Allow=", ".join(sorted(methods)))
        if request.method == "PATCH" and "if-match" in request.headers:
            self._check_match(call, methods)
        answer = methods[request.method](call)
        if answer is None:
            return Response(status=204)
        if isinstance(answer, Response):
            return answer
        return self._document(call, answer, methods)

    def _document(self, call: Call, document: Document, methods: Iterable[str]) -> Response:
        if "$expand" in call.request.query:
            document = self._expand(call, document)
        tag = etag(document)
        return Response({**document, "@odata.etag": tag}, headers={"ETag": tag, "Allow": ", ".join(sorted(methods))})

    def _expand(self, call: Call, document: Document) -> Document:
        """Return a resource with what it links to in place of the links: of its parts, not of its relations."""
        return {name: value if name == "Links" else self._replace_links(value) for name, value in document.items()}

    def _replace_links(self, value: Any) -> Any:
        if isinstance(value, list):
            return [self._replace_links(one) for one in value]
        if not isinstance(value, dict) or list(value) != ["@odata.id"]:
            return value
        request = Request("GET", value["@odata.id"], {}, {}, b"")
        found = self._router.find(request.path)
        if found is None or "GET" not in found[0]:
            return value
        answer = found[0]["GET"](Call(self, request, found[1]))
        return answer if isinstance(answer, dict) else value

    def _check_match(self, call: Call, methods: dict[str, Handler]) -> None:
        """:raises RedfishError: the resource is not the one that the client has read."""
        now = methods["GET"](call) if "GET" in methods else None
        expected = {tag.strip().removeprefix("W/") for tag in call.request.headers["if-match"].split(",")}
        if isinstance(now, dict) and not expected & {"*", etag(now)}:
            raise RedfishError("PreconditionFailed")

    # Logins

    def check_login(self, username: str, password: str, board: Board | None) -> bool:
        """Return whether that is the login; none is while the machine's fault says so."""
        if board is not None and board.machine.faults.active("bmc_wrong_password"):
            return False
        given, right = f"{username}\0{password}", f"{self._config.username}\0{self._config.password}"
        return hmac.compare_digest(given.encode(), right.encode())

    def _authenticate(self, request: Request, board: Board | None) -> None:
        """:raises RedfishError: the request comes with no valid session and no login."""
        token = request.headers.get("x-auth-token")
        if token is not None:
            if board is not None and board.machine.faults.strike("redfish_sessions_lost"):
                self.sessions.clear()
            if self.sessions.use(token):
                return
        elif (login := _basic_login(request)) is not None and self.check_login(*login, board):
            return
        raise RedfishError("NoValidSession", WWW_Authenticate='Basic realm="Redfish"')


def _member(board: Board, alone: bool) -> Member:
    system, manager, chassis = (alone and board.vendor.ids) or (str(board.machine.uuid),) * 3
    return Member(
        board,
        f"{ROOT}/Systems/{system}",
        f"{ROOT}/Managers/{manager}",
        f"{ROOT}/Chassis/{chassis}",
        "" if alone else f"{board.machine.uuid}-",
    )


def _basic_login(request: Request) -> tuple[str, str] | None:
    scheme, _, encoded = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() != "basic":
        return None
    try:
        name, _, password = base64.b64decode(encoded, validate=True).decode().partition(":")
    except (binascii.Error, UnicodeDecodeError):
        return None
    return name, password


def etag(document: Document) -> str:
    """Return the ETag of a resource: it changes with what a client could have read."""
    lasting = {name: value for name, value in document.items() if name not in _VOLATILE}
    digest = hashlib.sha256(json.dumps(lasting, sort_keys=True).encode()).hexdigest()
    return f'"{digest[:16]}"'


async def _hold(board: Board, request: Request, done: bool) -> None:
    """Keep a request, before or after it is done, until faults are cleared, if one of them says so.

    :raises CutOff: it was kept: there is no answer.
    """
    faults = board.machine.faults
    held = faults.value("redfish_held")
    if held is None or held["done"] != done or not faults.take_request("redfish_held", request.method, request.path):
        return
    board.machine.log(f"{request.method} {request.path} is held, {'done' if done else 'not done'}")
    await faults.wait_until_cleared()
    raise CutOff


def _misbehave(board: Board, request: Request) -> None:
    """Do what the machine's faults do instead of answering.

    :raises CutOff, Silence, RedfishError: they do something.
    """
    faults = board.machine.faults
    if board.silent:
        raise Silence
    if board.away or faults.active("redfish_port_closed"):
        raise CutOff
    if busy := faults.take_request("redfish_busy", request.method, request.path):
        raise RedfishError("ServiceTemporarilyUnavailable", busy["retry_after"], Retry_After=str(busy["retry_after"]))
    if failing := faults.take_request("redfish_error", request.method, request.path):
        raise RedfishError("GeneralError", "fault redfish_error", code=failing["status"])


def _spoil(board: Board, request: Request, answer: Response) -> None:
    """Do what the machine's faults do to an answer. :raises CutOff: it gets lost."""
    faults = board.machine.faults
    if faults.take_request("redfish_answer_lost", request.method, request.path):
        raise CutOff
    if drips := faults.value("redfish_drips"):
        answer.pause = float(drips["seconds"])
