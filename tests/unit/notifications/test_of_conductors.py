"""Conductors tell of the states that nodes go through, and of power changes that end or were found."""

from concurrent import futures
from typing import Any

from ingot.common import clock, states
from ingot.conductor.power import PowerSynchronizer
from ingot.db import node_crud, nodes
from ingot.drivers.interfaces.power import Reading
from tests import conductor_case, database, notices


class ConductorsTest(conductor_case.ConductorCase):
    def configure(self) -> None:
        notices.switch_on(self.conf)

    def take(self) -> list[dict[str, Any]]:
        return notices.take(self.conductor.services.notifier)

    def test_a_flow(self) -> None:
        node = database.make_node(self.db, provision_state=states.MANAGEABLE)
        node_crud.change_traits(self.db, node, ["CUSTOM_A"])
        self.run_flow(node, "automated_clean", states.CLEANING)
        told = [message for message in self.take() if "provision_set" in message["event_type"]]
        last = notices.data(told[-1])
        self.assertEqual("baremetal.node.provision_set.end", told[-1]["event_type"])
        self.assertEqual("ironic-conductor.conductor-1", told[-1]["publisher_id"])
        self.assertEqual(("cleaning", "available", "done"), (*_previous(last), last["event"]))
        self.assertEqual(["CUSTOM_A"], last["traits"])
        self.assertEqual("NodeSetProvisionStatePayload", told[-1]["payload"]["ironic_object.name"])
        self.assertEqual("1.18", told[-1]["payload"]["ironic_object.version"])

    def test_a_flow_that_fails(self) -> None:
        node = database.make_node(self.db, provision_state=states.ENROLL, driver_info={"fake_power_error": True})
        self.conf.set_override("enabled_power_interfaces", ["fake"])
        nodes.set_always(self.db, node.uuid, {"power_interface": "no-such"})
        self.run_flow(node, "verify", states.VERIFYING)
        told = self.take()[-1]
        self.assertEqual(("baremetal.node.provision_set.error", "ERROR"), (told["event_type"], told["priority"]))
        self.assertIn("no-such", notices.data(told)["last_error"])

    def test_a_power_change(self) -> None:
        node = database.make_node(self.db, provision_state=states.AVAILABLE, power_state=states.POWER_OFF)
        asked = {
            "target_power_state": states.POWER_ON,
            "power_request": {"target": states.REBOOT},
            "due_at": clock.now(),
        }
        nodes.set_always(self.db, node.uuid, {**asked, "due_at": clock.now()})
        self.notify(node)
        self.settled(node)
        told = self.take()
        self.assertEqual(["baremetal.node.power_set.end"], [message["event_type"] for message in told])
        self.assertEqual((states.REBOOT, states.POWER_ON), _power(notices.data(told[0])))

    def test_a_state_that_was_found(self) -> None:
        node = database.make_node(self.db, provision_state=states.AVAILABLE, power_state=states.POWER_ON)
        found: futures.Future[Reading] = futures.Future()
        found.set_result(Reading(states.POWER_OFF))
        fake: Any = self.conductor.services.hardware.interface("power", "fake")
        fake.start_reading = lambda _task: found
        self.conf.set_override("force_power_state_during_sync", False, group="conductor")
        synchronizer = PowerSynchronizer(self.conductor.services, lambda _node: True)
        self.addCleanup(synchronizer.stop)
        synchronizer.read([node.uuid])
        conductor_case.eventually(lambda: not synchronizer.running, "the machine is read")
        told = self.take()
        self.assertEqual(["baremetal.node.power_state_corrected.success"], [one["event_type"] for one in told])
        self.assertEqual((states.POWER_ON, states.POWER_OFF), _corrected(notices.data(told[0])))

    def test_a_console(self) -> None:
        node = database.make_node(self.db, provision_state=states.ACTIVE)
        self.conductor.endpoint.set_console({}, node.uuid, enabled=True)
        told = self.take()
        self.assertEqual(
            ["baremetal.node.console_set.start", "baremetal.node.console_set.end"],
            [message["event_type"] for message in told],
        )
        self.assertEqual([False, True], [notices.data(message)["console_enabled"] for message in told])


def _previous(data: dict[str, Any]) -> tuple[str, str]:
    return data["previous_provision_state"], data["provision_state"]


def _power(data: dict[str, Any]) -> tuple[str, str]:
    return data["to_power"], data["power_state"]


def _corrected(data: dict[str, Any]) -> tuple[str, str]:
    return data["from_power"], data["power_state"]
