"""Serial consoles from a conductor through the API to a client of websockets; the machine repeats what is typed."""

import asyncio
import base64
import contextlib
import json
import logging
import pathlib
import socket
import ssl
import threading
from typing import Any

import bcrypt
import fixtures
import requests
import websockets

from ingot.api import app, server
from ingot.common import console_frames as frames
from ingot.common import context, errors, states
from ingot.conductor import endpoint
from ingot.db import audit, nodes
from ingot.drivers.generic import fake_console
from ingot.rack import ports
from ingot.rpcapi import client, transport
from tests import api_case, conductor_case, console_client, database, metric_values, patience, policy_table
from tests.console_client import Terminal

LIMIT = patience.seconds(30)
HANDSHAKE = {
    "Upgrade": "websocket",
    "Connection": "Upgrade",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
}


class ConsoleCase(conductor_case.ConductorCase):
    def configure(self) -> None:
        self.logs = pathlib.Path(self.useFixture(fixtures.TempDir()).path) / "logs"
        self.conf.set_override("lock_wait_timeout", 0, group="api")
        self.conf.set_override("enabled_console_interfaces", ["fake", "fake-graphical", "no-console"])
        self.conf.set_override("sweep_interval", 1, group="conductor")
        self.conf.set_override("host_ip", "127.0.0.1", group="console")
        self.conf.set_override("linger_time", 0, group="console")
        self.conf.set_override("log_directory", str(self.logs), group="console")
        self.conf.set_override("enabled", True, group="audit")
        self.port = ports.tcp()
        for name, value in {"port": self.port, "host_ip": "127.0.0.1", "api_threads": 1}.items():
            self.conf.set_override(name, value, group="api")

    def setUp(self) -> None:
        super().setUp()
        self.log = self.useFixture(fixtures.FakeLogger(level=logging.INFO))
        bus = transport.LocalTransport()
        bus.serve(self.conf.host, self.conductor.endpoint)
        self.app = api_case.create_app(self.conf, self.db, client.ConductorClient(self.conf, self.db, bus))
        self.web = server.Server(self.conf, self.app)
        self.web.start()
        self.addCleanup(self.web.stop)
        self.node = database.make_node(self.db, name="n", provision_state=states.MANAGEABLE, power_state="power off")
        self.uuid = self.node.uuid
        self.url = f"http://127.0.0.1:{self.port}"
        self.path = f"{self.url}/ingot/v1/nodes/{self.uuid}/console"

    def attend(self, query: str = "", **given: Any) -> contextlib.AbstractContextManager[Terminal]:
        return console_client.attend(self.url, self.uuid, query, **given)

    def refuse(self, query: str = "", node: str = "", **given: Any) -> tuple[int, str]:
        return console_client.refuse(self.url, node or self.uuid, query, **given)

    def set_console(self, enabled: bool) -> None:
        answer = requests.put(
            f"{self.url}/v1/nodes/{self.uuid}/states/console", json={"enabled": enabled}, timeout=LIMIT
        )
        self.assertEqual(202, answer.status_code, answer.text)

    def read_log(self) -> requests.Response:
        return requests.get(f"{self.path}/log", timeout=LIMIT)

    @property
    def consoles(self) -> Any:
        return self.conductor.services.consoles

    def wait(self, check: Any, what: str) -> None:
        conductor_case.eventually(check, what)


