"""The contract of inspect interfaces that ask the BMC."""

from ingot.driver_kit.contracts.base import ContractTest


class InspectContract(ContractTest):
    def test_what_is_known_of_the_node_is_kept(self) -> None:
        self.task.set(properties={"cpus": 4, "mine": "x", "memory_mb": 1, "cpu_arch": "x86_64"})
        for _again in range(2):
            self.finish(lambda task: task.driver.inspect.inspect_hardware(task))
        self.assertEqual("x", self.task.node.properties["mine"])

    def test_what_it_left_is_removed_any_time(self) -> None:
        for _again in range(2):
            self.task.driver.inspect.clean_up(self.task)


class OutOfBandContract(ContractTest):
    """What those have besides that ask the BMC."""

    def test_the_machine_is_described(self) -> None:
        task = self.task
        self.finish(lambda task: task.driver.inspect.inspect_hardware(task))
        found, properties = task.found[0], task.node.properties
        self.assertEqual(self.bench.macs(), [card["mac_address"] for card in found["interfaces"]])
        self.assertEqual("x86_64", properties["cpu_arch"])
        self.assertGreater(properties["memory_mb"], 0)
        self.assertIn(found["boot"]["current_boot_mode"], ("uefi", "bios"))

    def test_the_disks_are_those_of_the_machine(self) -> None:
        self.finish(lambda task: task.driver.inspect.inspect_hardware(task))
        found = self.task.found[0]
        self.assertEqual([2 * 1024**3] * 6, [disk["size"] for disk in found["disks"]])
        self.assertEqual(1, self.task.node.properties["local_gb"])
        self.assertTrue(found["system_vendor"]["serial_number"])
        self.assertTrue(found["system_vendor"]["sku"])

    def test_the_switch_at_a_port_is_named(self) -> None:
        self.finish(lambda task: task.driver.inspect.inspect_hardware(task))
        heard = self.task.found[1]["parsed_lldp"]
        first = self.bench.macs()[0]
        self.assertRegex(heard[first].pop("switch_port_id"), r"^Ethernet\d+/1$")
        expected = {
            "switch_chassis_id": "02:00:00:00:00:01",
            "switch_system_name": "rack-switch",
            "switch_system_description": "Switch of the virtual rack",
            "switch_port_management_vlan_id": 7,
        }
        self.assertEqual({first: expected}, heard)

    def test_a_reading_bears_what_passes(self) -> None:
        self.assert_borne(lambda: self.finish(lambda task: task.driver.inspect.inspect_hardware(task)))

    def test_a_bmc_that_is_silent_is_reported_in_time(self) -> None:
        self.assert_silence_ends(lambda: self.task.driver.inspect.inspect_hardware(self.task))
