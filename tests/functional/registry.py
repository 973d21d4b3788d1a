"""Debian's docker-registry, a registry of containers that is no part of this project, in a process of its own."""

import base64
import json
import pathlib
import ssl
import subprocess
import time
import urllib.parse
from typing import Any

import bcrypt
import fixtures
import requests
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, utils

from ingot.rack import ports
from tests import http_handler, patience
from tests.unit.drivers import http_agent
from tests.unit.drivers.file_server import HandledServer
from tests.unit.drivers.registry import digest

PROGRAM = "docker-registry"
USER, PASSWORD = "ada", "correct:horse"
_MANIFEST = "application/vnd.oci.image.manifest.v1+json"
_INDEX = "application/vnd.oci.image.index.v1+json"
_EMPTY = "application/vnd.oci.empty.v1+json"
_CONFIG = b"{}"


class Registry(fixtures.Fixture):
    """A registry with nothing in it.

    :param login: what it asks for: nothing, ``basic`` or ``bearer``, a token of the server that :class:`_Tokens` is.
    :param tls: whether it has a certificate, which ``ca_file`` verifies.
    :ivar host: its name and port, as ``oci://`` has them.
    """

    def __init__(self, login: str = "", tls: bool = False) -> None:
        super().__init__()
        self._login = login
        self._tls = tls

    def _setUp(self) -> None:
        self.directory = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        certificate, key = http_agent.certificate()
        self.ca_file = self.directory / "ca.pem"
        self.ca_file.write_text(certificate)
        (self.directory / "key.pem").write_text(key)
        port = ports.tcp()
        self.host = f"127.0.0.1:{port}"
        self.url = f"{'https' if self._tls else 'http'}://{self.host}"
        self.tokens = self.useFixture(_Tokens(certificate, key)) if self._login == "bearer" else None
        config = self.directory / "config.yml"
        config.write_text(json.dumps(self._configuration(port)))  # JSON is YAML, too
        self.log = self.directory / "registry.log"
        with self.log.open("wb") as output:
            process = subprocess.Popen([PROGRAM, "serve", str(config)], stdout=output, stderr=output)
        self.addCleanup(process.wait)
        self.addCleanup(process.terminate)
        self._wait(process)

    def _configuration(self, port: int) -> dict[str, Any]:
        auth: dict[str, Any] = {}
        if self._login == "basic":
            hashed = bcrypt.hashpw(PASSWORD.encode(), bcrypt.gensalt(4)).decode()
            (self.directory / "users").write_text(f"{USER}:{hashed}\n")
            auth = {"auth": {"htpasswd": {"realm": "registry", "path": str(self.directory / "users")}}}
        if self.tokens:
            about = {"service": "registry", "issuer": "tests", "rootcertbundle": str(self.ca_file)}
            auth = {"auth": {"token": {"realm": f"{self.tokens.url}/token", **about}}}
        files = {"certificate": str(self.ca_file), "key": str(self.directory / "key.pem")}
        return {
            "version": "0.1",
            "log": {"level": "info"},
            "storage": {"filesystem": {"rootdirectory": str(self.directory / "data")}},
            "http": {"addr": f"127.0.0.1:{port}", **({"tls": files} if self._tls else {})},
            **auth,
        }

    def _wait(self, process: "subprocess.Popen[bytes]") -> None:
        until = time.monotonic() + patience.seconds(60)
        while True:
            try:
                requests.get(f"{self.url}/v2/", verify=str(self.ca_file), timeout=5)
                return
            except requests.ConnectionError:
                if time.monotonic() > until or process.poll() is not None:
                    raise AssertionError(self.log.read_text()) from None
                time.sleep(0.05)

    # What a client of it does

    def push(self, name: str, tag: str, *images: tuple[bytes, dict[str, Any]]) -> None:
        """Push disk images as artifacts: of several an index is made, whose entries have what comes with each."""
        entries = [{**self._push_image(name, image), **about} for image, about in images]
        index = {"schemaVersion": 2, "mediaType": _INDEX, "manifests": entries}
        self._put(f"{name}/manifests/{tag}", json.dumps(index).encode(), _INDEX)

    def _push_image(self, name: str, image: bytes) -> dict[str, Any]:
        layer, config = self._push_blob(name, image), self._push_blob(name, _CONFIG)
        manifest = {
            "schemaVersion": 2,
            "mediaType": _MANIFEST,
            "config": {"mediaType": _EMPTY, **config},
            "layers": [{"mediaType": "application/octet-stream", **layer}],
        }
        content = json.dumps(manifest).encode()
        self._put(f"{name}/manifests/{digest(content)}", content, _MANIFEST)
        return {"mediaType": _MANIFEST, "digest": digest(content), "size": len(content)}

    def _push_blob(self, name: str, content: bytes) -> dict[str, Any]:
        begun = self._ask("POST", f"{self.url}/v2/{name}/blobs/uploads/", name)
        place = urllib.parse.urljoin(self.url, begun.headers["Location"])
        sign = "&" if "?" in place else "?"
        url = f"{place}{sign}digest={urllib.parse.quote(digest(content))}"
        self._ask("PUT", url, name, data=content, headers={"Content-Type": "application/octet-stream"})
        return {"digest": digest(content), "size": len(content)}

    def _put(self, path: str, content: bytes, media: str) -> None:
        name = path.partition("/manifests/")[0]
        self._ask("PUT", f"{self.url}/v2/{path}", name, data=content, headers={"Content-Type": media})

    def _ask(self, method: str, url: str, name: str, **more: Any) -> requests.Response:
        headers = more.pop("headers", {})
        if self.tokens:
            headers["Authorization"] = f"Bearer {self.tokens.issue(name, ['pull', 'push'])}"
        auth = (USER, PASSWORD) if self._login == "basic" else None
        answer = requests.request(
            method, url, auth=auth, headers=headers, verify=str(self.ca_file), timeout=patience.seconds(60), **more
        )
        answer.raise_for_status()
        return answer


