"""What is left of a deployment that failed: nothing outside of the machine."""

from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import fixtures

from ingot.common import errors, states
from ingot.db import models
from tests import conductor_case, database

FAILS = {"interface": "vendor", "step": "fail", "priority": 150, "args": {}}


class FailedDeployments(conductor_case.ConductorCase):
    def configure(self) -> None:
        self.conf.set_override("enabled_deploy_interfaces", ["direct", "fake"])
        self.conf.set_override("enabled_boot_interfaces", ["ipxe", "fake"])
        self.root = Path(self.useFixture(fixtures.TempDir()).path)
        self.conf.set_override("http_root", str(self.root), "deploy")

    def failed(self) -> tuple[models.Record, Path]:
        """Return the node after a deployment that had published its image, and where that was."""
        info = {"image_source": "http://images/one.raw", "image_checksum": "a" * 64}
        kernel = {"deploy_kernel": "http://h/k", "deploy_ramdisk": "http://h/r"}
        node = database.make_node(
            self.db,
            deploy_interface="direct",
            boot_interface="ipxe",
            driver_info=kernel,
            instance_info=info,
            boot_config={"target": "ramdisk"},
        )
        database.make_port(self.db, node)
        image = self.root / "ingot-images" / node.uuid / "one.raw"
        image.parent.mkdir(parents=True)
        image.touch()
        after = self.run_flow(node, "deploy", states.DEPLOYING, deploy_steps=[FAILS])
        self.assertEqual(states.DEPLOYFAIL, after.provision_state)
        self.assertIn("vendor.fail", after.last_error)
        return after, image

    def test_its_image_is_not_served_any_more_and_no_agent_boots(self) -> None:
        after, image = self.failed()
        self.assertFalse(image.exists())
        self.assertEqual(({}, states.POWER_OFF), (after.boot_config, after.power_state))

    def test_that_goes_for_a_machine_whose_bmc_refuses_to_switch_it_off(self) -> None:
        def refuse(_task: object, _target: str) -> None:
            raise errors.HardwareError(what="BMC of a test", reason="it is out of order")

        power = self.conductor.services.hardware.interface("power", "fake")
        power.start_power_change = refuse  # type: ignore[attr-defined]
        after, image = self.failed()
        self.assertFalse(image.exists())
        self.assertEqual({}, after.boot_config)

    def failed_while_on(self, power_state: Callable[[Any], str], switch: mock.Mock) -> models.Node:
        """Return a node after a failed deployment, whose machine was on.

        :param power_state: what the machine says when it is asked.
        :param switch: takes what is to be changed.
        """
        power = self.conductor.services.hardware.interface("power", "fake")
        self.enterContext(mock.patch.object(power, "start_power_change", switch))
        self.enterContext(mock.patch.object(power, "get_power_state", power_state))
        node = database.make_node(self.db, power_state=states.POWER_ON, deploy_interface="fake")
        after = self.run_flow(node, "deploy", states.DEPLOYING, deploy_steps=[FAILS])
        self.assertEqual((states.DEPLOYFAIL, None), (after.provision_state, after.target_power_state))
        self.assertIn("vendor.fail", after.last_error)
        self.assertEqual({states.POWER_OFF}, {call.args[1] for call in switch.call_args_list})
        return after

    def test_the_power_state_after_it_is_the_machines(self) -> None:
        left = [states.POWER_ON] * 3  # it takes its time
        after = self.failed_while_on(lambda _task: left.pop() if left else states.POWER_OFF, mock.Mock())
        self.assertEqual(([], states.POWER_OFF), (left, after.power_state))

    def test_a_machine_that_stays_on_is_reported_beside_the_cause(self) -> None:
        refusal = errors.HardwareError(what="BMC of a test", reason="it is out of order")
        after = self.failed_while_on(lambda _task: states.POWER_ON, mock.Mock(side_effect=(None, refusal)))
        self.assertEqual(states.POWER_ON, after.power_state)
        self.assertLess(after.last_error.index("vendor.fail"), after.last_error.index("out of order"))
