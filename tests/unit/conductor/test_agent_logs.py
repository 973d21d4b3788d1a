"""The logs of a run's agent: collected when configured, kept when small enough, and never in the way of the flow."""

import datetime
import pathlib
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

import fixtures
import sqlalchemy as sa

from ingot.common import clock, context, errors, states
from ingot.conductor.task import agent_logs, task_manager
from ingot.db import models
from tests import conductor_case, database

RUN = "11111111-1111-1111-1111-111111111111"
ARCHIVE = b"\x1f\x8b\0 what happened"
LOGS = models.table(models.AgentLog)


class LogsCase(conductor_case.ConductorCase):
    """The fake deploy interface stands for one with an agent; ``self.asked`` counts how often it was asked for logs."""

    def setUp(self) -> None:
        super().setUp()
        self.asked = 0
        self.says(lambda: ARCHIVE)

    def says(self, answer: Callable[[], Any]) -> None:
        def collect_logs(_task: Any) -> Any:
            self.asked += 1
            return answer()

        self.conductor.services.hardware.interface("deploy", "fake").collect_logs = collect_logs

    def option(self, name: str, value: Any) -> None:
        self.conf.set_override(name, value, group="agent")

    def heard(self, ago: float = 1.0, **values: Any) -> models.Node:
        """Return a node whose agent sent a heartbeat."""
        agent = {"agent_url": "https://127.0.0.1:9", "agent_last_heartbeat": clock.after(-ago)}
        return database.make_node(self.db, **agent, **values)

    def collect(self, node: models.Node, failed: bool = True, run: str = RUN) -> None:
        with task_manager.acquire(self.conductor.services, context.admin(), node.uuid, "test", shared=True) as task:
            agent_logs.collect(task, "deploy", run, failed)

    def kept(self, node: models.Node) -> list[models.AgentLog]:
        with self.db.single() as connection:
            found = connection.execute(sa.select(LOGS).where(LOGS.c.node_id == node.id).order_by(LOGS.c.id))
            return models.AgentLog.all_of(found)


class Files(LogsCase):
    starts = False

    def setUp(self) -> None:
        super().setUp()
        self.folder = pathlib.Path(self.useFixture(fixtures.TempDir()).path, "ironic", "deploy")
        self.option("deploy_logs_local_path", str(self.folder))

    def names(self) -> list[str]:
        return sorted(path.name for path in self.folder.iterdir())

    def test_names_are_those_that_tools_know(self) -> None:
        instance = "22222222-2222-2222-2222-222222222222"
        node = self.heard(name="metal3~host-1", instance_uuid=instance)
        self.collect(node)
        (name,) = self.names()
        expected = rf"{node.uuid}_metal3~host-1_{instance}_deploy_\d{{4}}-\d\d-\d\d-\d\d-\d\d-\d\d\.tar\.gz"
        self.assertRegex(name, expected)
        self.assertEqual(ARCHIVE, (self.folder / name).read_bytes())
        self.assertEqual(1, len(self.kept(node)), "and in the database")

    def test_no_name_leads_elsewhere(self) -> None:
        node = self.heard(name="../../x; $(reboot)\n")
        self.collect(node)
        (name,) = self.names()
        self.assertIn(f"{node.uuid}_..-..-x----reboot--_deploy_", name)

    def test_only_the_newest_of_a_node_stay(self) -> None:
        self.option("deploy_logs_max_per_node", 2)
        node, other = self.heard(), self.heard()
        self.collect(other)
        for number in range(4):
            self.says(lambda number=number: b"%d" % number)
            self.collect(node)
        kept: dict[str, list[bytes]] = {node.uuid: [], other.uuid: []}
        for path in self.folder.iterdir():
            kept[path.name.partition("_")[0]].append(path.read_bytes())
        self.assertEqual([b"2", b"3"], sorted(kept[node.uuid]))
        self.assertEqual([ARCHIVE], kept[other.uuid])

    def test_what_follows_the_directory_may_remove_files_at_any_moment(self) -> None:
        self.option("deploy_logs_max_per_node", 1)
        logger = self.useFixture(fixtures.FakeLogger())
        node = self.heard()
        self.collect(node)
        search = pathlib.Path.glob

        def glob(folder: pathlib.Path, pattern: str) -> Iterator[pathlib.Path]:
            for path in sorted(search(folder, pattern)):
                yield path
                path.unlink()

        with mock.patch.object(pathlib.Path, "glob", glob):
            self.collect(node)
        self.assertEqual([], self.names())
        self.assertNotIn("its agent's logs are not written", logger.output)

    def test_a_directory_that_cannot_be_written_changes_nothing(self) -> None:
        self.folder.parent.write_text("a file")
        node = self.heard()
        self.collect(node)
        self.assertEqual(1, len(self.kept(node)))

    def test_a_file_of_another_is_not_written_to(self) -> None:
        self.folder.mkdir(parents=True)
        target = self.folder.parent / "target"
        node = self.heard()
        now = clock.now()
        for second in range(-1, 60):
            moment = (now + datetime.timedelta(seconds=second)).strftime("%Y-%m-%d-%H-%M-%S")
            (self.folder / f"{node.uuid}_deploy_{moment}.tar.gz").symlink_to(target)
        self.collect(node)
        self.assertFalse(target.exists())
        self.assertEqual(1, sum(not path.is_symlink() for path in self.folder.iterdir()))