class _Tokens(fixtures.Fixture):
    """Gives tokens to clients with the user and password of this module, and only for what was asked.

    :ivar asked: the parameters of each request.
    """

    def __init__(self, certificate: str, key: str) -> None:
        super().__init__()
        loaded = serialization.load_pem_private_key(key.encode(), None)
        assert isinstance(loaded, ec.EllipticCurvePrivateKey)
        self._key = loaded
        self._certificate = ssl.PEM_cert_to_DER_cert(certificate)
        self.asked: list[dict[str, list[str]]] = []

    def _setUp(self) -> None:
        tokens = self

        class Handler(http_handler.Handler):
            def do_GET(self) -> None:
                asked = urllib.parse.parse_qs(urllib.parse.urlsplit(self.path).query)
                tokens.asked.append(asked)
                basic = f"Basic {base64.b64encode(f'{USER}:{PASSWORD}'.encode()).decode()}"
                if self.headers["Authorization"] != basic:
                    return self.answer(401, {"details": "who are you?"})
                _kind, name, actions = asked["scope"][0].split(":")
                return self.answer(200, {"token": tokens.issue(name, actions.split(",")), "expires_in": 60})

        server = HandledServer(Handler)
        self.addCleanup(server.stop)
        self.url = server.url

    def issue(self, name: str, actions: list[str]) -> str:
        """Return a token as the registry's documentation describes them."""
        now = int(time.time())
        chain = [base64.b64encode(self._certificate).decode()]
        access = [{"type": "repository", "name": name, "actions": actions}]
        claims = {"iss": "tests", "sub": USER, "aud": "registry", "access": access, "jti": str(now)}
        times = {"iat": now, "nbf": now - 5, "exp": now + 60}
        parts = [{"typ": "JWT", "alg": "ES256", "x5c": chain}, {**claims, **times}]
        text = ".".join(_encode(json.dumps(part).encode()) for part in parts)
        r, s = utils.decode_dss_signature(self._key.sign(text.encode(), ec.ECDSA(hashes.SHA256())))
        return f"{text}.{_encode(r.to_bytes(32, 'big') + s.to_bytes(32, 'big'))}"


def _encode(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()
