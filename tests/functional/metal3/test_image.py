"""What Metal3's image of the service, and bifrost, configure starts Ingot as it stands.

Only directories are those of the test, the port is one that is free, and bifrost's database is SQLite.
"""

import base64
import http.client
import json
import os
import pathlib
import socket
import ssl
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import bcrypt
import fixtures
import testtools

from ingot.rack import ports, tls
from tests import operators_files, patience

_PATIENCE = patience.seconds(120)
_FOLDERS = (
    "shared/html/images",
    "shared/log",
    "conf/ironic",
    "certs/ironic",
    "certs/ca",
    "templates",
    "var/lib/ironic",
)
_USERS = {"metal3": "correct horse", "second": "battery staple"}
_TEMPLATE = """#!ipxe
{% set ipxe_tls_setup = false %}
kernel {% if pxe_options.ipxe_timeout > 0 %}--timeout {{ pxe_options.ipxe_timeout }}{% endif %} \
{{ pxe_options.deployment_aki_path }} {{ pxe_options.pxe_append_params|default("", true) }} \
initrd={{ pxe_options.initrd_filename|default("deploy_ramdisk", true) }}
initrd {{ pxe_options.deployment_ari_path }}
initrd ../ipa-cacert-bundle
boot
"""
_WARNED = ("[redfish] use_swift", "[pxe] tftp_master_path")
_TO_CHANGE = {"[deploy] external_http_url", "[deploy] http_root", "[pxe] ipxe_config_template"}
"""What the page Metal3 lists, and the message at start asks for; the test sets the directory itself."""


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: pathlib.Path) -> None:
        super().__init__("127.0.0.1", timeout=_PATIENCE)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(str(self._path))


class Client:
    """Sends what Metal3's operator sends, or the proxy before the service.

    :param connect: returns a new connection.
    """

    def __init__(self, connect: Callable[[], http.client.HTTPConnection]) -> None:
        self._connect = connect

    def ask(self, method: str, path: str, body: Any = None, login: str | None = None) -> tuple[int, Any]:
        """Return status and content of an answer."""
        headers = {"X-OpenStack-Ironic-API-Version": "1.110", "Content-Type": "application/json"}
        if login is not None:
            headers["Authorization"] = f"Basic {base64.b64encode(login.encode()).decode()}"
        connection = self._connect()
        try:
            connection.request(method, path, None if body is None else json.dumps(body), headers)
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read() or b"null")
        finally:
            connection.close()