class Collecting(LogsCase):
    starts = False

    def test_the_archive_is_kept_with_its_run(self) -> None:
        node = self.heard()
        self.collect(node)
        (log,) = self.kept(node)
        self.assertEqual((RUN, "deploy", len(ARCHIVE), ARCHIVE), (log.run_id, log.flow, log.size, log.content))

    def test_the_operator_says_of_which_runs(self) -> None:
        for option, of_good, of_bad in (("always", 1, 1), ("on_failure", 0, 1), ("never", 0, 0)):
            with self.subTest(option=option):
                self.option("deploy_logs_collect", option)
                for failed, expected in ((False, of_good), (True, of_bad)):
                    node = self.heard()
                    self.collect(node, failed)
                    self.assertEqual(expected, len(self.kept(node)))

    def test_an_agent_that_was_not_heard_lately_is_not_asked(self) -> None:
        for node in (self.heard(ago=3600), database.make_node(self.db)):
            self.collect(node)
        self.assertEqual(0, self.asked)

    def test_only_the_newest_of_a_node_stay(self) -> None:
        self.option("deploy_logs_max_per_node", 2)
        node, other = self.heard(), self.heard()
        self.collect(other)
        for number in range(4):
            self.collect(node, run=f"run {number}")
        self.assertEqual(["run 2", "run 3"], [log.run_id for log in self.kept(node)])
        self.assertEqual(1, len(self.kept(other)))

    def test_what_is_too_large_is_described_instead(self) -> None:
        self.option("deploy_logs_max_size", len(ARCHIVE) - 1)
        node = self.heard()
        self.collect(node)
        self.assertEqual([], self.kept(node))
        (entry,) = self.history(node)
        self.assertEqual("logs", entry.event_type)
        self.assertIn(f"{len(ARCHIVE)} bytes", entry.event)
        self.assertIn("deploy_logs_max_size", entry.event)

    def test_an_agent_without_logs_leaves_none(self) -> None:
        for nothing in (None, b""):
            self.says(lambda nothing=nothing: nothing)
            node = self.heard()
            self.collect(node)
            self.assertEqual([], self.kept(node))

    def test_no_error_gets_out(self) -> None:
        for error in (errors.AgentError(what="x", reason="y"), KeyError("system_logs"), SystemExit(2)):

            def fails(error: BaseException = error) -> None:
                raise error

            self.says(fails)
            self.collect(self.heard())
        self.assertEqual(3, self.asked)

    def test_an_agent_that_hangs_is_left_alone(self) -> None:
        self.option("command_timeout", 1)
        end = threading.Event()
        self.addCleanup(end.set)
        self.says(lambda: end.wait(60))
        before = clock.now()
        self.collect(self.heard())
        self.assertLess((clock.now() - before).total_seconds(), 30)

    def test_agents_that_hang_take_few_threads_and_none_for_long(self) -> None:
        self.option("command_timeout", 1)
        self.enterContext(mock.patch.object(agent_logs, "_PATIENCE", 0.1))
        end = threading.Event()
        self.addCleanup(end.set)
        self.says(lambda: end.wait(60))
        began = time.monotonic()
        for _ in range(5):
            self.collect(self.heard())
        self.assertEqual(1, self.asked)
        self.assertLess(time.monotonic() - began, 4)
        end.set()
        self.says(lambda: ARCHIVE)
        node = self.heard()
        conductor_case.eventually(lambda: self.collect(node) or self.kept(node), "the slot is free again")


class Ending(LogsCase):
    """The engine asks when a run fails, whatever becomes of it."""

    def deploy_in_vain(self) -> models.Node:
        self.conductor.services.hardware.interface("deploy", "fake").deploy = self.agent_calls_and_fails
        return self.run_flow(database.make_node(self.db), "deploy", states.DEPLOYING)

    def agent_calls_and_fails(self, task: Any) -> None:
        task.set(agent_url="https://127.0.0.1:9", agent_last_heartbeat=clock.now())
        raise errors.StepFailed("the disk is on fire")

    def test_a_failed_run_leaves_its_logs(self) -> None:
        node = self.deploy_in_vain()
        (log,) = self.kept(node)
        self.assertEqual(("deploy", self.step_runs(node)[-1].run_id), (log.flow, log.run_id))

    def test_a_database_that_refuses_them_changes_nothing_about_the_end(self) -> None:
        with self.db.transaction() as connection:
            connection.execute(sa.text("DROP TABLE agent_logs"))
        node = self.deploy_in_vain()
        self.assertEqual(states.DEPLOYFAIL, node.provision_state)
        self.assertIn("the disk is on fire", node.last_error)

    def test_an_agent_that_just_did_not_answer_is_not_asked(self) -> None:
        def agent_vanishes(task: Any) -> None:
            task.set(agent_url="https://127.0.0.1:9", agent_last_heartbeat=clock.now())
            raise errors.AgentUnreachable(what="Agent command", reason="no agent is there")

        self.conductor.services.hardware.interface("deploy", "fake").deploy = agent_vanishes
        self.enterContext(mock.patch("ingot.conductor.steps.engine.RETRY_DELAYS", ()))
        node = self.run_flow(database.make_node(self.db), "deploy", states.DEPLOYING)
        self.assertEqual((states.DEPLOYFAIL, 0), (node.provision_state, self.asked))
