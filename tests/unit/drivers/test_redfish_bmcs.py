"""BMCs that are busy, slow, forgetful or hostile: what an operation makes of them, and how long it takes."""

import copy
import pathlib
import socket
import ssl
import threading
import time
from collections.abc import Callable
from typing import Any, ClassVar

import fixtures

from ingot.common import errors, states
from ingot.drivers.interfaces import results
from ingot.drivers.redfish import connection, tasks
from tests import patience
from tests.unit.drivers import fakes, http_agent, redfish_bmc
from tests.unit.drivers.redfish_bmc import SESSIONS, SYSTEM, Fault

RESET = f"{SYSTEM}/Actions/ComputerSystem.Reset"
ALONE = [("GET", "/redfish/v1/Systems")]
"""What finds the only machine of a BMC."""

LOGIN = {"redfish_username": redfish_bmc.USER, "redfish_password": redfish_bmc.PASSWORD}
SLOWNESS = patience.seconds(5)


class RedfishTest(fakes.DriverTestCase):
    options: ClassVar[dict[str, Any]] = {
        "enabled_hardware_types": ["redfish"],
        "redfish__read_timeout": 10,
        "redfish__connect_timeout": 2,
        "redfish__connection_retry_interval": 1,
    }

    def start(self, context: ssl.SSLContext | None = None, **kwargs: Any) -> redfish_bmc.BMC:
        bmc = redfish_bmc.BMC(context, **kwargs)
        self.addCleanup(bmc.stop)
        self.addCleanup(connection.log_out)
        return bmc

    def node(self, bmc: redfish_bmc.BMC | None = None, **info: Any) -> fakes.MemoryTask:
        address = {"redfish_address": bmc.url} if bmc is not None else {}
        return self.task(driver="redfish", driver_info={**address, **LOGIN, **info})

    def fail(self, task: fakes.MemoryTask, kind: type[errors.IngotError] = errors.HardwareError) -> errors.IngotError:  # type: ignore[override]
        """Read the power state, which must fail; return the error."""
        error: errors.IngotError = self.assertRaises(kind, task.driver.power.get_power_state, task)
        return error


