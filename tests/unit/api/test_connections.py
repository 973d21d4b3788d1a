"""Clients that are slow, silent, many, or speak no HTTP, take nothing away from others."""

import asyncio
import socket
import threading
import time
from typing import Any, cast

import requests
from uvicorn.protocols.http import httptools_impl

from tests import conductor_case, database, image_service, server_case
from tests.server_case import ASK, PATIENCE

POST = b"POST /v1/chassis HTTP/1.1\r\nHost: x\r\n"


class Answers(server_case.ServerCase):
    def test_head_and_body_are_one_write(self) -> None:
        self.serve()
        written: list[int] = []

        class Noted:
            """A transport that counts what is written to it."""

            def __init__(self, transport: asyncio.Transport) -> None:
                self._transport = transport

            def write(self, data: bytes) -> None:
                written.append(len(data))
                self._transport.write(data)

            def __getattr__(self, name: str) -> Any:
                return getattr(self._transport, name)

        begin = httptools_impl.HttpToolsProtocol.connection_made
        self.patch(
            *(httptools_impl.HttpToolsProtocol, "connection_made"),
            lambda protocol, transport: begin(protocol, cast(asyncio.Transport, Noted(transport))),
        )
        for path in ("/", "/v1/nodes", "/v1/nodes/missing"):
            requests.get(f"{self.url}{path}", timeout=PATIENCE)
        self.assertEqual(3, len(written))

    def test_names_of_headers_are_spelled_as_grub_reads_them(self) -> None:
        """It compares letter by letter; without a length that it sees it waits for the end of the connection."""
        self.serve()
        head = self.read_head(self.connect(ASK))
        self.assertIn("\r\nContent-Length: ", head)
        self.assertNotIn("\r\ncontent-length: ", head)


