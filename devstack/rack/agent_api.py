"""The agent's own HTTP API, on the machine's callback URL."""

import asyncio
import hmac
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from ingot.rack.command_errors import Refused
from ingot.rack.http_server import HttpError, Request, Response

if TYPE_CHECKING:
    from ingot.rack.agent import Agent

_DOCUMENTATION = "https://docs.openstack.org/ironic-python-agent"
_NOT_FOUND = (
    "404 Not Found: The requested URL was not found on the server. If you entered the URL manually please check your "
    "spelling and try again."
)


class AgentApi:
    """Answers requests for one agent."""

    def __init__(self, agent: "Agent") -> None:
        self._agent = agent
        self._started = datetime.now(UTC)

    @staticmethod
    def error_body(status: int, message: str) -> dict[str, str]:
        return {"faultcode": "Client" if status < 500 else "Server", "faultstring": message}

    async def handle(self, request: Request) -> Response:
        """Route a request. The version may be left out; a request without the slash at the end is redirected."""
        path = request.path if request.path == "/v1/" else request.path.removeprefix("/v1")
        fixed = {"/": self._root, "/v1/": self._v1, "/status": self._status}
        if path in fixed:
            _require_method(request, "GET")
            return Response(fixed[path]())
        if path in ("", "/commands"):
            return self._redirect(request)
        name, _, ident = path.removeprefix("/").partition("/")
        if name != "commands" or "/" in ident:
            raise HttpError(404, _NOT_FOUND)
        _require_method(request, "GET", *(() if ident else ("POST",)))
        self._check_token(request)
        if request.method == "POST":
            return await self._post(request)
        return self._show(ident) if ident else self._list()

    def _redirect(self, request: Request) -> Response:
        query = f"?{urlencode(request.query)}" if request.query else ""
        location = f"{self._agent.callback_url}{request.path}/{query}"
        return Response(status=308, headers={"Location": location})

    def _root(self) -> dict[str, Any]:
        return {
            "name": "OpenStack Ironic Python Agent API",
            "description": "A simulated agent of the virtual rack.",
            "versions": [self._version()],
            "default_version": self._version(),
        }

    def _v1(self) -> dict[str, Any]:
        return {
            "commands": [self._link("v1/commands"), self._link("commands", "bookmark")],
            "status": [self._link("v1/status"), self._link("status", "bookmark")],
            "media_types": [
                {"base": "application/json", "type": "application/vnd.openstack.ironic-python-agent.v1+json"}
            ],
            **self._version(),
        }

    def _version(self) -> dict[str, Any]:
        documentation = {"href": _DOCUMENTATION, "rel": "describedby", "type": "text/html"}
        return {"id": "v1", "links": [self._link("v1/"), documentation]}

    def _link(self, path: str, relation: str = "self") -> dict[str, str]:
        return {"href": f"{self._agent.callback_url}/{path}", "rel": relation}

    def _status(self) -> dict[str, Any]:
        return {"started_at": self._started.timestamp(), "version": self._agent.version}

    def _check_token(self, request: Request) -> None:
        given = request.query.get("agent_token", "")
        refused = self._agent.machine.faults.strike("command_token_wrong")
        if refused or not self._agent.token or not hmac.compare_digest(given.encode(), self._agent.token.encode()):
            raise HttpError(401, "401 Unauthorized: Token invalid.")

    def _list(self) -> Response:
        return Response({"commands": [command.public() for command in self._agent.runner.commands]})

    def _show(self, command_id: str) -> Response:
        for command in self._agent.runner.commands:
            if command.id == command_id:
                return Response(command.public())
        raise HttpError(404, f"Not found: Command Result with id {command_id} not found.")

    async def _post(self, request: Request) -> Response:
        body = request.json()
        fields = body if isinstance(body, dict) else {}
        name, params = fields.get("name"), fields.get("params")
        if not isinstance(name, str) or not isinstance(params, dict):
            raise HttpError(400, "400 Bad Request: Missing or invalid name or params")
        wait = request.query.get("wait", "").lower() == "true"
        try:
            command = await self._agent.runner.submit(name, params, wait)
        except Refused as error:
            raise HttpError(error.status, str(error)) from error
        await asyncio.sleep(self._agent.machine.faults.slow_answer(name))
        return Response(command.public())


def _require_method(request: Request, *methods: str) -> None:
    if request.method not in methods:
        raise HttpError(405, "405 Method Not Allowed: The method is not allowed for the requested URL.")