class SessionTest(RedfishTest):
    def test_one_session_serves_many_operations_and_none_is_left(self) -> None:
        bmc = self.start()
        task = self.node(bmc)
        for _ in range(5):
            self.assertEqual(states.POWER_OFF, task.driver.power.get_power_state(task))
        self.assertEqual((1, 1), (bmc.log_ins, len(bmc.open)))
        self.assertEqual(1, bmc.count("GET", "/redfish/v1/"))
        connection.log_out()
        self.assertEqual({}, bmc.open)

    def test_what_an_operation_costs_a_bmc(self) -> None:
        """One connection each, no session, and no request but those that it needs."""
        bmc = self.start()
        bmc.system["Actions"]["#ComputerSystem.Reset"]["ResetType@Redfish.AllowableValues"] = ["On", "ForceOff", "Nmi"]
        task = self.node(bmc)
        power, management = task.driver.power, task.driver.management
        reset, read = ("POST", RESET), ("GET", SYSTEM)
        for call, expected in (
            (lambda: power.start_reading(task).result(), [("GET", "/redfish/v1/"), ("POST", SESSIONS), *ALONE, read]),
            (lambda: power.start_reading(task).result(), [read]),
            (lambda: power.get_power_state(task), [read]),
            (lambda: power.start_power_change(task, states.POWER_ON), [read, reset]),
            (lambda: power.start_power_change(task, states.POWER_ON), [read]),
            (lambda: power.start_power_change(task, states.POWER_OFF), [read, reset]),
            (lambda: management.get_boot_device(task), [read]),
            (lambda: management.set_boot_device(task, "pxe"), [read, read, ("PATCH", SYSTEM)]),
            (lambda: management.set_boot_mode(task, "bios"), [read, read, ("PATCH", SYSTEM)]),
            (lambda: management.inject_nmi(task), [read, reset]),
        ):
            bmc.requests.clear()
            connections = bmc.connections
            call()
            self.assertEqual(expected, bmc.requests)
            # What changes something goes over a connection of its own, which cannot have been closed meanwhile.
            self.assertLessEqual(bmc.connections - connections, 1 + sum(verb != "GET" for verb, _ in expected))
        self.assertEqual((1, 1), (bmc.log_ins, len(bmc.open)))
        connection.log_out()
        self.assertEqual({}, bmc.open)

    def test_readings_at_the_same_time_share_a_session(self) -> None:
        bmc = self.start()
        tasks = [self.node(bmc, redfish_system_id=SYSTEM) for _ in range(20)]
        readings = [task.driver.power.start_reading(task) for task in tasks]
        self.assertEqual({states.POWER_OFF}, {one.result(patience.seconds(30)).power_state for one in readings})
        self.assertEqual((1, 1, 20), (bmc.log_ins, len(bmc.open), bmc.count("GET", SYSTEM)))

    def test_a_session_that_the_bmc_has_lost_is_replaced(self) -> None:
        bmc = self.start()
        task = self.node(bmc)
        task.driver.power.get_power_state(task)
        bmc.open.clear()
        task.driver.power.start_power_change(task, states.POWER_ON)
        self.assertEqual((["On"], 2), (bmc.resets, bmc.log_ins))
        self.assertEqual(1, len(bmc.open))

    def test_a_session_belongs_to_user_password_and_kind_of_authentication(self) -> None:
        bmc = self.start()
        task = self.node(bmc)
        task.driver.power.get_power_state(task)
        error = self.fail(self.node(bmc, redfish_password="other"))
        self.assertIn("redfish_password", error.message)
        basic = self.node(bmc, redfish_auth_type="basic")
        log_ins = bmc.log_ins
        basic.driver.power.get_power_state(basic)
        self.assertEqual(log_ins, bmc.log_ins)

    def test_a_bmc_without_sessions_is_called_with_basic_authentication(self) -> None:
        bmc = self.start(sessions=False)
        task = self.node(bmc)
        self.assertEqual(states.POWER_OFF, task.driver.power.get_power_state(task))
        error = self.fail(self.node(bmc, redfish_auth_type="session"))
        self.assertIn("redfish_auth_type", error.message)

    def test_sessions_beyond_the_size_of_the_cache_are_ended(self) -> None:
        first, second = self.start(), self.start()
        for bmc in (first, second):
            task = self.node(bmc)
            task.conf.set_override("connection_cache_size", 1, "redfish")
            task.driver.power.get_power_state(task)
        deadline = time.monotonic() + patience.seconds(30)
        while first.open and time.monotonic() < deadline:
            time.sleep(0.02)
        self.assertEqual((0, 1), (len(first.open), len(second.open)))

    def test_passwords_are_in_no_message_and_no_log(self) -> None:
        log = self.useFixture(fixtures.FakeLogger(level=0))
        bmc = self.start()
        bmc.order("GET", SYSTEM, Fault(404))
        task = self.node(bmc)
        error = self.fail(task)
        for request in (("POST", SESSIONS), ("GET", SYSTEM)):  # some repeat what they do not like
            bmc.order(*request, *[Fault(503, {"Retry-After": "1"}, message=f"Base.1.0.{redfish_bmc.PASSWORD}")] * 100)
            other = self.node(bmc, redfish_auth_type="session", redfish_system_id=SYSTEM)
            other.conf.set_override("read_timeout", 2, "redfish")
            busy = self.fail(other, errors.HardwareUnreachable)
            self.assertIn("Base.1.0.***", busy.message)
            self.assertNotIn(redfish_bmc.PASSWORD, busy.message)
            bmc.faults.clear()
        bmc.order("GET", SYSTEM, Fault(403, message=f"Base.1.0.{redfish_bmc.PASSWORD}"))
        self.assertIn("Base.1.0.***", self.fail(task).message)
        task.driver.power.get_power_state(task)
        basic = self.node(bmc, redfish_auth_type="basic")
        basic.driver.power.get_power_state(basic)
        for text in (log.output, error.message, repr(task.driver.power.bmc(task))):
            self.assertNotIn(redfish_bmc.PASSWORD, text)
            self.assertNotIn("token1", text)


