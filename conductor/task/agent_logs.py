"""Keeps the logs of a run's agent, which vanish with its ramdisk, where an operator can read them."""

import concurrent.futures
import threading
from collections.abc import Callable

from oslo_log import log

from ingot.common import errors
from ingot.conductor.task import log_files
from ingot.conductor.task.task_manager import Task
from ingot.db import node_history
from ingot.drivers.agent import session

LOG = log.getLogger(__name__)

_KEPT = {"always": (True, False), "on_failure": (True,), "never": ()}
"""By [agent] deploy_logs_collect: whether the logs of runs that have ``failed`` (or not) are kept."""

_PATIENCE = 5.0
"""Seconds to wait for a slot, see ``Services.log_slots``: longer than a good answer takes."""


def collect(task: Task, flow_name: str, run_id: str, failed: bool) -> None:
    """Ask the agent of a run for its logs and keep them; to be called while the agent's session is known.

    Never raises and never takes much longer than ``[agent] command_timeout``: what becomes of the logs must not decide
    what becomes of the flow. An agent that was not heard lately is not asked.

    :param failed: whether the run ends badly, which is what ``[agent] deploy_logs_collect`` looks at.
    """
    if (
        failed in _KEPT[task.conf.agent.deploy_logs_collect]
        and session.is_alive(task)
        and task.driver.deploy is not None
    ):
        _keep(task, flow_name, run_id, lambda: _collect_from_agent(task))


def keep(task: Task, flow_name: str, run_id: str, content: bytes, failed: bool) -> None:
    """Keep logs that an agent has sent on its own; as :func:`collect`."""
    if failed in _KEPT[task.conf.agent.deploy_logs_collect]:
        _keep(task, flow_name, run_id, lambda: content)


def _keep(task: Task, flow_name: str, run_id: str, get: Callable[[], bytes | None]) -> None:
    options = task.conf.agent
    try:
        content = get()
        if not content:
            return
        if len(content) > options.deploy_logs_max_size:
            event = (
                f"The agent's logs of flow {flow_name} were not kept: they have {len(content)} bytes, and [agent] "
                f"deploy_logs_max_size is {options.deploy_logs_max_size}."
            )
            LOG.warning("Node %s: %s", task.node.uuid, event)
            node_history.add_entry(task.db, task.node.id, task.build_history_entry("logs", "INFO", event))
            return
        log_files.write(task, flow_name, content)
        new: node_history.NewLog = {"run_id": run_id, "flow": flow_name, "content": content}
        uuid = node_history.add_log(task.db, task.node.id, new, options.deploy_logs_max_per_node)
        LOG.info("Node %s: %d bytes of its agent's logs are kept as %s", task.node.uuid, len(content), uuid)
    except errors.IngotError as exc:
        LOG.warning("Node %s: the logs of its agent are lost: %s", task.node.uuid, exc.message)
    except BaseException:  # an interface's bug or sys.exit, or a database that refuses the content
        LOG.exception("Node %s: the logs of its agent are lost", task.node.uuid)


def _collect_from_agent(task: Task) -> bytes | None:
    """Return what the deploy interface gets from the agent, within the time for one answer.

    A time limit of the connection is not enough: it begins anew with each attempt and each byte.

    :raises AgentError: it takes too long, or so many others are being asked that they must hang.
    """
    limit, slots = task.conf.agent.command_timeout, task.services.log_slots
    if not slots.acquire(timeout=_PATIENCE):
        raise errors.AgentError("it was not asked, because of many others that were and do not answer")
    answer: concurrent.futures.Future[bytes | None] = concurrent.futures.Future()

    def ask() -> None:
        try:
            answer.set_result(task.driver.deploy.collect_logs(task))
        except BaseException as exc:  # noqa: BLE001 - it is raised again where the result is waited for
            answer.set_exception(exc)
        finally:
            slots.release()

    # A daemon, as it may hang for some time after its caller has given up.
    threading.Thread(target=ask, name=f"logs of {task.node.uuid}", daemon=True).start()
    try:
        return answer.result(limit)
    except concurrent.futures.TimeoutError:
        raise errors.AgentUnreachable(what="The agent, asked for its logs,", reason=f"not within {limit} s") from None
