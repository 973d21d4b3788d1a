"""The agent's HTTP API: commands are posted, and read again at its heartbeats.

A request takes a thread for one attempt only, so that unresponsive machines do not take the threads of the others;
a caller that may try again does so in a later call.

The protocol, as measured from the real agent: ``POST /v1/commands/?wait=...&agent_token=...`` with ``name`` and
``params`` answers 200 with the command even if that failed, 409 while another one runs; ``GET`` of the same path lists
all commands since the agent's start.
"""

import functools
import json
import logging
import os
import ssl
import urllib.parse
from collections.abc import Callable, Iterator, Mapping
from typing import TypeVar

import urllib3
from oslo_utils import strutils
from requests import codes, utils

from ingot.common import errors, fetching, masking
from ingot.common.json_types import Json
from ingot.drivers.agent import answers
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
_HEADERS = {**utils.default_headers(), "Accept-Encoding": "identity"}  # what is packed may be of any size when unpacked
_LONGEST_ANSWER = 64 * 1024**2  # bytes: archives of logs are the longest

_DROPPED = (ConnectionResetError, BrokenPipeError)
"""Causes of an open connection that breaks at once, as a kept one does that the agent closes just then."""

_REFUSED = (ConnectionRefusedError, ssl.SSLCertVerificationError)
"""Causes if the machine answers, but not the agent whose address and certificate are known.

A connection that is taken and closed may be that agent, or something on the way to it."""


def build_node_params(task: Task) -> Json:
    """Return the parameters that tell an agent of its node and the ports.

    Secrets are masked, the plan of the flow is left out, and the operator's options that agents look for are in it.
    """
    node = {name: vars(task.node)[name] for name in _NODE_FIELDS}  # secrets as they are kept: none is decrypted
    kept = {key: value for key, value in task.node.driver_internal_info.items() if not key.endswith("_steps")}
    options = {key: task.conf.deploy[option] for key, option in _ERASE_OPTIONS.items()}
    ports = [{name: getattr(port, name) for name in _PORT_FIELDS} for port in task.ports]
    return {"node": masking.mask(node | {"driver_internal_info": kept | options}), "ports": ports}


class _TokenFilter(logging.Filter):
    """Masks tokens: urllib3 logs the paths it requests, and the agent's protocol has the token there."""

    def filter(self, record: logging.LogRecord) -> bool:
        record.msg, record.args = masking.mask_text(record.getMessage()), ()
        return True


logging.getLogger("urllib3.connectionpool").addFilter(_TokenFilter())


AUTHORITIES = "agent_verify_ca"
"""Key of driver_info: what verifies agents that announce no certificate of their own."""


def read_authorities(task: Task) -> str | bool:
    """Return the file or directory of the authorities that verify the node's agent, or whether it is verified at all.

    :raises Invalid: there is no such file or directory.
    """
    given = task.node.driver_info.get(AUTHORITIES)
    verified = strutils.bool_from_string(given, default=None) if given is not None else True
    if verified is not None:
        return bool(verified)
    if not os.path.exists(str(given)):
        allowed = "true, false, or a file or directory of authorities on the conductor."
        raise errors.Invalid(field=f"driver_info.{AUTHORITIES}", value=given, allowed=allowed)
    return str(given)


@functools.lru_cache(maxsize=256)
def open_pool(url: str, certificate: str | None, authorities: str | bool = True) -> urllib3.HTTPConnectionPool:
    """Return the connections to an agent: those that are open, if any; of many agents, the least used ones are dropped.

    :param certificate: PEM that the agent announced; None: authorities decide.
    :param authorities: as :func:`read_authorities` returns it.
    :raises AgentError: the certificate cannot be read.
    """
    try:
        context = build_context(certificate, authorities) if urllib.parse.urlsplit(url).scheme == "https" else None
    except (OSError, ValueError) as exc:  # errors of TLS are of the first
        reason = f"what its certificate is verified with cannot be read: {exc}"
        raise errors.AgentError(what=f"Calling the agent at {url}", reason=reason) from exc
    return fetching.open_pool(url, context)


def build_context(certificate: str | None, authorities: str | bool = True) -> ssl.SSLContext:
    """Return what verifies an agent; parameters as those of :func:`open_pool`.

    :raises OSError: it cannot be read.
    """
    if certificate:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
        context.load_verify_locations(cadata=certificate)
    elif isinstance(authorities, str):
        is_directory = os.path.isdir(authorities)
        file, directory = (None, authorities) if is_directory else (authorities, None)
        context = ssl.create_default_context(cafile=file, capath=directory)
    elif authorities:
        context = _trust_well_known()
    else:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # to load authorities takes 20 ms
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


@functools.cache
def _trust_well_known() -> ssl.SSLContext:
    """Return the context of all agents that no certificate of their own verifies: it takes 0.8 MiB and 20 ms."""
    return ssl.create_default_context(cafile=utils.DEFAULT_CA_BUNDLE_PATH)


class CommandNotFound(errors.AgentError):
    """The agent answered 404: it has no such command or extension."""


