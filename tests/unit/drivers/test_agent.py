"""Talking to agents: over TLS, without leaking tokens, once and not twice, and on after a crash."""

import collections
import contextlib
import datetime
import io
import logging
import socket
import sys
import threading
import time
import traceback
from typing import Any, ClassVar
from unittest import mock

from ingot.common import clock, errors, fetching, states, steps
from ingot.drivers.agent import client, commands, session
from ingot.drivers.interfaces import results
from tests.unit.drivers import fakes, http_agent
from tests.unit.drivers.file_server import SlowServer

STEP = {"interface": "deploy", "step": "burn", "priority": 50, "args": {"hot": True}}
SLOW = "deploy.execute_deploy_step"


class AgentTestCase(fakes.DriverTestCase):
    options: ClassVar[dict[str, Any]] = {"agent__command_timeout": 30}

    def setUp(self) -> None:
        super().setUp()
        self.agent = http_agent.HttpAgent()
        self.addCleanup(self.agent.stop)
        self.subject = self.task(**self.agent.columns(), agent_last_heartbeat=clock.now())
        self.client = client.AgentClient(self.subject)


class ClientTest(AgentTestCase):
    def test_a_quick_command_gives_its_result(self) -> None:
        self.agent.outcomes["standby.sync"] = {"command_status": "SUCCEEDED", "command_result": {"a": 1}}
        self.assertEqual({"a": 1}, self.client.ask("standby.sync", {"x": 2}))
        self.assertEqual([("standby.sync", {"x": 2})], self.agent.posted)
        self.assertIn("wait=true", self.agent.paths[0])

    def test_it_gets_the_id_of_the_request_that_it_works_for(self) -> None:
        self.client.commands()
        self.client.start(SLOW, {})
        self.assertEqual([self.subject.context.global_id] * 2, self.agent.request_ids)

    def test_a_number_that_json_has_not_is_not_sent(self) -> None:
        error = self.assertRaises(errors.AgentError, self.client.start, SLOW, {"size": float("nan")})
        self.assertIn(f"command {SLOW} at 127.0.0.1", error.message)
        self.assertEqual([], self.agent.posted)

    def test_connections_are_kept(self) -> None:
        for _ in range(5):
            client.AgentClient(self.subject).commands()
        self.assertEqual(1, self.agent.connections)

    def test_a_request_takes_at_most_480_calls_of_functions(self) -> None:
        """With a session of ``requests`` it took 830, and twice the time."""
        self.agent.outcomes["standby.sync"] = {"command_status": "SUCCEEDED"}
        self.client.ask("standby.sync", {})
        calls: list[str] = []
        sys.setprofile(lambda frame, event, _arg: calls.append(frame.f_code.co_qualname) if event == "call" else None)
        try:
            self.client.ask("standby.sync", {})
        finally:
            sys.setprofile(None)
        self.assertLessEqual(len(calls), 480, collections.Counter(calls).most_common(20))

    def test_only_the_certificate_that_the_agent_announced_is_trusted(self) -> None:
        for announced in (http_agent.certificate()[0], None):
            self.subject.set(agent_verify_ca=announced)
            stranger = client.AgentClient(self.subject)
            error = self.assertRaises(errors.AgentUnreachable, stranger.commands)
            self.assertIn("certificate", error.message.lower())
        self.assertEqual([], self.agent.paths)

    def test_the_well_known_authorities_are_read_once_for_all_agents(self) -> None:
        pools = [client.open_pool(f"https://192.0.2.{number}:9999", None) for number in range(9)]
        self.assertEqual(1, len({id(pool.conn_kw["ssl_context"]) for pool in pools}))

    def test_a_certificate_that_is_none_is_reported(self) -> None:
        self.subject.set(agent_verify_ca="-----BEGIN NONSENSE-----")
        broken = client.AgentClient(self.subject)
        self.assertIn("cannot be read", self.assertRaises(errors.AgentError, broken.commands).message)

    def test_plain_http_needs_the_operators_consent(self) -> None:
        plain = http_agent.HttpAgent(tls=False)
        self.addCleanup(plain.stop)
        self.subject.set(**plain.columns())
        agent_client = client.AgentClient(self.subject)
        self.assertIn("require_tls", self.assertRaises(errors.AgentError, agent_client.commands).message)
        self.subject.conf.set_override("require_tls", False, "agent")
        self.assertEqual([], agent_client.commands())

    def test_refusals_are_distinct_and_named(self) -> None:
        refusals = ((409, "Agent is busy", errors.AgentBusy), (404, "no extension", client.CommandNotFound))
        for status, why, expected in (*refusals, (401, "Token invalid", errors.AgentError)):
            self.agent.refusals = [(status, why)]
            error = self.assertRaises(expected, self.client.start, "clean.burn", {})
            self.assertIn("command clean.burn at 127.0.0.1", error.message)
            self.assertIn(why, error.message)

    def test_a_failed_quick_command_says_what_the_agent_said(self) -> None:
        failure = {"type": "ImageWriteError", "message": "short", "details": "disk is full"}
        self.agent.outcomes["log.collect"] = {"command_status": "FAILED", "command_error": failure}
        error = self.assertRaises(errors.AgentError, self.client.ask, "log.collect", {})
        self.assertIn("ImageWriteError: disk is full", error.message)

    def test_no_message_log_or_traceback_has_the_token(self) -> None:
        written = io.StringIO()
        handler = logging.StreamHandler(written)
        for name in ("urllib3.connectionpool", "ingot"):
            logger = logging.getLogger(name)
            logger.addHandler(handler)
            self.addCleanup(logger.removeHandler, handler)
            self.addCleanup(logger.setLevel, logger.level)
            logger.setLevel(logging.DEBUG)
        self.client.commands()
        self.agent.stop()
        self.subject.set(agent_url="https://127.0.0.1:1")
        try:
            client.AgentClient(self.subject).commands()
        except errors.AgentUnreachable:
            written.write(traceback.format_exc())
        self.assertIn("agent_token=******", written.getvalue())
        self.assertNotIn(http_agent.TOKEN, written.getvalue())

    def test_an_answer_that_never_ends_is_given_up_in_time(self) -> None:
        slow = SlowServer()
        self.addCleanup(slow.stop)
        self.subject.set(agent_url=slow.url, agent_verify_ca=None)
        for name, value in (("require_tls", False), ("command_timeout", 1)):
            self.subject.conf.set_override(name, value, group="agent")
        self.assertRaises(errors.AgentUnreachable, client.AgentClient(self.subject).commands)

    def test_an_answer_that_is_too_long_or_too_deep_is_the_agents_error(self) -> None:
        self.agent.outcomes["standby.sync"] = {"command_status": "SUCCEEDED", "command_result": "a" * 2000}
        with mock.patch.object(client, "_LONGEST_ANSWER", 1000):
            error = self.assertRaises(errors.AgentError, self.client.ask, "standby.sync", {})
        self.assertIn("longer than 1000 bytes", error.message)
        content = b"[" * 200_000
        deep = mock.Mock(return_value=fetching.Answer(200, "OK", {}, content))
        with mock.patch.object(fetching, "ask", deep):
            self.assertIn("not JSON", self.assertRaises(errors.AgentError, self.client.commands).message)

    def test_a_node_without_agent_says_so(self) -> None:
        session.forget(self.subject)
        unknown_agent = client.AgentClient(self.subject)
        self.assertIn("no agent has called", self.assertRaises(errors.AgentUnreachable, unknown_agent.commands).message)

    def test_the_node_is_sent_without_secrets(self) -> None:
        self.subject.set(driver_info={"ipmi_password": "hush", "ipmi_address": "a"})
        sent = client.build_node_params(self.subject)["node"]
        self.assertNotIn("hush", str(sent))
        self.assertNotIn(http_agent.TOKEN, str(sent))
        self.assertEqual(self.subject.node.uuid, sent["uuid"])


