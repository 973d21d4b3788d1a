"""What the keeper of consoles costs for those that it cannot open, and that none of them keeps it from the others."""

import fixtures

from ingot.common import errors
from ingot.conductor.console_keeper import ConsoleKeeper
from ingot.db import nodes
from ingot.drivers.generic import fake_console
from ingot.drivers.interfaces.shared_console import MakeStream
from ingot.drivers.interfaces.task import Task
from tests import conductor_case, database, sql_counter


class Keeper(conductor_case.ConductorCase):
    starts = False

    def configure(self) -> None:
        self.conf.set_override("enabled_console_interfaces", ["fake", "fake-graphical"])

    def setUp(self) -> None:
        super().setUp()
        self.keeper = ConsoleKeeper(self.conductor.services, lambda _node: True)
        self.consoles = self.conductor.services.consoles
        self.addCleanup(self.consoles.stop_all, "the test ends")

    def count_nodes_read(self) -> int:
        with sql_counter.counting(self.db) as counted:
            self.keeper.keep_consoles()
        return len([text for text in counted.statements if "console_interface" in text])

    def test_one_without_a_stream_is_read_again_when_its_node_has_changed(self) -> None:
        node = database.make_node(self.db, console_enabled=True, console_interface="fake-graphical")
        self.assertEqual([1, 0], [self.count_nodes_read() for _ in range(2)])
        nodes.set_always(self.db, node.uuid, {"extra": {"a": 1}})
        self.assertEqual([1, 0], [self.count_nodes_read() for _ in range(2)])

    def test_one_that_has_failed_is_read_again_after_the_pause(self) -> None:
        async def fail(_stream: fake_console.EchoStream) -> None:
            raise errors.HardwareError(what="The BMC", reason="it is broken")

        self.useFixture(fixtures.MonkeyPatch("ingot.drivers.generic.fake_console.EchoStream.attend", fail))
        node = database.make_node(self.db, console_enabled=True, console_interface="fake")
        self.assertEqual(1, self.count_nodes_read())
        conductor_case.eventually(lambda: self.consoles._consoles[node.uuid]._not_before > 0, "it has failed")
        conductor_case.eventually(lambda: not self.consoles.is_running(node.uuid), "it has ended")
        self.assertEqual(0, self.count_nodes_read())
        self.consoles._consoles[node.uuid]._not_before = 0
        self.assertEqual(1, self.count_nodes_read())

    def test_a_driver_that_fails_costs_its_own_node_only(self) -> None:
        made = [database.make_node(self.db, console_enabled=True, console_interface="fake") for _ in range(2)]
        found = fake_console.FakeConsole.find_stream

        def find_stream(interface: fake_console.FakeConsole, task: Task) -> MakeStream:
            if task.node.uuid == made[0].uuid:
                raise ValueError("odd")
            return found(interface, task)

        self.useFixture(fixtures.MonkeyPatch("ingot.drivers.generic.fake_console.FakeConsole.find_stream", find_stream))
        log = self.useFixture(fixtures.FakeLogger())
        self.keeper.keep_consoles()
        self.assertEqual([made[1].uuid], self.consoles.list_nodes())
        self.assertIn(f"Node {made[0].uuid}: opening its console failed unexpectedly", log.output)