class Reading(ConsoleCase):
    def test_what_is_typed_and_said_goes_through(self) -> None:
        with self.attend("mode=write") as terminal:
            terminal.read_until(f"fake machine {self.uuid}\r\n")
            status = terminal.wait_for(state="open", mode="write")
            self.assertEqual(("127.0.0.1", 1, None), (status["writer"], status["readers"], status["reason"]))
            terminal.type("hello\r")
            terminal.read_until("hello\r")
            terminal.connection.send('{"type": "break"}')
            terminal.read_until("<break>")
            long = "x" * 60_000 + "!"
            terminal.type(long)
            self.assertEqual(len(long), len(terminal.read_until("!")))
            self.assertEqual(1, metric_values.read("ingot_api_consoles"))
            self.assertEqual(1, metric_values.read("ingot_conductor_consoles", state="open"))
            self.assertEqual(1, metric_values.read("ingot_conductor_console_readers", mode="write"))
            answer = terminal.connection.response
            assert answer is not None
            self.assertEqual("ingot.console.v1", terminal.connection.subprotocol)
            ident = answer.headers["X-OpenStack-Request-Id"]
        self.wait(lambda: not len(self.app.extensions[app.CONSOLES]), "its place is free")
        self.wait(lambda: not self.consoles.list_nodes(), "the machine's console is closed when it has no reader")
        typed = [line for line in self.log.output.splitlines() if ident in line and self.uuid in line]
        self.assertTrue(any("types on its serial console" in line for line in typed), self.log.output)

    def test_readers_share_it_and_one_types(self) -> None:
        with self.attend("mode=write") as first, self.attend() as reader:
            first.read_until("\r\n")
            first.type("one")
            for terminal in (first, reader):
                terminal.read_until("one")
            reader.type("two")
            reader.wait_for("127.0.0.1 types here", mode="read")
            status, text = self.refuse("mode=write")
            self.assertEqual((409, True), (status, "take_over=true" in text), text)
            with self.attend("mode=write&take_over=true") as second:
                self.assertIn(b"one", second.read_until("one"))  # what was said before
                first.wait_for("types now instead of", mode="read", state="open")
                second.type("three")
                first.read_until("three")
                first.type("four")
                first.wait_for("types here", mode="read")
            first.wait_for(writer=None, readers=2)
            self.assertNotIn(b"two", reader.said)
            self.assertNotIn(b"four", first.said)

    def test_what_was_said_is_shown_as_text_and_kept_in_a_file_until_the_next_boot(self) -> None:
        gone = self.read_log()
        self.assertEqual((404, True), (gone.status_code, "Enable it" in gone.text))
        self.set_console(True)
        self.wait(lambda: "fake machine" in self.read_log().text, "it is read without a reader")
        answer = self.read_log()
        self.assertEqual("text/plain; charset=utf-8", answer.headers["Content-Type"])
        file = self.logs / f"{self.uuid}.log"
        self.wait(lambda: file.exists() and b"fake machine" in file.read_bytes(), "it is in the file")
        self.assertEqual(0o640, file.stat().st_mode & 0o777)
        requests.put(f"{self.url}/v1/nodes/{self.uuid}/states/power", json={"target": "power on"}, timeout=LIMIT)
        self.wait(lambda: self.read_log().text == "", "what was said before the boot is forgotten")
        self.assertIn(b"fake machine", file.read_bytes())

    def test_of_much_the_end_is_kept(self) -> None:
        with self.attend("mode=write") as terminal:
            for number in range(10):
                terminal.type(f"<{number}>" + "x" * 60_000)
                terminal.read_until(f"<{number}>")
            terminal.type("!end!")
            terminal.read_until("!end!")
            said = self.read_log().text
            self.assertLessEqual(len(said), 256 * 1024)
            self.assertTrue(said.endswith("!end!"))
            with self.attend() as late:
                late.read_until("!end!")


class Many(ConsoleCase):
    FEW, MOST = 10, 50
    BOUNDED = 8
    """Threads that pools of a fixed size may still begin."""

    def test_open_consoles_have_no_threads(self) -> None:
        made = [
            database.make_node(self.db, name=f"n{number}", provision_state=states.ACTIVE) for number in range(self.MOST)
        ]
        with contextlib.ExitStack() as attended:
            terminals = [
                attended.enter_context(console_client.attend(self.url, node.uuid)) for node in made[: self.FEW]
            ]
            few = self.list_threads(terminals)
            more = [attended.enter_context(console_client.attend(self.url, node.uuid)) for node in made[self.FEW :]]
            many = self.list_threads(more)
            self.assertEqual(self.MOST, metric_values.read("ingot_api_consoles"))
            self.assertEqual(self.MOST, len(self.consoles.list_nodes()))
        self.assertLessEqual(len(many) - len(few), self.BOUNDED, sorted(many))

    def list_threads(self, terminals: list[Terminal]) -> list[str]:
        """Return the names of the threads of API and conductor, when all consoles work; clients have their own."""
        for terminal in terminals:
            terminal.read_until("fake machine")
        names = [thread.name for thread in threading.enumerate()]
        return [name for name in names if "recv_events" not in name and "keepalive" not in name]


