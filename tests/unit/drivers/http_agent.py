"""An agent's HTTP API in this process, over TLS with a certificate of its own: what clients are tested against."""

import datetime
import ipaddress
import json
import ssl
import tempfile
import threading
import uuid
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests import http_handler

TOKEN = "secret-token-of-the-agent"


def certificate() -> tuple[str, str]:
    """Return a self-signed certificate for 127.0.0.1 and its key, both PEM."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.datetime.now(datetime.UTC)
    signed = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(hours=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), False)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return signed.public_bytes(serialization.Encoding.PEM).decode(), private.decode()


class HttpAgent:
    """Keeps commands as an agent does; ``outcomes`` says per command name what is answered at once.

    :ivar lacks: extensions that it does not have.
    :ivar posted: (name, params) of each command, in order.
    :ivar connections: how many clients connected.
    :ivar methods: of all requests.
    :ivar request_ids: what requests said they were sent for.
    """

    def __init__(self, tls: bool = True) -> None:
        self.commands: list[dict[str, Any]] = []
        self.posted: list[tuple[str, dict[str, Any]]] = []
        self.outcomes: dict[str, dict[str, Any]] = {}
        self.refusals: list[tuple[int, str]] = []
        self.lacks: set[str] = set()
        self.paths: list[str] = []
        self.methods: list[str] = []
        self.request_ids: list[str] = []
        self.connections = 0
        handler = type("Handler", (_Handler,), {"agent": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._server.daemon_threads = True
        self.certificate = None
        if tls:
            self.certificate, key = certificate()
            self._server.socket = self._context(self.certificate, key).wrap_socket(
                self._server.socket, server_side=True
            )
        self.url = f"http{'s' if tls else ''}://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

    @staticmethod
    def _context(signed: str, key: str) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        with tempfile.TemporaryDirectory() as directory:
            path = Path(directory, "both.pem")
            path.write_text(signed + key)
            context.load_cert_chain(path)
        return context

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def columns(self) -> dict[str, Any]:
        """Return the columns that a heartbeat of this agent writes into its node."""
        return {
            "agent_url": self.url,
            "agent_token": TOKEN,
            "agent_version": "13.0.0",
            "agent_verify_ca": self.certificate,
        }

    def add(self, name: str, **outcome: Any) -> dict[str, Any]:
        command = {
            "id": str(uuid.uuid4()),
            "command_name": name.partition(".")[2],
            "command_status": "RUNNING",
            "command_error": None,
            "command_result": None,
            **self.outcomes.get(name, {}),
            **outcome,
        }
        self.commands.append(command)
        return command

    def end(self, status: str = "SUCCEEDED", result: Any = None, error: Any = None) -> None:
        """End the last command."""
        self.commands[-1] |= {"command_status": status, "command_result": result, "command_error": error}


class _Handler(http_handler.Handler):
    agent: HttpAgent

    def setup(self) -> None:
        super().setup()
        self.agent.connections += 1

    def do_GET(self) -> None:
        url = urlsplit(self.path)
        if self._refused(url.query):
            return
        ident = url.path.removeprefix("/v1/commands/")
        found = [command for command in self.agent.commands if command["id"] == ident]
        if not ident:
            self.answer(200, {"commands": self.agent.commands})
        elif found:
            self.answer(200, found[0])
        else:
            self.answer(404, {"faultcode": "Client", "faultstring": "no such command"})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self._refused(urlsplit(self.path).query):
            return
        extension = body["name"].partition(".")[0]
        if extension in self.agent.lacks:
            self.answer(404, {"faultcode": "Client", "faultstring": f"Extension with id {extension} not found"})
            return
        self.agent.posted.append((body["name"], body["params"]))
        self.answer(200, self.agent.add(body["name"]))

    def _refused(self, query: str) -> bool:
        self.agent.paths.append(self.path)
        self.agent.methods.append(self.command)
        self.agent.request_ids.append(self.headers["X-OpenStack-Request-ID"])
        if self.agent.refusals:
            status, why = self.agent.refusals.pop(0)
            self.answer(status, {"faultcode": "Client", "faultstring": why})
            return True
        if parse_qs(query).get("agent_token") != [TOKEN]:
            self.answer(401, {"faultcode": "Client", "faultstring": "401 Unauthorized: Token invalid."})
            return True
        return False
