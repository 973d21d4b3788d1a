"""A conductor behind the API that is asked for plans: for tests of plans and requests."""

from typing import Any

from ingot.db import models
from ingot.rpcapi import client, transport
from tests import api_case, conductor_case, database

TRAIT, OTHER = "CUSTOM_MIRROR", "CUSTOM_STRIPE"


def step(name: str, interface: str = "vendor", **more: Any) -> dict[str, Any]:
    return {"interface": interface, "step": name, **more}


def ranked(name: str, priority: int, interface: str = "vendor", **args: Any) -> dict[str, Any]:
    return step(name, interface, priority=priority, args=args)


class PlanCase(conductor_case.ConductorCase):
    def setUp(self) -> None:
        super().setUp()
        bus = transport.LocalTransport()
        bus.serve(self.conf.host, self.conductor.endpoint)
        self.client = client.ConductorClient(self.conf, self.db, bus)
        self.http = api_case.create_app(self.conf, self.db, self.client).test_client()

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        answer = self.http.open(path, method=method, json=body, headers={"X-OpenStack-Ironic-API-Version": "latest"})
        self.assertLess(answer.status_code, 300, answer.get_data(as_text=True))
        return answer.get_json(silent=True)

    def refused(self, method: str, path: str, body: Any = None) -> str:
        answer = api_case.Answer(self.http.open(path, method=method, json=body))
        self.assertEqual(400, answer.status, answer)
        return answer.message

    def plan(self, node: models.Node, flow: str, **body: Any) -> Any:
        return self.ask("POST", f"/ingot/v1/nodes/{node.uuid}/plan?flow={flow}", body)

    def template(self, *steps: dict[str, Any], name: str = TRAIT) -> None:
        self.ask("POST", "/v1/deploy_templates", {"name": name, "steps": list(steps)})

    def with_traits(self, *traits: str, requested: list[str] | None = None, **values: Any) -> models.Node:
        node = database.make_node(
            self.db, instance_info={"traits": list(traits) if requested is None else requested}, **values
        )
        self.ask("PUT", f"/v1/nodes/{node.uuid}/traits", {"traits": list(traits)})
        return node


def named(plan: Any) -> list[str]:
    return [f"{entry['interface']}.{entry['step']}" for entry in plan["steps"]]
