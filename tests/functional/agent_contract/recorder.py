"""A recorder on the wire: it stands between agents and Ingot, in both directions, and notes what they say.

Agents come to it instead of Ingot's API. Their heartbeats go on with an address and a certificate of the recorder's, so
Ingot's commands come to it, too. It reaches an agent as Ingot's conductor would, trusting only the certificate that the
agent announced: both ways are verified TLS.
"""

import http.server
import json
import pathlib
import re
import ssl
import threading
import urllib.parse
from collections.abc import Callable, Mapping
from typing import Any

import fixtures
import requests

from ingot.common import fetching
from ingot.drivers.agent import client
from ingot.rack import tls
from tests import patience
from tests.functional.agent_contract.recordings import Exchange, Recording

_PATIENCE_S = patience.seconds(600)
"""For one answer: a command of the agent may be answered when it has ended."""

_HEADERS = ("accept", "content-type", "user-agent", "x-openstack-ironic-api-version")
_ANSWER_HEADERS = ("content-type",)
_OF_ONE_HOP = ("connection", "content-length", "host", "keep-alive", "transfer-encoding", "date", "server")
_HEARTBEAT = "/v1/heartbeat/"
_UUID = re.compile("[0-9a-f]{8}-[0-9a-f-]{27}")

Change = Callable[[str, bytes], bytes]


class Recorder(fixtures.Fixture):
    """Forwards agents to Ingot, and Ingot to agents.

    :ivar port: where agents reach it, on this host.
    :ivar service: the address of Ingot's API; to be set before an agent calls.
    :ivar agents: the addresses that agents have announced, oldest first.
    """

    def __init__(self) -> None:
        super().__init__()
        self.service = ""
        self.agents: list[str] = []
        self._relays: dict[tuple[str, str], tuple[str, str]] = {}
        self._exchanges: list[Exchange] = []
        self._lock = threading.Lock()

    def _setUp(self) -> None:
        self._directory = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        session = requests.Session()
        session.trust_env = False
        self.port = self._listen(lambda: (session, self.service), self._announce_relay, None)
        self.url = f"http://127.0.0.1:{self.port}"

    def recording(self) -> Recording:
        """Return what was exchanged so far."""
        with self._lock:
            return Recording.of(self._exchanges)

    def begin(self, exchange: Exchange) -> None:
        """Record a request in its turn; the answer is added later."""
        with self._lock:
            self._exchanges.append(exchange)

    def _listen(
        self, server: Callable[[], tuple[requests.Session, str]], change: Change, context: ssl.SSLContext | None
    ) -> int:
        """Start to forward.

        :param server: gives the session and the address to forward with.
        :param change: makes of the path and the body of a request the body that is forwarded.
        """
        handler = type(
            "Handler",
            (_Handler,),
            {"recorder": self, "server_of": staticmethod(server), "change": staticmethod(change)},
        )
        listener = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        if context is not None:
            listener.socket = context.wrap_socket(listener.socket, server_side=True, do_handshake_on_connect=False)
        threading.Thread(target=listener.serve_forever, kwargs={"poll_interval": 0.1}, daemon=True).start()
        self.addCleanup(listener.server_close)
        self.addCleanup(listener.shutdown)
        return int(listener.server_address[1])

    def _announce_relay(self, path: str, body: bytes) -> bytes:
        """Put the recorder's address and certificate into a heartbeat; leave one without a certificate as it is."""
        heartbeat = json.loads(body) if path.startswith(_HEARTBEAT) else {}
        if not heartbeat.get("agent_verify_ca"):
            return body
        key = (heartbeat["callback_url"], heartbeat["agent_verify_ca"])
        with self._lock:
            if key not in self._relays:
                self._relays[key] = self._relay(*key)
                self.agents.append(key[0])
            url, certificate = self._relays[key]
        return json.dumps({**heartbeat, "callback_url": url, "agent_verify_ca": certificate}).encode()

    def _relay(self, url: str, certificate: str) -> tuple[str, str]:
        """Start a relay to an agent; return its address and its certificate."""
        context, own = tls.create(self._directory, "127.0.0.1", None)
        session = fetching.open_session(fetching.Adapter(client.build_context(certificate)))
        port = self._listen(lambda: (session, url), _as_it_is, context)
        return f"https://127.0.0.1:{port}", own


def _as_it_is(path: str, body: bytes) -> bytes:
    return body


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    recorder: Recorder
    server_of: Callable[[], tuple[requests.Session, str]]
    change: Change

    def do_GET(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        exchange = self._exchange(body)
        self.recorder.begin(exchange)
        try:
            answer = self._forward(body)
        except requests.RequestException:
            self.close_connection = True  # there is no answer to give, as there was none
            return
        exchange.answer = _decoded(answer.content)
        exchange.answer_headers = _chosen(answer.headers, _ANSWER_HEADERS)
        exchange.status = answer.status_code
        self._give(answer)

    do_POST = do_GET

    def _exchange(self, body: bytes) -> Exchange:
        parts = urllib.parse.urlsplit(self.path)
        path = _UUID.sub("{uuid}", parts.path)
        query = dict(urllib.parse.parse_qsl(parts.query))
        return Exchange(self.command, path, query, _chosen(self.headers, _HEADERS), _decoded(body))

    def _forward(self, body: bytes) -> requests.Response:
        session, url = self.server_of()
        headers = {name: value for name, value in self.headers.items() if name.lower() not in _OF_ONE_HOP}
        return session.request(
            self.command,
            url + self.path,
            headers=headers,
            data=self.change(self.path, body),
            timeout=_PATIENCE_S,
            allow_redirects=False,
        )

    def _give(self, answer: requests.Response) -> None:
        self.send_response(answer.status_code)
        for name, value in answer.headers.items():
            if name.lower() not in (*_OF_ONE_HOP, "content-encoding"):
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(answer.content)))
        self.end_headers()
        self.wfile.write(answer.content)

    def log_message(self, format: str, *args: Any) -> None:
        """Drop what is not read."""


def _decoded(body: bytes) -> Any:
    try:
        return json.loads(body)
    except ValueError:
        return body.decode(errors="replace") or None


def _chosen(headers: Mapping[str, str], names: tuple[str, ...]) -> dict[str, str]:
    """Return some of the headers, without the versions of programs."""
    return {name: headers[name].partition("/")[0] if name == "user-agent" else headers[name]
            for name in names if name in headers}  # fmt: skip
