"""IPMI against real BMCs: what they do, and what they do not answer."""

import select
import socket
import threading
import time
from collections.abc import Callable
from concurrent import futures
from typing import Any, ClassVar, Self

import fixtures

from ingot.common import errors, states
from ingot.drivers.interfaces import bmc_loop, power_control, results
from ingot.drivers.interfaces.vendor import OF_NODE, VendorCall, call_method
from ingot.drivers.ipmi import base, readings, session
from tests.functional.drivers.base import DriverRackTest

RAKP2 = 0x13
STATUS = session.Request(0x00, 0x01)


def begin(address: session.Address, timeout: float) -> "futures.Future[list[bytes]]":
    """Request the status without waiting for the answer."""
    return bmc_loop.submit(session.call_async(address, timeout, STATUS))


class LossyRelay:
    """Passes packets on to a BMC and back, but for some.

    :param lost: whether a packet is, given its number, counted in both directions, and its content.
    """

    def __init__(self, bmc_port: int, lost: Callable[[int, bytes], bool]) -> None:
        self._bmc = ("127.0.0.1", bmc_port)
        self._lost = lost
        self._front = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._front.bind(("127.0.0.1", 0))
        self._back = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.port: int = self._front.getsockname()[1]
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._relay, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._ended.set()
        self._thread.join()
        self._front.close()
        self._back.close()

    def _relay(self) -> None:
        passed, client = 0, None
        while not self._ended.is_set():
            for ready in select.select([self._front, self._back], [], [], 0.05)[0]:
                packet, sender = ready.recvfrom(4096)
                passed += 1
                client = sender if ready is self._front else client
                if self._lost(passed, packet):
                    continue
                if ready is self._front:
                    self._back.sendto(packet, self._bmc)
                else:
                    self._front.sendto(packet, client)