class Refusals(ConsoleCase):
    def test_requests_that_cannot_be_served_say_why(self) -> None:
        for query, node, status, text in (
            ("mode=type", "", 400, "Allowed are: read, write"),
            ("take_over=true", "", 400, "mode=write"),
            ("more=1", "", 400, "Accepted here: mode, take_over"),
            ("", "missing", 404, "missing"),
        ):
            found = self.refuse(query, node)
            self.assertEqual((status, True), (found[0], text in found[1]), found)
        for interface, text in (("no-console", "no-console"), ("fake-graphical", "ipmitool-sol")):
            nodes.set_always(self.db, self.uuid, {"console_interface": interface})
            found = self.refuse()
            self.assertEqual((400, True), (found[0], text in found[1]), found)

    def test_other_requests_learn_that_it_is_a_websocket(self) -> None:
        plain = requests.get(self.path, timeout=LIMIT)
        self.assertEqual((426, True), (plain.status_code, "Upgrade: websocket" in plain.text), plain.text)
        for changed in ({"Sec-WebSocket-Version": "8"}, {"Sec-WebSocket-Key": "short"}, {"Sec-WebSocket-Key": ""}):
            odd = requests.get(self.path, headers={**HANDSHAKE, **changed}, timeout=LIMIT)
            self.assertEqual(426, odd.status_code, odd.text)
        other = requests.get(f"{self.url}/v1/nodes", headers=HANDSHAKE, timeout=LIMIT)
        self.assertEqual(200, other.status_code)

    def test_the_answer_names_the_protocol(self) -> None:
        answer = requests.get(self.path, timeout=LIMIT)
        self.assertEqual((426, "websocket"), (answer.status_code, answer.headers["Upgrade"]))

    def test_another_wsgi_server_says_that_it_has_none(self) -> None:
        answer = self.app.test_client().get(f"/ingot/v1/nodes/{self.uuid}/console", headers=HANDSHAKE)
        self.assertEqual((501, True), (answer.status_code, "ingot-api" in answer.get_data(as_text=True)))

    def test_pages_of_other_sites_open_none(self) -> None:
        self.assertEqual(403, self.refuse(origin=websockets.Origin("https://evil.example"))[0])
        with self.attend(origin=websockets.Origin(self.url)) as terminal:
            terminal.read_until("fake machine")

    def test_as_many_as_are_allowed(self) -> None:
        self.conf.set_override("max_consoles", 2, group="console")
        self.app.extensions[app.CONSOLES].__init__(self.conf)
        with self.attend() as first, self.attend() as second:
            for terminal in (first, second):
                terminal.read_until("fake machine")
            status, text = self.refuse()
            self.assertEqual((503, True), (status, "max_consoles" in text), text)
        self.wait(lambda: not len(self.app.extensions[app.CONSOLES]), "their places are free")
        self.refuse("mode=type")
        with self.attend() as terminal:
            terminal.read_until("fake machine")

    def test_messages_that_are_none_end_it(self) -> None:
        for message, code in (("x" * 70_000, 1009), ("hello", 1003), ('{"type": "reset"}', 1003)):
            with self.attend("mode=write&take_over=true") as terminal:
                terminal.connection.send(message)
                self.assertEqual(code, terminal.read_end()[0], message[:20])

    def test_who_may(self) -> None:
        read, write = (f"ingot:node:console:{mode}" for mode in ("read", "write"))
        answers = policy_table.enforcer.Enforcer(self.conf)
        for person, may in (("system reader", (True, False)), ("owner member", (True, True)), ("lessee member", ())):
            facts = policy_table.access.build_target("node", owner="owner", lessee="lessee").facts
            found = tuple(answers.allows(rule, facts, policy_table.identity(person)) for rule in (read, write))
            self.assertEqual(may or (False, False), found, person)

    def test_typing_is_audited_and_reading_is_not(self) -> None:
        with self.attend(), self.attend("mode=write") as terminal:
            terminal.read_until("fake machine")
        self.assertEqual(400, self.refuse("mode=write&more=1")[0])
        self.app.extensions[app.TRAIL].close()
        found = [(one.action, one.status, one.target_id) for one in audit.read_page(self.db, {})]
        rule = "ingot:node:console:write"
        self.assertEqual([(rule, 400, self.uuid), (rule, 101, self.uuid)], found)


