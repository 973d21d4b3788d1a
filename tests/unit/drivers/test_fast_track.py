"""When the agent that runs on a machine is used, and when a new one is booted."""

from typing import Any, ClassVar

from ingot.common import clock, states
from ingot.drivers.agent import booting
from ingot.drivers.interfaces import results
from tests.unit.drivers import fakes, http_agent


class Recording:
    """Stands for the network and the storage interface; notes what is done to the machine's connections."""

    def __init__(self) -> None:
        self.done: list[str] = []

    def __getattr__(self, name: str) -> Any:
        return lambda _task: self.done.append(name)


ENTER = ["unconfigure_tenant_networks", "add_provisioning_network"]


class FastTrack(fakes.DriverTestCase):
    options: ClassVar[dict[str, Any]] = {
        "deploy__fast_track": True,
        "deploy__deploy_kernel": "http://files/kernel",
        "deploy__deploy_ramdisk": "http://files/initrd",
        "agent__command_timeout": 30,
        "agent__max_command_attempts": 1,
    }
    columns: ClassVar[dict[str, Any]] = {
        "instance_info": {"image_source": "http://127.0.0.1:1/one.raw", "image_checksum": "a" * 64},
        "deploy_interface": "direct",
        "boot_interface": "ipxe",
        "power_state": states.POWER_ON,
    }

    def setUp(self) -> None:
        super().setUp()
        self.agent = http_agent.HttpAgent()
        self.addCleanup(self.agent.stop)

    def with_agent(self, **columns: Any) -> fakes.MemoryTask:
        return self.task(**{**self.agent.columns(), "agent_last_heartbeat": clock.now(), **columns})

    def boots(self, task: fakes.MemoryTask) -> bool:
        """Return whether the step ``deploy`` boots an agent."""
        task.memory.clear()
        answer = self.run_to_end(lambda: task.driver.deploy.deploy(task))
        return isinstance(answer, results.WaitForAgent)

    def test_an_agent_that_calls_and_answers_is_used(self) -> None:
        task = self.with_agent()
        self.assertEqual(results.DONE, task.driver.deploy.prepare(task))
        self.assertEqual(results.DONE, task.driver.deploy.prepare_cleaning(task))
        self.assertFalse(self.boots(task))
        self.assertEqual(http_agent.TOKEN, task.node.agent_token)
        self.assertEqual({}, task.node.boot_config)

    def test_a_network_that_fails_at_first_is_entered_by_the_retry(self) -> None:
        task = self.with_agent()
        task.driver.deploy.prepare(task)
        task.set(agent_url="https://127.0.0.1:1")
        networks, _volumes = self.recorded(task)
        task.driver.network.add_provisioning_network = None  # type: ignore[method-assign]
        self.assertRaises(TypeError, self.run_to_end, lambda: task.driver.deploy.deploy(task))
        del task.driver.network.add_provisioning_network
        self.assertIsInstance(self.run_to_end(lambda: task.driver.deploy.deploy(task)), results.WaitForAgent)
        self.assertEqual(ENTER, networks[-2:])

    def recorded(self, task: fakes.MemoryTask) -> tuple[list[str], list[str]]:
        """Record what happens to networks and volumes from now on.

        The real storage interface still says what is written.
        """
        network, storage = Recording(), Recording()
        storage.should_write_image = task.driver.storage.should_write_image  # type: ignore[attr-defined]
        network.needs_power = lambda _task: False  # type: ignore[attr-defined]
        task.driver.network, task.driver.storage = network, storage
        return network.done, storage.done

    def test_volumes_are_attached_also_for_an_agent_that_is_there(self) -> None:
        task = self.with_agent()
        networks, volumes = self.recorded(task)
        self.assertEqual(results.DONE, task.driver.deploy.prepare(task))
        self.assertEqual(([], ["attach_volumes"]), (networks, volumes))

    def test_one_that_goes_after_the_machine_was_prepared_is_replaced_on_the_right_network(self) -> None:
        for gone, expected in (({"agent_url": "https://127.0.0.1:1"}, ENTER), ({}, [])):
            task = self.with_agent()
            networks, volumes = self.recorded(task)
            self.assertEqual(results.DONE, task.driver.deploy.prepare(task))
            task.set(**gone)
            self.assertEqual(bool(gone), self.boots(task))
            self.assertEqual((expected, ["attach_volumes"]), (networks, volumes))

    def test_a_machine_that_was_prepared_without_one_enters_its_networks_once(self) -> None:
        task = self.with_agent(agent_last_heartbeat=clock.after(-301))
        networks, volumes = self.recorded(task)
        self.run_to_end(lambda: task.driver.deploy.prepare(task))
        self.assertTrue(self.boots(task))
        self.assertEqual((ENTER, ["attach_volumes"]), (networks, volumes))

    def test_one_that_is_unresponsive_gone_or_on_a_machine_that_is_off_is_not(self) -> None:
        for columns in (
            {"agent_last_heartbeat": clock.after(-301)},
            {"agent_last_heartbeat": None},
            {"power_state": states.POWER_OFF},
            {"agent_url": "https://127.0.0.1:1"},  # no server listens there
        ):
            self.assertTrue(self.boots(self.with_agent(**columns)), columns)

    def test_without_the_option_a_new_one_is_booted(self) -> None:
        task = self.with_agent()
        task.conf.set_override("fast_track", False, group="deploy")
        self.assertTrue(self.boots(task))
        self.assertEqual("ramdisk", task.node.boot_config["target"])

    def test_a_boot_that_has_begun_is_not_cut_short_by_the_old_agent(self) -> None:
        """The machine is on its way down, and its agent calls a last time."""
        task = self.with_agent(agent_last_heartbeat=clock.after(-301))
        self.assertFalse(results.has_begun(task))
        booting.run_unless_running(task, lambda _task: results.PollAfter(), *booting.BOOT)
        self.assertTrue(results.has_begun(task))
        task.set(agent_last_heartbeat=clock.now())
        self.assertIsInstance(booting.run_unless_running(task, *booting.BOOT), results.WaitForAgent)
        self.assertIsNone(task.node.agent_token)

    def test_cleaning_leaves_it_running(self) -> None:
        task = self.with_agent()
        self.assertEqual(results.DONE, task.driver.deploy.tear_down_cleaning(task))
        self.assertEqual(states.POWER_ON, task.node.power_state)
        task.conf.set_override("fast_track", False, group="deploy")
        self.run_to_end(lambda: task.driver.deploy.tear_down_cleaning(task))
        self.assertEqual((states.POWER_OFF, None), (task.node.power_state, task.node.agent_url))
