"""What an in-band inspection leaves behind when it has failed."""

from types import SimpleNamespace
from typing import Any, ClassVar
from unittest import mock

import testtools

from ingot.common import errors, states
from ingot.db import agents, models
from ingot.drivers.agent.inspect import AgentInspect
from ingot.drivers.interfaces import results
from tests.unit.drivers import fakes


class CleanUp(testtools.TestCase):
    """Whatever part of the surroundings fails, the rest is put back."""

    def clean_up(self, broken: str, disable_power_off: bool = False) -> list[Any]:
        done: list[Any] = []

        def part(name: str) -> Any:
            def do(*given: Any) -> None:
                done.append((name, *given[1:]))
                if name == broken:
                    raise errors.HardwareUnreachable(what=name, reason="silence")

            return do

        task: Any = SimpleNamespace(
            node=SimpleNamespace(disable_power_off=disable_power_off, driver_internal_info={}),
            set=lambda **_columns: None,
            driver=SimpleNamespace(
                power=SimpleNamespace(start_power_change=part("power"), switches=True),
                boot=SimpleNamespace(clean_up_ramdisk=part("boot")),
                network=SimpleNamespace(remove_inspection_network=part("network")),
            ),
        )
        self.assertRaises(
            errors.HardwareUnreachable, AgentInspect(conf=mock.sentinel.conf, name="agent").clean_up, task
        )
        return done

    def test_a_network_that_fails_does_not_leave_the_machine_on(self) -> None:
        for broken in ("boot", "network"):
            self.assertEqual(("power", states.POWER_OFF), self.clean_up(broken)[0])

    def test_an_unresponsive_bmc_does_not_leave_the_boot_and_the_network(self) -> None:
        self.assertEqual(["power", "boot", "network"], [name for name, *_ in self.clean_up("power")])

    def test_a_machine_that_must_stay_on_stays_on(self) -> None:
        self.assertEqual([("boot",), ("network",)], self.clean_up("network", disable_power_off=True))


class Options(fakes.DriverTestCase):
    """What ``[inspector]`` says of boot and end of an inspection."""

    options: ClassVar[dict[str, Any]] = {
        "enabled_boot_interfaces": ["ipxe"],
        "enabled_inspect_interfaces": ["agent"],
        "service_catalog__endpoint_override": "http://192.0.2.1:6385",
        "pxe__check_boot_files": False,
    }
    columns: ClassVar[dict[str, Any]] = {
        "inspect_interface": "agent",
        "boot_interface": "ipxe",
        "power_state": "power on",
    }
    bootable: ClassVar[dict[str, Any]] = {"deploy_kernel": "http://192.0.2.2/k", "deploy_ramdisk": "http://192.0.2.2/r"}

    def begin(self, driver_info: dict[str, Any] | None = None, **options: Any) -> fakes.MemoryTask:
        self.options = {**Options.options, **{f"inspector__{name}": value for name, value in options.items()}}
        task = self.task(driver_info=self.bootable if driver_info is None else driver_info)
        task.ports = [fakes.port()]
        return task

    def inspect(self, task: fakes.MemoryTask) -> Any:
        return self.run_to_end(lambda: task.driver.inspect.inspect_hardware(task))

    def finish(self, task: fakes.MemoryTask) -> None:
        self.assertEqual(results.WaitForAgent(), self.inspect(task))
        task.inspected = models.NodeInventory(node_id=1)
        self.assertEqual(results.DONE, self.inspect(task))

    def test_further_kernel_parameters_are_stronger(self) -> None:
        task = self.begin(extra_kernel_params="ipa-inspection-collectors=default,lldp  a.b=c", force_dhcp=True)
        self.inspect(task)
        words = task.node.boot_config["kernel_args"].split()
        for word in (
            *("ipa-inspection-collectors=default,lldp", "a.b=c", "ipa-collect-lldp=1"),
            *("ipa-inspection-dhcp-all-interfaces=1", "ipa-api-url=http://192.0.2.1:6385"),
            f"ipa-inspection-callback-url=http://192.0.2.1:6385/v1/continue_inspection?node_uuid={task.node.uuid}",
        ):
            self.assertIn(word, words)
        self.assertNotIn("ipa-inspection-collectors=default,logs", words)

    def test_what_is_no_parameter_is_refused(self) -> None:
        for given in ("quiet", "a='b c'", "=x", "a=b c"):
            conf = fakes.configuration()
            self.assertRaises(ValueError, conf.set_override, "extra_kernel_params", given, group="inspector")

    def test_the_machine_ends_off(self) -> None:
        task = self.begin()
        self.finish(task)
        self.assertEqual((states.POWER_OFF, {}), (task.node.power_state, task.node.boot_config))

    def test_the_machine_stays_on(self) -> None:
        for fast_track in (True, False):
            task = self.begin(power_off=False)
            task.conf.set_override("fast_track", fast_track, group="deploy")
            self.inspect(task)
            task.set(agent_url="https://192.0.2.9:9999", agent_token="token")
            self.finish(task)
            self.assertEqual((states.POWER_ON, {}), (task.node.power_state, task.node.boot_config))
            self.assertEqual(fast_track, task.node.agent_token == "token")

    def test_a_machine_that_cannot_be_booted_is_refused(self) -> None:
        task = self.begin(driver_info={})
        for call in (task.driver.inspect.validate, task.driver.inspect.inspect_hardware):
            self.assertIn("deploy_kernel", self.assertRaises(errors.Invalid, call, task).message)

    def test_another_boots_the_machine(self) -> None:
        addresses = {"ipmi_address": "192.0.2.7", "redfish_address": "https://[2001:db8::7]:8443/redfish/v1"}
        info = {**addresses, "x_address": "bmc.example.org", "y_address": 7}
        task = self.begin(driver_info=info, require_managed_boot=False)
        task.driver.inspect.validate(task)
        self.assertEqual(results.WaitForAgent(), self.inspect(task))
        self.assertEqual((states.POWER_ON, {}), (task.node.power_state, task.node.boot_config))
        self.assertEqual(["192.0.2.7", "2001:db8::7"], task.node.driver_internal_info[agents.BMC_ADDRESSES])
        self.assertEqual("pxe", task.driver.management.get_boot_device(task)["boot_device"])
        task.inspected = models.NodeInventory(node_id=1)
        self.assertEqual(results.DONE, self.inspect(task))
        self.assertEqual(states.POWER_OFF, task.node.power_state)
        self.assertNotIn(agents.BMC_ADDRESSES, task.node.driver_internal_info)
