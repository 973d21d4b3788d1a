"""BMCs that attack: answers without end, bombs, garbage, and links to elsewhere. An error names them, in time."""

import gzip
import itertools
import json
import socket
import threading
import zlib
from typing import Any

import fixtures

from ingot.common import errors, states
from ingot.drivers.redfish import connection, tasks
from tests import patience
from tests.unit.drivers import redfish_bmc
from tests.unit.drivers.redfish_bmc import SESSIONS, SYSTEM, Fault
from tests.unit.drivers.test_redfish_bmcs import RedfishTest

MIB = 2**20
OK = b"HTTP/1.1 200 OK\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"
GZIP = {"Content-Encoding": "gzip"}


class AnswerTest(RedfishTest):
    """What is sent in place of the machine's resource."""

    def setUp(self) -> None:
        super().setUp()
        self.log = self.useFixture(fixtures.FakeLogger())
        self.bmc = self.start()
        self.good = json.dumps(self.bmc.system).encode()

    def read(self, fault: Fault) -> str | errors.HardwareError | None:
        """Read the power state; return it, or the error, which names BMC and resource."""
        self.bmc.order("GET", SYSTEM, *[fault] * 9)
        task = self.node(self.bmc)
        task.conf.set_override("connection_attempts", 1, "redfish")
        task.conf.set_override("read_timeout", 5, "redfish")
        with redfish_bmc.measured() as taken:
            try:
                answer: Any = task.driver.power.get_power_state(task)
            except errors.HardwareError as exc:
                answer = exc
                for part in (self.bmc.url, SYSTEM):
                    self.assertIn(part, exc.message)
        self.assertLess(taken[0], 5 + patience.seconds(5))
        self.assertNotIn("Traceback", self.log.output)
        self.bmc.faults.clear()
        return answer  # type: ignore[no-any-return]

    def refuse(self, fault: Fault, reason: str) -> None:
        error = self.read(fault)
        self.assertIsInstance(error, errors.HardwareError)
        self.assertIn(reason, str(error))

    def test_a_connection_that_ends_after_any_byte_is_an_error(self) -> None:
        whole = OK + b"Content-Length: %d\r\n\r\n" % len(self.good) + self.good
        for end in range(len(whole)):
            self.assertIsInstance(self.read(Fault(raw=[whole[:end]])), errors.HardwareError, whole[:end])
        self.assertEqual(states.POWER_OFF, self.read(Fault(raw=[whole])))

    def test_what_has_no_end_is_cut(self) -> None:
        endless = itertools.repeat(b"x" * 65536)
        self.refuse(Fault(raw=itertools.chain([OK, b"\r\n"], endless)), "1024 KiB")
        self.refuse(Fault(raw=itertools.chain([OK, b"X: "], endless)), "1024 KiB")
        chunks = itertools.repeat(b"10000\r\n" + b"x" * 65536 + b"\r\n")
        self.refuse(Fault(raw=itertools.chain([CHUNKED], chunks)), "1024 KiB")
        grains = itertools.repeat(b"1;" + b"e" * 4000 + b"\r\nx\r\n")
        self.refuse(Fault(raw=itertools.chain([CHUNKED], grains)), "1024 KiB")
        self.refuse(Fault(raw=itertools.repeat(b"HTTP/1.1 100 Continue\r\n\r\n" * 1000)), "1024 KiB")
        self.refuse(Fault(raw=[b"HTTP/1.1 200 OK\r\nContent-Length: 9999999999\r\n\r\n" + b" " * 2 * MIB]), "1024 KiB")

    def test_compressed_answers_are_unpacked_within_limits(self) -> None:
        self.assertEqual(states.POWER_OFF, self.read(Fault(content=gzip.compress(self.good), headers=GZIP)))
        self.refuse(Fault(content=gzip.compress(b" " * 500 * MIB), headers=GZIP), "1024 KiB")
        self.refuse(Fault(content=gzip.compress(self.good)[:-20], headers=GZIP), "not whole")
        self.refuse(Fault(content=zlib.compress(self.good), headers=GZIP), "unpacked")
        self.refuse(Fault(content=b"\xce\xb2\xcf\x81", headers={"Content-Encoding": "br"}), "encoded as br")

    def test_what_is_no_object_of_json_is_refused(self) -> None:
        for content, reason in (
            (b"", "not JSON"),
            (b"<html>Please log in</html>", "not JSON"),
            (b"[" * MIB, "nested too deeply"),
            (b'{"a":' * 1000 + b"1" + b"}" * 1000, "nested too deeply"),
            (b'{"PowerState": NaN}', "NaN"),
            (b'{"PowerState": -Infinity}', "Infinity"),
            (b'{"PowerState": 1e999}', "1e999"),
            (b'{"PowerState": ' + b"9" * 5000 + b"}", "5000 digits"),
            (b'{"PowerState": "\xff\xfe"}', "not JSON"),
            (b'{"PowerState": "On", "Name": "\xed\xa0\x80"}', "not JSON"),  # half of a surrogate pair
            ('{"PowerState": "On", "Name": "\0"}'.encode("utf-16"), "not JSON"),
            (b'["On"]', "no JSON object"),
            (b"7", "no JSON object"),
            (b'{"PowerState": ["On"]}', "PowerState"),
            (b"{}", "PowerState"),
        ):
            self.refuse(Fault(content=content), reason)

    def test_texts_that_no_database_takes_are_replaced(self) -> None:
        status = rb'{"Health": "Critical", "Conditions": [{"Message": "a\u0000b\ud800c\ud83d\ude00"}]}'
        self.bmc.order("GET", SYSTEM, Fault(content=b'{"PowerState": "On", "Status": %s}' % status))
        task = self.node(self.bmc)
        reading = task.driver.power.start_reading(task).result(patience.seconds(30))
        self.assertEqual(
            (states.POWER_ON, "Critical", ("a\N{REPLACEMENT CHARACTER}b?c\N{GRINNING FACE}",)), reading[:3]
        )

    def test_old_and_strange_http(self) -> None:
        length = b"Content-Length: %d\r\n\r\n" % len(self.good)
        for whole in (
            b"HTTP/1.0 200 OK\r\n\r\n" + self.good,
            b"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\n" + length + self.good,
            b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 102 Processing\r\n\r\n" + OK + length + self.good,
            CHUNKED + b"%x\r\n%s\r\n0\r\nX-Trailer: 1\r\n\r\n" % (len(self.good), self.good),
        ):
            self.assertEqual(states.POWER_OFF, self.read(Fault(raw=[whole])), whole[:40])
        for whole in (
            OK + length + self.good + OK + length + self.good,
            b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: ssh\r\nConnection: upgrade\r\n\r\nSSH-2.0",
            OK + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\n" + self.good,
            OK + b"Content-Length: -1\r\n\r\n" + self.good,
            CHUNKED + b"zz\r\n" + self.good,
            b"HTTP/1.1 999999 OK\r\n\r\n",
        ):
            self.refuse(Fault(raw=[whole]), "BMC")

    def test_cookies_are_not_sent_back(self) -> None:
        task = self.node(self.bmc)
        cookie = {"Set-Cookie": "sessionKey=1; Path=/"}
        self.bmc.order("GET", SYSTEM, *[Fault(content=self.good, headers=cookie)] * 2)
        for _ in range(3):
            task.driver.power.get_power_state(task)
        self.assertEqual([], [head for head in self.bmc.heads if "Cookie" in head])

    def test_waits_that_the_bmc_asks_for_are_numbers(self) -> None:
        for asked in ("\u00b2", "-1", "1e9", "9" * 5000, "Wed, 21 Oct 2037 07:28:00 GMT"):
            self.bmc.order("GET", SYSTEM, Fault(503, {"Retry-After": asked}))
            task = self.node(self.bmc)
            self.assertEqual(states.POWER_OFF, task.driver.power.get_power_state(task), asked)

    def test_what_it_says_of_an_error_is_cut_and_has_no_password(self) -> None:
        said = f"{redfish_bmc.PASSWORD} is wrong {'!' * 9999}"
        info = [{"MessageId": 7, "Message": said}, "x", {"Message": [1]}] * 40
        self.bmc.order(
            "POST", SESSIONS, Fault(401, content=json.dumps({"error": {"@Message.ExtendedInfo": info}}).encode())
        )
        error = self.fail(self.node(self.bmc))
        self.assertIn("*** is wrong !!!", error.message)
        self.assertLess(len(error.message), 3000)
        self.assertNotIn(redfish_bmc.PASSWORD, error.message + self.log.output)


