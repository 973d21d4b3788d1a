"""The agent's HTTP API: commands are posted, and looked up again at its heartbeats.

The protocol, as measured from the real agent: ``POST /v1/commands/?wait=...&agent_token=...`` with ``name`` and
``params`` answers 200 with the command even if that failed, 409 while another one runs; ``GET`` of the same path lists
all commands since the agent's start.
"""

import urllib.parse
from collections.abc import Mapping
from typing import Any

import requests
from oslo_config import cfg

from ingot.common import errors, masking
from ingot.db import records
from ingot.drivers.agent import connection

Command = dict[str, Any]

RUNNING, SUCCEEDED = "RUNNING", "SUCCEEDED"

_NODE_FIELDS = (
    "id",
    "uuid",
    "name",
    "driver",
    "resource_class",
    "conductor_group",
    "provision_state",
    "target_provision_state",
    "instance_uuid",
    "properties",
    "extra",
    "driver_info",
    "driver_internal_info",
    "instance_info",
    "raid_config",
    "target_raid_config",
    "network_data",
    "boot_mode",
    "secure_boot",
)
_PORT_FIELDS = (
    "uuid",
    "name",
    "address",
    "pxe_enabled",
    "physical_network",
    "local_link_connection",
    "is_smartnic",
    "extra",
    "internal_info",
)


_CONNECTIONS = connection.Connections()


def node_for_agent(node: records.Record) -> dict[str, Any]:
    """The node's record as commands carry it, with secrets masked and without the plan of the flow."""
    record = {name: getattr(node, name) for name in _NODE_FIELDS}
    record["driver_internal_info"] = {
        key: value for key, value in node.driver_internal_info.items() if not key.endswith("_steps")
    }
    masked: dict[str, Any] = masking.mask(record)
    return masked


def port_for_agent(port: records.Record) -> dict[str, Any]:
    """A port's record as commands carry it."""
    return {name: getattr(port, name) for name in _PORT_FIELDS}


class AgentClient:
    """One conversation with the agent of a node.

    :raises AgentUnreachable: from all methods: no agent is known, or it does not answer.
    :raises AgentError: from all methods: it refuses; the message names the command and what it said, never the token.
    """

    def __init__(self, conf: cfg.ConfigOpts, node: records.Record) -> None:
        self._options = conf.agent
        self._url: str = (node.agent_url or "").rstrip("/")
        self._token: str = node.agent_token or ""
        self._certificate: str | None = node.agent_verify_ca
        self._where = urllib.parse.urlsplit(self._url).netloc or "an unknown address"

    def start(self, name: str, params: Mapping[str, Any]) -> Command:
        """Starts a command; it runs on after the answer.

        :raises AgentBusy: another one runs.
        """
        return self._post(name, params, wait=False)

    def ask(self, name: str, params: Mapping[str, Any]) -> Any:
        """Runs a quick command that changes nothing, or nothing more when repeated; returns its result."""
        command = self._post(name, params, wait=True)
        if command["command_status"] != SUCCEEDED:
            raise errors.AgentError(what=self._what(name), reason=complaint(command))
        return command["command_result"]

    def commands(self) -> list[Command]:
        """All commands since the agent started, oldest first."""
        answer = self._request("GET", "/v1/commands/", "list of commands", repeatable=True)
        listed: list[Command] = answer["commands"]
        return listed

    def command(self, ident: str) -> Command | None:
        """A command by its id; None if the agent, perhaps started anew, does not know it."""
        path = f"/v1/commands/{ident}"
        return self._request("GET", path, f"command {ident}", repeatable=True, missing_is_none=True)

    def _post(self, name: str, params: Mapping[str, Any], wait: bool) -> Command:
        body = {"name": name, "params": params}
        answer = self._request("POST", "/v1/commands/", name, body=body, wait=wait, repeatable=wait)
        command: Command = answer
        return command

    def _what(self, name: str) -> str:
        return f"Agent command {name} at {self._where}"

    def _request(
        self,
        method: str,
        path: str,
        name: str,
        *,
        body: Mapping[str, Any] | None = None,
        wait: bool | None = None,
        repeatable: bool,
        missing_is_none: bool = False,
    ) -> Any:
        self._check_url(name)
        query = {"agent_token": self._token} | ({} if wait is None else {"wait": str(wait).lower()})
        response = self._sent(method, path, name, query, body, repeatable)
        if missing_is_none and response.status_code == requests.codes.not_found:
            return None
        if response.status_code == requests.codes.conflict:
            raise errors.AgentBusy(what=self._what(name), reason=self._said(response))
        if not response.ok:
            raise errors.AgentError(
                what=self._what(name), reason=f"HTTP {response.status_code}: {self._said(response)}"
            )
        try:
            return response.json()
        except ValueError:
            raise errors.AgentError(what=self._what(name), reason="its answer is not JSON") from None

    def _check_url(self, name: str) -> None:
        if not self._url:
            raise errors.AgentUnreachable(what=self._what(name), reason="no agent has called for this node")
        if self._options.require_tls and not self._url.startswith("https://"):
            raise errors.AgentError(
                what=self._what(name), reason="it does not use TLS, which [agent] require_tls asks for"
            )

    def _sent(
        self,
        method: str,
        path: str,
        name: str,
        query: Mapping[str, str],
        body: Mapping[str, Any] | None,
        repeatable: bool,
    ) -> requests.Response:
        session = _CONNECTIONS.to(self._url, self._certificate)
        for left in reversed(range(self._options.max_command_attempts)):
            try:
                return session.request(
                    method,
                    self._url + path,
                    params=query,
                    json=body,
                    timeout=self._options.command_timeout,
                    allow_redirects=False,
                )
            except requests.RequestException as exc:
                safe = repeatable or _never_arrived(exc)
                if left and safe and not isinstance(exc, requests.exceptions.SSLError):
                    continue
                # Without a cause: it has the URL, and with it the token.
                raise errors.AgentUnreachable(what=self._what(name), reason=self._reason(exc)) from None
        raise AssertionError("max_command_attempts is at least 1")

    def _reason(self, exc: requests.RequestException) -> str:
        root: BaseException = exc
        while (deeper := root.__cause__ or root.__context__) is not None:
            root = deeper
        text = connection.without_token(str(root) or type(root).__name__)
        return text.replace(self._token, masking.MASK) if self._token else text

    def _said(self, response: requests.Response) -> str:
        try:
            said = response.json()["faultstring"]
        except (ValueError, KeyError, TypeError):
            said = response.text[:200] or response.reason
        return connection.without_token(str(said))


def _never_arrived(exc: requests.RequestException) -> bool:
    """Whether no connection was made, so that the agent cannot have got the request."""
    if isinstance(exc, requests.exceptions.ConnectTimeout):
        return True
    chain: BaseException | None = exc
    while chain is not None:
        if isinstance(chain, ConnectionRefusedError):
            return True
        chain = chain.__cause__ or chain.__context__
    return False


def complaint(command: Command) -> str:
    """What an agent says about a command that failed."""
    error = command.get("command_error")
    if isinstance(error, Mapping):
        kind, details = error.get("type"), error.get("details") or error.get("message")
        return f"{kind}: {details}" if kind else str(details)
    return str(error or f"it ended as {command['command_status']}")
