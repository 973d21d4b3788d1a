"""A small BMC with one machine that misbehaves on order: for what no emulator does."""

import base64
import collections
import contextlib
import http.server
import ssl
import threading
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from tests import http_handler

USER, PASSWORD = "operator", "correct horse"
SYSTEM = "/redfish/v1/Systems/1"
SESSIONS = "/redfish/v1/SessionService/Sessions"

MESSAGES = "@Message.ExtendedInfo"

_BASIC = "Basic " + base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()


@dataclass(frozen=True)
class Fault:
    """What happens to a request instead of being served.

    :param status: answer with it, and with a message of Redfish.
    :param headers: of that answer.
    :param served: serve the request all the same before it.
    :param closes: close the connection without an answer.
    :param drips: seconds between bytes of an answer that never ends.
    :param content: what a good answer consists of instead.
    :param raw: pieces that are sent instead of an answer, before the connection is closed.
    """

    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    served: bool = False
    closes: bool = False
    drips: float = 0
    message: str = "Base.1.0.GeneralError"
    content: bytes | None = None
    raw: Iterable[bytes] | None = None


class BMC:
    """
    :param context: of TLS; None: without.
    :param sessions: whether it has a session service.
    :ivar requests: method and path of each request that has arrived.
    :ivar heads: the headers of each of them.
    :ivar open: tokens of the sessions that are open, with the user.
    :ivar faults: what is to happen to requests, by method and path: the first of the list to the next request.
    """

    def __init__(self, context: ssl.SSLContext | None = None, sessions: bool = True, **system: Any) -> None:
        self.requests: list[tuple[str, str]] = []
        self.heads: list[dict[str, str]] = []
        self.connections = 0
        self.sessions = sessions
        self.open: dict[str, str] = {}
        self.faults: dict[tuple[str, str], collections.deque[Fault]] = collections.defaultdict(collections.deque)
        self.ended = threading.Event()
        self.resets: list[str] = []
        self.log_ins = 0
        self.system: dict[str, Any] = {
            "@odata.id": SYSTEM,
            "Id": "1",
            "PowerState": "Off",
            "Status": {"State": "Enabled", "Health": "OK"},
            "Boot": {"BootSourceOverrideTarget": "None", "BootSourceOverrideEnabled": "Disabled"},
            "Actions": {"#ComputerSystem.Reset": {"target": f"{SYSTEM}/Actions/ComputerSystem.Reset"}},
            **system,
        }
        self.documents: dict[str, dict[str, Any]] = {
            SYSTEM: self.system,
            "/redfish/v1/Systems": {"Members": [{"@odata.id": SYSTEM}]},
        }
        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"bmc": self}))
        self._server.daemon_threads = True
        if context:
            self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self.host = f"127.0.0.1:{self._server.server_address[1]}"
        self.url = f"{'https' if context else 'http'}://{self.host}"
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

    def stop(self) -> None:
        self.ended.set()
        self._server.shutdown()
        self._server.server_close()

    def order(self, method: str, path: str, *faults: Fault) -> None:
        self.faults[method, path].extend(faults)

    def count(self, method: str, path: str) -> int:
        return self.requests.count((method, path))

    def root(self) -> dict[str, Any]:
        """Return the service root, which is public."""
        found: dict[str, Any] = {
            "@odata.id": "/redfish/v1/", "Id": "RootService", "RedfishVersion": "1.6.0",
            "Systems": {"@odata.id": "/redfish/v1/Systems"},
        }  # fmt: skip
        if self.sessions:
            found |= {"SessionService": {"@odata.id": "/redfish/v1/SessionService"}}
            found |= {"Links": {"Sessions": {"@odata.id": SESSIONS}}}
        return found

    def reset(self, kind: str) -> None:
        self.resets.append(kind)
        self.system["PowerState"] = "Off" if kind in ("ForceOff", "GracefulShutdown") else "On"


class _Handler(http_handler.Handler):
    bmc: BMC

    def setup(self) -> None:
        super().setup()
        self.bmc.connections += 1

    def serve(self) -> None:
        path = self.path
        self.bmc.requests.append((self.command, path))
        self.bmc.heads.append(dict(self.headers))
        faults = self.bmc.faults.get((self.command, path))
        fault = faults.popleft() if faults else None
        body = self.body() if "Content-Length" in self.headers and self.headers["Content-Length"] != "0" else {}
        if fault is None or fault.served:
            status, document, headers = self.decide(body)
        if fault is not None:
            self.misbehave(fault)
        else:
            self.answer(status, document, **headers)

    do_GET = do_POST = do_PATCH = do_DELETE = serve

    def misbehave(self, fault: Fault) -> None:
        self.close_connection = True
        if fault.content is not None:
            self.answer(fault.status or 200, fault.content, **fault.headers)
        elif fault.raw is not None:
            with contextlib.suppress(OSError):
                for piece in fault.raw:
                    self.wfile.write(piece)
                    self.wfile.flush()
        elif fault.status:
            message = {"MessageId": fault.message, "Message": "The fan is made of cheese."}
            self.answer(fault.status, {"error": {"code": fault.message, MESSAGES: [message]}}, **fault.headers)
        elif fault.drips:
            self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")
            with contextlib.suppress(OSError):
                while not self.bmc.ended.wait(fault.drips):
                    self.wfile.write(b" ")
                    self.wfile.flush()
        elif not fault.closes:
            self.bmc.ended.wait()

    def decide(self, body: dict[str, Any]) -> tuple[int, Any, dict[str, str]]:
        """Return the answer of a BMC that behaves."""
        if self.path == "/redfish/v1/":
            return 200, self.bmc.documents.get(self.path) or self.bmc.root(), {}
        if (self.command, self.path) == ("POST", SESSIONS) and self.bmc.sessions:
            return self.log_in(body)
        if self.headers.get("X-Auth-Token") not in self.bmc.open and self.headers.get("Authorization") != _BASIC:
            return 401, {"error": {"code": "Base.1.0.NoValidSession"}}, {}
        if self.command == "DELETE" and self.path.startswith(SESSIONS):
            self.bmc.open.pop(self.path.rpartition("/")[2], None)
            return 204, b"", {}
        if self.path.endswith("ComputerSystem.Reset"):
            self.bmc.reset(body["ResetType"])
        if "/Actions/" in self.path:
            return 204, b"", {}
        if self.path not in self.bmc.documents:
            return 404, {"error": {"code": "Base.1.0.ResourceMissingAtURI"}}, {}
        return self.change(self.bmc.documents[self.path], body)

    def log_in(self, body: dict[str, Any]) -> tuple[int, Any, dict[str, str]]:
        self.bmc.log_ins += 1
        if (body["UserName"], body["Password"]) != (USER, PASSWORD):
            return 401, {"error": {"code": "Base.1.0.ResourceAtUriUnauthorized"}}, {}
        token = f"token{self.bmc.log_ins}"
        self.bmc.open[token] = body["UserName"]
        return 201, {}, {"X-Auth-Token": token, "Location": f"{SESSIONS}/{token}"}

    def change(self, document: dict[str, Any], body: dict[str, Any]) -> tuple[int, Any, dict[str, str]]:
        if self.command == "PATCH":
            for name, value in body.items():
                old = document.get(name)
                document[name] = {**old, **value} if isinstance(old, dict) else value
            return 204, b"", {}
        return 200, document, {}


@contextlib.contextmanager
def measured() -> Iterator[list[float]]:
    """Yield a list that has the seconds that the block took, afterwards."""
    taken: list[float] = []
    began = time.monotonic()
    try:
        yield taken
    finally:
        taken.append(time.monotonic() - began)
