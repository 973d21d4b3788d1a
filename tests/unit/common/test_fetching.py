"""Whatever a server does, what is fetched from it ends in time, has a limit, and comes from where it may."""

import gzip
import ipaddress
import json
import pathlib
import ssl
import warnings
from typing import Any

import fixtures
import requests
import testtools

from ingot.common import fetching
from ingot.common.networks import ANYWHERE, Networks
from tests import http_handler, patience
from tests.unit.drivers import http_agent
from tests.unit.drivers.file_server import FileServer, HandledServer, SlowServer

LOOPBACK = Networks(denied=[ipaddress.ip_network("127.0.0.0/8"), ipaddress.ip_network("::1/128")])


class FetchingCase(testtools.TestCase):
    def fetch(self, url: str, networks: Networks = ANYWHERE, seconds: float = 30, **how: Any) -> bytes:
        return fetching.fetch(url, 1000, seconds, networks, **how)

    def refused(self, url: str, networks: Networks = ANYWHERE, seconds: float = 30) -> str:
        return self.assertRaises(fetching.FetchError, self.fetch, url, networks, seconds).message

    def serve(self, **answers: Any) -> str:
        """Serve answers by path, and return the URL; each is status, content and headers."""

        class Handler(http_handler.Handler):
            def do_GET(self) -> None:
                status, content, headers = answers[self.path.strip("/").partition("?")[0]]
                self.answer(status, content, **headers)

        server = HandledServer(Handler)
        self.addCleanup(server.stop)
        return server.url


class TestTime(FetchingCase):
    def test_a_server_that_drips_is_read_until_the_end_of_the_time(self) -> None:
        for head in (
            b"",
            b"HTTP/1.1 200 OK\r\nX-",
            b"HTTP/1.1 200 OK\r\nContent-Length: 999\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3e7\r\n",
            b"HTTP/1.1 302 Found\r\nLocation: /\r\nContent-Length: 999\r\n\r\n",
        ):
            server = SlowServer(head)
            self.addCleanup(server.stop)
            self.assertIn("not there within 0.5 s", self.refused(server.url, seconds=0.5))

    def test_tls_is_no_way_around_it(self) -> None:
        """A server that drips the first record of its handshake."""
        server = SlowServer(b"\x16\x03\x03\x40\x00")  # a handshake of 16 KiB
        self.addCleanup(server.stop)
        said = self.refused(server.url.replace("http:", "https:"), seconds=0.5)
        self.assertIn("not there within 0.5 s", said)

    def test_a_limit_ends_with_its_block(self) -> None:
        url = self.serve(a=(200, b"content", {}))
        session = fetching.open_session()
        with fetching.limit(patience.seconds(30)):
            fetching.request(session, "GET", f"{url}/a", 100)
        self.assertEqual(b"content", fetching.request(session, "GET", f"{url}/a", 100).content)


class TestSize(FetchingCase):
    def test_more_than_may_be_is_not_read(self) -> None:
        url = self.serve(fits=(200, b"x" * 1000, {}), long=(200, b"x" * 1001, {}))
        self.assertEqual(1000, len(self.fetch(f"{url}/fits")))
        self.assertIn("longer than 1000 bytes", self.refused(f"{url}/long"))

    def test_what_is_packed_stays_so(self) -> None:
        bomb = gzip.compress(bytes(500_000))
        self.assertTrue(len(bomb) < 1000)
        url = self.serve(bomb=(200, bomb, {"Content-Encoding": "gzip"}))
        self.assertEqual(bomb, self.fetch(f"{url}/bomb"))

    def test_what_comes_with_a_redirect_is_no_way_around_it(self) -> None:
        bomb = gzip.compress(bytes(500_000))
        packed, there = {"Content-Encoding": "gzip", "Location": "/there"}, {"Location": "/there"}
        url = self.serve(bomb=(302, bomb, packed), long=(302, b"x" * 1001, there), there=(200, b"there", {}))
        self.assertIn("longer than 1000 bytes", self.refused(f"{url}/long"))
        self.assertEqual(b"there", self.fetch(f"{url}/bomb"))
        with fetching.limit(patience.seconds(30)), fetching.open_session() as session:
            self.assertEqual(bomb, fetching.request(session, "GET", f"{url}/bomb", 1000).content)

    def test_what_is_cut_off_is_an_error(self) -> None:
        url = self.serve(short=(200, b"x", {"Content-Length": "7", "Connection": "close"}))
        self.assertIn("cannot be fetched", self.refused(f"{url}/short"))


class TestRedirects(FetchingCase):
    def test_some_are_followed(self) -> None:
        url = self.serve(a=(301, b"", {"Location": "/b?c"}), b=(307, b"", {"Location": "d"}), d=(200, b"there", {}))
        self.assertEqual(b"there", self.fetch(f"{url}/a"))
        self.assertIn("HTTP 404", self.refused(f"{self.serve(x=(404, b'', {}))}/x"))

    def test_not_without_end_and_not_to_anything(self) -> None:
        for location, reason in (
            ("/a", "more than 5 times"),
            ("file:///etc/passwd", "neither http nor https"),
            ("ftp://127.0.0.1/", "neither http nor https"),
            ("//[bad", "ValueError"),
        ):
            url = self.serve(a=(302, b"", {"Location": location}))
            self.assertIn(reason, self.refused(f"{url}/a"))

    def test_each_is_checked(self) -> None:
        secret = FileServer({"/": b"secret"})
        self.addCleanup(secret.stop)
        url = self.serve(a=(302, b"", {"Location": secret.url.replace("127.0.0.1", "127.0.0.2")}))
        only_this = Networks(allowed=[ipaddress.ip_network("127.0.0.1/32")])
        self.assertIn("127.0.0.2", self.refused(f"{url}/a", only_this))


