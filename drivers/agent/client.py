"""The agent's HTTP API: commands are posted, and read again at its heartbeats.

A request takes a thread for one attempt only, so that unresponsive machines do not take the threads of the others;
a caller that may try again does so in a later call.

The protocol, as measured from the real agent: ``POST /v1/commands/?wait=...&agent_token=...`` with ``name`` and
``params`` answers 200 with the command even if that failed, 409 while another one runs; ``GET`` of the same path lists
all commands since the agent's start.
"""

import ssl
import urllib.parse
from collections.abc import Callable, Iterator, Mapping
from typing import TypeVar

import requests
from oslo_config import cfg

from ingot.common import errors, masking
from ingot.common.json_types import Json
from ingot.db import models
from ingot.drivers.agent import answers, connection
from ingot.drivers.interfaces.task import Task

Answer = TypeVar("Answer")

RUNNING, SUCCEEDED = "RUNNING", "SUCCEEDED"

_NODE_FIELDS = (
    *("id", "uuid", "name", "driver", "resource_class", "conductor_group", "instance_uuid", "instance_info"),
    *("provision_state", "target_provision_state", "properties", "extra", "driver_info", "driver_internal_info"),
    *("raid_config", "target_raid_config", "network_data", "boot_mode", "secure_boot"),
)
_PORT_FIELDS = (
    *("uuid", "name", "address", "pxe_enabled", "physical_network", "local_link_connection", "is_smartnic"),
    *("extra", "internal_info"),
)
_ERASE_OPTIONS = {
    "agent_continue_if_secure_erase_failed": "continue_if_disk_secure_erase_fails",
    "agent_enable_ata_secure_erase": "enable_ata_secure_erase",
    "agent_enable_nvme_secure_erase": "enable_nvme_secure_erase",
    "agent_erase_devices_iterations": "shred_random_overwrite_iterations",
    "agent_erase_devices_zeroize": "shred_final_overwrite_with_zeros",
    "agent_erase_skip_read_only": "erase_skip_read_only",
    "disk_erasure_concurrency": "disk_erasure_concurrency",
}
"""Key of the node's driver_internal_info, as agents read it -> option of [deploy]: how disks are to be erased.

They are read for each command and not kept with the node, so a changed option holds from the next step on."""

_COMMANDS = "/v1/commands/"


def node_for_agent(node: models.Node, conf: cfg.ConfigOpts) -> Json:
    """Return the node's record as commands carry it.

    Secrets are masked, the plan of the flow is left out, and the operator's options that agents look for are in it.
    """
    record = {name: getattr(node, name) for name in _NODE_FIELDS}
    kept = {key: value for key, value in node.driver_internal_info.items() if not key.endswith("_steps")}
    record["driver_internal_info"] = kept | {key: conf.deploy[option] for key, option in _ERASE_OPTIONS.items()}
    masked: Json = masking.mask(record)
    return masked


def port_for_agent(port: models.Port) -> Json:
    """Return a port's record as commands carry it."""
    return {name: getattr(port, name) for name in _PORT_FIELDS}


class CommandNotFound(errors.AgentError):
    """The agent answered 404: it has no such command or extension."""


