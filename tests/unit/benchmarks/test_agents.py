"""The simulated agent does what a conductor expects of the real one, as far as a benchmark needs it."""

import asyncio
from typing import Any

import testtools

from benchmarks import agents


class Service:
    """Stands in for the API: gives the token at the second lookup, and counts heartbeats."""

    def __init__(self) -> None:
        self.lookups = 0
        self.heartbeat: asyncio.Queue[Any] = asyncio.Queue()

    async def call(self, method: str, path: str, body: Any = None) -> Any:
        if method == "GET":
            self.lookups += 1
            return {"config": {"agent_token": "secret" if self.lookups > 1 else None}}
        await self.heartbeat.put(body)
        return None


class AgentTest(testtools.TestCase):
    def setUp(self) -> None:
        super().setUp()
        for name, value in (("RETRY_S", 0.01), ("SETTLE_S", 0.0), ("STEP_S", 0.0)):
            self.patch(agents, name, value)

    def test_an_agent_boots_works_and_ends(self) -> None:
        asyncio.run(self.deploy())

    async def deploy(self) -> None:
        service = Service()
        fleet = agents.Fleet(service)  # type: ignore[arg-type]
        await fleet.start()
        fleet.add("n")
        agent = fleet.agents["n"]
        fleet.observe({"uuid": "n", "provision_state": "wait call-back"})
        sent = await service.heartbeat.get()
        self.assertEqual(("secret", f"{fleet.url}/n"), (sent["agent_token"], sent["callback_url"]))
        answer = agent.execute("deploy.get_deploy_steps", {})[1]
        steps = answer["command_result"]["deploy_steps"][agents.MANAGER]
        self.assertEqual(["firmware", "configure", "finish", "write_image"], [step["step"] for step in steps])
        for name in ("firmware", "write_image", "configure"):
            agent.execute("deploy.execute_deploy_step", {"step": {"step": name}})
            self.assertEqual(agents.BUSY_AGENT, agent.execute("standby.sync", {}), name)
            await self.until_ended(agent)
        agent.execute("standby.get_partition_uuids", {})
        agent.execute("image.install_bootloader", {})
        agent.execute("deploy.execute_deploy_step", {"step": {"step": "finish"}})
        await self.until_ended(agent)
        agent.execute("standby.sync", {})
        self.assertEqual(agents.DEPLOYED, agent.seen)
        fleet.observe({"uuid": "n", "provision_state": "active"})
        self.assertFalse(agent.is_on)
        await fleet.stop()

    async def until_ended(self, agent: agents.Agent) -> None:
        """Wait until no command of an agent runs."""
        while agent.list_commands()[1]["commands"][-1]["command_status"] == "RUNNING":
            await asyncio.sleep(0.001)
