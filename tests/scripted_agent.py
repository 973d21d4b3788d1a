"""Agents that do what a script says, behind one real HTTP API: a path for each node, tokens, versions, commands.

Commands that are waited for end at once; the others run until :meth:`Agent.work`. So a test decides what has happened
on the machine by the time of the next heartbeat.
"""

import base64
import ssl
import tempfile
import threading
import uuid
from collections.abc import Callable
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from ingot.db import agents, inventory, models, nodes
from ingot.db.engine import Database
from tests import http_handler
from tests.unit.drivers import http_agent

_RUNNING, _SUCCEEDED, _FAILED = "RUNNING", "SUCCEEDED", "FAILED"


class Agent:
    """The agent on the machine of one node.

    :param run_step: called with the kind and the step when a step begins on the machine.
    :param offers: called with a kind, gives the steps that the agent has for it.
    :ivar posted: (name, params) of each command since the machine was made, whichever agent got it.
    """

    def __init__(
        self,
        url: str,
        certificate: str | None,
        offers: Callable[[str], list[dict[str, Any]]],
        run_step: Callable[["Agent", str, dict[str, Any]], str | None],
    ) -> None:
        self.url, self.certificate = url, certificate
        self._offers, self._run_step = offers, run_step
        self.version, self.managers = "13.0.0", {"manager": "1"}
        self.token: str | None = None
        self.commands: list[dict[str, Any]] = []
        self.posted: list[tuple[str, dict[str, Any]]] = []
        self.malformed = False

    def boot(self, db: Database, node: models.Node) -> None:
        """Start the agent as the machine does: it knows nothing, looks its node up and is given a token."""
        self.commands = []
        self.token = agents.issue_token(db, nodes.get(db, node.uuid), "192.0.2.7", 300) or self.token

    def tell(self, db: Database, node: models.Node) -> None:
        """Report the inventory of its machine, as the API writes it."""
        card = {"name": "eth0", "mac_address": "52:54:00:00:00:99", "ipv4_address": "10.0.0.9"}
        found = {"interfaces": [card], "cpu": {"architecture": "x86_64", "count": 4}, "memory": {"physical_mb": 512}}
        inventory.save(db, node.id, found, {})
        agents.record_inspection(db, node)

    def beat(self, db: Database, node: models.Node) -> None:
        """Send a heartbeat that the API accepts."""
        values = {"agent_url": self.url, "agent_version": self.version, "agent_verify_ca": self.certificate}
        agents.record_heartbeat(db, nodes.get(db, node.uuid), {**values, "agent_status": None})

    def work(self) -> None:
        """End what runs, unless the script says that it hangs."""
        for command in self.commands:
            fault = command.pop("fault", None)
            if command["command_status"] != _RUNNING:
                continue
            command["command_status"] = _SUCCEEDED
            if fault is not None:
                self._end_badly(command, fault)

    def _end_badly(self, command: dict[str, Any], fault: str) -> None:
        match fault:
            case "raises":
                error = {"type": "ScriptedError", "code": 500, "message": "out of luck", "details": "out of luck"}
                command |= {"command_status": _FAILED, "command_error": error}
            case "is a bug":
                self.malformed = True
            case "hangs":
                command |= {"command_status": _RUNNING, "fault": fault}
            case "agent starts anew":
                self.commands = []
            case "token wrong":
                self.token = "another token"
            case "mismatch":
                command["command_status"] = f"{command['kind'].upper()}_VERSION_MISMATCH"

    # What the conductor asks

    def take(self, name: str, params: dict[str, Any], wait: bool) -> tuple[int, dict[str, Any]]:
        """Take a command; return status and document of the answer."""
        extension, _dot, verb = name.partition(".")
        if not wait and any(command["command_status"] == _RUNNING for command in self.commands):
            return 409, {"faultstring": "another command is running"}
        self.posted.append((name, params))
        command = {
            "id": str(uuid.uuid4()),
            "command_name": verb,
            "command_status": _SUCCEEDED if wait else _RUNNING,
            "command_error": None,
            "command_result": self._result(extension, verb),
        }
        self.commands.append(command)
        if verb == f"execute_{extension}_step":
            fault = self._run_step(self, extension, params["step"])
            if params[f"{extension}_version"] != self.managers:
                fault = "mismatch"
            command |= {"kind": extension, "fault": fault, "command_result": {f"{extension}_result": None}}
        return 200, self.describe(command)

    def _result(self, extension: str, verb: str) -> Any:
        if verb == f"get_{extension}_steps":
            offered = {"Scripted": self._offers(extension)}
            return {f"{extension}_steps": offered, "hardware_manager_version": self.managers}
        if verb == "finalize_rescue":
            self.token = "ended"  # it serves no client any more
        return {"system_logs": base64.b64encode(b"a tar file").decode()} if extension == "log" else None

    def describe(self, command: dict[str, Any]) -> dict[str, Any]:
        """Return a command as the agent's API shows it."""
        hidden = ("fault", "kind", *(["command_status"] if self.malformed else []))
        return {name: value for name, value in command.items() if name not in hidden}


class Server:
    """The HTTP server of all agents of a test."""

    def __init__(self, tls: bool) -> None:
        self.agents: dict[str, Agent] = {}
        handler = type("Handler", (_Handler,), {"agents": self.agents})
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._http.daemon_threads = True
        self.certificate: str | None = None
        if tls:
            self.certificate, key = http_agent.certificate()
            self._http.socket = _context(self.certificate, key).wrap_socket(self._http.socket, server_side=True)
        self._url = f"http{'s' if tls else ''}://127.0.0.1:{self._http.server_address[1]}"
        threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

    def add(self, node_uuid: str, **script: Any) -> Agent:
        """Add the agent of a node; see :class:`Agent`."""
        agent = self.agents[node_uuid] = Agent(f"{self._url}/{node_uuid}", self.certificate, **script)
        return agent

    def stop(self) -> None:
        self._http.shutdown()
        self._http.server_close()


def _context(signed: str, key: str) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory, "both.pem")
        path.write_text(signed + key)
        context.load_cert_chain(path)
    return context


class _Handler(http_handler.Handler):
    agents: dict[str, Agent]

    def do_GET(self) -> None:
        agent = self._agent()
        if agent:
            self.answer(200, {"commands": [agent.describe(command) for command in agent.commands]})

    def do_POST(self) -> None:
        body = self.body()
        agent = self._agent()
        if agent:
            wait = parse_qs(urlsplit(self.path).query).get("wait") == ["true"]
            self.answer(*agent.take(body["name"], body["params"], wait))

    def _agent(self) -> Agent | None:
        """Return the agent of the request; None when that was refused."""
        url = urlsplit(self.path)
        agent = self.agents[url.path.split("/")[1]]
        if parse_qs(url.query).get("agent_token") == [agent.token]:
            return agent
        self.answer(401, {"faultcode": "Client", "faultstring": "401 Unauthorized: Token invalid."})
        return None
