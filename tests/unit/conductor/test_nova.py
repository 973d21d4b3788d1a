"""Nova learns of all power changes of its servers' machines, and keeps no machine waiting."""

from typing import Any

from ingot.common import clock, states
from ingot.conductor.power import PowerSynchronizer
from ingot.db import models, nodes
from tests import compute_service, conductor_case, database

SERVER = "0e4b1a9c-3d52-4c6e-8a52-3f6de2bb1c58"


class NovaTest(conductor_case.ConductorCase):
    def configure(self) -> None:
        self.nova = self.useFixture(compute_service.ComputeService())
        self.nova.configure(self.conf)
        self.conf.set_override("force_power_state_during_sync", False, group="conductor")

    def node(self, **columns: Any) -> models.Node:
        known = {"provision_state": states.ACTIVE, "power_state": states.POWER_ON, "instance_uuid": SERVER}
        return database.make_node(self.db, **{**known, **columns})

    def switch(self, node: models.Node, target: str, result: str) -> None:
        asked = {"target_power_state": result, "power_request": {"target": target}, "due_at": clock.now()}
        nodes.set_always(self.db, node.uuid, asked)
        self.notify(node)
        self.assertEqual(result, self.settled(node).power_state)

    def check_events(self, *tags: str) -> None:
        conductor_case.eventually(lambda: len(self.nova.taken) >= len(tags), f"Nova takes {tags}")
        self.assertEqual([(SERVER, tag) for tag in tags], self.nova.taken)

    def test_a_change_by_request(self) -> None:
        node = self.node()
        self.switch(node, states.POWER_OFF, states.POWER_OFF)
        self.check_events("POWER_OFF")
        self.switch(node, states.POWER_ON, states.POWER_ON)
        self.check_events("POWER_OFF", "POWER_ON")
        self.switch(node, states.REBOOT, states.POWER_ON)
        self.check_events("POWER_OFF", "POWER_ON", "POWER_ON")

    def test_a_state_that_was_found(self) -> None:
        node = self.node()
        power: Any = self.conductor.services.hardware.interface("power", "fake")
        power.get_power_state = lambda _task: states.POWER_OFF
        power.start_reading = lambda _task: None
        synchronizer = PowerSynchronizer(self.conductor.services, lambda _node: True)
        self.addCleanup(synchronizer.stop)
        synchronizer.read([node.uuid])
        self.check_events("POWER_OFF")

    def test_what_another_conductor_has_found_meanwhile_counts(self) -> None:
        """Or Nova would believe the older state, and switch the machine of a running server off."""
        self.nova.pause, self.nova.refusals = 0.3, [503]
        node = self.node()
        self.switch(node, states.POWER_OFF, states.POWER_OFF)
        conductor_case.eventually(lambda: self.nova.requests, "Nova refuses the first time")
        nodes.set_always(self.db, node.uuid, {"power_state": states.POWER_ON})
        self.check_events("POWER_ON")

    def test_a_machine_without_a_server_is_not_its_business(self) -> None:
        self.switch(self.node(instance_uuid=None), states.POWER_OFF, states.POWER_OFF)
        self.conductor.services.nova.close(conductor_case.PATIENCE)
        self.assertEqual([], self.nova.requests)

    def test_a_slow_nova_keeps_no_machine_waiting(self) -> None:
        self.nova.pause = 3600  # the server's threads end with the process
        node = self.node()
        for target in (states.POWER_OFF, states.POWER_ON, states.POWER_OFF):
            self.switch(node, target, target)
        self.assertEqual(1, len(self.nova.requests))