class ImageTest(testtools.TestCase):
    def setUp(self) -> None:
        super().setUp()
        self.root = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        for folder in _FOLDERS:
            (self.root / folder).mkdir(parents=True)
        users = {name: bcrypt.hashpw(word.encode(), bcrypt.gensalt(4)).decode() for name, word in _USERS.items()}
        text = "".join(f"{name}:{known}\n" for name, known in users.items())
        (self.root / "conf/ironic/htpasswd").write_text(text)
        (self.root / "conf/ironic/ipxe_config.template").write_text(_TEMPLATE)
        _context, certificate = tls.create(self.root / "certs", "127.0.0.1", None)
        (both,) = (path for path in (self.root / "certs").iterdir() if path.is_file())
        for name in ("ironic/tls.crt", "ironic/tls.key"):
            (self.root / "certs" / name).write_bytes(both.read_bytes())
        (self.root / "certs/ca/bmc.crt").write_text(certificate)
        self.certificate = self.root / "certs/ca/bmc.crt"
        self.port = ports.tcp()
        self.log = self.root / "log"

    def start(self, groups: operators_files.Groups) -> None:
        """Render a file, and start Ingot as the image does; it runs until the test ends."""
        text = operators_files.render(operators_files.merge(groups, {"api": {"port": str(self.port)}}))
        text = text.replace("/etc/ironic/", "/conf/ironic/")
        for place in ("/shared", "/conf", "/certs", "/templates", "/var"):
            for before in ("= ", "file://", ",", "sqlite:///"):
                text = text.replace(f"{before}{place}/", f"{before}{self.root}{place}/")
        (self.root / "conf/ironic/ironic.conf").write_text(text)
        programs = pathlib.Path(sys.executable).parent
        how: dict[str, Any] = {
            "cwd": self.root,
            "env": {**os.environ, "OS_DEFAULT__STATE_PATH": str(self.root / "var")},
        }
        with self.log.open("wb") as output:
            process = subprocess.Popen(
                [programs / "ingot", "--config-dir", self.root / "conf/ironic"],
                stdout=output,
                stderr=subprocess.STDOUT,
                **how,
            )
        self.addCleanup(process.wait, _PATIENCE)
        self.addCleanup(process.terminate)
        self.process = process

    def build_client(self, variant: operators_files.Groups) -> Client:
        if "unix_socket" in variant.get("api", {}):
            return Client(lambda: _UnixConnection(self.root / "shared/ironic.sock"))
        if "ssl" in variant:
            context = ssl.create_default_context(cafile=str(self.certificate))
            return Client(lambda: http.client.HTTPSConnection("127.0.0.1", self.port, context=context))
        return Client(lambda: http.client.HTTPConnection("127.0.0.1", self.port))

    def wait(self, client: Client) -> None:
        """Wait until the image's probe is answered, which needs no login."""
        until = time.monotonic() + _PATIENCE
        while time.monotonic() < until and self.process.poll() is None:
            try:
                status, _content = client.ask("GET", "/")
            except OSError:
                time.sleep(0.2)
            else:
                self.assertEqual(200, status)
                return
        raise AssertionError(f"{self.process.poll()}: {self.log.read_text()}")

    def run_variant(self, name: str) -> tuple[Client, str]:
        """Return a client, and what the log says of the configuration."""
        variant = operators_files.IRONIC_IMAGE_VARIANTS[name]
        self.start(operators_files.merge(operators_files.IRONIC_IMAGE, variant))
        client = self.build_client(variant)
        self.wait(client)
        lines = self.read_findings()
        for part in _WARNED:
            self.assertIn(part, lines)
        asked = {part for part in lines.splitlines() if ": different. " in part}
        self.assertEqual(_TO_CHANGE, {name for name in _TO_CHANGE for line in asked if f": {name}: " in line}, asked)
        self.assertEqual(len(_TO_CHANGE), len(asked), asked)
        return client, lines

    def test_what_is_asked_for_is_enough(self) -> None:
        variant = {
            "deploy": {"external_http_url": "http://198.51.100.5:6385"},
            "pxe": {"ipxe_config_template": ""},
        }
        (self.root / "shared/html/boot.ipxe").write_text("#!ipxe\nchain http://192.0.2.5:6385/boot.ipxe\n")
        self.start(operators_files.merge(operators_files.IRONIC_IMAGE, variant))
        client = self.build_client({})
        self.wait(client)
        self.enroll(client)
        self.assertNotIn(": different. ", self.read_findings())

    def read_findings(self) -> str:
        return "\n".join(line for line in self.log.read_text().splitlines() if "Configuration: " in line)

    def enroll(self, client: Client, login: str | None = None) -> dict[str, Any]:
        body = {
            **{"driver": "redfish", "boot_interface": "redfish-virtual-media", "inspect_interface": "agent"},
            **{"name": "metal3~host", "driver_info": {"redfish_address": "https://192.0.2.9"}},
        }
        status, node = client.ask("POST", "/v1/nodes", body, login)
        self.assertEqual(201, status, node)
        return dict(node)

    def test_plain(self) -> None:
        client, lines = self.run_variant("plain")
        self.assertIn("auth_strategy = noauth", lines)
        self.assertNotIn(" ERROR ", self.log.read_text())
        node = self.enroll(client)
        self.assertEqual(("autodetect", "192.0.2.5"), (node["deploy_interface"], node["conductor"]))
        listed = client.ask("GET", "/v1/drivers")[1]["drivers"]
        expected = {"fake-hardware", "idrac", "ipmi", "manual-management", "redfish"}
        self.assertEqual(expected, {one["name"] for one in listed})

    def test_tls_and_passwords(self) -> None:
        client, _lines = self.run_variant("TLS and passwords")
        self.assertEqual(401, client.ask("GET", "/v1/nodes")[0])
        for user, password in _USERS.items():
            self.assertEqual(200, client.ask("GET", "/v1/nodes", login=f"{user}:{password}")[0])
            self.assertEqual(401, client.ask("GET", "/v1/nodes", login=f"{user}:{password}x")[0])
        self.enroll(client, "metal3:correct horse")

    def test_behind_httpd(self) -> None:
        client, _lines = self.run_variant("behind httpd")
        self.assertEqual(0o666, stat.S_IMODE((self.root / "shared/ironic.sock").stat().st_mode))
        node = self.enroll(client)
        self.assertTrue(node["links"][0]["href"].startswith("https://192.0.2.5:6385/v1/nodes/"))

    def test_bifrost(self) -> None:
        database = {"database": {"connection": "sqlite:////var/lib/ironic/ironic.sqlite"}}
        self.start(operators_files.merge(operators_files.BIFROST, database))
        client = self.build_client({})
        self.wait(client)
        self.assertEqual(401, client.ask("GET", "/v1/nodes")[0])
        self.assertIn("[DEFAULT] default_resource_class", self.read_findings())
        node = self.enroll(client, "metal3:correct horse")
        self.assertEqual(("direct", "noop"), (node["deploy_interface"], node["network_interface"]))

    def test_several_hosts_with_sensors(self) -> None:
        client, lines = self.run_variant("several hosts, with sensors")
        for part in ("[json_rpc]", "RabbitMQ"):
            self.assertIn(part, lines)
        self.enroll(client)
