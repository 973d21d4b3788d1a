"""What the real agent finds in a machine."""

import testtools

from tests.gate.real_machine.bench import Bench


class InspectionTest(testtools.TestCase):
    def test_the_inventory_is_the_machines(self) -> None:
        bench = self.useFixture(Bench("look"))
        uuid = bench.enroll("uefi", inspect_interface="agent")
        bench.ask(uuid, "manage", "manageable")
        bench.ask(uuid, "inspect", "manageable")
        found = bench.user.get(f"/v1/nodes/{uuid}/inventory")["inventory"]
        disks = [bench.disk(number) for number in range(2)]
        self.assertEqual(
            sorted((disk["serial"], disk["size"]) for disk in disks),
            sorted((disk["serial"], disk["size"]) for disk in found["disks"]),
        )
        self.assertEqual(bench.machine["macs"], [card["mac_address"] for card in found["interfaces"]])
        self.assertEqual("uefi", found["boot"]["current_boot_mode"])
        self.assertEqual("rack", found["system_vendor"]["product_name"])
        self.assertEqual("off", bench.rack.control.machine(bench.name)["power"])
        bench.check_what_was_said()
