"""The agent's way to the service: version, lookup and heartbeat, as ironic-python-agent sends them."""

from dataclasses import dataclass, field
from typing import Any

import requests

TIMEOUT = 30.0
LOOKUP_VERSION = (1, 62)
HEARTBEAT_VERSION = (1, 68)
_VERSION_HEADER = "X-OpenStack-Ironic-API-Version"


class ServiceError(Exception):
    """The service refused, or could not be reached (``status`` 0)."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


@dataclass
class ServiceClient:
    """A blocking client of one service.

    :param verify: what requests takes: bool or a file of certificates.
    :ivar version: the API version that the service is taken to have; no request asks for a newer one.
    """

    url: str
    verify: bool | str = True
    version: tuple[int, ...] = field(default=HEARTBEAT_VERSION, init=False)
    _closed: bool = field(default=False, init=False)
    _session: requests.Session = field(default_factory=requests.Session, init=False, repr=False)

    def __post_init__(self) -> None:
        # Proxies and CA bundles of the rack's environment belong to the rack, not to its machines.
        self._session.trust_env = False
        self._session.headers.update({"Accept": "application/json", "Content-Type": "application/json"})

    def close(self) -> None:
        """Stop sending, even what waits for a thread: a machine that is off says nothing."""
        self._closed = True
        self._session.close()

    def api_version(self) -> tuple[int, ...]:
        """Return the newest API version of the service."""
        answer = self._request("GET", "/", {200})
        try:
            return tuple(int(part) for part in answer.json()["default_version"]["version"].split("."))
        except (KeyError, TypeError, ValueError) as error:
            raise ServiceError(answer.status_code, f"GET {self.url}/ has no default_version.version") from error

    def continue_inspection(self, url: str, found: dict[str, Any]) -> str | None:
        """Tell what was found, at a URL of its own; return the node's UUID if the answer has it."""
        answer = self._request("POST", url, {202}, json=found)
        body = answer.json()
        return body.get("uuid") if isinstance(body, dict) else None

    def lookup(self, macs: tuple[str, ...], node: str | None = None) -> dict[str, Any]:
        """Return the node and the agent's configuration."""
        params = {"addresses": ",".join(macs)} | ({"node_uuid": node} if node else {})
        answer = self._request("GET", "/v1/lookup", {200}, version=LOOKUP_VERSION, params=params)
        found: dict[str, Any] = answer.json()
        return found

    def heartbeat(self, node: str, body: dict[str, Any]) -> None:
        """Tell the service that the agent is there."""
        self._request("POST", f"/v1/heartbeat/{node}", {202}, version=HEARTBEAT_VERSION, json=body)

    def _request(
        self, method: str, path: str, expected: set[int], version: tuple[int, ...] | None = None, **kwargs: Any
    ) -> requests.Response:
        """Send a request to a path of the service, or to a URL."""
        headers = {_VERSION_HEADER: ".".join(map(str, min(version, self.version)))} if version else {}
        url = self.url + path if path.startswith("/") else path
        if self._closed:
            raise ServiceError(0, f"{method} {path}: the machine is off")
        try:
            answer = self._session.request(method, url, headers=headers, timeout=TIMEOUT, verify=self.verify, **kwargs)
        except requests.RequestException as error:
            raise ServiceError(0, f"{method} {path}: {type(error).__name__}") from error
        if answer.status_code not in expected:
            raise ServiceError(answer.status_code, f"{method} {path}: HTTP {answer.status_code} {answer.text[:200]}")
        return answer
