"""Adoption, inspection, rescue: flows whose work is that of one interface."""

from typing import Any
from unittest import mock

from ingot.common import clock, errors, states
from ingot.db import inventory, models, nodes
from tests import conductor_case, database

HASH = "$6$salt$hash"


class OtherVerbs(conductor_case.ConductorCase):
    def interface(self, kind: str) -> Any:
        return self.conductor.services.hardware.interface(kind, "fake")

    def ran(self, node: models.Node) -> list[tuple[str, str]]:
        return [(f"{row.interface}.{row.step}", row.state) for row in self.step_runs(node)]

    def ended_well(self, state: str, after: models.Node) -> None:
        self.assertEqual((state, None, None), (after.provision_state, after.target_provision_state, after.last_error))

    def test_an_adoption_looks_at_the_machine_and_does_not_switch_it(self) -> None:
        node = database.make_node(self.db, provision_state=states.MANAGEABLE, power_state=states.POWER_ON)
        with mock.patch.object(self.interface("power"), "start_power_change") as switched:
            after = self.run_flow(node, "adopt", states.ADOPTING)
        self.ended_well(states.ACTIVE, after)
        self.assertEqual([("power.verify_power", "done"), ("deploy.adopt", "done")], self.ran(node))
        switched.assert_not_called()

    def test_what_does_not_boot_is_not_adopted(self) -> None:
        node = database.make_node(self.db, provision_state=states.MANAGEABLE)
        with mock.patch.object(self.interface("boot"), "validate", side_effect=errors.Invalid("no boots")):
            failed = self.run_flow(node, "adopt", states.ADOPTING)
        self.assertEqual((states.ADOPTFAIL, states.ACTIVE), (failed.provision_state, failed.target_provision_state))
        self.assertIn("no boots", failed.last_error)

    def test_an_inspection_tells_when_it_was(self) -> None:
        node = database.make_node(self.db, provision_state=states.MANAGEABLE)
        before = clock.now()
        after = self.run_flow(node, "inspect", states.INSPECTING)
        self.ended_well(states.MANAGEABLE, after)
        self.assertIsNone(after.inspection_started_at)
        self.assertGreater(after.inspection_finished_at, before)
        self.assertEqual({}, after.properties)

    def test_what_an_inspection_that_was_cut_off_has_left_is_not_taken_for_its_own(self) -> None:
        node = database.make_node(self.db, provision_state=states.INSPECTFAIL, inspection_started_at=clock.now())
        inventory.save(self.db, node.id, {"cpu": {"architecture": "old"}}, {})
        found: list[object] = []
        with mock.patch.object(
            self.interface("inspect"), "inspect_hardware", lambda task: found.append(task.inventory())
        ):
            self.ended_well(states.MANAGEABLE, self.run_flow(node, "inspect", states.INSPECTING))
        self.assertEqual([None], found)

    def test_a_failed_inspection_has_not_finished(self) -> None:
        node = database.make_node(self.db, provision_state=states.MANAGEABLE, inspection_finished_at=clock.now())
        inspect = self.interface("inspect")
        with (
            mock.patch.object(inspect, "inspect_hardware", side_effect=errors.StepFailed("too dark")),
            mock.patch.object(inspect, "clean_up", side_effect=errors.StepFailed("too dirty")) as cleaned,
        ):
            failed = self.run_flow(node, "inspect", states.INSPECTING)
        self.assertEqual(
            (states.INSPECTFAIL, states.MANAGEABLE), (failed.provision_state, failed.target_provision_state)
        )
        self.assertIn("too dark", failed.last_error)
        self.assertEqual((None, None), (failed.inspection_started_at, failed.inspection_finished_at))
        cleaned.assert_called_once()

    def test_a_rescue_gets_the_hash_and_forgets_it(self) -> None:
        node = database.make_node(self.db, provision_state=states.ACTIVE)
        with mock.patch.object(self.interface("rescue"), "rescue", return_value=None) as rescue:
            after = self.run_flow(node, "rescue", states.RESCUING, rescue_password=HASH)
        self.assertEqual(HASH, rescue.call_args.args[1])
        self.ended_well(states.RESCUE, after)
        rows = [vars(row) for row in (*self.step_runs(node), *self.history(node))]
        self.assertNotIn(HASH, str(nodes.get(self.db, node.uuid).as_dict()) + str(rows))
        nodes.set_always(self.db, node.uuid, {"driver_internal_info": {"in_agent_for_service": True}})
        back = self.run_flow(node, "unrescue", states.UNRESCUING)
        self.assertNotIn("in_agent_for_service", back.driver_internal_info)  # the service that had failed is over
        self.assertEqual((states.ACTIVE, None), (back.provision_state, back.last_error))
        self.assertEqual([("rescue.rescue", "done"), ("rescue.unrescue", "done")], self.ran(node))

    def test_a_rescue_that_waits_can_be_aborted(self) -> None:
        for broken, fault in ((None, None), (errors.StepFailed("stuck"), "rescue abort failure")):
            node = database.make_node(self.db, provision_state=states.ACTIVE, power_state=states.POWER_ON)
            interface = self.interface("rescue")
            with (
                mock.patch.object(interface, "rescue", return_value=states.RESCUEWAIT),
                mock.patch.object(interface, "clean_up", side_effect=broken),
            ):
                self.accept(node, "rescue", states.RESCUING, rescue_password=HASH)
                self.notify(node)
                self.in_state(node, states.RESCUEWAIT)
                nodes.set_always(self.db, node.uuid, {"abort_requested": True, "due_at": clock.now()})
                self.notify(node)
                failed = self.settled(node)
            self.assertEqual(
                (states.RESCUEFAIL, states.RESCUE), (failed.provision_state, failed.target_provision_state)
            )
            self.assertEqual((fault, fault is not None), (failed.fault, failed.maintenance))
            self.assertEqual((states.POWER_OFF, {}), (failed.power_state, failed.request))
            self.assertIn("was aborted", failed.last_error)

    def test_an_instance_is_deleted_from_a_rescue_too(self) -> None:
        node = database.make_node(self.db, provision_state=states.RESCUE)
        with mock.patch.object(self.interface("rescue"), "clean_up", return_value=None) as cleaned:
            after = self.run_flow(node, "delete", states.DELETING)
        self.assertEqual(states.AVAILABLE, after.provision_state)
        cleaned.assert_called_once()
