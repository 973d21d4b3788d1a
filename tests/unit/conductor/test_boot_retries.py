"""Machines that were to boot the agent, and whose agent never calls, are restarted; others are left alone."""

from typing import Any

from ingot.common import clock, states
from ingot.conductor.boot_retries import BootRetrier
from ingot.db import models, nodes
from tests import conductor_case, database, sql_counter

SILENT: dict[str, Any] = {
    "provision_state": states.DEPLOYWAIT,
    "power_state": states.POWER_ON,
    "flow": "deploy",
    "step_state": states.StepState.WAITING,
    "step_started_at": clock.after(-1800),
    "boot_interface": "ipxe",
    "power_interface": "fake",
    "management_interface": "fake",
    "boot_config": {"target": "ramdisk", "kernel": "http://x/k", "initrd": "http://x/i"},
    "agent_token": "t" * 43,
    "agent_token_at": clock.now(),
}


class BootRetriesTest(conductor_case.ConductorCase):
    starts = False

    def configure(self) -> None:
        self.conf.set_override("enabled_boot_interfaces", ["fake", "ipxe"])
        self.conf.set_override("boot_retry_timeout", 300, group="pxe")
        self.conf.set_override("hash_ring_reset_interval", 24 * 3600)

    def setUp(self) -> None:
        super().setUp()
        self.addCleanup(self.conductor.queues.stop, conductor_case.PATIENCE)
        self.conductor.membership.register()
        self.notified: list[str] = []
        self.conductor.queues.notify = lambda uuid, _why: self.notified.append(uuid)  # type: ignore[method-assign]
        services = self.conductor.services
        self.retrier = BootRetrier(services, self.conductor.queues, self.conductor.membership.owns)

    def silent(self, seconds: float = 400, **columns: Any) -> models.Node:
        """Return a node whose wait for the agent began some seconds ago, in a step that began long before."""
        values = {name: "fake" for name in models.table(models.Node).c.keys() if name.endswith("_interface")}
        values |= {"network_interface": "noop", "storage_interface": "noop"}
        return database.make_node(
            self.db, **{**values, **SILENT, "provision_updated_at": clock.after(-seconds), **columns}
        )

    def retry(self) -> None:
        self.retrier.retry_boots()
        conductor_case.eventually(lambda: not self.conductor.queues.read_load().nodes, "the restarts were requested")

    def row(self, node: models.Node) -> models.Node:
        return nodes.get(self.db, node.uuid)

    def test_a_restart_is_requested_and_the_next_agent_gets_a_token_of_its_own(self) -> None:
        node = self.silent()
        self.retry()
        found = self.row(node)
        self.assertEqual(states.REBOOT, found.power_request["target"])
        self.assertTrue(found.power_request["keeps_error"])
        self.assertIsNone(found.agent_token)
        self.assertIsNone(found.reservation)
        self.assertEqual((states.DEPLOYWAIT, "deploy"), (found.provision_state, found.flow))
        self.assertEqual([node.uuid], self.notified)

    def test_it_is_not_restarted_again_before_the_same_time_is_over(self) -> None:
        node = self.silent()
        self.retry()
        with self.db.transaction() as connection:
            connection.execute(nodes.NODES.update().values(power_request={}))
        self.retry()
        self.assertEqual({}, self.row(node).power_request)
        info = {"boot_retried_at": clock.iso(clock.after(-301))}
        with self.db.transaction() as connection:
            connection.execute(nodes.NODES.update().values(driver_internal_info=info))
        self.retry()
        self.assertNotEqual({}, self.row(node).power_request)

    def test_others_are_left_alone(self) -> None:
        others = [
            self.silent(seconds=200),
            self.silent(step_state=states.StepState.POLLING),
            self.silent(step_state=states.StepState.WATCHING),
            self.silent(driver_internal_info={"agent": {"offered": {"clean": {}}}}),  # restarted in a later step
            self.silent(agent_url="https://10.0.0.9:9999"),
            self.silent(provision_state=states.DEPLOYING),
            self.silent(boot_config={"target": "disk"}),
            self.silent(boot_config={"target": "ramdisk", "media": {"ticket": "x"}}),
            self.silent(reservation="another"),
            self.silent(maintenance=True),
            self.silent(conductor_group="elsewhere"),
        ]
        self.retry()
        for number, node in enumerate(others):
            self.assertEqual({}, self.row(node).power_request, number)
        self.assertEqual([], self.notified)

    def test_a_look_costs_one_statement(self) -> None:
        self.conductor.membership.owns(self.silent(seconds=1))
        with sql_counter.counting(self.db) as counted:
            self.retrier.retry_boots()
        self.assertEqual(1, len(counted), counted)
