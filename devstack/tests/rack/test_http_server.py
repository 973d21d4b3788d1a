"""The rack's HTTP server, spoken to over a socket."""

import json
import socket

import requests
import testtools

from ingot.rack.http_server import HttpError, HttpServer, Request, Response
from ingot.rack.loop import LoopThread


async def _handle(request: Request) -> Response:
    if request.path == "/refuse":
        raise HttpError(409, "not now")
    if request.path == "/break":
        raise RuntimeError("broken")
    body = request.json() if request.body else None
    return Response({"method": request.method, "path": request.path, "query": request.query, "body": body})


class HttpServerTest(testtools.TestCase):
    def setUp(self) -> None:
        super().setUp()
        self.loop = LoopThread()
        self.loop.start()
        self.addCleanup(self.loop.stop)
        self.server = HttpServer(_handle, lambda status, message: {"error": message})
        self.port = self.loop.run(self.server.start("127.0.0.1", 0))
        self.addCleanup(self.loop.call, self.server.kill)
        self.url = f"http://127.0.0.1:{self.port}"

    def raw(self, text: str) -> str:
        with socket.create_connection(("127.0.0.1", self.port), timeout=60) as client:
            client.sendall(text.encode())
            return client.recv(10000).decode()

    def test_requests_on_one_connection(self) -> None:
        with requests.Session() as session:
            for number in range(3):
                answer = session.post(f"{self.url}/a%20b?x={number}", json={"n": number}).json()
                expected = {"method": "POST", "path": "/a b", "query": {"x": str(number)}, "body": {"n": number}}
                self.assertEqual(expected, answer)

    def test_errors(self) -> None:
        self.assertEqual((409, {"error": "not now"}), self.get("/refuse"))
        with self.assertLogs("ingot.rack.http_server", "ERROR"):
            self.assertEqual(500, self.get("/break")[0])
        self.assertEqual(400, requests.post(self.url, data=b"{", timeout=60).status_code)

    def get(self, path: str) -> tuple[int, dict[str, str]]:
        answer = requests.get(self.url + path, timeout=60)
        return answer.status_code, json.loads(answer.text)

    def test_what_is_no_http(self) -> None:
        for text, status in (
            ("nonsense\r\n\r\n", "400"),
            ("GET / HTTP/1.1\r\nContent-Length: x\r\n\r\n", "400"),
            ("GET / HTTP/1.1\r\nContent-Length: -1\r\n\r\n", "413"),
            ("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", "400"),
        ):
            self.assertEqual(status, self.raw(text).split()[1], text)

    def test_killed_it_refuses_and_cuts_off(self) -> None:
        with socket.create_connection(("127.0.0.1", self.port), timeout=60) as client:
            client.sendall(b"GET / HTTP/1.1\r\n\r\n")
            client.recv(1000)
            self.loop.call(self.server.kill)
            self.assertRaises(ConnectionError, self._until_closed, client)
        self.assertRaises(requests.ConnectionError, requests.get, self.url)

    def _until_closed(self, client: socket.socket) -> None:
        if not client.recv(1000):
            raise ConnectionError("closed")
