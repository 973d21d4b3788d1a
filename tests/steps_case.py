"""A conductor whose interfaces offer what a test says: for tests of steps."""

import uuid
from typing import Any
from unittest import mock

from ingot.common import clock, states
from ingot.db import models, node_crud, step_lists
from ingot.drivers.interfaces import results
from ingot.drivers.interfaces.base import BaseInterface
from tests import conductor_case, database


def step(name: str, priority: int, interface: str = "bios", **args: Any) -> dict[str, Any]:
    return {"interface": interface, "step": name, "priority": priority, "args": args}


class StepsCase(conductor_case.ConductorCase):
    """Fakes with more steps, which note how they are called, and a deploy interface with an agent."""

    def setUp(self) -> None:
        super().setUp()
        self.calls: list[tuple[str, dict[str, Any]]] = []

    def interface(self, kind: str) -> BaseInterface:
        return self.conductor.services.hardware.interface(kind, "fake")

    def declare(self, kind: str, interface: str, name: str, decorator: Any) -> None:
        """Give a fake interface one more step, until the end of the test."""

        @decorator
        def method(_task: Any, **args: Any) -> None:
            self.calls.append((f"{interface}.{name}", args))

        target = self.interface(interface)
        self.put(target, name, method)
        target._declared[kind][name] = method.__dict__["ingot_steps"][kind]
        self.addCleanup(target._declared[kind].pop, name)

    def put(self, target: BaseInterface, name: str, value: Any) -> None:
        patch = mock.patch.object(target, name, value, create=True)
        patch.start()
        self.addCleanup(patch.stop)

    def agent(self, *offered: dict[str, Any]) -> None:
        """Give the fake deploy interface an agent that offers these steps."""

        def run(_task: Any, _kind: str, one: dict[str, Any]) -> results.Result:
            self.calls.append((f"{one['interface']}.{one['step']}", one["args"]))
            return results.DONE

        deploy = self.interface("deploy")
        self.put(deploy, "runs_agent", lambda _task, _kind: True)
        self.put(deploy, "get_in_band_steps", lambda _task, _kind: [dict(one) for one in offered])
        self.put(deploy, "execute_in_band_step", run)

    def template(self, name: str, *steps: dict[str, Any]) -> None:
        values = {"uuid": str(uuid.uuid4()), "name": name, "extra": {}, "steps": list(steps)}
        step_lists.TEMPLATES.create(self.db, values)

    def deploy(self, *names: str, **request: Any) -> models.Node:
        """Deploy a new node that has traits and requests them.

        Its agent, if it has one, is there already.
        """
        there = {"agent_url": "http://agent", "agent_last_heartbeat": clock.after(60)}
        self.node = database.make_node(self.db, instance_info={"traits": list(names)}, **there)
        node_crud.change_traits(self.db, self.node, add=names)
        return self.run_flow(self.node, "deploy", states.DEPLOYING, **request)

    def ran(self) -> list[tuple[str, int, str]]:
        """Return (step, priority, origin) of what ran, without the flow's own entries."""
        rows = self.step_runs(self.node)
        return [(f"{row.interface}.{row.step}", row.priority, row.origin) for row in rows if row.origin != "flow"]