class Sessions(ConsoleCase):
    """Browsers can send no header of their own with a websocket: they have a cookie."""

    def configure(self) -> None:
        super().configure()
        users = pathlib.Path(self.useFixture(fixtures.TempDir()).path) / "users"
        users.write_text(f"ada:{bcrypt.hashpw(b'secret', bcrypt.gensalt(rounds=4)).decode()}\n")
        self.conf.set_override("auth_strategy", "http_basic")
        self.conf.set_override("http_basic_auth_user_file", str(users))

    def log_in(self) -> dict[str, str]:
        """Return the headers of someone who has logged in."""
        path, body = f"{self.url}/ingot/v1/session", {"user": "ada", "password": "secret"}
        answer = requests.post(path, json=body, headers={"X-Ingot-Console": "1"}, timeout=LIMIT)
        self.assertEqual(201, answer.status_code, answer.text)
        return {"Cookie": f"ingot_session={answer.cookies['ingot_session']}"}

    def test_who_has_logged_in_types_by_name_from_a_page_of_this_host_only(self) -> None:
        cookie, here = self.log_in(), websockets.Origin(self.url)
        with self.attend("mode=write", origin=here, additional_headers=cookie) as terminal:
            terminal.wait_for(state="open", writer="ada")
        self.assertEqual(401, self.refuse(additional_headers=cookie)[0])
        self.assertEqual(401, self.refuse(origin=here)[0])
        there = websockets.Origin("http://evil.example")
        self.assertEqual(403, self.refuse(origin=there, additional_headers=cookie)[0])
        password = {"Authorization": f"Basic {base64.b64encode(b'ada:secret').decode()}"}
        with self.attend(additional_headers=password) as terminal:
            terminal.read_until("fake machine")

    def test_a_console_ends_when_its_user_logs_out(self) -> None:
        cookie, other = self.log_in(), self.log_in()
        here = websockets.Origin(self.url)
        with (
            self.attend(origin=here, additional_headers=cookie) as terminal,
            self.attend(origin=here, additional_headers=other) as another,
        ):
            terminal.read_until("fake machine")
            headers = {"X-Ingot-Console": "1", **cookie}
            answer = requests.delete(f"{self.url}/ingot/v1/session", headers=headers, timeout=LIMIT)
            self.assertEqual(204, answer.status_code, answer.text)
            self.assertEqual((frames.End.EXPIRED, "the session has ended; log in again"), terminal.read_end())
            another.read_until("fake machine")

    def test_a_console_ends_with_the_session(self) -> None:
        cookie = self.log_in()
        self.useFixture(fixtures.MonkeyPatch("ingot.api.auth.sessions.Session.seconds_left", 0.5))
        with self.attend(origin=websockets.Origin(self.url), additional_headers=cookie) as terminal:
            self.assertEqual(frames.End.EXPIRED, terminal.read_end()[0])


