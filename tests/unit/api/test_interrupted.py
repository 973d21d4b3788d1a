"""Connections that end in the middle of something are everyday life: no traceback, and the server goes on."""

import logging
import socket
import struct

import fixtures

from ingot.db import nodes
from tests import conductor_case, database, server_case
from tests.server_case import ASK

_RESET = struct.pack("ii", 1, 0)
"""Linger for no time: closing sends a reset."""

BODY = b"POST /v1/nodes HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n"
FOLLOW = b"GET /ingot/v1/events HTTP/1.1\r\nHost: a\r\n\r\n"


class Interrupted(server_case.ServerCase):
    def test_no_traceback_for_a_connection_that_is_reset(self) -> None:
        known = database.make_node(self.db, name="n")
        self.serve()
        log = self.useFixture(fixtures.FakeLogger(level=logging.DEBUG))
        for sent, waits in (
            (b"", False),
            (b"GET /v1/no", False),
            (ASK, False),
            (ASK * 20, False),
            (BODY, False),
            (BODY + b"{", False),
            (FOLLOW, True),
            (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", False),  # TLS to a port without it
        ):
            connection = self.connect(sent)
            if waits:
                self.assertTrue(connection.recv(100))
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            connection.close()
            nodes.set_always(self.db, known.uuid, {"maintenance_reason": repr(sent[:20])})
        conductor_case.eventually(lambda: " 200 OK" in self.read(self.connect(ASK_ONCE)), "the server goes on")
        self.assertNotIn("Traceback", log.output)


ASK_ONCE = ASK.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")
