"""A conductor with a classic driver: for tests of its nodes."""

from typing import Any

from ingot.common import context
from ingot.conductor import manager
from ingot.db.engine import Database
from ingot.drivers.loading import factory
from tests import conductor_case
from tests.unit.drivers import plugins


class ClassicCase(conductor_case.ConductorCase):
    """The classic driver ``fixed`` beside fake-hardware."""

    def make_conductor(self, db: Database) -> manager.Conductor:
        self.conf.set_override("enabled_drivers", ["fixed"])
        return manager.Conductor(self.conf, db, factory.Hardware(self.conf, plugins.CLASSIC))

    def ask(self, method: str, **arguments: Any) -> Any:
        answer = getattr(self.conductor.endpoint, method)(context.admin().to_dict(), **arguments)
        self.assertNotIn("error", answer)
        return answer["result"]
