"""Power changes that users ask for."""

from oslo_log import log

from ingot.common import clock, errors, states
from ingot.conductor.task.task_manager import Task, make_storable
from ingot.drivers.agent import session
from ingot.drivers.interfaces import power_control, results

LOG = log.getLogger(__name__)


def advance(task: Task) -> float | None:
    """Do what can be done now for a power change, and release the lock.

    A flow that is under way waits meanwhile; its turn comes when the change has ended.

    :returns: seconds after which the node must be reconciled again; None when there is nothing more to do.
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
        LOG.exception("Node %s: unexpected error in the power change", task.node.uuid)
        task.discard()  # it may be what could not be written
        return _fail(task, request["target"], errors.unexpected_error(exc).message)
    if isinstance(answer, results.PollAfter):
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
    message = make_storable(f"Power change to '{target}' failed on conductor {task.services.host}: {reason}")
    LOG.error("Node %s: %s", task.node.uuid, message)
    _end(task, message)
    task.release(history=[task.build_history_entry("power", "ERROR", message)])
    return 0.0 if task.node.flow else None
