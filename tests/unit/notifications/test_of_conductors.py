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

    def take(self, last: str) -> list[dict[str, Any]]:
        """Return the messages, the last of which is sent a moment after the write that it is about."""
        conductor_case.eventually(lambda: f"baremetal.node.{last}" in notices.list_types(), last)
        return notices.take(self.conductor.services.notifier)

    def test_a_flow(self) -> None:
        node = database.make_node(self.db, provision_state=states.MANAGEABLE)
        node_crud.change_traits(self.db, node, ["CUSTOM_A"])
        self.run_flow(node, "automated_clean", states.CLEANING)
        sent = [message for message in self.take("provision_set.end") if "provision_set" in message["event_type"]]
        last = notices.data(sent[-1])
        self.assertEqual("baremetal.node.provision_set.end", sent[-1]["event_type"])
        self.assertEqual("ironic-conductor.conductor-1", sent[-1]["publisher_id"])
        self.assertEqual(("cleaning", "available", "done"), (*_previous(last), last["event"]))
        self.assertEqual(["CUSTOM_A"], last["traits"])
        self.assertEqual("NodeSetProvisionStatePayload", sent[-1]["payload"]["ironic_object.name"])
        self.assertEqual("1.18", sent[-1]["payload"]["ironic_object.version"])

    def test_a_flow_that_fails(self) -> None:
        node = database.make_node(self.db, provision_state=states.ENROLL, driver_info={"fake_power_error": True})
        self.conf.set_override("enabled_power_interfaces", ["fake"])
        nodes.set_always(self.db, node.uuid, {"power_interface": "no-such"})
        self.run_flow(node, "verify", states.VERIFYING)
        sent = self.take("provision_set.error")[-1]
        self.assertEqual(("baremetal.node.provision_set.error", "ERROR"), (sent["event_type"], sent["priority"]))
        self.assertIn("no-such", notices.data(sent)["last_error"])

    def test_an_abort_is_no_failure(self) -> None:
        node = database.make_node(self.db, provision_state=states.MANAGEABLE)
        steps = [{"interface": "vendor", "step": "pause", "args": {"seconds": 3600}}]
        self.accept(node, "manual_clean", states.CLEANING, clean_steps=steps)
        self.notify(node)
        conductor_case.eventually(lambda: nodes.get(self.db, node.uuid).step_state == "polling", "the step polls")
        nodes.set_always(self.db, node.uuid, {"abort_requested": True, "due_at": clock.now()})
        self.notify(node)
        self.assertEqual(states.CLEANFAIL, self.settled(node).provision_state)
        sent = self.take("provision_set.end")[-1]
        self.assertEqual(("baremetal.node.provision_set.end", "INFO"), (sent["event_type"], sent["priority"]))
        self.assertEqual(
            ("abort", states.CLEANFAIL), (notices.data(sent)["event"], notices.data(sent)["provision_state"])
        )

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
        sent = self.take("power_set.end")
        self.assertEqual(["baremetal.node.power_set.end"], [message["event_type"] for message in sent])
        self.assertEqual((states.REBOOT, states.POWER_ON), _power(notices.data(sent[0])))

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
        sent = self.take("power_state_corrected.success")
        self.assertEqual(["baremetal.node.power_state_corrected.success"], [one["event_type"] for one in sent])
        self.assertEqual((states.POWER_ON, states.POWER_OFF), _corrected(notices.data(sent[0])))

    def test_a_console(self) -> None:
        node = database.make_node(self.db, provision_state=states.ACTIVE)
        self.conductor.endpoint.set_console({}, node.uuid, enabled=True)
        sent = self.take("console_set.end")
        self.assertEqual(
            ["baremetal.node.console_set.start", "baremetal.node.console_set.end"],
            [message["event_type"] for message in sent],
        )
        self.assertEqual([False, True], [notices.data(message)["console_enabled"] for message in sent])


def _previous(data: dict[str, Any]) -> tuple[str, str]:
    return data["previous_provision_state"], data["provision_state"]


def _power(data: dict[str, Any]) -> tuple[str, str]:
    return data["to_power"], data["power_state"]


def _corrected(data: dict[str, Any]) -> tuple[str, str]:
    return data["from_power"], data["power_state"]