class IPMITest(DriverRackTest):
    settings: ClassVar[dict[str, Any]] = {"machines": 20}

    def _address(self, index: int = 0, **changes: Any) -> session.Address:
        port = self.rack.machines[index]["bmc_port"]
        return session.Address("127.0.0.1", port, "admin", "password")._replace(**changes)

    def test_an_interrupt_arrives_if_the_machine_is_on(self) -> None:
        management = self.task.driver.management
        refused = self.assertRaises(errors.HardwareError, management.inject_nmi, self.task)
        self.assertIn("not supported in present state", refused.message)
        self.finish(power_control.power_on)
        management.inject_nmi(self.task)
        log = self.rack.control.log(self.name)
        self.assertEqual(2, len([line for line in log if "non-maskable interrupt" in line]), log)

    def test_the_light_of_the_chassis(self) -> None:
        management = self.task.driver.management
        (light,) = management.get_supported_indicators(self.task)
        for state, bits in (("on", 2), ("off", 0)):
            management.set_indicator_state(self.task, light, state)
            self.assertEqual(state, management.get_indicator_state(self.task, light))
            self.assertEqual(bits, int(self.ipmitool("raw", "0x00", "0x01").stdout.split()[2], 16) >> 4 & 3)

    def call(self, name: str, http_method: str, **arguments: Any) -> Any:
        """Call a method of the vendor interface."""
        task = self.task
        task.set(vendor_interface="ipmitool")
        task.driver, task.missing = task.hardware.compose(task.node)
        return call_method(task.driver.vendor, OF_NODE, task, VendorCall(name, http_method, arguments))

    def test_sensors_are_what_another_client_sees(self) -> None:
        found = {one["name"]: one for one in self.call("get_sensors", "GET")}
        listed = self.ipmitool("sdr", "elist").stdout.splitlines()
        self.assertEqual(sorted(line.split("|")[0].strip() for line in listed), sorted(found))
        inlet = found["Inlet Temp"]
        self.assertEqual((19.0, "OK", []), (inlet["reading"], inlet["health"], inlet["states"]))
        self.assertEqual((38, 42), tuple(inlet["thresholds"][f"upper_{name}"] for name in ("non_critical", "critical")))
        self.assertEqual((1000.0, 12.0), (found["Fan 1"]["reading"], found["12V"]["reading"]))
        for fault in ("too_hot", "drive_failed"):
            self.rack.control.order_fault(self.name, fault)
        found = {one["name"]: one for one in self.call("get_sensors", "GET")}
        self.assertEqual((99.0, "Critical"), (found["Inlet Temp"]["reading"], found["Inlet Temp"]["health"]))
        self.assertEqual("Critical", found["Drive 0"]["health"])

    def test_the_event_log_is_read_and_cleared(self) -> None:
        self.assertEqual([], self.call("get_sel", "GET"))
        for target in (states.POWER_ON, states.POWER_OFF):
            self.finish(lambda task, target=target: power_control.change(task, target))
        lines = self.ipmitool("sel", "list").stdout.splitlines()
        events = self.call("get_sel", "GET")
        self.assertEqual((2, [True, False]), (len(lines), [one["ended"] for one in events]))
        self.assertEqual({"Power Unit"}, {one["type"] for one in events})
        self.call("clear_sel", "DELETE")
        self.assertEqual([], self.call("get_sel", "GET"))
        self.finish(power_control.power_on)
        self.step("clear_sel", "management", "clean")
        self.assertEqual("", self.ipmitool("sel", "list").stdout)

    def test_raw_requests_and_restarts_of_the_bmc(self) -> None:
        self.call("send_raw", "POST", raw_bytes="0x00 0x04 0 1")
        self.assertEqual(2, int(self.ipmitool("raw", "0x00", "0x01").stdout.split()[2], 16) >> 4 & 3)
        self.step("send_raw", "vendor", "clean", raw_bytes="0x00 0x04 0x00")
        self.assertEqual(0, int(self.ipmitool("raw", "0x00", "0x01").stdout.split()[2], 16) >> 4 & 3)
        for wrong in ("", "0x00", "0x00 0x100", "a b", 7):
            self.assertRaises(errors.Invalid, self.call, "send_raw", "POST", raw_bytes=wrong)
        self.assertRaises(errors.HardwareError, self.call, "send_raw", "POST", raw_bytes="0x2c 0x77")
        for warm in (True, False):
            self.call("bmc_reset", "POST", warm=warm)
        self.assertRaises(errors.Invalid, self.call, "bmc_reset", "POST", warm="very")
        self.rack.control.order_fault(self.name, "bmc_silent")
        timer = threading.Timer(1.5, self.rack.control.clear_faults, (self.name,))
        self.task.memory = {"sent": time.time()}
        timer.start()
        self.addCleanup(timer.join)
        self.task.conf.set_override("command_retry_timeout", 1, "ipmi")
        management, answers = self.task.driver.management, []
        while not answers or isinstance(answers[-1], results.PollAfter):
            answers.append(management.reset_bmc(self.task))
        self.assertEqual(results.DONE, answers[-1])

    def test_requests_are_bridged_as_another_client_does(self) -> None:
        """The rack has a controller at address 0x72 of channel 6, and one at 0x82 of channel 7 that leads there too."""
        target = {"ipmi_target_channel": "6", "ipmi_target_address": "0x72"}
        transit = {"ipmi_transit_channel": 7, "ipmi_transit_address": 0x82}
        device_id = session.Request(0x06, 0x01)
        for kind, keys, words in (
            ("single", target, ("-b", "6", "-t", "0x72")),
            ("dual", {**target, **transit}, ("-b", "6", "-t", "0x72", "-B", "7", "-T", "0x82")),
        ):
            self.assertIn("72", self.ipmitool(*words, "raw", "0x06", "0x01").stdout.split()[0], kind)
            self.task.set(driver_info={**self.task.node.driver_info, **keys, "ipmi_bridging": kind})
            self.assertEqual(0x72, base.call(self.task, device_id)[0][0], kind)
            for target_state in (states.POWER_ON, states.POWER_OFF):
                self.finish(lambda task, target=target_state: power_control.change(task, target))
            self.assertEqual(4, len(base.converse(self.task, readings.read_sensors, 3)), kind)
        self.task.set(driver_info={**self.task.node.driver_info, "ipmi_target_address": 0x74})
        error = self.assertRaises(errors.HardwareError, base.call, self.task, device_id)
        self.assertIn(self._address().where, error.message)

    def test_cipher_suites(self) -> None:
        """The rack's BMCs have suite 3."""
        for suites in ((17, 3), (3,)):
            self.assertEqual(1, len(session.call(self._address(suites=suites), 5, STATUS)))
        error = self.assertRaises(errors.HardwareError, session.call, self._address(suites=(17,)), 5, STATUS)
        self.assertIn("cipher suite 17", error.message)

    def test_wrong_credentials_and_no_answer_are_distinct(self) -> None:
        for changes in ({"password": "wrong"}, {"username": "missing"}):
            error = self.assertRaises(errors.HardwareError, session.call, self._address(**changes), 5, STATUS)
            self.assertNotIsInstance(error, errors.HardwareUnreachable)
            self.assertIn("ipmi_username and ipmi_password", error.message)

    def test_an_unresponsive_bmc_is_reported_in_time_and_works_again_later(self) -> None:
        self.rack.control.order_fault(self.name, "bmc_silent")
        began = time.monotonic()
        error = self.assertRaises(errors.HardwareUnreachable, session.call, self._address(), 2, STATUS)
        self.assertTrue(1.5 < time.monotonic() - began < 20)
        self.assertIn(self._address().where, error.message)
        self.rack.control.clear_faults(self.name)
        self.assertEqual(0, session.call(self._address(), 5, STATUS)[0][0] & 1)

    def test_what_was_lost_is_sent_again(self) -> None:
        self.rack.control.order_fault(self.name, "bmc_silent")
        timer = threading.Timer(1.5, self.rack.control.clear_faults, (self.name,))
        timer.start()
        self.addCleanup(timer.join)
        self.assertEqual(0, session.call(self._address(), 10, STATUS)[0][0] & 1)

    def test_an_answer_that_was_lost_is_asked_for_again(self) -> None:
        for number in range(1, 12):  # one packet is lost, at each place of log-in and request in turn
            with LossyRelay(self._address().port, lambda passed, _packet, n=number: passed == n) as relay:
                answers = session.call(self._address(port=relay.port), 10, STATUS, STATUS)
                self.assertEqual(2, len(answers), number)

    def test_a_bmc_that_rejects_the_user_name_by_not_answering_is_reported_as_such(self) -> None:
        with LossyRelay(self._address().port, lambda _passed, packet: packet[5] == RAKP2) as relay:
            error = self.assertRaises(errors.HardwareError, session.call, self._address(port=relay.port), 8, STATUS)
        self.assertNotIsInstance(error, errors.HardwareUnreachable)
        self.assertIn("check driver_info ipmi_username", error.message)

    def test_a_log_in_that_had_no_time_says_nothing_about_the_name(self) -> None:
        with LossyRelay(self._address().port, lambda _passed, packet: packet[5] == RAKP2) as relay:
            address = self._address(port=relay.port)
            self.assertRaises(errors.HardwareUnreachable, session.call, address, 1.5, STATUS)

    def test_a_name_without_address_is_reported(self) -> None:
        nowhere = self._address(host="no-such-host.invalid")
        error = self.assertRaises(errors.HardwareUnreachable, session.call, nowhere, 5, STATUS)
        self.assertIn("ipmi_address", error.message)

    def test_no_thread_waits_for_name_servers_that_others_ask(self) -> None:
        ask, answered = socket.getaddrinfo, threading.Event()
        self.addCleanup(answered.set)

        def slowly(host: str, port: int, family: int = 0, type: int = 0, proto: int = 0, flags: int = 0) -> Any:
            if host == "slow.invalid" and not flags & socket.AI_NUMERICHOST:
                answered.wait(60)
            return ask(host, port, family, type, proto, flags)

        self.useFixture(fixtures.MonkeyPatch("socket.getaddrinfo", slowly))
        named = self._address(host="slow.invalid")
        unanswered = [begin(named._replace(port=port), 60) for port in range(1, 101)]
        self.assertEqual(1, len(session.call(self._address(), 30, STATUS)))
        answered.set()
        self.assertEqual({errors.HardwareUnreachable}, {type(reading.exception()) for reading in unanswered})

    def test_a_request_that_the_bmc_refuses_is_named(self) -> None:
        error = self.assertRaises(errors.HardwareError, session.call, self._address(), 5, session.Request(0x2C, 0x77))
        self.assertIn("0x2c/0x77", error.message)

    def test_many_threads_and_many_bmcs_with_an_unresponsive_one_among_them(self) -> None:
        self.rack.control.order_fault(self.name, "bmc_silent")
        self.rack.control.order_fault(self.rack.machines[1]["name"], "bmc_wrong_password")
        outcomes: dict[int, list[str]] = {index: [] for index in range(20)}

        def ask(index: int) -> None:
            try:
                session.call(self._address(index), 2 if index == 0 else 60, STATUS)
                outcomes[index].append("answered")
            except errors.HardwareError as exc:
                outcomes[index].append(type(exc).__name__)

        threads = [threading.Thread(target=ask, args=(number % 20,)) for number in range(100)]
        began = time.monotonic()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertTrue(time.monotonic() - began < 50)
        self.assertEqual(["HardwareUnreachable"] * 5, outcomes[0])
        self.assertEqual(["HardwareError"] * 5, outcomes[1])
        self.assertEqual([["answered"] * 5] * 18, [outcomes[index] for index in range(2, 20)])

    def test_unresponsive_bmcs_take_no_threads_and_delay_no_other(self) -> None:
        for machine in self.rack.machines[1:]:
            self.rack.control.order_fault(machine["name"], "bmc_silent")
        session.call(self._address(), 60, STATUS)
        threads = threading.active_count()
        silent = [begin(self._address(index), 3) for index in range(1, 20) for _again in range(10)]
        self.assertEqual(1, len(session.call(self._address(), 60, STATUS)))
        self.assertLess(threading.active_count(), threads + len(silent) // 4)
        self.assertEqual({errors.HardwareUnreachable}, {type(reading.exception()) for reading in silent})

    def test_a_reading_that_is_waited_for_elsewhere_tells_power_and_health(self) -> None:
        power = self.task.driver.power
        self.assertEqual((states.POWER_OFF, "OK", ()), power.start_reading(self.task).result(60)[:3])
        self.rack.control.order_fault(self.name, "drive_failed")
        self.finish(power_control.power_on)
        expected = (states.POWER_ON, "Warning", ("drive fault",))
        self.assertEqual(expected, power.start_reading(self.task).result(60)[:3])
        self.rack.control.order_fault(self.name, "bmc_silent")
        self.assertIsInstance(power.start_reading(self.task).exception(60), errors.HardwareUnreachable)

    def test_calls_note_whether_the_bmc_answers(self) -> None:
        power, circuit_breakers, node = self.task.driver.power, self.task.circuit_breakers, self.task.node.uuid
        self.rack.control.order_fault(self.name, "bmc_silent")
        self.assertRaises(errors.HardwareUnreachable, power.get_power_state, self.task)
        self.assertEqual(
            (True, False), (circuit_breakers.is_unresponsive(node), circuit_breakers.can_call(power.bmc(self.task)))
        )
        self.rack.control.clear_faults(self.name)
        power.get_power_state(self.task)
        self.assertEqual(
            (False, True), (circuit_breakers.is_unresponsive(node), circuit_breakers.can_call(power.bmc(self.task)))
        )