class LongCommandTest(AgentTestCase):
    def _run(self) -> results.Result:
        return commands.execute_step(self.subject, "deploy", STEP)

    def test_it_is_posted_once_and_looked_up_at_heartbeats(self) -> None:
        session.note_facts(self.subject, versions={"generic": "1"})
        for _ in range(3):
            self.assertIsInstance(self._run(), results.WaitForAgent)
        self.agent.end(result={"deploy_result": 7})
        self.assertEqual(results.Done({"deploy_result": 7}), self._run())
        self.assertEqual([SLOW], [name for name, _params in self.agent.posted])
        sent = self.agent.posted[0][1]
        self.assertEqual((STEP, {"generic": "1"}), (sent["step"], sent["deploy_version"]))

    def test_a_step_costs_two_requests(self) -> None:
        """What the agent has been ordered before is read only where that may be this step."""
        self.subject.is_first_call = True
        self._run()
        self.subject.is_first_call = False
        self.agent.end()
        self.assertIsInstance(self._run(), results.Done)
        self.assertEqual(["POST", "GET"], self.agent.methods)

    def test_a_command_whose_answer_was_lost_is_looked_for(self) -> None:
        self.subject.is_first_call = True
        self.agent.refusals = [(409, "Agent is busy")]
        self.assertIsInstance(self._run(), results.PollAfter)
        self.subject.is_first_call = False
        self.agent.add(SLOW)
        self.assertIsInstance(self._run(), results.WaitForAgent)
        self.assertEqual([], self.agent.posted)

    def test_after_a_crash_the_running_command_is_adopted(self) -> None:
        self._run()
        self.subject.memory.clear()
        self.assertIsInstance(self._run(), results.WaitForAgent)
        self.agent.end(result={"deploy_result": "late"})
        self.subject.memory.clear()
        self.assertEqual(results.Done({"deploy_result": "late"}), self._run())
        self.assertEqual(1, len(self.agent.posted))

    def test_a_command_whose_outcome_was_taken_is_not_adopted_again(self) -> None:
        self._run()
        self.agent.end()
        self._run()
        self.subject.memory.clear()
        self.assertIsInstance(self._run(), results.WaitForAgent)
        self.assertEqual(2, len(self.agent.posted))

    def test_a_failure_is_final_and_not_adopted_by_a_retry(self) -> None:
        self._run()
        self.agent.end("FAILED", error={"type": "CleaningError", "details": "smoke"})
        error = self.assertRaises(errors.StepFailed, self._run)
        self.assertIn(f"{SLOW} failed: CleaningError: smoke", error.message)
        self.subject.memory.clear()
        self.assertIsInstance(self._run(), results.WaitForAgent)

    def test_another_version_is_detected(self) -> None:
        self._run()
        self.agent.end("DEPLOY_VERSION_MISMATCH", error={"type": "VersionMismatch", "message": "1 is not 2"})
        self.assertIn("1 is not 2", self.assertRaises(errors.AgentVersionMismatch, self._run).message)

    def test_a_busy_agent_is_tried_again(self) -> None:
        self.agent.refusals = [(409, "Agent is busy")]
        self.assertIsInstance(self._run(), results.PollAfter)
        self.assertIsInstance(self._run(), results.WaitForAgent)

    def test_a_lost_command_fails_the_step(self) -> None:
        self._run()
        self.agent.commands.clear()
        self.assertIn("restarted", self.assertRaises(errors.StepFailed, self._run).message)

    def test_an_agent_that_its_machine_refuses_is_gone_soon(self) -> None:
        self.assertEqual(results.WaitForAgent(watch=True), self._run())
        self.subject.set(agent_url="https://127.0.0.1:1")
        self.assertIsInstance(self._run(), results.PollAfter)
        self.subject.memory["trouble_since"] -= 5
        error = self.assertRaises(errors.AgentGone, self._run)
        self.assertIn("its agent is gone", error.message)

    def test_another_agent_at_its_address_does_not_pass_for_it(self) -> None:
        self._run()
        self.subject.set(agent_verify_ca=http_agent.certificate()[0])
        self.assertIsInstance(self._run(), results.PollAfter)
        self.subject.memory["trouble_since"] -= 5
        self.assertIn("certificate", self.assertRaises(errors.AgentGone, self._run).message)