class AgentClient:
    """A client of the agent of a node.

    :raises AgentUnreachable: from all methods: no agent is known, or it does not answer; AgentRefused, if its machine
        says at once that it is not there.
    :raises AgentError: from all methods: it refuses; the message names the command and the agent's answer, never the
        token.
    """

    def __init__(self, task: Task) -> None:
        node = task.node
        self._confirm_lock = task.confirm_lock
        self._options = task.conf.agent
        self._url: str = (node.agent_url or "").rstrip("/")
        self._token: str = node.agent_token or ""
        self._certificate: str | None = node.agent_verify_ca
        self._where = urllib.parse.urlsplit(self._url).netloc or "an unknown address"

    def start(self, name: str, params: Mapping[str, object]) -> answers.Command:
        """Start a command; it runs on after the answer.

        :raises AgentBusy: another one runs.
        """
        return self._post(name, params, wait=False)

    def ask(self, name: str, params: Mapping[str, object]) -> object:
        """Run a quick command that changes nothing, or nothing more when repeated; return its result.

        :raises CommandNotFound: the agent does not know the command.
        """
        command = self._post(name, params, wait=True)
        if command["command_status"] != SUCCEEDED:
            raise errors.AgentError(what=self._describe(f"command {name}"), reason=error_text(command))
        return command["command_result"]

    def ask_for(self, name: str, params: Mapping[str, object], read: Callable[[object], Answer]) -> Answer:
        """Run a command as :meth:`ask` does, and return what ``read`` makes of its result.

        :param read: raises Malformed, which says what is wrong with the result.
        """
        return self._parse(f"command {name}", self.ask(name, params), read)

    def commands(self) -> list[answers.Command]:
        """Return all commands since the agent started, oldest first."""
        label = "request for its commands"
        return self._parse(label, self._request(label, "GET"), answers.read_commands)

    def command(self, ident: str) -> answers.Command | None:
        """Return a command by its id; None if the agent, perhaps restarted, does not know it."""
        return next((command for command in self.commands() if command["id"] == ident), None)

    def _post(self, name: str, params: Mapping[str, object], wait: bool) -> answers.Command:
        self._confirm_lock()
        label, body = f"command {name}", {"name": name, "params": params}
        return self._parse(label, self._request(label, "POST", body, wait), answers.read_command)

    def _parse(self, label: str, answer: object, read: Callable[[object], Answer]) -> Answer:
        try:
            return read(answer)
        except answers.Malformed as exc:
            raise errors.AgentError(what=self._describe(label), reason=str(exc)) from None

    def _describe(self, label: str) -> str:
        return f"Agent {label} at {self._where}"

    def _request(self, label: str, method: str, body: Json | None = None, wait: bool | None = None) -> object:
        what = self._describe(label)
        if not self._url:
            raise errors.AgentUnreachable(what=what, reason="no agent has called for this node")
        if self._options.require_tls and not self._url.startswith("https://"):
            raise errors.AgentError(what=what, reason="it does not use TLS, which [agent] require_tls asks for")
        try:
            response = self._send(method, body, wait)
        except requests.RequestException as exc:
            # Without a cause: it has the URL, and with it the token.
            unreachable = errors.AgentRefused if _is_refused(exc) else errors.AgentUnreachable
            raise unreachable(what=what, reason=self._reason(exc)) from None
        if not response.ok:
            error_class = _ERRORS.get(response.status_code, errors.AgentError)
            raise error_class(what=what, reason=f"HTTP {response.status_code}: {_fault_text(response)}")
        try:
            answer: object = response.json()
        except ValueError:
            raise errors.AgentError(what=what, reason="its answer is not JSON") from None
        return answer

    def _send(self, method: str, body: Json | None, wait: bool | None) -> requests.Response:
        """Send a request, and once more if the connection broke and that does no harm: all but a start of a command."""
        query = {"agent_token": self._token} | ({} if wait is None else {"wait": str(wait).lower()})

        def attempt() -> requests.Response:
            return connection.open_session(self._url, self._certificate).request(
                method,
                self._url + _COMMANDS,
                params=query,
                json=body,
                timeout=(self._options.connect_timeout, self._options.command_timeout),
                allow_redirects=False,
            )

        try:
            return attempt()
        except requests.ConnectionError as exc:
            if wait is False or not _is_dropped(exc):
                raise
            return attempt()

    def _reason(self, exc: requests.RequestException) -> str:
        *_outer, root = _causes(exc)
        text = connection.mask_token(str(root) or type(root).__name__)
        return text.replace(self._token, masking.MASK) if self._token else text


_ERRORS: dict[int, type[errors.AgentError]] = {404: CommandNotFound, 409: errors.AgentBusy}


def _fault_text(response: requests.Response) -> str:
    try:
        text = response.json()["faultstring"]
    except (ValueError, KeyError, TypeError):
        text = response.text[:200] or response.reason
    return connection.mask_token(str(text))


def _is_dropped(exc: requests.ConnectionError) -> bool:
    """Return whether an open connection broke at once, as a kept one does that the agent closes just then."""
    return any(isinstance(cause, ConnectionResetError | BrokenPipeError) for cause in _causes(exc))


def _is_refused(exc: requests.RequestException) -> bool:
    """Return whether the machine answered, but not the agent whose address and certificate are known.

    A connection that is taken and closed may be that agent, or something on the way to it.
    """
    return any(isinstance(cause, ConnectionRefusedError | ssl.SSLCertVerificationError) for cause in _causes(exc))


def _causes(exc: BaseException) -> Iterator[BaseException]:
    """Yield an exception, what caused it, what caused that."""
    cause: BaseException | None = exc
    while cause is not None:
        yield cause
        cause = cause.__cause__ or cause.__context__


def error_text(command: answers.Command) -> str:
    """Return what an agent says about a command that failed."""
    error = command["command_error"]
    if isinstance(error, Mapping):
        error_type, details = error.get("type"), error.get("details") or error.get("message")
        return f"{error_type}: {details}" if error_type else str(details)
    return str(error or f"it ended as {command['command_status']}")
