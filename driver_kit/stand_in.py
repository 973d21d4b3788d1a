"""A stand-in for the service: boot scripts, lookup, heartbeat and files over HTTP; a client of agents."""

import hashlib
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import parse_qs, urlsplit

import requests

from ingot.driver_kit import http_handler, patience

TOKEN = "t" * 43


@dataclass
class Service:
    """What the stand-in serves and what it received.

    ``scripts`` maps a MAC (aa-bb-...) to a boot script, None in it stands for every other machine.
    """

    files: dict[str, bytes] = field(default_factory=lambda: {"/kernel": b"kernel", "/initrd": b"initrd"})
    scripts: dict[str | None, str] = field(default_factory=dict)
    node: dict[str, Any] = field(default_factory=dict)
    heartbeat_timeout: float = 2.0
    api_version: str = "1.68"
    token: str = TOKEN
    lookup_statuses: list[int] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)
    heartbeats: list[dict[str, Any]] = field(default_factory=list)
    url: str = ""

    def start(self) -> None:
        handler = type("Handler", (_Handler,), {"service": self})
        self._server = _Server(("127.0.0.1", 0), handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self.scripts.setdefault(None, self.agent_script())
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def agent_script(self) -> str:
        return (
            "#!ipxe\n"
            f"kernel {self.url}/kernel ipa-api-url={self.url} BOOTIF=${{mac}} ipa-debug=1 initrd=initrd\n"
            f"initrd {self.url}/initrd\n"
            "boot\n"
        )

    def serve_image(self, content: bytes, name: str = "image.raw") -> dict[str, Any]:
        """Serve an image and return the image_info that names it."""
        self.files[f"/{name}"] = content
        return {
            "id": name,
            "urls": [f"{self.url}/{name}"],
            "disk_format": "raw",
            "container_format": "bare",
            "os_hash_algo": "sha256",
            "os_hash_value": hashlib.sha256(content).hexdigest(),
        }

    def wait_for_heartbeat(self, after: int = 0, timeout: float = 60.0) -> dict[str, Any]:
        """Return the newest heartbeat once there are more than ``after``."""
        wait_until(lambda: len(self.heartbeats) > after, timeout, "heartbeat")
        return self.heartbeats[-1]

    def agent(self) -> "AgentClient":
        """Return a client of the agent that sent the newest heartbeat."""
        return AgentClient(self.wait_for_heartbeat())


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Stay silent: machines that lose their power do not say good-bye."""


class _Handler(http_handler.Handler):
    service: Service

    def do_GET(self) -> None:
        url = urlsplit(self.path)
        self.service.requests.append(f"{self.command} {self.path}")
        if url.path == "/":
            self.answer(200, {"default_version": {"version": self.service.api_version}})
        elif url.path == "/v1/lookup":
            self._lookup(parse_qs(url.query))
        elif url.path.startswith("/boot/"):
            mac = url.path.rpartition("/")[2]
            self.answer(200, self.service.scripts.get(mac, self.service.scripts[None]).encode())
        elif url.path in self.service.files:
            self.answer(200, self.service.files[url.path])
        else:
            self.answer(404, {"error": "not here"})

    do_HEAD = do_GET

    def do_POST(self) -> None:
        body = self.body()
        self.service.requests.append(f"POST {self.path}")
        self.service.heartbeats.append(dict(body, node=self.path.rpartition("/")[2]))
        self.answer(202)

    def _lookup(self, query: dict[str, list[str]]) -> None:
        status = self.service.lookup_statuses.pop(0) if self.service.lookup_statuses else 200
        config = {"heartbeat_timeout": self.service.heartbeat_timeout, "agent_token": self.service.token}
        node = {"uuid": f"node-{query['addresses'][0]}", "properties": {}, **self.service.node}
        self.answer(status, {"node": node, "config": config})


class AgentClient:
    """Commands an agent as the service does: its certificate verified, its token in the query."""

    def __init__(self, heartbeat: dict[str, Any], token: str = TOKEN) -> None:
        self.url = heartbeat["callback_url"]
        self._params = {"agent_token": token}
        self._directory = tempfile.TemporaryDirectory()
        certificate = Path(self._directory.name, "agent.pem")
        certificate.write_text(heartbeat.get("agent_verify_ca") or "")
        self._verify = str(certificate)

    def close(self) -> None:
        self._directory.cleanup()

    def get(self, path: str) -> requests.Response:
        return requests.get(self.url + path, params=self._params, verify=self._verify, timeout=patience.seconds(20))

    def post(self, name: str, params: dict[str, Any] | None = None, wait: bool = True) -> requests.Response:
        return self.send({"name": name, "params": params or {}}, wait)

    def send(self, body: Any, wait: bool = True) -> requests.Response:
        """Post whatever there is as a command."""
        query = {**self._params, "wait": str(wait).lower()}
        url, limit = f"{self.url}/v1/commands/", patience.seconds(30)
        return requests.post(url, params=query, json=body, verify=self._verify, timeout=limit)

    def run(self, name: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
        """Run a command to its end."""
        answer: dict[str, Any] = self.post(name, params).json()
        return answer

    def ask_steps(self, kind: str) -> dict[str, Any]:
        """Ask for the clean, deploy or service steps; the answered command."""
        return self.run(f"{kind}.get_{kind}_steps", {"node": {}, "ports": []})

    def step(self, kind: str, step: str, interface: str = "deploy", **args: Any) -> dict[str, Any]:
        """Execute a clean, deploy or service step to its end."""
        requested = {"step": step, "interface": interface, "priority": 0, "args": args}
        return self.run(f"{kind}.execute_{kind}_step", {"step": requested, "node": {}, "ports": []})


def wait_until(condition: Callable[[], bool], timeout: float, what: str) -> None:
    """Wait for a condition.

    :param timeout: seconds on a quiet machine.
    :raises AssertionError: it does not hold in that time.
    """
    limit = patience.seconds(timeout)
    deadline = time.monotonic() + limit
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"no {what} within {limit:.0f} s")
        time.sleep(0.02)