class AgentClient:
    """A client of the agent of a node.

    :ivar last_asked: the id of the command that :meth:`ask` has run last.
    :raises AgentUnreachable: from all methods: no agent is known, or it does not answer; AgentRefused, if its machine
        says at once that it is not there.
    :raises AgentError: from all methods: it refuses; the message names the command and the agent's answer, never the
        token.
    """

    def __init__(self, task: Task) -> None:
        node = task.node
        self._confirm_lock = task.confirm_lock
        self._headers = {**_HEADERS, "X-OpenStack-Request-ID": task.context.global_id}
        self._options = task.conf.agent
        self._url: str = (node.agent_url or "").rstrip("/")
        self._token: str = node.agent_token or ""
        self._certificate: str | None = node.agent_verify_ca
        self._authorities = read_authorities(task)
        self._where = urllib.parse.urlsplit(self._url).netloc or "an unknown address"
        self.last_asked: str | None = None

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
        self.last_asked = command["id"]
        if command["command_status"] != SUCCEEDED:
            raise errors.AgentError(what=self._describe(f"command {name}"), reason=error_text(command))
        return command["command_result"]

    def ask_for(self, name: str, params: Mapping[str, object], read: Callable[[object], Answer]) -> Answer:
        """Run a command as :meth:`ask` does, and return what ``read`` makes of its result.

        :param read: raises Malformed, which says what is wrong with the result.
        """
        try:
            return read(self.ask(name, params))
        except answers.Malformed as exc:
            raise errors.AgentError(what=self._describe(f"command {name}"), reason=str(exc)) from None

    def commands(self) -> list[answers.Command]:
        """Return all commands since the agent started, oldest first."""
        return self._request("request for its commands", answers.read_commands)

    def _post(self, name: str, params: Mapping[str, object], wait: bool) -> answers.Command:
        self._confirm_lock()
        label = f"command {name}"
        try:
            body = json.dumps({"name": name, "params": params}, allow_nan=False).encode()
        except ValueError as exc:
            raise errors.AgentError(what=self._describe(label), reason=f"its parameters are no JSON: {exc}") from None
        return self._request(label, answers.read_command, body, wait)

    def _describe(self, label: str) -> str:
        return f"Agent {label} at {self._where}"

    def _request(
        self, label: str, read: Callable[[object], Answer], body: bytes | None = None, wait: bool = True
    ) -> Answer:
        what = self._describe(label)
        if not self._url:
            raise errors.AgentUnreachable(what=what, reason="no agent has called for this node")
        if self._options.require_tls and not self._url.startswith("https://"):
            raise errors.AgentError(what=what, reason="it does not use TLS, which [agent] require_tls asks for")
        try:
            response = self._send(body, wait)
        except urllib3.exceptions.HTTPError as exc:
            # Without a cause: it has the URL, and with it the token.
            unreachable = errors.AgentRefused if _is_caused_by(exc, _REFUSED) else errors.AgentUnreachable
            raise unreachable(what=what, reason=self._reason(exc)) from None
        except fetching.FetchError as exc:
            raise errors.AgentError(what=what, reason=exc.message) from None
        if response.status >= codes.bad:
            error_class = _ERRORS.get(response.status, errors.AgentError)
            raise error_class(what=what, reason=f"HTTP {response.status}: {_fault_text(response)}")
        try:
            return read(json.loads(response.content))
        except answers.Malformed as exc:
            raise errors.AgentError(what=what, reason=str(exc)) from None
        except (ValueError, RecursionError):
            raise errors.AgentError(what=what, reason="its answer is not JSON") from None

    def _send(self, body: bytes | None, wait: bool) -> fetching.Answer:
        """Send a request, and once more if the connection broke and that does no harm: all but a start of a command."""
        query = {"agent_token": self._token} | ({} if body is None else {"wait": str(wait).lower()})
        target = f"{urllib.parse.urlsplit(self._url).path}{_COMMANDS}?{urllib.parse.urlencode(query)}"
        more = {} if body is None else {"Content-Type": "application/json"}

        def attempt() -> fetching.Answer:
            with fetching.limit(self._options.command_timeout):
                return fetching.ask(
                    open_pool(self._url, self._certificate, self._authorities),
                    "GET" if body is None else "POST",
                    target,
                    _LONGEST_ANSWER,
                    body=body,
                    headers=self._headers | more,
                    timeout=urllib3.Timeout(connect=self._options.connect_timeout, read=self._options.command_timeout),
                )

        try:
            return attempt()
        except urllib3.exceptions.ProtocolError as exc:
            if not wait or not _is_caused_by(exc, _DROPPED):
                raise
            return attempt()

    def _reason(self, exc: urllib3.exceptions.HTTPError) -> str:
        *_outer, root = _causes(exc)
        text = masking.mask_text(str(root) or type(root).__name__)
        return text.replace(self._token, masking.MASK) if self._token else text


_ERRORS: dict[int, type[errors.AgentError]] = {404: CommandNotFound, 409: errors.AgentBusy}


def _fault_text(response: fetching.Answer) -> str:
    try:
        text = json.loads(response.content)["faultstring"]
    except (ValueError, KeyError, TypeError, RecursionError):
        text = response.content[:200].decode(errors="replace") or response.reason
    return masking.mask_text(str(text))


def _is_caused_by(exc: BaseException, types: tuple[type[OSError], ...]) -> bool:
    return any(isinstance(cause, types) for cause in _causes(exc))


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