class OfferingTestCase(AgentTestCase):
    def offer(self, kind: str, *steps: dict[str, Any], **versions: str) -> None:
        """Let the agent offer steps from now on."""
        answer = {f"{kind}_steps": {"A": list(steps)}, "hardware_manager_version": versions}
        outcome = {"command_status": "SUCCEEDED", "command_result": answer}
        self.agent.outcomes[f"{kind}.get_{kind}_steps"] = outcome


class StepsOfAgentTest(OfferingTestCase):
    def test_what_the_agent_offered_is_kept(self) -> None:
        self.offer("deploy", {"interface": "deploy", "step": "burn", "priority": 5}, A="1")
        offered = commands.get_steps(self.subject, "deploy")
        self.assertEqual(["deploy.burn"], [steps.get_label(step) for step in offered])
        self.assertIn("deploy.burn", commands.read_offered(self.subject, "deploy"))
        self.assertNotIn("deploy.burn", commands.read_offered(self.subject, "clean"))
        self.assertEqual({"A": "1"}, session.read_facts(self.subject).get("versions"))

    def test_it_is_asked_once_and_what_it_did_before_is_of_the_past(self) -> None:
        self.offer("deploy")
        self.agent.add(SLOW, command_status="SUCCEEDED")
        commands.get_steps(self.subject, "deploy")
        self.assertEqual(["POST"], self.agent.methods)
        self.assertEqual(self.agent.commands[-1]["id"], session.read_facts(self.subject).get("ended"))

    def test_a_malformed_answer_is_the_agents_error(self) -> None:
        self.offer("clean", {"interface": "deploy", "step": "burn", "priority": "high"})
        error = self.assertRaises(errors.AgentError, commands.get_steps, self.subject, "clean")
        self.assertIn("Agent command clean.get_clean_steps at 127.0.0.1", error.message)
        self.assertIn("'high' as clean_steps.A[0].priority of step deploy.burn", error.message)

    def test_commands_that_are_none_are_the_agents_error(self) -> None:
        self.agent.add("standby.sync", id=None)
        error = self.assertRaises(errors.AgentError, self.client.commands)
        self.assertIn("None as commands[0].id; it must be a text", error.message)

    def test_all_three_kinds_are_asked_for_and_run_in_their_own_words(self) -> None:
        for kind in ("clean", "deploy", "service"):
            self.offer(kind, {"interface": "bios", "step": "flash", "priority": 0}, A="2")
            commands.get_steps(self.subject, kind)
            commands.execute_by_name(self.subject, kind, "bios", "flash", lambda: {"hot": True})
            self.agent.end()
            commands.execute_by_name(self.subject, kind, "bios", "flash", lambda: {"hot": True})
            self.subject.memory.clear()
            asked, run = self.agent.posted[-2:]
            self.assertEqual((f"{kind}.get_{kind}_steps", f"{kind}.execute_{kind}_step"), (asked[0], run[0]))
            self.assertEqual({"hot": True}, run[1]["step"]["args"])
            self.assertEqual({"A": "2"}, run[1][f"{kind}_version"])

    def test_the_operators_way_of_erasing_goes_with_the_node(self) -> None:
        self.subject.conf.set_override("continue_if_disk_secure_erase_fails", True, "deploy")
        self.subject.conf.set_override("shred_random_overwrite_iterations", 3, "deploy")
        self.offer("clean")
        commands.get_steps(self.subject, "clean")
        info = self.agent.posted[0][1]["node"]["driver_internal_info"]
        expected = {
            "agent_continue_if_secure_erase_failed": True,
            "agent_enable_ata_secure_erase": True,
            "agent_enable_nvme_secure_erase": True,
            "agent_erase_devices_iterations": 3,
            "agent_erase_devices_zeroize": True,
            "agent_erase_skip_read_only": False,
            "disk_erasure_concurrency": 4,
        }
        self.assertEqual(expected, {key: info[key] for key in expected})
        self.assertNotIn("disk_erasure_concurrency", self.subject.node.driver_internal_info)

    def test_only_an_agent_older_than_deploy_steps_may_have_none(self) -> None:
        """One that cannot clean must not pass for one that has cleaned."""
        self.agent.refusals = [(404, "Extension with id deploy not found")]
        self.assertEqual((), commands.get_steps(self.subject, "deploy"))
        for kind in ("clean", "service"):
            self.agent.refusals = [(404, f"Extension with id {kind} not found")]
            error = self.assertRaises(errors.AgentError, commands.get_steps, self.subject, kind)
            self.assertIn(f"knows no {kind} steps: boot another one", error.message)

    def test_alive_is_who_called_lately(self) -> None:
        self.assertTrue(session.is_alive(self.subject))
        self.assertFalse(session.can_fast_track(self.subject))
        self.subject.conf.set_override("fast_track", True, "deploy")
        self.assertFalse(session.can_fast_track(self.subject))  # on a machine that is not on there is none
        self.subject.set(power_state=states.POWER_ON)
        self.assertTrue(session.can_fast_track(self.subject))
        self.subject.set(agent_last_heartbeat=clock.after(-301))
        self.assertFalse(session.is_alive(self.subject))
        self.subject.set(agent_last_heartbeat=clock.now())
        session.forget(self.subject)
        self.assertFalse(session.is_alive(self.subject))


