"""The agent's HTTP API: commands are posted, and looked up again at its heartbeats.

A request takes a thread for one attempt only, so that machines that have gone silent do not take the threads of those
that have not; who may ask again does so later, by a due time.

The protocol, as measured from the real agent: ``POST /v1/commands/?wait=...&agent_token=...`` with ``name`` and
``params`` answers 200 with the command even if that failed, 409 while another one runs; ``GET`` of the same path lists
all commands since the agent's start.
"""

import dataclasses
import ssl
import urllib.parse
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

import requests
from oslo_config import cfg

from ingot.common import errors, masking
from ingot.db import records
from ingot.drivers.agent import answers, connection, erasing
from ingot.drivers.task import Task

Answer = TypeVar("Answer")

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


_COMMANDS = "/v1/commands/"
_CONNECTIONS = connection.Connections()


def node_for_agent(node: records.Record, conf: cfg.ConfigOpts) -> dict[str, Any]:
    """The node's record as commands carry it: secrets masked, without the plan of the flow, with the operator's options
    that agents look for in it."""
    record = {name: getattr(node, name) for name in _NODE_FIELDS}
    record["driver_internal_info"] = {
        key: value for key, value in node.driver_internal_info.items() if not key.endswith("_steps")
    } | erasing.wishes(conf)
    masked: dict[str, Any] = masking.mask(record)
    return masked


def port_for_agent(port: records.Record) -> dict[str, Any]:
    """A port's record as commands carry it."""
    return {name: getattr(port, name) for name in _PORT_FIELDS}


def _as_it_is(result: Any) -> Any:
    return result


class NotThere(errors.AgentError):
    """The agent answered 404: it has no such command or extension."""


@dataclasses.dataclass(frozen=True, slots=True)
class _Request:
    """:param repeatable: whether it does no harm when the agent gets it twice."""

    label: str
    method: str = "GET"
    body: Mapping[str, Any] | None = None
    wait: bool | None = None
    repeatable: bool = True

    def query(self, token: str) -> dict[str, str]:
        return {"agent_token": token} | ({} if self.wait is None else {"wait": str(self.wait).lower()})


