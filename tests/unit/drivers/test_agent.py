"""Talking to agents: over TLS, without leaking tokens, once and not twice, and on after a crash."""

import io
import logging
import traceback
from typing import Any, ClassVar

from ingot.common import clock, errors
from ingot.drivers import results
from ingot.drivers.agent import client, commands, session
from tests.unit.drivers import fakes, http_agent

STEP = {"interface": "deploy", "step": "burn", "priority": 50, "args": {"hot": True}}
SLOW = "deploy.execute_deploy_step"


class AgentTestCase(fakes.DriverTestCase):
    options: ClassVar[dict[str, Any]] = {"agent__command_timeout": 5}

    def setUp(self) -> None:
        super().setUp()
        self.agent = http_agent.HttpAgent()
        self.addCleanup(self.agent.stop)
        self.subject = self.task(**self.agent.columns(), agent_last_heartbeat=clock.now())
        self.client = client.AgentClient(self.subject.conf, self.subject.node)


class ClientTest(AgentTestCase):
    def test_a_quick_command_gives_its_result(self) -> None:
        self.agent.outcomes["standby.sync"] = {"command_status": "SUCCEEDED", "command_result": {"a": 1}}
        self.assertEqual({"a": 1}, self.client.ask("standby.sync", {"x": 2}))
        self.assertEqual([("standby.sync", {"x": 2})], self.agent.posted)
        self.assertIn("wait=true", self.agent.paths[0])

    def test_connections_are_kept(self) -> None:
        for _ in range(5):
            client.AgentClient(self.subject.conf, self.subject.node).commands()
        self.assertEqual(1, self.agent.connections)

    def test_only_the_certificate_that_the_agent_announced_is_trusted(self) -> None:
        for announced in (http_agent.certificate()[0], None):
            self.subject.set(agent_verify_ca=announced)
            stranger = client.AgentClient(self.subject.conf, self.subject.node)
            error = self.assertRaises(errors.AgentUnreachable, stranger.commands)
            self.assertIn("certificate", error.message.lower())
        self.assertEqual([], self.agent.paths)

    def test_a_certificate_that_is_none_is_reported(self) -> None:
        self.subject.set(agent_verify_ca="-----BEGIN NONSENSE-----")
        broken = client.AgentClient(self.subject.conf, self.subject.node)
        self.assertIn("cannot be read", self.assertRaises(errors.AgentError, broken.commands).message)

    def test_plain_http_needs_the_operators_consent(self) -> None:
        plain = http_agent.HttpAgent(tls=False)
        self.addCleanup(plain.stop)
        self.subject.set(**plain.columns())
        talk = client.AgentClient(self.subject.conf, self.subject.node)
        self.assertIn("require_tls", self.assertRaises(errors.AgentError, talk.commands).message)
        self.subject.conf.set_override("require_tls", False, "agent")
        self.assertEqual([], talk.commands())

    def test_refusals_are_told_apart_and_named(self) -> None:
        refusals = ((409, "Agent is busy", errors.AgentBusy), (404, "no extension", client.NotThere))
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
            client.AgentClient(self.subject.conf, self.subject.node).commands()
        except errors.AgentUnreachable:
            written.write(traceback.format_exc())
        self.assertIn("agent_token=******", written.getvalue())
        self.assertNotIn(http_agent.TOKEN, written.getvalue())

    def test_a_node_without_agent_says_so(self) -> None:
        session.forget(self.subject)
        nobody = client.AgentClient(self.subject.conf, self.subject.node)
        self.assertIn("no agent has called", self.assertRaises(errors.AgentUnreachable, nobody.commands).message)

    def test_the_node_is_sent_without_secrets(self) -> None:
        self.subject.set(driver_info={"ipmi_password": "hush", "ipmi_address": "a"})
        sent = client.node_for_agent(self.subject.node)
        self.assertNotIn("hush", str(sent))
        self.assertNotIn(http_agent.TOKEN, str(sent))
        self.assertEqual(self.subject.node.uuid, sent["uuid"])


