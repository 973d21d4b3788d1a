"""The agent's own HTTP API, on the machine's callback URL."""

import asyncio
import hmac
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from ingot.rack.commands import Busy, Unknown
from ingot.rack.http_server import HttpError, Request, Response

if TYPE_CHECKING:
    from ingot.rack.agent import Agent

_TRUE = ("true", "1", "yes", "on")


class AgentApi:
    """Answers requests for one agent."""

    def __init__(self, agent: "Agent") -> None:
        self._agent = agent
        self._started = datetime.now(UTC)

    @staticmethod
    def error_body(status: int, message: str) -> dict[str, str]:
        return {"faultcode": "Client" if status < 500 else "Server", "faultstring": message}

    async def handle(self, request: Request) -> Response:
        """Route a request; a slash at the end of the path does not matter."""
        path = request.path.rstrip("/")
        routes = {"": self._root, "/v1": self._v1, "/v1/status": self._status}
        if path in routes:
            _only(request, "GET")
            return Response(routes[path]())
        if path == "/v1/commands":
            self._check_token(request)
            _only(request, "GET", "POST")
            return await self._post(request) if request.method == "POST" else self._list()
        if path.startswith("/v1/commands/"):
            self._check_token(request)
            _only(request, "GET")
            return self._show(path.rpartition("/")[2])
        raise HttpError(404, "404 Not Found: The requested URL was not found on the server.")

    def _root(self) -> dict[str, Any]:
        return {
            "name": "OpenStack Ironic Python Agent API",
            "description": "A simulated agent of the virtual rack.",
            "versions": [{"id": "v1", "links": [self._link("v1/")]}],
            "default_version": {"id": "v1", "links": [self._link("v1/")]},
        }

    def _v1(self) -> dict[str, Any]:
        return {
            "id": "v1",
            "links": [self._link("v1/")],
            "commands": [self._link("v1/commands/")],
            "status": [self._link("v1/status/")],
            "media_types": [
                {"base": "application/json", "type": "application/vnd.openstack.ironic-python-agent.v1+json"}
            ],
        }

    def _link(self, path: str) -> dict[str, str]:
        return {"href": f"{self._agent.callback_url}/{path}", "rel": "self"}

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
        raise HttpError(404, f"Not found: Command with id {command_id} not found.")

    async def _post(self, request: Request) -> Response:
        body = request.json()
        if not isinstance(body, dict) or not isinstance(body.get("name"), str):
            raise HttpError(400, "Invalid request body: 'name' must be the command's name")
        params = body.get("params")
        if not isinstance(params, dict):
            raise HttpError(400, "Invalid request body: 'params' must be an object")
        wait = request.query.get("wait", "false").lower() in _TRUE
        try:
            command = await self._agent.runner.submit(body["name"], params, wait)
        except Busy as error:
            raise HttpError(409, str(error)) from error
        except Unknown as error:
            raise HttpError(error.status, str(error)) from error
        await asyncio.sleep(self._agent.machine.faults.slow_answer(body["name"]))
        return Response(command.public())


def _only(request: Request, *methods: str) -> None:
    if request.method not in methods:
        raise HttpError(405, f"405 Method Not Allowed: {request.path} takes {', '.join(methods)}")