class Ends(ConsoleCase):
    def test_when_the_api_stops(self) -> None:
        with self.attend() as terminal:
            terminal.read_until("fake machine")
            threading.Thread(target=self.web.stop).start()
            self.assertEqual((frames.End.STOPS, True), self.read_end(terminal, "come back"))

    def test_when_the_conductor_stops(self) -> None:
        with self.attend() as terminal:
            terminal.read_until("fake machine")
            self.conductor.leave()
            self.assertEqual((frames.End.STOPS, True), self.read_end(terminal, "come back"))

    def test_when_it_is_switched_off_or_the_instance_is_deleted(self) -> None:
        with self.attend() as terminal:
            terminal.read_until("fake machine")
            self.set_console(False)
            self.assertEqual((frames.End.RELEASED, True), self.read_end(terminal, "switched off"))
        nodes.set_always(self.db, self.uuid, {"provision_state": states.ACTIVE})
        with self.attend("mode=write") as terminal:
            terminal.read_until("fake machine")
            terminal.type("secret")
            terminal.read_until("secret")
            self.run_flow(nodes.get(self.db, self.uuid), "delete", states.DELETING)
            self.assertEqual((frames.End.RELEASED, True), self.read_end(terminal, "deleted"))
        self.assertEqual(404, self.read_log().status_code)

    def test_when_the_instance_of_one_that_is_enabled_is_deleted(self) -> None:
        nodes.set_always(self.db, self.uuid, {"provision_state": states.ACTIVE, "console_enabled": True})
        with self.attend() as terminal:
            terminal.read_until("fake machine")
            self.run_flow(nodes.get(self.db, self.uuid), "delete", states.DELETING)
            self.assertEqual((frames.End.RELEASED, True), self.read_end(terminal, "the instance is deleted"))

    def test_when_what_the_conductor_sends_cannot_be_understood(self) -> None:
        for sent in (b"\xff" * 20, b"\1\0\0\0\1\xff", b"\2\0\0\0\2[]", b"\2\0\0\0\2{}", b"\2\0\0\0\1{"):

            def send(remote: Any, _packed: bytes, sent: bytes = sent) -> None:
                remote._leaving.write(sent)

            with fixtures.MonkeyPatch("ingot.conductor.console_server._Remote._send", send), self.attend() as terminal:
                self.assertEqual((frames.End.STOPS, True), self.read_end(terminal, "cannot be understood"))
        self.assertIn("sends what is none of its frames", self.log.output)

    def test_when_what_carries_its_bytes_fails(self) -> None:
        async def fail(_socket: object) -> None:
            raise OSError("odd")

        self.useFixture(fixtures.MonkeyPatch("ingot.api.web.web_sockets.WebSocket.keep_alive", fail))
        with self.attend() as terminal:
            self.assertEqual((frames.End.STOPS, True), self.read_end(terminal, "failed unexpectedly"))

    def test_when_it_is_time_to_log_in_again(self) -> None:
        self.useFixture(fixtures.MonkeyPatch("ingot.api.web.consoles._LONGEST_S", 0.5))
        with self.attend() as terminal:
            self.assertEqual((frames.End.EXPIRED, True), self.read_end(terminal, "log in again"))

    def test_when_the_bmc_fails(self) -> None:
        async def fail(_stream: fake_console.EchoStream) -> None:
            raise errors.HardwareError(what="The BMC", reason="it is broken")

        self.useFixture(fixtures.MonkeyPatch("ingot.drivers.generic.fake_console.EchoStream.attend", fail))
        with self.attend() as terminal:
            terminal.wait_for("it is broken", state="lost")
            self.assertEqual((frames.End.FAILED, True), self.read_end(terminal, "it is broken"))
        answer = requests.put(f"{self.url}/v1/nodes/{self.uuid}/states/console", json={"enabled": True}, timeout=LIMIT)
        self.assertEqual((502, True), (answer.status_code, "it is broken" in answer.text))
        self.assertFalse(nodes.get(self.db, self.uuid).console_enabled)

    def read_end(self, terminal: Terminal, text: str) -> tuple[int, bool]:
        code, reason = terminal.read_end()
        self.assertIn(text, reason)
        return code, text in reason