class TestStreams(FetchingCase):
    def open(self, url: str, networks: Networks = ANYWHERE) -> requests.Response:
        answer = fetching.open_stream(url, 30, networks, True, {"Range": "bytes=1-"})
        self.addCleanup(answer.close)
        return answer

    def test_what_is_read_later_comes_from_where_redirects_lead(self) -> None:
        url = self.serve(a=(302, b"", {"Location": "/b"}), b=(206, b"here", {"Content-Range": "bytes 1-4/5"}))
        answer = self.open(f"{url}/a")
        self.assertEqual((206, b"here"), (answer.status_code, answer.raw.read()))
        self.assertEqual(404, self.open(f"{self.serve(x=(404, b'', {}))}/x").status_code)

    def test_they_lead_to_no_more_than_those_of_what_is_read_at_once(self) -> None:
        for location, reason in (("/a", "more than 5 times"), ("file:///etc/passwd", "neither http nor https")):
            url = self.serve(a=(302, b"", {"Location": location}))
            refused = self.assertRaises(fetching.FetchError, self.open, f"{url}/a")
            self.assertIn(reason, refused.message)
        refused = self.assertRaises(fetching.FetchError, self.open, f"{url}/a", LOOPBACK)
        self.assertIn("may not be reached", refused.message)


class TestRefusals(FetchingCase):
    def test_the_api_says_why_it_refuses(self) -> None:
        inner = json.dumps({"faultstring": "no loader"})
        url = self.serve(
            ok=(206, b"x", {}),
            no=(503, json.dumps({"error_message": inner}).encode(), {}),
            other=(200, b"<html>", {}),
            gone=(404, b"", {}),
        )
        self.assertEqual(("", "no loader"), tuple(fetching.find_refusal(f"{url}/{name}", 30) for name in ("ok", "no")))
        self.assertRaises(fetching.NotThere, fetching.find_refusal, f"{url}/gone", 30)
        refused = self.assertRaises(fetching.FetchError, fetching.find_refusal, f"{url}/other", 30)
        self.assertIn("HTTP 200", refused.message)


class TestNetworks(FetchingCase):
    def test_whatever_an_address_is_called(self) -> None:
        server = FileServer({"/": b"secret"})
        self.addCleanup(server.stop)
        for host in ("127.0.0.1", "localhost", "127.1", "0x7f.1", "2130706433", "[::1]", "[::ffff:127.0.0.1]"):
            url = server.url.replace("127.0.0.1", host)
            self.assertIn("may not be reached", self.refused(f"{url}/", LOOPBACK), host)
        self.assertEqual(b"secret", self.fetch(f"{server.url}/"))

    def test_what_an_address_in_a_url_tells(self) -> None:
        only = Networks(LOOPBACK.denied, [ipaddress.ip_network("10.0.0.0/8"), ipaddress.ip_network("127.0.0.0/8")])
        for host, everywhere, there in (
            ("127.0.0.1", False, False),
            ("127.1", False, False),
            ("::ffff:127.0.0.1", False, False),
            ("10.1.2.3", True, True),
            ("192.0.2.1", True, False),
            ("fe80::1%eth0", True, False),
            ("images.example.org", True, True),
            ("no\0name", True, True),
        ):
            self.assertEqual((everywhere, there), (LOOPBACK.permit(host), only.permit(host)), host)


class TestEnvironment(FetchingCase):
    def test_neither_proxies_nor_passwords_of_it_are_used(self) -> None:
        seen: list[str | None] = []

        class Handler(http_handler.Handler):
            def do_GET(self) -> None:
                seen.append(self.headers["Authorization"])
                self.answer(200, b"content")

        server = HandledServer(Handler)
        self.addCleanup(server.stop)
        netrc = pathlib.Path(self.useFixture(fixtures.TempDir()).path) / "netrc"
        netrc.write_text("machine 127.0.0.1 login a password b\n")
        netrc.chmod(0o600)
        for name, value in (("NETRC", str(netrc)), ("http_proxy", "http://127.0.0.1:1"), ("NO_PROXY", "")):
            self.useFixture(fixtures.EnvironmentVariable(name, value))
        self.assertEqual(b"content", self.fetch(server.url))
        self.assertEqual([None], seen)

    def test_servers_are_verified_as_the_operator_says(self) -> None:
        folder = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        trusted, own = folder / "trusted.pem", folder / "own.pem"
        certificate, key = http_agent.certificate()
        trusted.write_text(certificate)
        own.write_text(certificate + key)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(own)
        server = FileServer({"/": b"content"}, context)
        self.addCleanup(server.stop)
        url = f"{server.url}/"
        self.assertIn("SSLError", self.refused(url))
        self.assertEqual(b"content", self.fetch(url, verify=str(trusted)))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.assertEqual(b"content", self.fetch(url, verify=False))
