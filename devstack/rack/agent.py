"""A simulated ironic-python-agent: lookup, heartbeat and commands, over the real protocol."""

import asyncio
import contextlib
import random
import secrets
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from ingot.rack import inventory, tls
from ingot.rack.agent_api import AgentApi
from ingot.rack.commands import CommandRunner
from ingot.rack.extensions import COMMANDS
from ingot.rack.http_server import HttpServer
from ingot.rack.loop import in_thread
from ingot.rack.service_client import ServiceClient, ServiceError

if TYPE_CHECKING:
    from ingot.rack.simulated import SimulatedMachine

Answer = TypeVar("Answer")

HIDDEN_TOKEN = "******"  # noqa: S105 - what the service shows instead of a token that it gave out before
TLS_SINCE = (1, 68)
MIN_TOKEN_LENGTH = 32


class Fatal(Exception):
    """The agent cannot go on; the machine stays on, without it."""


class Agent:
    """One run of the agent, from the ramdisk's start to the end of its power.

    :ivar node: what is known of its node, from the lookup or, later, from the service's commands.
    :ivar partition_uuids: of the image that it has written.
    :ivar comes_back: whether its ramdisk starts another one after its end.
    :param arguments: the kernel's arguments. Read are ``ipa-api-url`` (required; of several, separated by
        commas, the first), ``ipa-insecure`` (1: do not verify the service's certificate),
        ``ipa-ironic-api-version`` (instead of asking), ``ipa-advertise-host``, ``ipa-agent-token``, and where the
        inventory goes: ``ipa-inspection-callback-url`` with ``ipa-inspection-collectors``, ``ipa-collect-lldp``
        (1: what its switch says), and ``BOOTIF``.
    """

    def __init__(self, machine: "SimulatedMachine", arguments: dict[str, str]) -> None:
        self.machine = machine
        self.arguments = arguments
        self.state = "starting"
        self.token = arguments.get("ipa-agent-token", "")
        self.node: dict[str, Any] = {}
        self.partition_uuids: dict[str, str] = {}
        self.callback_url = ""
        self.version = machine.agent_version
        self.gone = threading.Event()
        self.comes_back = False
        self.runner = CommandRunner(self, COMMANDS)
        self._settings = machine.site.config
        self._certificate: str | None = None
        self._heartbeat_timeout = 300.0
        self._wake = asyncio.Event()
        self._dead: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._client: ServiceClient | None = None
        api = AgentApi(self)
        self._server = HttpServer(api.handle, api.error_body)

    def public(self) -> dict[str, Any]:
        return {
            "state": self.state,
            "node": self.node.get("uuid"),
            "version": self.version,
            "callback_url": self.callback_url,
            "arguments": {k: v for k, v in self.arguments.items() if "token" not in k},
        }

    async def run(self) -> str:
        """Live until the end; return why it came. (A power cut cancels this.)"""
        life = asyncio.ensure_future(self._live())
        try:
            await asyncio.wait([life, self._dead], return_when=asyncio.FIRST_COMPLETED)
        finally:
            life.cancel()
        if self._dead.done():
            self.state = "dead"
            return self._dead.result()
        self.state = "fatal"
        return await life

    def kill(self) -> None:
        """End at once: connections, commands and image writers."""
        self.gone.set()
        self._server.kill()
        self.runner.kill()
        if self._client is not None:
            self._client.close()

    def die(self, why: str) -> None:
        """End as after a crash."""
        self.kill()
        if not self._dead.done():
            self._dead.set_result(why)

    async def apply_faults(self, name: str) -> None:
        """Suffer what was ordered for the step or command ``name``."""
        faults = self.machine.faults
        if faults.strike("agent_dies_at_step", name):
            await self._stop_abruptly(f"fault agent_dies_at_step {name}")
        if faults.strike("agent_restarts_at_step", name):
            self.comes_back = True
            await self._stop_abruptly(f"fault agent_restarts_at_step {name}")
        if faults.strike("agent_hangs_at_step", name):
            self.machine.log(f"fault agent_hangs_at_step {name}")
            await faults.wait_until_cleared()

    async def _stop_abruptly(self, why: str) -> None:
        self.die(why)
        await asyncio.Event().wait()

    # Life

    async def _live(self) -> str:
        """Return why the agent stopped on its own."""
        await asyncio.sleep(self._settings.agent_start_delay)
        try:
            await self._work()
        except Fatal as end:
            return str(end)
        return "nothing more to do"

    async def _work(self) -> None:
        self._client = client = self._service()
        if self.arguments.get("ipa-inspection-callback-url"):
            await self._send_inventory(client, self.arguments["ipa-inspection-callback-url"])
        client.version = await self._api_version(client)
        self.state = "lookup"
        config = await self._look_up(client)
        await self._serve(self._settings.tls and client.version >= TLS_SINCE, config)
        self.state = "heartbeat"
        await self._beat(client)

    async def _send_inventory(self, client: ServiceClient, url: str) -> None:
        """Send what the machine is made of; the answer says which node it is."""
        self.state = "inspection"
        found = inventory.collect(self.machine, self.arguments)
        if self.machine.faults.strike("inspection_error"):
            found["error"] = "the following errors were encountered: no disk could be read"
        self.node = {"uuid": await self._persist(client.continue_inspection, url, found)}
        self.machine.log(f"the inventory was taken for node {self.node['uuid']}")

    def _service(self) -> ServiceClient:
        url = self.arguments.get("ipa-api-url", "").split(",")[0].rstrip("/")
        if not url.startswith(("http://", "https://")):
            raise Fatal(f"kernel argument ipa-api-url is {url!r}: it must be the URL of the service")
        insecure = self.arguments.get("ipa-insecure", "0").lower() in ("1", "true", "yes")
        return ServiceClient(url, verify=False if insecure else self._settings.ca_file or True)

    async def _api_version(self, client: ServiceClient) -> tuple[int, ...]:
        fixed = self.arguments.get("ipa-ironic-api-version")
        if fixed:
            return tuple(int(part) for part in fixed.split("."))
        return await self._persist(client.api_version)

    async def _look_up(self, client: ServiceClient) -> dict[str, Any]:
        found = await self._persist(client.lookup, self.machine.spec.macs, self.node.get("uuid"))
        try:
            self.node, config = found["node"], dict(found["config"])
            token = config["agent_token"]
            self._heartbeat_timeout = float(config["heartbeat_timeout"])
            self.machine.log(f"the service knows this machine as node {self.node['uuid']}")
        except (KeyError, TypeError, ValueError) as error:
            raise Fatal(f"the answer to the lookup lacks {error}") from error
        if token == HIDDEN_TOKEN and self.token:
            return config
        if token == HIDDEN_TOKEN:
            raise Fatal("the service gave this node's agent token to another agent before")
        if not isinstance(token, str) or len(token) < MIN_TOKEN_LENGTH:
            raise Fatal(f"the service's agent token is shorter than {MIN_TOKEN_LENGTH} characters")
        self.token = token
        return config

    async def learn_of_its_node(self) -> None:
        """Look its node up again; without an answer, what is known stays."""
        if self._client is None:
            return
        try:
            found = await in_thread(
                self.machine.site.quick, self._client.lookup, self.machine.spec.macs, self.node.get("uuid")
            )
        except ServiceError as error:
            self.machine.log(str(error))
        else:
            self.node = found["node"]

    async def _persist(self, request: Callable[..., Answer], *args: object) -> Answer:
        """Repeat a request until it is answered, pausing longer each time."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._settings.lookup_timeout
        pause = self._settings.retry_first
        while True:
            try:
                return await in_thread(self.machine.site.quick, request, *args)
            except ServiceError as error:
                self.machine.log(str(error))
                if loop.time() > deadline:
                    raise Fatal(f"gave up after {self._settings.lookup_timeout} s: {error}") from error
            await asyncio.sleep(pause)
            pause = min(pause * 2, self._settings.retry_max)

    async def _serve(self, with_tls: bool, config: dict[str, Any]) -> None:
        host = self.arguments.get("ipa-advertise-host") or self._settings.address
        context = None
        if with_tls:
            context, self._certificate = await in_thread(
                self.machine.site.quick,
                tls.create,
                self.machine.directory,
                host,
                config.get("tls_min_version"),
            )
        base = self._settings.agent_base_port
        preferred = base + self.machine.spec.index if base else 0
        port = await self._server.start(self._settings.address, preferred, context)
        self.callback_url = f"{'https' if with_tls else 'http'}://{host}:{port}"
        self.machine.log(f"agent {self.version} listens on {self.callback_url}")

    # Heartbeat

    def heartbeat_soon(self) -> None:
        """Have a heartbeat sent a moment from now, as after every command that ended."""
        delay = random.uniform(0, self._settings.agent_settle)  # noqa: S311 - jitter, not a secret
        asyncio.get_running_loop().call_later(delay, self._wake.set)

    async def _beat(self, client: ServiceClient) -> None:
        pause_after_refusal = self._settings.retry_first
        while True:
            self._wake.clear()
            accepted = await self._heartbeat(client)
            if accepted:
                pause_after_refusal = self._settings.retry_first
                share = random.uniform(0.3, 0.6)  # noqa: S311 - jitter, not a secret
                pause = min(share * self._heartbeat_timeout, self._settings.heartbeat_max)
            else:
                pause = pause_after_refusal
                pause_after_refusal = min(pause * 2, self._settings.retry_max)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._wake.wait(), pause)

    async def _heartbeat(self, client: ServiceClient) -> bool:
        if self.machine.faults.strike("heartbeat_lost"):
            return True
        body: dict[str, Any] = {
            "callback_url": self.callback_url,
            "agent_token": self._token_to_send(),
            "agent_version": self.version,
        }
        if self._certificate:
            body["agent_verify_ca"] = self._certificate
        try:
            await in_thread(self.machine.site.quick, client.heartbeat, self.node["uuid"], body)
        except ServiceError as error:
            self.machine.log(f"heartbeat: {error}")
            return False
        return True

    def _token_to_send(self) -> str:
        """Return the service's token, or one as long and as well formed that the service never saw."""
        return secrets.token_urlsafe() if self.machine.faults.strike("heartbeat_token_wrong") else self.token