class Keeping(ConsoleCase):
    def test_what_is_enabled_is_opened_and_given_back_with_the_node(self) -> None:
        nodes.set_always(self.db, self.uuid, {"console_enabled": True})
        self.wait(lambda: self.consoles.is_running(self.uuid), "it is open")
        nodes.set_always(self.db, self.uuid, {"conductor_group": "other"})
        self.wait(lambda: not self.consoles.list_nodes(), "it is given back")

    def test_what_is_not_enabled_any_more_is_closed_when_it_is_not_read(self) -> None:
        self.set_console(True)
        with self.attend() as terminal:
            terminal.read_until("fake machine")
            nodes.set_always(self.db, self.uuid, {"console_enabled": False})
            self.wait(lambda: not next(iter(self.consoles._consoles.values()))._is_kept, "it is released")
            self.assertTrue(self.consoles.is_running(self.uuid))
        self.wait(lambda: not self.consoles.list_nodes(), "it is closed")

    def test_one_that_does_not_open_keeps_no_deployment_waiting(self) -> None:
        async def hang(_stream: fake_console.EchoStream) -> None:
            await asyncio.sleep(LIMIT)

        self.useFixture(fixtures.MonkeyPatch("ingot.drivers.generic.fake_console.EchoStream.attend", hang))
        node = database.make_node(self.db, console_enabled=True)
        after = self.run_flow(node, "deploy", states.DEPLOYING)
        self.assertEqual((states.ACTIVE, True), (after.provision_state, after.console_enabled))
        self.assertEqual(1, self.consoles.count()[0]["connecting"])

    def test_one_without_a_stream_is_left_alone(self) -> None:
        nodes.set_always(self.db, self.uuid, {"console_enabled": True, "console_interface": "fake-graphical"})
        keeper_calls = metric_values.read("ingot_conductor_timer_duration_seconds_count", timer="keep_consoles")
        self.wait(
            lambda: (
                metric_values.read("ingot_conductor_timer_duration_seconds_count", timer="keep_consoles")
                > keeper_calls + 1
            ),
            "it was looked at",
        )
        self.assertEqual([], self.consoles.list_nodes())