class AgentClient:
    """One conversation with the agent of a node.

    :raises AgentUnreachable: from all methods: no agent is known, or it does not answer; AgentRefused, if its machine
        says at once that it is not there.
    :raises AgentError: from all methods: it refuses; the message names the command and what it said, never the token.
    """

    def __init__(self, task: Task) -> None:
        node = task.node
        self._confirm_lock = task.confirm_lock
        self._options = task.conf.agent
        self._url: str = (node.agent_url or "").rstrip("/")
        self._token: str = node.agent_token or ""
        self._certificate: str | None = node.agent_verify_ca
        self._where = urllib.parse.urlsplit(self._url).netloc or "an unknown address"

    def start(self, name: str, params: Mapping[str, Any]) -> answers.Command:
        """Starts a command; it runs on after the answer.

        :raises AgentBusy: another one runs.
        """
        return self._post(name, params, wait=False)

    def ask(self, name: str, params: Mapping[str, Any], read: Callable[[Any], Any] = _as_it_is) -> Any:
        """Runs a quick command that changes nothing, or nothing more when repeated; returns its result.

        :param read: makes of the agent's result what is returned; Malformed says what is wrong with it.
        :raises NotThere: the agent does not know the command.
        """
        command = self._post(name, params, wait=True)
        if command["command_status"] != SUCCEEDED:
            raise errors.AgentError(what=self._what(f"command {name}"), reason=complaint(command))
        return self._read(f"command {name}", command["command_result"], read)

    def commands(self) -> list[answers.Command]:
        """All commands since the agent started, oldest first."""
        label = "request for its commands"
        return self._read(label, self._answer(_Request(label)), answers.commands)

    def command(self, ident: str) -> answers.Command | None:
        """A command by its id; None if the agent, perhaps started anew, does not know it."""
        return next((command for command in self.commands() if command["id"] == ident), None)

    def _post(self, name: str, params: Mapping[str, Any], wait: bool) -> answers.Command:
        self._confirm_lock()
        request = _Request(f"command {name}", "POST", body={"name": name, "params": params}, wait=wait, repeatable=wait)
        return self._read(request.label, self._answer(request), answers.command)

    def _read(self, label: str, found: Any, read: Callable[[Any], Answer]) -> Answer:
        try:
            return read(found)
        except answers.Malformed as exc:
            raise errors.AgentError(what=self._what(label), reason=str(exc)) from None

    def _what(self, label: str) -> str:
        return f"Agent {label} at {self._where}"

    def _answer(self, request: _Request) -> Any:
        what = self._what(request.label)
        if not self._url:
            raise errors.AgentUnreachable(what=what, reason="no agent has called for this node")
        if self._options.require_tls and not self._url.startswith("https://"):
            raise errors.AgentError(what=what, reason="it does not use TLS, which [agent] require_tls asks for")
        response = self._sent(request)
        if not response.ok:
            kind = _REFUSALS.get(response.status_code, errors.AgentError)
            raise kind(what=what, reason=f"HTTP {response.status_code}: {self._said(response)}")
        try:
            return response.json()
        except ValueError:
            raise errors.AgentError(what=what, reason="its answer is not JSON") from None

    def _sent(self, request: _Request) -> requests.Response:
        try:
            try:
                return self._send(request)
            except requests.ConnectionError as exc:
                if not (request.repeatable and _was_hung_up(exc)):
                    raise
                return self._send(request)
        except requests.RequestException as exc:
            # Without a cause: it has the URL, and with it the token.
            kind = errors.AgentRefused if _was_refused(exc) else errors.AgentUnreachable
            raise kind(what=self._what(request.label), reason=self._reason(exc)) from None

    def _send(self, request: _Request) -> requests.Response:
        return _CONNECTIONS.to(self._url, self._certificate).request(
            request.method,
            self._url + _COMMANDS,
            params=request.query(self._token),
            json=request.body,
            timeout=(self._options.connect_timeout, self._options.command_timeout),
            allow_redirects=False,
        )

    def _reason(self, exc: requests.RequestException) -> str:
        *_outer, root = _causes(exc)
        text = connection.without_token(str(root) or type(root).__name__)
        return text.replace(self._token, masking.MASK) if self._token else text

    def _said(self, response: requests.Response) -> str:
        try:
            said = response.json()["faultstring"]
        except (ValueError, KeyError, TypeError):
            said = response.text[:200] or response.reason
        return connection.without_token(str(said))


_REFUSALS: dict[int, type[errors.AgentError]] = {404: NotThere, 409: errors.AgentBusy}


def _was_hung_up(exc: requests.ConnectionError) -> bool:
    """Whether a connection that was open broke at once, as a kept one does that the agent closes just then."""
    return any(isinstance(cause, ConnectionResetError | BrokenPipeError) for cause in _causes(exc))


def _was_refused(exc: requests.RequestException) -> bool:
    """Whether the machine answered, but not the agent whose address and certificate are known. Who takes the connection
    and hangs up may be that agent, or something on the way to it."""
    return any(isinstance(cause, ConnectionRefusedError | ssl.SSLCertVerificationError) for cause in _causes(exc))


def _causes(exc: BaseException) -> Iterator[BaseException]:
    """An exception, what caused it, what caused that."""
    cause: BaseException | None = exc
    while cause is not None:
        yield cause
        cause = cause.__cause__ or cause.__context__


def complaint(command: answers.Command) -> str:
    """What an agent says about a command that failed."""
    error = command.get("command_error")
    if isinstance(error, Mapping):
        kind, details = error.get("type"), error.get("details") or error.get("message")
        return f"{kind}: {details}" if kind else str(details)
    return str(error or f"it ended as {command['command_status']}")