class HandshakeTest(RedfishTest):
    def test_a_connection_that_ends_before_tls_is_agreed_on_has_a_reason(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            host = f"127.0.0.1:{listener.getsockname()[1]}"

            def hang_up() -> None:
                for _ in range(2):
                    listener.accept()[0].close()

            threading.Thread(target=hang_up, daemon=True).start()
            error = self.fail(self.node(redfish_address=host), errors.HardwareUnreachable)
        self.assertNotIn("answer: ;", error.message)
        for part in (host, "redfish_address"):
            self.assertIn(part, error.message)


class ElsewhereTest(RedfishTest):
    """Links to another server, which must not even be connected to, as credentials go with each request."""

    def setUp(self) -> None:
        super().setUp()
        self.bmc, self.other = self.start(), self.start()
        self.addCleanup(lambda: self.assertEqual((0, []), (self.other.connections, self.other.requests)))

    def refuse(self, call: Any = None) -> None:
        task = self.node(self.bmc)
        error = self.assertRaises(errors.HardwareError, call or task.driver.power.get_power_state, task)
        self.assertIn(self.bmc.url, error.message)
        self.assertIn(self.other.host, error.message)

    def test_redirects(self) -> None:
        for status in (301, 302, 307, 308):
            for url in (self.other.url + SYSTEM, f"//{self.other.host}{SYSTEM}", f"https://{self.other.host}/"):
                self.bmc.order("GET", SYSTEM, Fault(status, {"Location": url}))
                self.refuse()
        self.bmc.order("GET", SYSTEM, Fault(302, {"Location": f"{self.bmc.url}{SYSTEM}"}))
        task = self.node(self.bmc)
        self.assertEqual(states.POWER_OFF, task.driver.power.get_power_state(task))

    def test_members_and_links(self) -> None:
        self.bmc.documents["/redfish/v1/Systems"] = {"Members": [{"@odata.id": self.other.url + SYSTEM}]}
        self.refuse()
        self.bmc.documents["/redfish/v1/Systems"] = {"Members": [{"@odata.id": SYSTEM}]}
        self.bmc.system["Bios"] = {"@odata.id": f"http://user@{self.other.host}/redfish/v1/Bios"}
        settings = [{"name": "A", "value": "1"}]
        self.refuse(lambda task: task.driver.bios.apply_configuration(task, settings=settings))
        self.bmc.system["Actions"]["#ComputerSystem.Reset"]["target"] = f"{self.other.url}/reset"
        self.refuse(lambda task: task.driver.power.start_power_change(task, states.POWER_ON))

    def test_where_sessions_and_tasks_are_is_asked_of_the_bmc_itself(self) -> None:
        """Many give their own name or another of their addresses there."""
        place = {"Location": f"{self.other.url}{SESSIONS}/token1", "X-Auth-Token": "token1"}
        self.bmc.open["token1"] = redfish_bmc.USER
        self.bmc.order("POST", SESSIONS, Fault(201, place, content=b"{}"))
        task = self.node(self.bmc)
        task.driver.power.get_power_state(task)
        connection.log_out()
        self.assertEqual(({}, 1), (self.bmc.open, self.bmc.count("DELETE", f"{SESSIONS}/token1")))
        self.bmc.documents["/redfish/v1/Tasks/1"] = {"TaskState": "Running"}
        self.bmc.order("POST", "/update", Fault(202, {"Location": f"{self.other.url}/redfish/v1/Tasks/1"}, content=b""))

        def follow(machine: connection.Machine) -> tasks.Progress:
            return tasks.read(machine, tasks.find_place(machine.post("/update", {})) or "")

        self.assertTrue(connection.call(self.node(self.bmc), follow).running)
