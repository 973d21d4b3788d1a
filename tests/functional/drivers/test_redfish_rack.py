"""Redfish against the rack's own BMCs, beside the contracts."""

from typing import Any, ClassVar

from ingot.common import errors
from ingot.drivers.redfish import connection
from tests.functional.drivers.base import DriverRackTest, RackTask
from tests.functional.rack.base import RackTest
from tests.unit.drivers import fakes


class RedfishRackCase(RackTest):
    """The first machine of a rack as a node of type redfish."""

    settings: ClassVar[dict[str, Any]] = {"redfish_base_port": 0, "redfish_task_time": 0.1}
    driver: ClassVar[str] = "redfish"

    def setUp(self) -> None:
        super().setUp()
        self.addCleanup(connection.log_out)
        description, machine = self.rack.description, self.rack.machines[0]
        conf = fakes.configuration(
            enabled_hardware_types=[self.driver],
            api__public_endpoint=self.service.url,
            conductor__power_state_change_timeout=20,
            redfish__bios_settings_timeout=20,
            redfish__read_timeout=20,
            default_inspect_interface="redfish",
        )
        info = {
            "redfish_address": machine["redfish"]["address"],
            "redfish_system_id": machine["redfish"]["system"],
            "redfish_username": "admin",
            "redfish_password": "password",
            "redfish_verify_ca": description["redfish_ca_file"],
        }
        self.task = RackTask(conf, fakes.node(driver=self.driver, driver_info=info))
        self.task.service = self.service
        self.assertEqual({}, self.task.missing)

    def step(self, interface: str, name: str, **args: Any) -> None:
        """Run a clean step to its end."""
        link = getattr(self.task.driver, interface)
        DriverRackTest.finish(
            self, lambda task: link.execute_clean_step(task, {"interface": interface, "step": name, "args": args})
        )


class RedfishRackTest(RedfishRackCase):
    def test_settings_that_are_not_taken_over_fail_the_step(self) -> None:
        self.task.conf.set_override("bios_settings_timeout", 1, "redfish")
        bios = self.task.driver.bios
        self.task.memory["requested"], self.task.memory["was_off"] = {"Sriov": "never"}, False
        error = self.assertRaises(
            errors.StepFailed, DriverRackTest.finish, self, lambda task: bios._await(task, {"Sriov": "never"})
        )
        for part in ("Sriov", "bios_settings_timeout"):
            self.assertIn(part, error.message)