class BusyTest(RedfishTest):
    def test_a_busy_bmc_is_asked_again_when_it_says(self) -> None:
        bmc = self.start()
        task = self.node(bmc)
        bmc.order("POST", RESET, Fault(503, {"Retry-After": "1"}), Fault(503, {"Retry-After": "1"}))
        with redfish_bmc.measured() as taken:
            task.driver.power.start_power_change(task, states.POWER_ON)
        self.assertEqual((["On"], 3), (bmc.resets, bmc.count("POST", RESET)))
        self.assertGreater(taken[0], 1.9)

    def test_a_failing_bmc_is_asked_again_where_that_does_no_harm(self) -> None:
        bmc = self.start()
        task = self.node(bmc)
        bmc.order("POST", RESET, Fault(500), Fault(closes=True))
        task.driver.power.start_power_change(task, states.POWER_ON)
        self.assertEqual(["On"], bmc.resets)
        bmc.order("PATCH", SYSTEM, Fault(500))
        task.driver.management.set_boot_device(task, "pxe")
        self.assertEqual("Pxe", bmc.system["Boot"]["BootSourceOverrideTarget"])
        bmc.order("POST", RESET, Fault(500), Fault(500))
        self.assertRaises(errors.HardwareError, task.driver.management.inject_nmi, task)
        self.assertEqual(["On"], bmc.resets)

    def test_a_change_that_was_made_and_answered_badly_counts(self) -> None:
        bmc = self.start()
        task = self.node(bmc)
        bmc.order("POST", RESET, Fault(400, served=True))
        task.driver.power.start_power_change(task, states.POWER_ON)
        self.assertEqual(["On"], bmc.resets)
        task.driver.power.start_power_change(task, states.POWER_ON)
        self.assertEqual(["On"], bmc.resets)

    def test_a_conflict_that_passes_is_waited_for(self) -> None:
        bmc = self.start()
        task = self.node(bmc)
        bmc.order("POST", RESET, Fault(409, message="Base.1.18.ActionParameterValueConflict"))
        task.driver.power.start_power_change(task, states.POWER_ON)
        self.assertEqual(["On"], bmc.resets)

    def test_a_bmc_that_stays_busy_is_unreachable_with_what_it_says(self) -> None:
        bmc = self.start()
        bmc.order("GET", SYSTEM, *[Fault(503, {"Retry-After": "1"})] * 100)
        task = self.node(bmc)
        task.conf.set_override("read_timeout", 3, "redfish")
        with redfish_bmc.measured() as taken:
            error = self.fail(task, errors.HardwareUnreachable)
        self.assertLess(taken[0], 3 + SLOWNESS)
        for part in (bmc.url, f"GET {SYSTEM}", "503", "The fan is made of cheese."):
            self.assertIn(part, error.message)

    def test_a_refusal_is_reported_in_the_words_of_the_bmc(self) -> None:
        bmc = self.start()
        bmc.order("GET", SYSTEM, Fault(403, message="Base.1.0.InsufficientPrivilege"))
        error = self.fail(self.node(bmc))
        for part in (bmc.url, f"GET {SYSTEM}", "403", "Base.1.0.InsufficientPrivilege", "The fan is made of cheese."):
            self.assertIn(part, error.message)


