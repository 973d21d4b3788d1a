"""Where APIs come for serial consoles: a listener on the loop of BMCs, with TLS.

Each conductor makes a certificate of its own when it starts to listen. An API that has asked, over RPC, to open a
console learns its fingerprint, and a ticket, which is good for one connection soon.
"""

import asyncio
import contextlib
import datetime
import pathlib
import secrets
import socket
import ssl
import tempfile
import threading
import time
from typing import NamedTuple

import orjson
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from oslo_config import cfg
from oslo_log import log

from ingot.common import console_frames as frames
from ingot.common import errors
from ingot.drivers.interfaces import bmc_loop
from ingot.drivers.interfaces.consoles import Consoles
from ingot.drivers.interfaces.shared_console import MakeStream, Reader, SharedConsole

LOG = log.getLogger(__name__)

_TICKET_S = 30.0
_HANDSHAKE_S = 10.0
_FAREWELL_S = 30.0
"""Seconds in which a reader that is to leave takes what was said before."""

_BEHIND = 2**20
"""Bytes that may wait for a reader, besides what was said before it came."""

_MOST_STRANGERS = 64
"""Connections at a time that have not shown a valid ticket, besides those that tickets were given for."""

_REST_S = 1.0
"""Seconds until connections are accepted again, when this process cannot."""

_ANY = ("0.0.0.0", "::")  # noqa: S104 - they are compared with


class Visit(NamedTuple):
    """What an API was allowed to open.

    :param request_id: of the request for it.
    """

    node: str
    make: MakeStream
    user: str
    types: bool
    take_over: bool
    request_id: str | None


class ConsoleServer:
    """Listens from the start if it has a port of its own, or else from the first ticket on."""

    def __init__(self, conf: cfg.ConfigOpts, consoles: Consoles) -> None:
        self._conf = conf
        self._consoles = consoles
        self._guard = threading.Lock()
        self._tickets: dict[str, tuple[Visit, float]] = {}  # with the moment at which they end
        self._accepting: asyncio.Task[None] | None = None
        self._strangers = 0
        self._visits: set[asyncio.Task[None]] = set()
        self._fingerprint = ""
        self._port = 0

    def start(self) -> None:
        """Begin to listen, if the port is one that an operator has chosen.

        :raises Occupied: another process has it, or this host does not have the address.
        """
        with self._guard:
            if self._conf.console.port and self._accepting is None:
                self._listen()

    def admit(self, visit: Visit) -> frames.Place:
        """Return where an API comes for a console, and with which ticket.

        :raises ConsoleTaken: it is to type, not to take over, and another user types.
        :raises ServiceUnavailable: this process cannot listen.
        """
        writer = self._consoles.find_writer(visit.node)
        if visit.types and not visit.take_over and writer is not None:
            reason = f"{writer} types there; send take_over=true to type instead, or mode=read"
            raise errors.ConsoleTaken(node=visit.node, reason=reason)
        name = secrets.token_urlsafe(32)
        with self._guard:
            if self._accepting is None:
                try:
                    self._listen()
                except errors.Occupied as exc:
                    raise errors.ServiceUnavailable(what="The console", reason=exc.message.rstrip(".")) from exc
            now = time.monotonic()
            self._tickets = {known: one for known, one in self._tickets.items() if one[1] > now}
            self._tickets[name] = visit, now + _TICKET_S
        host = str(self._conf.console.host_ip)
        host = str(self._conf.my_ip) if host in _ANY else host
        return {"host": host, "port": self._port, "fingerprint": self._fingerprint, "ticket": name}

    def stop(self) -> None:
        """Listen no more; those who read are gone with the consoles."""

        async def end(accepting: "asyncio.Task[None]") -> None:
            accepting.cancel()
            await asyncio.wait([accepting])

        if self._accepting is not None:
            with contextlib.suppress(TimeoutError):
                bmc_loop.submit(end(self._accepting)).result(_HANDSHAKE_S)

    def _listen(self) -> None:
        """
        :raises Occupied: it is not possible.
        """
        host, port = str(self._conf.console.host_ip), self._conf.console.port
        context, self._fingerprint = _make_context()
        try:
            listener = socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
        except OSError as exc:
            allowed = f"Cannot listen there for consoles: {exc}."
            raise errors.Occupied(option="[console] host_ip and port", value=f"{host}:{port}", allowed=allowed) from exc
        self._port = listener.getsockname()[1]
        listener.setblocking(False)

        async def begin() -> asyncio.Task[None]:
            return asyncio.ensure_future(self._accept(listener, context))

        self._accepting = bmc_loop.submit(begin()).result()
        LOG.info("Consoles are served to APIs at %s port %d", host, self._port)

    # On the loop

    async def _accept(self, listener: socket.socket, context: ssl.SSLContext) -> None:
        """Accept connections, as asyncio's server does. It would count none before the end of its TLS handshake."""
        with listener:
            while True:
                try:
                    accepted, _address = await asyncio.get_running_loop().sock_accept(listener)
                except OSError as exc:  # as too many open files
                    LOG.warning("Connections for consoles cannot be accepted: %s", exc)
                    await asyncio.sleep(_REST_S)
                    continue
                if self._strangers >= _MOST_STRANGERS + len(self._tickets):
                    LOG.debug("A connection for a console is closed: %d have shown no ticket yet", self._strangers)
                    accepted.close()
                    continue
                self._strangers += 1
                task = asyncio.ensure_future(self._serve(accepted, context))
                self._visits.add(task)
                task.add_done_callback(self._visits.discard)

    async def _meet(
        self, accepted: socket.socket, context: ssl.SSLContext
    ) -> tuple[Visit | None, asyncio.StreamReader, asyncio.StreamWriter]:
        """Return what a connection may open.

        :raises OSError: it does not speak TLS, or not in time.
        """
        loop = asyncio.get_running_loop()
        try:
            arriving = asyncio.StreamReader(limit=2 * frames.LARGEST)
            protocol = asyncio.StreamReaderProtocol(arriving)
            transport, _protocol = await loop.connect_accepted_socket(
                lambda: protocol, accepted, ssl=context, ssl_handshake_timeout=_HANDSHAKE_S
            )
            leaving = asyncio.StreamWriter(transport, protocol, arriving, loop)
            return await self._read_ticket(arriving), arriving, leaving
        finally:
            self._strangers -= 1

    async def _serve(self, accepted: socket.socket, context: ssl.SSLContext) -> None:
        """Serve one console to one reader."""
        try:
            visit, arriving, leaving = await self._meet(accepted, context)
            with contextlib.closing(leaving):
                if visit is not None:
                    behind = _BEHIND + self._conf.console.scrollback_size * 1024
                    remote = _Remote(visit, leaving, behind)
                    await self._attend(visit, remote, arriving)
        except OSError as exc:
            LOG.debug("A connection for a console has ended: %s", exc)
        except Exception:  # the edge of a connection
            LOG.exception("A console could not be served to its end")

    async def _read_ticket(self, arriving: asyncio.StreamReader) -> Visit | None:
        try:
            async with asyncio.timeout(_HANDSHAKE_S):
                frame = await frames.read(arriving)
            name = orjson.loads(frame.content)["ticket"] if frame and frame.kind == frames.Kind.TICKET else ""
        except (frames.BadFrame, TimeoutError, ValueError, KeyError, TypeError):
            name = ""
        with self._guard:
            visit, until = self._tickets.pop(str(name), (None, 0.0))
        if visit is None or until < time.monotonic():
            LOG.warning("A connection for a console has no ticket, or one of before; it is closed")
            return None
        return visit

    async def _attend(self, visit: Visit, remote: "_Remote", arriving: asyncio.StreamReader) -> None:
        LOG.info(
            "Node %s: %s %s its serial console (%s)",
            *(visit.node, visit.user, "types on" if visit.types else "reads", visit.request_id),
        )
        console = self._consoles.attend(visit.node, visit.make, remote, visit.take_over)
        try:
            await _take_typed(console, remote, arriving)
        finally:
            console.leave(remote)
            LOG.info("Node %s: %s has left its serial console (%s)", visit.node, visit.user, visit.request_id)