class LongCommandTest(AgentTestCase):
    def _run(self) -> results.Result:
        return commands.execute_step(self.subject, "deploy", STEP)

    def test_it_is_posted_once_and_looked_up_at_heartbeats(self) -> None:
        session.note(self.subject, versions={"generic": "1"})
        for _ in range(3):
            self.assertIsInstance(self._run(), results.WaitForAgent)
        self.agent.end(result={"deploy_result": 7})
        self.assertEqual(results.Done({"deploy_result": 7}), self._run())
        self.assertEqual([SLOW], [name for name, _params in self.agent.posted])
        sent = self.agent.posted[0][1]
        self.assertEqual((STEP, {"generic": "1"}), (sent["step"], sent["deploy_version"]))

    def test_after_a_crash_the_running_command_is_adopted(self) -> None:
        self._run()
        self.subject.memory.clear()
        self.assertIsInstance(self._run(), results.WaitForAgent)
        self.agent.end(result="late")
        self.subject.memory.clear()
        self.assertEqual(results.Done("late"), self._run())
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

    def test_another_version_is_told_apart(self) -> None:
        self._run()
        self.agent.end("DEPLOY_VERSION_MISMATCH", error={"type": "VersionMismatch", "message": "1 is not 2"})
        self.assertIn("1 is not 2", self.assertRaises(errors.AgentVersionMismatch, self._run).message)

    def test_a_busy_agent_is_tried_again(self) -> None:
        self.agent.refusals = [(409, "Agent is busy")]
        self.assertIsInstance(self._run(), results.LookAgain)
        self.assertIsInstance(self._run(), results.WaitForAgent)

    def test_a_lost_command_fails_the_step(self) -> None:
        self._run()
        self.agent.commands.clear()
        self.assertIn("started anew", self.assertRaises(errors.StepFailed, self._run).message)

    def test_an_agent_out_of_reach_is_given_up_after_a_while(self) -> None:
        self.subject.set(agent_url="https://127.0.0.1:1")
        self.assertIsInstance(self._run(), results.LookAgain)
        self.subject.memory["trouble_since"] -= 1000
        self.assertRaises(errors.AgentUnreachable, self._run)


class StepsOfAgentTest(AgentTestCase):
    def test_each_step_is_listed_once_and_versions_are_kept(self) -> None:
        burn = {"interface": "deploy", "step": "burn", "priority": 5}
        answer = {"deploy_steps": {"A": [burn], "B": [burn]}, "hardware_manager_version": {"A": "1"}}
        self.agent.outcomes["deploy.get_deploy_steps"] = {"command_status": "SUCCEEDED", "command_result": answer}
        self.assertEqual([burn], commands.get_steps(self.subject, "deploy"))
        self.assertTrue(commands.offers(self.subject, "deploy", "deploy", "burn"))
        self.assertFalse(commands.offers(self.subject, "clean", "deploy", "burn"))
        self.assertEqual({"A": "1"}, session.known(self.subject, "versions"))

    def test_an_agent_without_the_extension_offers_nothing(self) -> None:
        self.agent.refusals = [(404, "Extension with id deploy not found")]
        self.assertEqual([], commands.get_steps(self.subject, "deploy"))

    def test_alive_is_who_called_lately(self) -> None:
        self.assertTrue(session.alive(self.subject))
        self.assertFalse(session.fast_track(self.subject))
        self.subject.conf.set_override("fast_track", True, "deploy")
        self.assertTrue(session.fast_track(self.subject))
        self.subject.set(agent_last_heartbeat=clock.after(-301))
        self.assertFalse(session.alive(self.subject))
        self.subject.set(agent_last_heartbeat=clock.now())
        session.forget(self.subject)
        self.assertFalse(session.alive(self.subject))
