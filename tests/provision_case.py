"""A node whose provision state a test sets and whose verbs it sends: for tests of provisioning through the API."""

from typing import Any

import sqlalchemy as sa

from ingot.common import states
from ingot.db import models, nodes
from tests import api_case

CLEAN = [{"interface": "deploy", "step": "erase_devices"}]


class ProvisionCase(api_case.ApiCase):
    def setUp(self) -> None:
        super().setUp()
        self.uuid = self.node(name="n")["uuid"]

    def put(self, **values: Any) -> None:
        """Write columns of the node without the API; by default the node is at rest and no flow runs."""
        if values.get("provision_state") in states.STABLE | states.FAILED:
            values = {"flow": None, **values}
        with self.db.single() as connection:
            connection.execute(sa.update(nodes.NODES).where(nodes.NODES.c.uuid == self.uuid).values(values))

    @property
    def row(self) -> models.Node:
        return nodes.get(self.db, self.uuid, [column.name for column in nodes.NODES.c])

    def ask(self, target: str, version: str = api_case.LATEST, **arguments: Any) -> api_case.Answer:
        return self.api("PUT", "/v1/nodes/n/states/provision", {"target": target, **arguments}, version)

    def accepted(self, target: str, version: str = api_case.LATEST, **arguments: Any) -> models.Node:
        answer = self.ask(target, version, **arguments)
        self.assertEqual((202, ""), (answer.status, answer.text))
        self.assertEqual(f"http://localhost/v1/nodes/{self.uuid}/states", answer.headers["Location"])
        return self.row

    def not_accepted(self, status: int, target: str, version: str = api_case.LATEST, **arguments: Any) -> str:
        before = self.row
        answer = self.ask(target, version, **arguments)
        self.assertEqual(status, answer.status, answer)
        self.assertEqual(before.as_dict(), self.row.as_dict())
        self.assertEqual([], self.conductor.wakeups)
        return answer.message