class RebootTest(OfferingTestCase):
    """A step of the agent's that wants a reboot; the fake machine powers on at once."""

    def setUp(self) -> None:
        super().setUp()
        self.subject.set(power_state="power on")
        self.offer("clean", {"interface": "raid", "step": "flash", "priority": 0, "reboot_requested": True}, A="1")
        commands.get_steps(self.subject, "clean")

    def call(self) -> results.Result:
        return commands.execute_by_name(self.subject, "clean", "raid", "flash", dict)

    def come_back(self, **columns: Any) -> results.Result:
        """Let the step end, the machine boot, and its agent call."""
        self.call()
        self.agent.end(result={"clean_result": 7})
        self.assertIsInstance(self.run_to_end(self.call), results.WaitForAgent)
        self.assertIsNone(self.subject.node.agent_url)
        self.subject.set(**{**self.agent.columns(), "agent_last_heartbeat": clock.now(), **columns})
        return self.call()

    def test_a_drivers_step_gets_the_reboot_that_the_agent_said_its_step_needs(self) -> None:
        self.assertEqual(results.Done({"clean_result": 7}), self.come_back())
        self.assertEqual({}, {key: value for key, value in self.subject.memory.items() if key != "rebooting"})

    def test_another_agent_is_noticed(self) -> None:
        error = self.assertRaises(errors.AgentVersionMismatch, self.come_back, agent_version="14.0.0")
        self.assertIn("agent 14.0.0 answers; the steps were planned with 13.0.0", error.message)

    def test_another_hardware_manager_is_noticed(self) -> None:
        self.offer("clean", {"interface": "raid", "step": "flash", "priority": 0, "reboot_requested": True}, A="2")
        error = self.assertRaises(errors.AgentVersionMismatch, self.come_back)
        self.assertIn("{'A': '2'}; the steps were planned with {'A': '1'}", error.message)

    def test_an_agent_that_cannot_be_asked_yet_is_asked_again_without_another_reboot(self) -> None:
        self.assertIsInstance(self.come_back(agent_url="https://127.0.0.1:1"), results.PollAfter)
        self.subject.set(agent_url=self.agent.url)
        self.assertEqual(results.Done({"clean_result": 7}), self.call())