async def _take_typed(console: SharedConsole, remote: "_Remote", arriving: asyncio.StreamReader) -> None:
    """Give what comes to the machine, until the other side is gone."""
    try:
        while (frame := await frames.read(arriving)) is not None:
            if frame.kind == frames.Kind.BYTES and frame.content:
                await console.type(remote, frame.content)
            elif frame.kind == frames.Kind.MESSAGE:
                await console.type(remote, b"")  # there is one: break
    except frames.BadFrame as exc:
        LOG.warning("Node %s: an API sends what is no frame of a console: %s", console.node, exc)


class _Remote(Reader):
    """A reader behind an API.

    :param behind: bytes that may wait for it.
    """

    def __init__(self, visit: Visit, leaving: asyncio.StreamWriter, behind: int) -> None:
        super().__init__(visit.user, visit.types)
        self._visit = visit
        self._leaving = leaving
        self._behind = behind
        self._has_ended = False

    def hear(self, said: bytes) -> None:
        self._send(frames.pack(frames.Kind.BYTES, said))

    def tell(self, status: frames.Status) -> None:
        self._send(frames.pack_message(frames.Kind.MESSAGE, status))

    def end(self, code: frames.End, reason: str) -> None:
        if self._has_ended:
            return
        self._has_ended = True
        self._leaving.write(frames.pack_message(frames.Kind.END, {"code": code, "reason": reason}))
        self._leaving.close()
        asyncio.get_running_loop().call_later(_FAREWELL_S, self._leaving.transport.abort)

    def _send(self, packed: bytes) -> None:
        if self._has_ended:
            return
        self._leaving.write(packed)
        if self._leaving.transport.get_write_buffer_size() > self._behind:
            LOG.warning("Node %s: %s is too slow for its serial console", self._visit.node, self.user)
            self.end(frames.End.SLOW, f"more than {self._behind // 1024} KiB wait for this reader, which is too slow")


def _make_context() -> tuple[ssl.SSLContext, str]:
    """Return the settings of TLS with a new certificate, and its fingerprint."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "consoles")])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=3650))
        .sign(key, hashes.SHA256())
    )
    pem = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    ) + certificate.public_bytes(serialization.Encoding.PEM)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    with tempfile.TemporaryDirectory() as folder:  # for its owner only
        file = pathlib.Path(folder) / "consoles.pem"
        file.write_bytes(pem)
        context.load_cert_chain(file)
    return context, certificate.fingerprint(hashes.SHA256()).hex()
