"""The ports of Redfish: one that all machines share, one per machine where asked, all on the rack's event loop."""

import asyncio
import ssl
from pathlib import Path
from typing import Any

from ingot.rack import tls
from ingot.rack.config import RackConfig
from ingot.rack.http_server import CutOff, HttpServer, Silence
from ingot.rack.machine import Machine
from ingot.rack.redfish import resources
from ingot.rack.redfish.board import Board
from ingot.rack.redfish.routing import Router
from ingot.rack.redfish.service import Service

BACKLOG = 512
_HANDSHAKE_S = 20.0


class Certificates:
    """The TLS contexts of a rack: the right one, and one per flaw that can be ordered."""

    def __init__(self, directory: Path, address: str) -> None:
        self._directory = directory
        self._address = address
        self._flawed: dict[str, ssl.SSLContext] = {}
        self._right, certificate = tls.keep(self._file, address)
        self.ca_file.write_text(certificate)

    @property
    def ca_file(self) -> Path:
        """What a client has to trust."""
        return self._directory / "redfish-ca.pem"

    @property
    def _file(self) -> Path:
        return self._directory / "redfish.pem"

    def of(self, board: Board | None) -> ssl.SSLContext:
        flaw = board.machine.faults.value("redfish_certificate") if board else None
        if flaw is None:
            return self._right
        if flaw not in self._flawed:
            self._flawed[flaw] = tls.create_flawed(self._directory, self._address, flaw, self._file)
        return self._flawed[flaw]


class Port(HttpServer):
    """A port of a service. That of one machine can be closed by a fault, silent, or away with its BMC."""

    def __init__(self, service: Service, host: str, port: int, certificates: Certificates | None) -> None:
        super().__init__(service.handle, service.error_body)
        self.service = service
        self._board = service.members[0].board if service.alone else None
        self._host = host
        self._certificates = certificates
        self._changing = asyncio.Lock()
        self._change: asyncio.Future[None] | None = None
        self.port = port
        if self._board is not None:
            self._board.machine.on_faults = self._follow_faults
            self._board.on_restart.append(self.cut_off)

    async def open(self) -> None:
        """Listen. :raises OSError: the port is taken; the text says which."""
        try:
            self.port = await self.start(self._host, self.port, backlog=BACKLOG)
        except OSError as error:
            whose = self._board.machine.name if self._board else "all machines"
            text = f"Redfish of {whose}, {self._host} TCP port {self.port}: {error.strerror}"
            raise OSError(error.errno, text) from error

    async def _greet(self, writer: asyncio.StreamWriter) -> None:
        if self._board is not None and self._board.silent:
            raise Silence
        if self._board is not None and self._board.away:
            raise CutOff
        if self._certificates is not None:
            context = self._certificates.of(self._board)
            await writer.start_tls(context, ssl_handshake_timeout=_HANDSHAKE_S)

    def _follow_faults(self) -> None:
        self._change = asyncio.ensure_future(self._open_or_close())

    async def _open_or_close(self) -> None:
        async with self._changing:
            closed = self._board is not None and self._board.machine.faults.active("redfish_port_closed")
            if closed and self.listens:
                self.kill()
            elif not closed and not self.listens:
                await self.open()


class Ports:
    """All Redfish ports of a rack."""

    def __init__(self, config: RackConfig, machines: list[Machine]) -> None:
        self._config = config
        self._certificates = Certificates(config.state_dir, config.address) if config.redfish_tls else None
        self._ports: list[Port] = []
        self.shared: Port | None = None
        router = Router(resources.ROUTES)
        boards = [Board(machine) for machine in machines]
        if config.redfish_port is not None:
            self.shared = self._port(Service(boards, router, alone=False), config.redfish_port)
        if config.redfish_base_port is not None:
            for number, board in enumerate(boards):
                base = config.redfish_base_port
                self._port(Service([board], router, alone=True), base + number if base else 0)

    def _port(self, service: Service, number: int) -> Port:
        port = Port(service, self._config.address, number, self._certificates)
        self._ports.append(port)
        return port

    async def open(self) -> None:
        """Listen on all of them, and note at the machines where their faces are."""
        for port in self._ports:
            await port.open()
            for member in port.service.members:
                member.board.machine.redfish = {"address": self.url(port), "system": member.system}

    def url(self, port: Port) -> str:
        return f"{'https' if self._config.redfish_tls else 'http'}://{self._config.address}:{port.port}"

    def describe(self) -> dict[str, Any]:
        """Return what clients need besides the machines' own addresses."""
        return {
            "redfish_url": self.url(self.shared) if self.shared else None,
            "redfish_ca_file": str(self._certificates.ca_file) if self._certificates else None,
        }

    def kill(self) -> None:
        for port in self._ports:
            port.kill()