class SilenceTest(AgentTestCase):
    """What a machine that does not answer costs: a thread for one attempt, whatever the request."""

    options: ClassVar[dict[str, Any]] = {"agent__require_tls": False, "agent__max_command_attempts": 3}

    def mute(self, scheme: str) -> socket.socket:
        """Replace the node's agent by one whose kernel takes connections, and whose process says nothing."""
        ears = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(ears.close)
        self.subject.set(agent_url=f"{scheme}://127.0.0.1:{ears.getsockname()[1]}", agent_verify_ca=None)
        return ears

    def seconds(self) -> float:
        """Return how long the thread is held."""
        began = time.monotonic()
        agent_client = client.AgentClient(self.subject)
        self.assertRaises(errors.AgentUnreachable, agent_client.commands)
        return time.monotonic() - began

    def test_who_does_not_even_take_the_connection_is_left_soon(self) -> None:
        self.mute("https")
        self.subject.conf.set_override("connect_timeout", 1, "agent")
        self.assertLess(self.seconds(), 10)

    def test_who_does_not_answer_is_not_asked_again_on_the_spot(self) -> None:
        ears = self.mute("http")
        self.subject.conf.set_override("command_timeout", 1, "agent")
        self.seconds()
        ears.settimeout(0)
        ears.accept()
        self.assertRaises(BlockingIOError, ears.accept)

    def test_who_takes_longer_to_answer_than_to_be_connected_is_heard(self) -> None:
        """Logs of a slow machine, or the steps of one with many disks, take many seconds."""
        ears = self.mute("http")
        self.subject.conf.set_override("connect_timeout", 1, "agent")

        def answer() -> None:
            with ears.accept()[0] as connection:
                connection.recv(2**16)
                time.sleep(1.2)
                connection.sendall(b'HTTP/1.1 200 OK\r\nContent-Length: 16\r\n\r\n{"commands": []}')

        threading.Thread(target=answer, daemon=True).start()
        self.assertEqual([], client.AgentClient(self.subject).commands())

    def test_who_hangs_up_on_a_kept_connection_is_asked_again_if_that_does_no_harm(self) -> None:
        ears = self.mute("http")
        complete = b'HTTP/1.1 200 OK\r\nContent-Length: 16\r\n\r\n{"commands": []}'

        def answer() -> None:
            for said in (b"", complete, b""):
                with ears.accept()[0] as connection:
                    connection.recv(2**16)
                    connection.sendall(said)

        threading.Thread(target=answer, daemon=True).start()
        agent_client = client.AgentClient(self.subject)
        self.assertEqual([], agent_client.commands())
        self.assertRaises(errors.AgentUnreachable, agent_client.start, "clean.burn", {})

    def test_who_does_not_answer_is_given_up_after_a_while(self) -> None:
        self.mute("https")
        self.subject.conf.set_override("connect_timeout", 1, "agent")
        self.assertIsInstance(commands.execute_step(self.subject, "deploy", STEP), results.PollAfter)
        self.subject.memory["trouble_since"] -= 1000
        self.assertRaises(errors.AgentUnreachable, commands.execute_step, self.subject, "deploy", STEP)

    def test_one_that_has_stopped_calling_as_well_is_given_up_sooner(self) -> None:
        self.mute("https")
        self.subject.conf.set_override("connect_timeout", 1, "agent")
        once = self.subject.conf.agent.command_timeout
        self.subject.memory["trouble_since"] = time.time() - once
        self.assertIsInstance(commands.execute_step(self.subject, "deploy", STEP), results.PollAfter)
        silent = self.subject.conf.api.ramdisk_heartbeat_timeout + 1
        self.subject.set(agent_last_heartbeat=clock.now() - datetime.timedelta(seconds=silent))
        self.assertRaises(errors.AgentUnreachable, commands.execute_step, self.subject, "deploy", STEP)

    def test_who_hangs_up_for_a_while_is_not_given_up(self) -> None:
        for scheme in ("http", "https"):
            ears = self.mute(scheme)
            threading.Thread(target=self._hang_up, args=(ears,), daemon=True).start()
            self.subject.memory.clear()
            self.assertIsInstance(commands.execute_step(self.subject, "deploy", STEP), results.PollAfter)
            self.subject.memory["trouble_since"] -= 60
            self.assertIsInstance(commands.execute_step(self.subject, "deploy", STEP), results.PollAfter)

    def _hang_up(self, ears: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while True:
                ears.accept()[0].close()

    def test_the_pauses_grow(self) -> None:
        self.mute("https")
        self.subject.conf.set_override("connect_timeout", 1, "agent")
        pauses = []
        for ago in (0, 60):
            self.subject.memory["trouble_since"] = time.time() - ago
            pauses.append(commands.execute_step(self.subject, "deploy", STEP).after)
        self.assertEqual([5, 30], [int(pause) for pause in pauses])