class DeadlineTest(RedfishTest):
    def test_no_bmc_takes_longer_than_the_deadline(self) -> None:
        for place in ("/redfish/v1/", SYSTEM):
            for fault in (Fault(), Fault(drips=0.1)):
                bmc = self.start()
                bmc.order("GET", place, *[fault] * 9)
                task = self.node(bmc)
                task.conf.set_override("read_timeout", 1, "redfish")
                with redfish_bmc.measured() as taken:
                    error = self.fail(task, errors.HardwareUnreachable)
                self.assertLess(taken[0], 1 + SLOWNESS)
                for part in (bmc.url, f"GET {place}", "[redfish] read_timeout"):
                    self.assertIn(part, error.message)
                self.assertFalse(task.circuit_breakers.can_call(bmc.url))

    def test_a_closed_port_is_reported_at_once(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            closed = f"http://127.0.0.1:{listener.getsockname()[1]}"
        with redfish_bmc.measured() as taken:
            error = self.fail(self.node(redfish_address=closed), errors.HardwareUnreachable)
        self.assertLess(taken[0], SLOWNESS)
        self.assertIn(closed, error.message)
        self.assertIn("redfish_address", error.message)

    def test_silent_bmcs_take_no_threads_and_delay_no_other(self) -> None:
        good, silent = self.start(), [self.start() for _ in range(10)]
        task = self.node(good)
        task.driver.power.get_power_state(task)
        threads, readings = threading.active_count(), []
        for bmc in silent:
            bmc.order("GET", "/redfish/v1/", Fault())
            waiting = self.node(bmc)
            waiting.conf.set_override("read_timeout", 3, "redfish")
            readings.append(waiting.driver.power.start_reading(waiting))
        with redfish_bmc.measured() as taken:
            task.driver.power.get_power_state(task)
        self.assertLess(taken[0], 2)
        self.assertLess(threading.active_count(), threads + 2 * len(silent))
        self.assertEqual({errors.HardwareUnreachable}, {type(reading.exception()) for reading in readings})

    def test_what_is_no_redfish_says_so(self) -> None:
        bmc = self.start()
        bmc.documents[SYSTEM] = {"Id": 7, "Boot": [1], "Actions": "x"}
        error = self.fail(self.node(bmc))
        for part in (bmc.url, SYSTEM, "PowerState", "redfish_system_id"):
            self.assertIn(part, error.message)
        task = self.node(bmc)
        error = self.assertRaises(errors.HardwareError, task.driver.management.get_boot_device, task)
        self.assertIn(bmc.url, error.message)
        with socket.create_server(("127.0.0.1", 0)) as listener:
            url = f"http://127.0.0.1:{listener.getsockname()[1]}"

            def greet() -> None:
                client = listener.accept()[0]
                with client:
                    client.sendall(b"SSH-2.0-OpenSSH_9.2\r\n")
                    client.recv(1000)

            threading.Thread(target=greet, daemon=True).start()
            self.assertIn("is a BMC there?", self.fail(self.node(redfish_address=url)).message)


class TLSTest(RedfishTest):
    def test_certificates_are_verified_by_default(self) -> None:
        certificate, key = http_agent.certificate()
        directory = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        (directory / "both.pem").write_text(certificate + key)
        (directory / "ca.pem").write_text(certificate)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(directory / "both.pem")
        bmc = self.start(context)
        for verify in (None, True, "True"):
            error = self.fail(self.node(bmc, redfish_verify_ca=verify))
            self.assertNotIsInstance(error, errors.HardwareUnreachable)
            for part in (bmc.url, "certificate", "redfish_verify_ca"):
                self.assertIn(part, error.message)
        self.assertEqual([], bmc.requests)
        for verify in (False, "no", str(directory / "ca.pem")):
            task = self.node(bmc, redfish_verify_ca=verify)
            self.assertEqual(states.POWER_OFF, task.driver.power.get_power_state(task))
        plain = self.node(redfish_address=bmc.host, redfish_verify_ca=False)
        self.assertEqual(states.POWER_OFF, plain.driver.power.get_power_state(plain))

    def test_a_bmc_without_tls_is_reported_as_such(self) -> None:
        bmc = self.start()
        self.assertIn("TLS", self.fail(self.node(redfish_address=bmc.host)).message)


class StepTest(RedfishTest):
    def test_urls_that_are_none_are_refused(self) -> None:
        task = self.node(self.start())
        management, vendor = task.driver.management, task.driver.vendor
        for call, field in (
            (lambda: management.attach_virtual_media(task, "cdrom", "http://[bmc/a.iso", None), "image_url"),
            (lambda: vendor.create_subscription(task, "https://[listener"), "Destination"),
        ):
            self.assertIn(field, self.assertRaises(errors.Invalid, call).message)

    def test_the_power_before_a_reboot_is_noted_when_its_first_reading_fails(self) -> None:
        bios = f"{SYSTEM}/Bios"
        bmc = self.start(Bios={"@odata.id": bios})
        bmc.documents[bios] = {"@odata.id": bios, "Attributes": {"Speed": "Low"}}
        task = self.node(bmc)
        unreachable = errors.HardwareUnreachable(what="BMC", reason="it is away")
        settings = [{"name": "Speed", "value": "High"}]
        with fixtures.MonkeyPatch("ingot.drivers.interfaces.power_control.read_power_state", _Failing(unreachable)):
            self.assertRaises(errors.HardwareUnreachable, task.driver.bios.apply_configuration, task, settings)
        task.driver.bios.apply_configuration(task, settings)
        self.assertIs(True, task.memory.get("was_off"))

    def kill_each_call(self, task: fakes.MemoryTask, call: Callable[[], Any]) -> None:
        """Call a step to its end, each time by a conductor that dies before it saves, and by the next one."""
        for _ in range(20):
            saved = copy.deepcopy(task.memory)
            call()
            task.memory = saved
            if call() == results.DONE:
                return
        self.fail("it does not end")  # type: ignore[arg-type]

    def test_settings_that_a_dead_conductor_has_set_are_not_set_again_where_that_is_a_job(self) -> None:
        bios, jobs = f"{SYSTEM}/Bios", "/redfish/v1/TaskService/Tasks"
        for state in ("On", "Off"):
            with self.subTest(state):
                bmc = self.start(Bios={"@odata.id": bios}, PowerState=state)
                current, members = {"Speed": "Low"}, list[dict[str, str]]()
                bmc.documents |= {
                    bios: {"@odata.id": bios, "Attributes": current, "@Redfish.Settings": {
                        "SettingsObject": {"@odata.id": f"{bios}/Settings"}, "SupportedApplyTimes": ["OnReset"]}},
                    f"{bios}/Settings": {"@odata.id": f"{bios}/Settings", "Attributes": {}},
                    "/redfish/v1/TaskService": {"Tasks": {"@odata.id": jobs}},
                    jobs: {"Members": members},
                }  # fmt: skip
                root = {**bmc.root(), "Tasks": {"@odata.id": "/redfish/v1/TaskService"}}
                bmc.documents["/redfish/v1/"] = root
                task = self.node(bmc)

                def call(bmc: Any = bmc, members: Any = members, current: Any = current, task: Any = task) -> Any:
                    if bmc.resets[-1:] == ["On"]:
                        current["Speed"] = "High"
                    answer = task.driver.bios.apply_configuration(task, [{"name": "Speed", "value": "High"}])
                    if bmc.count("PATCH", f"{bios}/Settings") and not members:
                        members.append({"@odata.id": f"{jobs}/1"})
                    return answer

                self.kill_each_call(task, call)
                self.assertEqual(1, bmc.count("PATCH", f"{bios}/Settings"))
                resets = ["On", "ForceOff"] if state == "Off" else ["ForceOff", "On"]
                self.assertEqual((resets, state), (bmc.resets, bmc.system["PowerState"]))

    def test_an_update_is_not_requested_again_when_its_answer_was_lost_and_the_new_version_runs(self) -> None:
        service, manager = "/redfish/v1/UpdateService", "/redfish/v1/Managers/1"
        action = f"{service}/Actions/UpdateService.SimpleUpdate"
        settings = [{"component": "bmc", "url": "http://files.example.org/bmc.bin"}] * 2
        for shows, requests in ((True, 2), (False, 4)):  # of two updates
            with self.subTest(shows):
                bmc = self.start(Links={"ManagedBy": [{"@odata.id": manager}]})
                bmc.documents |= {
                    "/redfish/v1/": {**bmc.root(), "UpdateService": {"@odata.id": service}},
                    manager: {"@odata.id": manager, "Id": "1", "FirmwareVersion": "1"},
                    service: {"@odata.id": service, "Actions": {"#UpdateService.SimpleUpdate": {"target": action}}},
                }
                bmc.order("POST", action, *[Fault(served=True, closes=True), Fault(served=True, content=b"{}")] * 2)
                task = self.node(bmc)
                with fixtures.MonkeyPatch("ingot.drivers.redfish.firmware._FAREWELL", 0.0):
                    for _ in range(20):
                        sent = bmc.count("POST", action)
                        try:
                            answer = task.driver.firmware.update(task, settings)
                        except errors.HardwareUnreachable:
                            answer = None
                        if shows and bmc.count("POST", action) > sent:
                            bmc.documents[manager]["FirmwareVersion"] += "1"
                        if answer == results.DONE:
                            break
                self.assertEqual((results.DONE, requests), (answer, bmc.count("POST", action)))

    def test_the_tasks_of_a_bmc_may_come_in_pages(self) -> None:
        place = "/redfish/v1/TaskService/Tasks"
        bmc = self.start()
        bmc.documents |= {
            "/redfish/v1/TaskService": {"Tasks": {"@odata.id": place}},
            place: {"Members": [{"@odata.id": f"{place}/1"}], "Members@odata.nextLink": f"{place}?page=2"},
            f"{place}?page=2": {"Members": [{"@odata.id": f"{place}/2"}], "Members@odata.nextLink": place},
        }
        root = {**bmc.root(), "Tasks": {"@odata.id": "/redfish/v1/TaskService"}}
        bmc.root = lambda: root  # type: ignore[method-assign]
        found = connection.call(self.node(bmc), tasks.list_paths)
        self.assertEqual({f"{place}/1", f"{place}/2"}, set(found))
        self.assertLess(bmc.count("GET", place), 50)

    def test_an_update_after_which_no_version_is_shown_ends(self) -> None:
        bmc = self.start()
        task = self.node(bmc)
        update = {"component": "bios", "job": {"version": "1", "sure": True, "place": None}}
        manager = "/redfish/v1/Managers/1"
        bmc.system["Links"] = {"ManagedBy": [{"@odata.id": manager}]}
        bmc.documents[manager] = {"@odata.id": manager, "Id": "1"}
        self.assertIsInstance(task.driver.firmware._settle(task, update), results.PollAfter)
        task.memory["began"] -= task.conf.redfish.bmc_restart_timeout
        failed = self.assertRaises(errors.StepFailed, task.driver.firmware._settle, task, update)
        self.assertIn("bios", failed.message)


class _Failing:
    def __init__(self, error: Exception) -> None:
        self._error = error

    def __call__(self, *_args: object) -> None:
        raise self._error


class QuirkTest(RedfishTest):
    def test_a_button_is_pressed_once(self) -> None:
        reset = {"target": RESET, "ResetType@Redfish.AllowableValues": ["PushPowerButton"]}
        bmc = self.start(Actions={"#ComputerSystem.Reset": reset})
        task = self.node(bmc)
        bmc.order("POST", RESET, Fault(500, served=True))
        task.driver.power.start_power_change(task, states.POWER_ON)
        self.assertEqual(["PushPowerButton"], bmc.resets)

    def test_a_bmc_that_keeps_no_boot_device_gets_it_before_each_boot(self) -> None:
        bmc = self.start()
        task = self.node(bmc)
        management, power = task.driver.management, task.driver.power
        bmc.order("PATCH", SYSTEM, Fault(400, message="Base.1.0.PropertyValueNotInList"))
        management.set_boot_device(task, "disk", persistent=True)
        self.assertEqual("Once", bmc.system["Boot"]["BootSourceOverrideEnabled"])
        management.set_boot_device(task, "pxe")
        seen = []
        for _boot in range(3):
            power.start_power_change(task, states.POWER_ON)
            seen.append(bmc.system["Boot"]["BootSourceOverrideTarget"])
            power.start_power_change(task, states.POWER_OFF)
        self.assertEqual(["Pxe", "Hdd", "Hdd"], seen)

    def test_manufacturers_get_what_they_need(self) -> None:
        for manufacturer, device, expected in (
            ("Supermicro", "cdrom", {"BootSourceOverrideTarget": "UsbCd", "BootSourceOverrideMode": "UEFI"}),
            ("Lenovo", "pxe", {"BootSourceOverrideTarget": "Pxe", "BootSourceOverrideMode": "UEFI"}),
            ("Dell Inc.", "cdrom", {"BootSourceOverrideTarget": "Cd"}),
        ):
            bmc = self.start(Manufacturer=manufacturer)
            task = self.node(bmc)
            task.driver.management.set_boot_device(task, device)
            once = {"BootSourceOverrideEnabled": "Once"}
            self.assertEqual({**expected, **once}, bmc.system["Boot"], manufacturer)

    def test_the_best_reset_that_there_is(self) -> None:
        for allowed, target, sent in (
            (["On", "ForceOff"], states.POWER_ON, "On"),
            (["PushPowerButton"], states.POWER_ON, "PushPowerButton"),
            (["ForceOff", "PowerCycle"], states.REBOOT, "PowerCycle"),
        ):
            bmc = self.start()
            bmc.system["Actions"]["#ComputerSystem.Reset"]["ResetType@Redfish.AllowableValues"] = allowed
            task = self.node(bmc)
            task.driver.power.start_power_change(task, target)
            self.assertEqual([sent], bmc.resets)
        error = self.assertRaises(errors.HardwareError, task.driver.power.start_power_change, task, "soft power off")
        for part in (SYSTEM, bmc.url, "ForceOff, PowerCycle"):
            self.assertIn(part, error.message)

    def test_a_machine_on_its_way_is_not_there_yet_and_its_health_is_read(self) -> None:
        conditions = [{"Message": "Fan 3 has stopped"}]
        status = {"Health": "OK", "HealthRollup": "Critical", "Conditions": conditions}
        for state, expected in (("PoweringOff", states.POWER_ON), ("PoweringOn", states.POWER_OFF), (None, None)):
            bmc = self.start(PowerState=state, Status=status, Boot={"BootSourceOverrideMode": "Legacy"})
            task = self.node(bmc)
            reading = task.driver.power.start_reading(task).result(patience.seconds(30))
            self.assertEqual((expected, "Critical", ("Fan 3 has stopped",), "bios"), reading)
