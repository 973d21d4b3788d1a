"""Power changes that users ask for, and the reading of all power states that finds what changed by itself."""

from concurrent import futures
from typing import Any

import futurist
from oslo_log import log

from ingot.common import clock, context, errors, states
from ingot.conductor import history, task_manager
from ingot.conductor.task_manager import Services, Task
from ingot.db import maintenance, nodes, records
from ingot.drivers import power_control, results
from ingot.drivers.agent import session

LOG = log.getLogger(__name__)


def advance(task: Task) -> float | None:
    """Does what can be done now for a power change, and gives the lock back.

    A flow that is under way waits meanwhile; its turn comes when the change has ended.

    :returns: seconds after which somebody must look again; None when there is nothing more to do.
    """
    request = task.node.power_request
    task.memory = dict(request.get("memory", {}))
    try:
        answer = _change(task, request["target"])
    except (errors.LockLost, errors.ServiceUnavailable):
        raise  # not the machine's fault; the request stands
    except errors.IngotError as exc:
        return _fail(task, request["target"], exc.message)
    except BaseException as exc:  # the edge of a worker; a driver's sys.exit too must not leave the request behind
        LOG.exception("Node %s: the power change met a bug", task.node.uuid)
        task.discard()  # it may be what could not be written
        return _fail(task, request["target"], errors.unexpected(exc).message)
    if isinstance(answer, results.LookAgain):
        task.set(power_request={**request, "memory": task.memory}, due_at=clock.after(answer.after))
        task.release()
        return answer.after
    _end(task, None)
    if task.node.flow is None and request["target"] != states.POWER_ON:
        session.forget(task)  # of the agent that ran until now; should it be booted again, it gets a new token
    task.release()
    return 0.0 if task.node.flow else None


def _change(task: Task, target: str) -> results.Result:
    if task.driver.power is None:
        raise errors.Invalid(task.missing["power"])
    return power_control.change(task, target)


def _end(task: Task, error: str | None) -> None:
    task.set(
        power_request={},
        target_power_state=None,
        due_at=clock.now() if task.node.flow else None,
        last_error=error,
    )


def _fail(task: Task, target: str, reason: str) -> float | None:
    message = history.writable(f"Power change to '{target}' failed on conductor {task.services.host}: {reason}")
    LOG.error("Node %s: %s", task.node.uuid, message)
    _end(task, message)
    task.release(history=[history.entry(task, "power", "ERROR", message)])
    return 0.0 if task.node.flow else None


class Synchroniser:
    """Reads the power state of every node this conductor owns, in threads of its own: machines that do not answer
    cannot take workers away from those that do. It never locks a node; one that is locked is left alone.

    :param failures: how many readings in a row failed, by node; in memory, as a restart may begin to count anew.
    """

    def __init__(self, services: Services) -> None:
        self._services = services
        self._executor = futurist.ThreadPoolExecutor(max_workers=services.conf.conductor.sync_power_state_workers)
        self._running: set[str] = set()
        self._failures: dict[str, int] = {}

    def start_round(self, mine: list[records.Record]) -> list["futures.Future[None]"]:
        """Begins to read the nodes given; those still being read from the last round are not asked twice."""
        fresh = [node for node in mine if node.uuid not in self._running]
        self._running.update(node.uuid for node in fresh)
        return [self._executor.submit(self._read, node) for node in fresh]

    def stop(self) -> None:
        self._executor.shutdown(wait=False)

    def _read(self, node: records.Record) -> None:
        try:
            with task_manager.acquire(
                self._services, context.admin(), node.uuid, "power state reading", shared=True
            ) as task:
                if task.driver.power is None:
                    return
                self._note(task, task.driver.power.get_power_state(task))
        except errors.HardwareError as exc:
            self._note_failure(node, exc)
        except errors.IngotError as exc:
            LOG.warning("Power state of node %s not read: %s", node.uuid, exc.message)
        except Exception:  # the edge of a worker: the next round tries again
            LOG.exception("Reading the power state of node %s failed unexpectedly", node.uuid)
        finally:
            self._running.discard(node.uuid)

    def _note(self, task: Task, found: str) -> None:
        node = task.node
        self._failures.pop(node.uuid, None)
        changes: dict[str, Any] = {}
        if found != node.power_state:
            changes["power_state"] = found
            restore = self._services.conf.conductor.force_power_state_during_sync and node.power_state in (
                states.POWER_ON,
                states.POWER_OFF,
            )
            if restore:
                changes = {
                    "target_power_state": node.power_state,
                    "power_request": {"target": node.power_state},
                    "due_at": clock.now(),
                }
            LOG.warning("Node %s is found in '%s', it was '%s'", node.uuid, found, node.power_state)
        if maintenance.has_fault(node, maintenance.POWER_FAULT):
            changes |= maintenance.end(node, lambda hold: hold["fault"] == maintenance.POWER_FAULT)
            LOG.info("Node %s: the BMC answers again, its maintenance for that ends", node.uuid)
        if changes:  # unless somebody asked for something while the BMC was being read
            nodes.set_unlocked(self._services.db, node.uuid, changes, node.revision)

    def _note_failure(self, node: records.Record, exc: errors.HardwareError) -> None:
        count = self._failures[node.uuid] = self._failures.get(node.uuid, 0) + 1
        LOG.warning("Power state of node %s not read, time %d in a row: %s", node.uuid, count, exc.message)
        known = maintenance.has_fault(node, maintenance.POWER_FAULT)
        if count > self._services.conf.conductor.power_state_sync_max_retries and not known:
            reason = f"The power state could not be read {count} times in a row; last: {exc.message}"
            hold = maintenance.of_fault(maintenance.POWER_FAULT, reason, self._services.host)
            values = {**maintenance.put(node, hold), "last_error": reason}
            nodes.set_unlocked(self._services.db, node.uuid, values, node.revision)