class SlowClients(server_case.ServerCase):
    def ask(self) -> int:
        return requests.get(f"{self.url}/v1/nodes", timeout=PATIENCE).status_code

    def test_keep_no_other_waiting(self) -> None:
        self.serve(max_connections_per_address=400)
        beginnings = (b"", b"G", b"GET /v1 HTTP/1.1\r\nA: b", POST + b"Content-Length: 9\r\n\r\n{")
        for number in range(200):
            self.connect(beginnings[number % 4])
        self.assertEqual(200, self.ask())

    def test_what_does_not_arrive_in_time_is_refused(self) -> None:
        self.serve(request_timeout=1)
        for sent in (
            b"G",
            b"\r\n",
            b"GET /v1 HTTP/1.1\r\nA: b\r\n",
            POST + b"Content-Length: 9\r\n\r\n{",
            POST + b"Transfer-Encoding: chunked\r\n\r\n1\r\n",
        ):
            answer = self.read(self.connect(sent))
            if sent.strip():
                self.assertIn(" 408 Request Timeout", answer, sent)
                self.assertIn("request_timeout", answer)

    def test_a_byte_now_and_then_does_not_prolong_the_time(self) -> None:
        self.serve(request_timeout=1)
        for sent, drip in ((ASK[:20], b"x"), (b"\r\n", b"\r\n"), (POST + b"Content-Length: 999\r\n\r\n", b" ")):
            connection = self.connect(sent)
            connection.settimeout(0.1)
            until = time.monotonic() + PATIENCE
            got = None
            while got is None and time.monotonic() < until:
                try:
                    got = connection.recv(9)
                except TimeoutError:
                    connection.sendall(drip)
                except ConnectionError:
                    got = b""
            self.assertIn(got, (b"", b"HTTP/1.1 "))

    def test_what_has_not_arrived_when_the_server_stops_does_not_delay_it(self) -> None:
        web = self.serve()
        slow = self.connect(POST + b"Content-Length: 9\r\n\r\n{")
        self.assertEqual(200, self.ask())
        web.stop()
        self.assertIn(" 503 ", self.read(slow))
        self.assertNotIn("api", [thread.name for thread in threading.enumerate()])

    def test_a_connection_that_is_silent_is_closed(self) -> None:
        self.serve(request_timeout=1)
        self.assertEqual("", self.read(self.connect()))

    def test_who_does_not_take_the_answer_loses_the_connection_and_no_thread(self) -> None:
        for _ in range(60):
            database.make_node(self.db, extra={"text": "x" * 200_000})
        self.serve(request_timeout=1)
        lazy = socket.socket()
        self.addCleanup(lazy.close)
        lazy.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        lazy.connect(("127.0.0.1", self.port))
        lazy.sendall(b"GET /v1/nodes/detail HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        self.assertEqual(200, self.ask())
        time.sleep(2)
        lazy.settimeout(PATIENCE)
        self.assertLess(len(self.read(lazy)), 12_000_000)


class ManyClients(server_case.ServerCase):
    options = {"max_connections_per_address": 3}  # noqa: RUF012

    def test_the_one_idle_for_longest_makes_room(self) -> None:
        self.serve()
        kept = [self.connect(ASK) for _ in range(3)]
        for one in kept:
            self.assertIn(" 200 ", self.read_head(one))
        new = self.connect(ASK)
        self.assertIn(" 200 ", self.read_head(new))
        kept[1].sendall(ASK)
        self.assertTrue(kept[1].recv(1))
        while kept[0].recv(4096):
            pass

    def test_if_none_is_idle_the_new_one_is_closed(self) -> None:
        self.serve()
        for _ in range(3):
            busy = self.connect(ASK)
            self.assertIn(" 200 ", self.read_head(busy))
            busy.sendall(ASK[:5])
        self.assertTrue(self.is_closed(self.connect(ASK)))

    def test_those_of_trusted_proxies_are_not_counted(self) -> None:
        self.serve(trusted_proxies=["127.0.0.0/8"])
        for _ in range(9):
            self.connect(ASK[:5])
        self.assertIn(" 200 ", self.read_head(self.connect(ASK)))


class WhatIsNoRequest(server_case.ServerCase):
    def refused(self, sent: bytes, closes: bool = True) -> str:  # type: ignore[override]
        connection = self.connect(sent)
        if closes:
            connection.shutdown(socket.SHUT_WR)
        return self.read(connection)

    def test_is_refused_at_once_with_the_reason(self) -> None:
        self.serve()
        for sent, expected in (
            (POST + b"Content-Length: -1\r\n\r\n{}", "Content-Length"),
            (POST + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\n{}", "Content-Length"),
            (POST + b"Transfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\n{}", "Transfer-Encoding"),
            (POST + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n", "chunk"),
            (b"\x16\x03\x01\x02\x00\x01", "method"),
            (b"GET /v1\x00 HTTP/1.1\r\n\r\n", ""),
            (b"GET / SMTP/1.1\r\n\r\n", "HTTP"),
            (b"GET /v1 HTTP/1.1\r\n\r\n", "Host"),
            (b"GET /v1 HTTP/1.1\r\nHost:\r\n\r\n", "Host"),
            (b"GET /v1 HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", "Host"),
            (b'GET /v1 HTTP/1.1\r\nHost: a b"<>\r\n\r\n', "Host"),
            (b"GET http://a@b/v1 HTTP/1.1\r\nHost: x\r\n\r\n", "Host"),
            (b"CONNECT x:80 HTTP/1.1\r\nHost: x\r\n\r\n", "CONNECT"),
        ):
            answer = self.refused(sent, closes=False)
            self.assertIn(" 400 Bad Request", answer, sent)
            self.assertIn(expected, answer)
            self.assertIn('"title": "Bad Request"'.replace(" ", ""), answer.replace(" ", "").replace("\\", "")[:9000])

    def test_a_body_that_ends_early_is_refused(self) -> None:
        self.serve()
        self.assertIn("100", self.refused(POST + b"Content-Length: 100\r\n\r\n{}"))
        self.assertIn("chunk", self.refused(POST + b"Transfer-Encoding: chunked\r\n\r\n10\r\n{}"))

    def test_headers_that_are_too_large_are_refused_whether_they_end_or_not(self) -> None:
        self.serve(max_header_size=8)
        for sent in (
            b"GET /" + b"x" * 9000 + b" HTTP/1.1\r\n\r\n",
            b"GET / HTTP/1.1\r\nA: " + b"x" * 9000,
            b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 3000 + b"\r\n",
        ):
            answer = self.refused(sent, closes=False)
            self.assertIn(" 431 ", answer)
            self.assertIn("max_header_size", answer)

    def test_a_body_that_is_too_large_is_refused_and_the_connection_stays(self) -> None:
        self.serve()
        self.conf.set_override("max_json_body_size", 4, group="api")
        body = b'"' + b"x" * 300_000 + b'"'
        for head in (
            b"Content-Length: %d\r\n\r\n%s" % (len(body), body),
            b"Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n" % (len(body), body),
        ):
            connection = self.connect(POST + head + ASK.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
            answer = self.read(connection)
            self.assertIn(" 413 ", answer)
            self.assertIn(" 200 OK", answer)

    def test_who_asks_before_sending_the_body_gets_an_answer(self) -> None:
        self.serve()
        expecting = POST + b"Expect: 100-continue\r\nConnection: close\r\nContent-Length: "
        connection = self.connect(expecting + b"2\r\n\r\n")
        self.assertIn(" 100 Continue", self.read_head(connection))
        connection.sendall(b"{}")
        self.assertIn(" 201 ", self.read(connection))
        self.assertIn(
            " 413 ", self.read(self.connect(expecting.replace(b"Connection: close\r\n", b"") + b"9999999\r\n\r\n"))
        )

    def test_the_host_of_a_whole_url_counts(self) -> None:
        self.serve()
        for target in (b"http://other:8080", b"https://other:8080/", b"HTTP://other:8080?"):
            answer = self.read(self.connect(b"GET " + target + b" HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"))
            self.assertIn("http://other:8080/v1/", answer)
        self.assertIn('"http://127.0.0.1', self.read(self.connect(b"GET / HTTP/1.0\r\n\r\n")))

    def test_another_protocol_is_not_spoken_and_nothing_is_lost(self) -> None:
        """Clients of HTTP/2 offer it with their first request, whatever that is."""
        self.serve()
        offer = b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAA\r\n"
        text = b'{"description": "offered"}'
        last = ASK.replace(b"\r\n\r\n", b"\r\nUpgrade: websocket\r\nConnection: Upgrade, close\r\n\r\n")
        for body in (
            b"Content-Length: %d\r\n\r\n%s" % (len(text), text),
            b"Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n" % (len(text), text),
        ):
            answers = self.read(self.connect(POST + offer + body + ASK + last))
            self.assertEqual(1, answers.count("HTTP/1.1 201 "), answers)
            self.assertIn('"offered"', answers)
            self.assertEqual(2, answers.count("HTTP/1.1 200 "))

    def test_names_that_pass_for_others_are_left_out(self) -> None:
        self.serve()
        ask = b"GET /v1/nodes HTTP/1.1\r\nHost: x\r\nConnection: close\r\nX_OpenStack_Ironic_API_Version: 9.9\r\n\r\n"
        self.assertIn(" 200 ", self.read(self.connect(ask)))

    def test_one_after_the_other_on_one_connection(self) -> None:
        self.serve()
        answers = self.read(self.connect(ASK * 3 + ASK.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")))
        self.assertEqual(4, answers.count("HTTP/1.1 200 OK"))
        answers = self.read(self.connect(ASK + b"nonsense\r\n\r\n"))
        self.assertEqual(1, answers.count("HTTP/1.1 200 OK"))


class LastingAnswers(server_case.ServerCase):
    """They take no thread: there is one, and it answers requests meanwhile."""

    options = {"max_event_streams": 3, "max_image_downloads": 2, "event_heartbeat_interval": 1}  # noqa: RUF012

    def follow(self) -> socket.socket:
        connection = self.connect(b"GET /ingot/v1/events HTTP/1.1\r\nHost: x\r\n\r\n")
        self.assertIn(" 200 OK", self.read_head(connection))
        return connection

    def wait_for(self, connection: socket.socket, text: str) -> None:
        got = b""
        while text.encode() not in got:
            more = connection.recv(4096)
            self.assertTrue(more, got)
            got += more

    def test_streams_of_events(self) -> None:
        self.serve()
        streams = [self.follow() for _ in range(3)]
        answer = requests.post(f"{self.url}/v1/nodes", json={"driver": "fake-hardware"}, timeout=PATIENCE)
        self.assertEqual(201, answer.status_code)
        requests.put(f"{self.url}/v1/nodes/{answer.json()['uuid']}/maintenance", json={"reason": "A"}, timeout=PATIENCE)
        for stream in streams:
            self.wait_for(stream, answer.json()["uuid"])
            self.wait_for(stream, ": heartbeat")

    def test_the_place_of_a_client_that_leaves_is_free(self) -> None:
        self.conf.set_override("event_heartbeat_interval", 3600, group="api")
        self.serve()
        streams = [self.follow() for _ in range(3)]
        self.assertEqual(503, requests.get(f"{self.url}/ingot/v1/events", timeout=PATIENCE).status_code)
        streams[0].close()

        def enters() -> bool:
            with requests.get(f"{self.url}/ingot/v1/events", stream=True, timeout=PATIENCE) as answer:
                return answer.status_code == 200

        conductor_case.eventually(enters, "there is room again")

    def test_streams_end_when_the_server_stops(self) -> None:
        web = self.serve()
        stream = self.follow()
        web.stop()
        while stream.recv(4096):
            pass

    def test_downloads_of_images(self) -> None:
        glance = self.useFixture(image_service.ImageService())
        glance.configure(self.conf)
        content = bytes(range(256)) * 4096 * 32
        ident = glance.add(content)
        node = database.make_node(self.db, boot_config={"links": {"image": f"a-ticket/{ident}"}})
        self.serve()
        path = f"/boot/images/{node.uuid}/a-ticket/{ident}"
        for _ in range(2):
            lazy = self.connect(f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
            self.assertIn(" 200 OK", self.read_head(lazy))
        answer = requests.get(f"{self.url}{path}", timeout=PATIENCE)
        self.assertEqual(503, answer.status_code)
        lazy.close()

        def fetched() -> bool:
            answer = requests.get(f"{self.url}{path}", timeout=PATIENCE)
            return answer.status_code == 200 and answer.content == content

        conductor_case.eventually(fetched, "there is room again")
