"""The database addresses that operators copy from the guide have drivers verify the server's certificate and name."""

import importlib.util
import pathlib
import re
import socket
import ssl
import struct
import threading

import fixtures
import testtools

from ingot.common import errors
from ingot.db.engine import Database
from tests import database, patience, server_case

PAGE = pathlib.Path(__file__).parents[3] / "doc" / "source" / "operator" / "security.rst"

_USES_TLS = 0x0008_AA0F  # what a server of MySQL offers: the protocol of today, logins by plugins, and TLS


def _greet_as_mysql(client: socket.socket) -> None:
    """Offer TLS, and read the packet that asks for it."""
    offered = struct.pack("<HBHHB10x", _USES_TLS & 0xFFFF, 45, 2, _USES_TLS >> 16, 21)
    greeting = b"\x0a8.0.0\0" + bytes(4) + b"x" * 8 + b"\0" + offered + b"x" * 12 + b"\0mysql_native_password\0"
    client.sendall(len(greeting).to_bytes(3, "little") + b"\0" + greeting)
    client.recv(36)


def _greet_as_postgresql(client: socket.socket) -> None:
    client.recv(8)
    client.sendall(b"S")


_GREETINGS = {"mysql": _greet_as_mysql, "postgresql": _greet_as_postgresql}


class EncryptedConnections(testtools.TestCase):
    def setUp(self) -> None:
        super().setUp()
        self.folder = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        self.certificate = self.make_certificate("server")

    def make_certificate(self, name: str) -> str:
        (self.folder / name).mkdir()
        return server_case.make_certificate(self.folder / name)

    def is_agreed(self, url: str, host: str, authority: str) -> bool:
        """Return whether a database connects to a server, as far as TLS goes."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.certificate)
        agreed = []

        def serve(listener: socket.socket) -> None:
            client, _ = listener.accept()
            client.settimeout(patience.seconds(60))
            with client:
                _GREETINGS[url.partition("+")[0]](client)
                try:
                    with context.wrap_socket(client, server_side=True) as secured:
                        agreed.append(bool(secured.recv(1)))
                except OSError:
                    agreed.append(False)

        with socket.create_server((host, 0)) as listener:
            listener.settimeout(patience.seconds(60))
            thread = threading.Thread(target=serve, args=(listener,))
            thread.start()
            place = f"@{host}:{listener.getsockname()[1]}/"
            db = Database(database.configuration(re.sub("/etc/.*", authority, url.replace("@db/", place))))
            self.assertRaises(errors.IngotError, db.single().__enter__)
            thread.join()
        return agreed == [True]

    def test_a_server_is_verified_by_authority_and_name(self) -> None:
        urls = re.findall(r"connection = (.+/etc/ingot/db-ca\.pem)", PAGE.read_text())
        another = self.make_certificate("another")
        drivers = [url.partition("://")[0] for url in urls]
        self.assertEqual(["mysql+mysqldb", "mysql+pymysql", "postgresql+psycopg"], drivers)
        if not importlib.util.find_spec("MySQLdb"):  # is compiled where it is installed
            urls.pop(0)
        for url in urls:
            self.assertTrue(self.is_agreed(url, "127.0.0.1", self.certificate))
            self.assertFalse(self.is_agreed(url, "127.0.0.1", another))
            self.assertFalse(self.is_agreed(url, "127.0.0.2", self.certificate))  # which the certificate does not name
