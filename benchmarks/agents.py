"""Simulated agents, all those of one service in one server.

The agent of a node has the address ``/<node>`` there. It boots when its node waits for one: it looks the node up, which
gives it its token, sends a heartbeat when a command has ended, and another one now and then while nothing comes of it.
"""

import asyncio
import contextlib
import urllib.parse
from collections.abc import Mapping
from typing import Any

from benchmarks import api, wire

VERSION = "11.0.0"
MANAGER = "BenchmarkHardwareManager"
WAITING = frozenset(("wait call-back", "clean wait"))
AT_REST = frozenset(("active", "available", "manageable", "enroll", "deploy failed", "clean failed", "error"))
BUSY_AGENT = (409, {"faultstring": "a command runs"})

RETRY_S = 1.0
"""After this time an agent that was sent nothing sends another heartbeat; the real one waits five seconds or more."""
SETTLE_S = 0.1
STEP_S = 0.05


def _step(name: str, priority: int) -> dict[str, Any]:
    return {"step": name, "priority": priority, "interface": "deploy", "reboot_requested": False, "argsinfo": None}


STEPS = {
    # Around the conductor's own (80, 60 and 40); the real agent lists the writing of the image, with priority 0.
    "deploy": [_step("firmware", 95), _step("configure", 70), _step("finish", 45), _step("write_image", 0)],
    "clean": [_step("erase", 30), _step("check", 20)],
}
DEPLOYED = [
    "get_deploy_steps",
    *("firmware", "write_image", "configure"),
    *("get_partition_uuids", "install_bootloader"),
    *("finish", "sync"),
]
"""The commands and steps of one deployment, in order."""


class Agent:
    """The ramdisk of one node.

    :ivar seen: its commands, over all boots; of a step its name.
    :ivar endless: the step that never ends.
    """

    def __init__(self, fleet: "Fleet", node: str) -> None:
        self._fleet = fleet
        self.node = node
        self.seen: list[str] = []
        self.endless = ""
        self.token = ""
        self._commands: list[dict[str, Any]] = []
        self._task: asyncio.Task[None] | None = None
        self._ended = asyncio.Event()
        self._is_quiet = False

    @property
    def is_on(self) -> bool:
        return self._task is not None

    def switch_on(self) -> None:
        if not self._task:
            self._commands = []
            self._ended = asyncio.Event()
            self._is_quiet = False
            self._task = asyncio.create_task(self._run())

    def switch_off(self) -> None:
        if self._task:
            self._task.cancel()
            self._task = None
            self.token = ""

    def stop_heartbeats(self) -> None:
        """Leave them to the load."""
        if self._task:
            self._task.cancel()

    async def lookup(self) -> str:
        """Look the node up and return its token, if it may be had now."""
        found = await self._fleet.api.call("GET", f"/v1/lookup?node_uuid={self.node}")
        return str(found["config"].get("agent_token") or "").strip("*")

    async def heartbeat(self) -> None:
        self._fleet.heartbeats += 1
        url = f"{self._fleet.url}/{self.node}"
        body = {"callback_url": url, "agent_token": self.token, "agent_version": VERSION}
        await self._fleet.api.call("POST", f"/v1/heartbeat/{self.node}", body)

    async def _run(self) -> None:
        while not self.token:
            with contextlib.suppress(*api.FAILURES):  # the node is locked, or its state not written yet
                self.token = await self.lookup()
            if not self.token:
                await asyncio.sleep(RETRY_S)
        while not self._is_quiet:
            before = len(self.seen)
            try:
                await self.heartbeat()
            except api.FAILURES:
                self._fleet.refused += 1
            await self._wait_for_work(before)

    async def _wait_for_work(self, before: int) -> None:
        """Wait until a command has ended, or nothing has come."""
        while True:
            try:
                await asyncio.wait_for(self._ended.wait(), RETRY_S)
            except TimeoutError:
                if len(self.seen) == before or not self._works():
                    return
            else:
                self._ended.clear()
                await asyncio.sleep(SETTLE_S)
                return

    def _works(self) -> bool:
        return any(command["command_status"] == "RUNNING" for command in self._commands)

    # What a conductor asks of it

    def list_commands(self) -> wire.Answer:
        return 200, {"commands": self._commands}

    def execute(self, name: str, params: Mapping[str, Any]) -> wire.Answer:
        """Begin a command, if none runs."""
        if self._works():
            return BUSY_AGENT
        kind, _, verb = name.partition(".")
        command = {
            "id": str(len(self._commands) + 1),
            "command_name": verb,
            "command_params": {},
            "command_status": "SUCCEEDED",
            "command_error": None,
            "command_result": self._result(kind, verb),
        }
        if step := params.get("step") if verb.startswith("execute_") else None:
            command["command_status"] = "RUNNING"
            if step["step"] != self.endless:
                asyncio.get_running_loop().call_later(STEP_S, self._end, command, kind, step)
        self._commands.append(command)
        self.seen.append(step["step"] if step else verb)
        answer = dict(command)
        if verb in ("power_off", "reboot"):
            self.switch_off()
        self._is_quiet = verb == "sync"  # next, real power would go off
        return 200, answer

    def _result(self, kind: str, verb: str) -> dict[str, Any] | None:
        if verb == f"get_{kind}_steps":
            steps = {MANAGER: STEPS.get(kind, [])}
            return {f"{kind}_steps": steps, "hardware_manager_version": {MANAGER: "1"}}
        return {} if verb == "get_partition_uuids" else None

    def _end(self, command: dict[str, Any], kind: str, step: Mapping[str, Any]) -> None:
        command |= {
            "command_status": "SUCCEEDED",
            "command_result": {f"{kind}_result": "done", f"{kind}_step": dict(step)},
        }
        self._ended.set()


class Fleet:
    """The agents of one service.

    :ivar reads: how often conductors asked an agent for its commands.
    :ivar refused: heartbeats that were not accepted.
    """

    def __init__(self, service: api.Api) -> None:
        self.api = service
        self.agents: dict[str, Agent] = {}
        self.heartbeats = self.refused = self.reads = 0

    async def start(self) -> None:
        self._server = await wire.serve(self._answer)
        host, port = self._server.sockets[0].getsockname()
        self.url = f"http://{host}:{port}"

    async def stop(self) -> None:
        for agent in self.agents.values():
            agent.switch_off()
        self._server.close()

    def add(self, node: str) -> None:
        self.agents[node] = Agent(self, node)

    def image(self) -> dict[str, str]:
        """Return the instance_info of an image."""
        return {
            "image_source": f"{self.url}/image.raw",
            "image_os_hash_algo": "sha512",
            "image_os_hash_value": "0" * 128,
            "image_disk_format": "raw",
        }

    def observe(self, row: api.Row) -> None:
        """Switch an agent on and off as the state of its node says."""
        agent = self.agents.get(row["uuid"])
        if agent and row["provision_state"] in WAITING:
            agent.switch_on()
        elif agent and row["provision_state"] in AT_REST:
            agent.switch_off()

    def _answer(self, method: str, path: str, body: Any) -> wire.Answer:
        place = urllib.parse.urlsplit(path)
        if place.path == "/image.raw":
            return 200, bytes(1024)
        agent = self.agents.get(place.path.split("/")[1])
        if agent is None or not agent.is_on:
            return 503, {"faultstring": "no agent runs here"}
        if method == "GET":
            self.reads += 1
            return agent.list_commands()
        return agent.execute(body["name"], body.get("params") or {})