class Tickets(ConsoleCase):
    """What comes to a conductor's own port."""

    def ask(self, mode: str = "write") -> frames.Place:
        envelope = self.conductor.endpoint.open_console(
            context.admin().to_dict(), node_uuid=self.uuid, mode=mode, take_over=False, user="ada"
        )
        place: frames.Place = transport.unpack(envelope)
        return place

    def connect(self, place: frames.Place) -> ssl.SSLSocket:
        plain = socket.socket()
        plain.settimeout(LIMIT)
        plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        plain.connect((place["host"], place["port"]))
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        tls.check_hostname, tls.verify_mode = False, ssl.CERT_NONE
        secured = tls.wrap_socket(plain)
        self.addCleanup(secured.close)
        secured.sendall(frames.pack_message(frames.Kind.TICKET, {"ticket": place["ticket"]}))
        return secured

    def read_all(self, connection: ssl.SSLSocket) -> list[frames.Frame]:
        """Return the frames that come until the conductor closes the connection."""
        with connection.makefile("rb") as arriving:
            content = arriving.read()

        async def parse() -> list[frames.Frame]:
            stream, found = asyncio.StreamReader(), []
            stream.feed_data(content)
            stream.feed_eof()
            while (frame := await frames.read(stream)) is not None:
                found.append(frame)
            return found

        return asyncio.run(parse())

    def test_a_ticket_opens_one_console_once(self) -> None:
        place = self.ask()
        first = self.connect(place)
        self.assertNotEqual(b"", first.recv(1))
        self.assertEqual([], self.read_all(self.connect(place)))
        self.assertEqual([], self.read_all(self.connect({**place, "ticket": "other"})))
        for sent in (b"\0" * 5, b"\3\0\0\0\1{", b"\3\0\0\0\2[]", b"\xff" * 20):
            other = self.connect(place)
            other.sendall(sent)
            self.assertEqual([], self.read_all(other))
        first.sendall(b"\xff" * 20)  # no frame
        self.wait(lambda: not self.consoles.list_nodes(), "the reader has to leave")

    def test_who_types_is_not_disturbed_by_a_ticket_from_before(self) -> None:
        early, late = self.ask(), self.ask()
        self.connect(early).recv(1)
        end = self.read_all(self.connect(late))[-1]
        self.assertEqual(frames.Kind.END, end.kind)
        self.assertEqual(frames.End.TAKEN, json.loads(end.content)["code"])

    def test_a_reader_that_is_too_slow_has_to_leave(self) -> None:
        self.useFixture(fixtures.MonkeyPatch("ingot.conductor.console_server._BEHIND", 2**16))
        slow = self.connect(self.ask("read"))
        with self.attend("mode=write") as terminal:
            for number in range(80):
                terminal.type("x" * 60_000 + f"<{number}>")
                terminal.read_until(f"<{number}>")
            self.wait(lambda: "too slow" in self.log.output, "it is left behind")
            end = self.read_all(slow)[-1]
            self.assertEqual(frames.End.SLOW, json.loads(end.content)["code"])
            terminal.type("still here")
            terminal.read_until("still here")

    def test_an_api_gives_its_ticket_to_no_other_conductor(self) -> None:
        asked = endpoint.Endpoint.open_console
        for changed, reason in (
            ({"fingerprint": "00" * 32}, "another certificate"),
            ({"port": ports.tcp()}, "does not answer"),
        ):

            def answer(*args: Any, changed: dict[str, Any] = changed, **named: Any) -> Any:
                return {"result": asked(*args, **named)["result"] | changed}

            self.useFixture(fixtures.MonkeyPatch("ingot.conductor.endpoint.Endpoint.open_console", answer))
            with self.attend() as terminal:
                code, text = terminal.read_end()
                self.assertEqual((frames.End.STOPS, True), (code, reason in text), text)

    def test_a_connection_without_a_ticket_costs_no_other_one_its_place(self) -> None:
        self.useFixture(fixtures.MonkeyPatch("ingot.conductor.console_server._MOST_STRANGERS", 2))
        place = self.ask()  # makes room for one more
        strangers = [socket.create_connection((place["host"], place["port"]), LIMIT) for _ in range(4)]
        for stranger in strangers:
            self.addCleanup(stranger.close)
        self.assertEqual(b"", strangers[3].recv(1))  # at once: those before have as long as a handshake may take
        for stranger in strangers:
            stranger.close()

        def attend() -> bytes:
            with contextlib.suppress(OSError):
                return self.connect(place).recv(1)
            return b""

        self.wait(attend, "there is a place again")
        self.connect(self.ask("read")).recv(1)  # who has shown one is no stranger

    def test_a_port_that_is_in_use_is_named(self) -> None:
        self.conf.set_override("port", self.port, group="console")
        refused = self.assertRaises(errors.ServiceUnavailable, self.ask)
        self.assertIn("[console] host_ip and port", refused.message)

    def test_a_conductor_does_not_start_without_the_port_that_it_is_given(self) -> None:
        self.conf.set_override("port", self.port, group="console")
        self.conf.set_override("host", "conductor-2")
        other = self.make_conductor(self.db)
        refused = self.assertRaises(errors.Occupied, other.start)
        self.assertIn("[console] host_ip and port", refused.message)
        self.assertFalse(other.membership.is_registered)
        self.conf.set_override("port", ports.tcp(), group="console")
        third = self.make_conductor(self.db)
        self.start(third)
        socket.create_connection(("127.0.0.1", self.conf.console.port), LIMIT).close()
