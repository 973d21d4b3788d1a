"""The table of flows: everything the engine knows about what can be done with a node stands here.

A new flow is one more record (and the verb that asks for it, in the API).
"""

from collections.abc import Callable
from typing import Any

from oslo_log import log

from ingot.common import clock, errors, states
from ingot.conductor.inspection import process
from ingot.conductor.steps import catalog, children
from ingot.conductor.steps.agent_session import AgentSessionPhase
from ingot.conductor.steps.flow import Entry, Flow, has_not_started
from ingot.conductor.task.task_manager import INVENTORY_BEFORE, Task
from ingot.db import allocations
from ingot.drivers.agent import session
from ingot.drivers.images import configdrive
from ingot.drivers.interfaces import power_control, results
from ingot.drivers.interfaces.base import get_interface
from ingot.drivers.interfaces.boot import BootInterface

LOG = log.getLogger(__name__)


def _verify_power(task: Task) -> results.Result:
    """Proves that the credentials work: the BMC tells the power state."""
    task.driver.power.validate(task)
    power_control.read_power_state(task)
    return results.DONE


_VERIFY_POWER = Entry("power", "verify_power", _verify_power)


def _prepare_deploy(task: Task) -> Any:
    wanted = task.node.request.get("configdrive")
    if wanted is not None:
        rest = {name: value for name, value in task.node.request.items() if name != "configdrive"}
        task.set(configdrive=configdrive.build(wanted, task.node, task.conf), request=rest)
    return task.driver.deploy.prepare(task)


def _start_console(task: Task) -> None:
    """A console that was in use before the deployment is there again after it; that it is not does no other harm."""
    if not task.node.console_enabled or task.driver.console is None:
        return
    try:
        task.driver.console.start_console(task)
    except errors.IngotError as exc:
        LOG.warning("Node %s: its console does not start again: %s", task.node.uuid, exc.message)
        task.set(console_enabled=False)


def _stop_console(task: Task) -> None:
    """The console of an instance that goes shows nothing any more; it stays wanted for the next one."""
    if task.node.console_enabled and task.driver.console is not None:
        task.driver.console.stop_console(task)


def _tear_down(task: Task) -> Any:
    phases = (_stop_console, _end_rescue, task.driver.deploy.tear_down, task.driver.deploy.clean_up)
    return results.run_phases(task, *phases)


def _end_rescue(task: Task) -> None:
    """An instance may be deleted while its machine is rescued."""
    if task.driver.rescue is not None:
        task.driver.rescue.clean_up(task)


def _adopt(task: Task) -> Any:
    get_interface(task, BootInterface).validate(task)
    return task.driver.deploy.adopt(task)


def _inspect(task: Task) -> Any:
    if task.node.inspection_started_at is None:
        before = task.inventory()
        noted = {INVENTORY_BEFORE: before and clock.iso(before.inspected_at)}
        task.set(inspection_started_at=clock.now(), inspection_finished_at=None, request={**task.node.request, **noted})
    return task.driver.inspect.inspect_hardware(task)


def _inspected(task: Task) -> None:
    task.set(inspection_started_at=None, inspection_finished_at=clock.now())


def _inspection_failed(task: Task, _exc: errors.IngotError) -> None:
    if not has_not_started(task):
        task.set(inspection_started_at=None)
        _clean_up(task, "failed inspection", "inspect")


def _rescue(task: Task) -> Any:
    return task.driver.rescue.rescue(task, task.node.request["rescue_password"])


def _given_back(task: Task) -> None:
    """Also after a service that had failed before the rescue."""
    _SERVICE_STAY.forget(task)
    _start_console(task)


def _cleaning_is_off(task: Task) -> bool:
    wanted = task.node.automated_clean
    return not (task.conf.conductor.automated_clean if wanted is None else wanted)


_CLEAN_STAY, _SERVICE_STAY = (
    AgentSessionPhase("cleaning", "clean failure"),
    AgentSessionPhase("service", "service failure"),
)


def _cleaned(task: Task) -> None:
    if not _cleaning_is_off(task):  # otherwise nothing is proven
        _CLEAN_STAY.done(task)


def _instance_gone(task: Task) -> None:
    allocations.forget(task.db, task.node.id)
    task.set(instance_uuid=None, instance_name=None, instance_info={}, configdrive=None, raid_config={})
    _SERVICE_STAY.forget(task)


def _switched_off(what: str, kind: str, abort_fault: str | None = None) -> Callable[[Task, errors.IngotError], None]:
    """The machine is switched off, so that what is neither one system nor the other does not run; the agent's session
    ends with it, and nothing stays outside of the machine.

    :param kind: of the interface that cleans up.
    :param abort_fault: the node's fault, with maintenance, if it cannot after an abort.
    """

    def fail(task: Task, exc: errors.IngotError) -> None:
        if has_not_started(task):
            return  # a rebuild that is refused leaves the instance running
        session.forget(task)
        bmc_is_silent = isinstance(exc, errors.HardwareUnreachable) and not isinstance(exc, errors.AgentError)
        if task.driver.power is not None and not bmc_is_silent and not task.node.disable_power_off:
            _try(task, what, _start_switching_off)
        wrong = _clean_up(task, what, kind)
        if wrong and abort_fault and isinstance(exc, errors.Aborted):
            task.begin_fault(abort_fault, wrong.message)

    return fail


def _clean_up(task: Task, after: str, kind: str) -> errors.IngotError | None:
    """As :func:`_try`, of the node's interface of a kind, if it has one."""
    interface = getattr(task.driver, kind)
    return None if interface is None else _try(task, after, interface.clean_up)


def _try(task: Task, after: str, remedy: Callable[[Task], Any]) -> errors.IngotError | None:
    """Makes the machine safe as far as that is possible.

    :returns: what went wrong.
    """
    try:
        remedy(task)
    except errors.IngotError as also:
        LOG.warning("Node %s: after the %s, %s", task.node.uuid, after, also.message)
        return also
    return None


def _start_switching_off(task: Task) -> None:
    task.driver.power.start_power_change(task, states.POWER_OFF)


_MANAGED = ("power", "management", "network")

_CLEANING: dict[str, Any] = {
    "kind": "clean",
    "running": states.CLEANING,
    "waiting": states.CLEANWAIT,
    "held": states.CLEANHOLD,
    "step_field": "clean_step",
    "timeout_option": "clean_callback_timeout",
    "advice": "Fix the cause, then clean again, or clear maintenance and make the node manageable.",
    **_CLEAN_STAY.around_steps(),
}

FLOWS: dict[str, Flow] = {
    flow.name: flow
    for flow in (
        Flow(
            name="verify",
            title="Verification",
            kind="verify",
            running=states.VERIFYING,
            done_event="done",
            first=(_VERIFY_POWER,),
            plan=catalog.verify,
            advice="Correct driver_info and manage the node again.",
        ),
        Flow(
            name="adopt",
            title="Adoption",
            running=states.ADOPTING,
            done_event="done",
            needs=("power", "boot"),
            first=(_VERIFY_POWER, Entry("deploy", "adopt", _adopt)),
            on_done=_start_console,
            advice="Correct the node and adopt it again, or make it manageable.",
        ),
        Flow(
            name="inspect",
            title="Inspection",
            running=states.INSPECTING,
            waiting=states.INSPECTWAIT,
            done_event="done",
            needs=("power", "inspect"),
            first=(
                Entry("inspect", "inspect_hardware", _inspect),
                Entry("inspect", "apply_inventory", process.apply),
            ),
            timeout_option="inspect_wait_timeout",
            abort_any_step=True,
            on_done=_inspected,
            on_fail=_inspection_failed,
            advice="Fix the cause and inspect again, or make the node manageable.",
        ),
        Flow(
            name="rescue",
            title="Rescue",
            running=states.RESCUING,
            waiting=states.RESCUEWAIT,
            done_event="done",
            needs=(*_MANAGED, "rescue"),
            first=(Entry("rescue", "rescue", _rescue),),
            timeout_option="rescue_callback_timeout",
            abort_any_step=True,
            on_fail=_switched_off("failed rescue", "rescue", abort_fault="rescue abort failure"),
            advice="Fix the cause and rescue again, or unrescue.",
        ),
        Flow(
            name="unrescue",
            title="Unrescue",
            running=states.UNRESCUING,
            done_event="done",
            needs=(*_MANAGED, "rescue"),
            first=(Entry("rescue", "unrescue", lambda task: task.driver.rescue.unrescue(task)),),
            on_done=_given_back,
            advice="Fix the cause and unrescue again.",
        ),
        Flow(
            name="automated_clean",
            title="Automated cleaning",
            done_event="done",
            plan=catalog.automated_clean,
            skip=_cleaning_is_off,
            inside=_CLEAN_STAY.lasts,
            starts_again=True,
            on_done=_cleaned,
            **_CLEANING,
        ),
        Flow(
            name="manual_clean",
            title="Manual cleaning",
            done_event="manage",
            plan=catalog.manual_clean,
            on_done=_CLEAN_STAY.done,
            **_CLEANING,
        ),
        Flow(
            name="deploy",
            title="Deployment",
            kind="deploy",
            running=states.DEPLOYING,
            waiting=states.DEPLOYWAIT,
            held=states.DEPLOYHOLD,
            done_event="done",
            step_field="deploy_step",
            needs=(*_MANAGED, "boot", "deploy", "storage"),
            first=(Entry("deploy", "prepare", _prepare_deploy),),
            plan=catalog.deploy,
            collect_after=("deploy", "deploy"),
            agent_ends_with=("deploy", "tear_down_agent"),
            timeout_option="deploy_callback_timeout",
            abort_any_step=True,
            on_done=_start_console,
            on_fail=_switched_off("failed deployment", "deploy"),
            advice="Fix the cause and deploy again, or undeploy.",
        ),
        Flow(
            name="delete",
            title="Tear down",
            running=states.DELETING,
            done_event="clean",
            next_flow="automated_clean",
            first=(Entry("deploy", "tear_down", _tear_down),),
            on_done=_instance_gone,
            advice="Fix the cause and undeploy again.",
        ),
        Flow(
            name="service",
            title="Servicing",
            kind="service",
            running=states.SERVICING,
            waiting=states.SERVICEWAIT,
            held=states.SERVICEHOLD,
            done_event="done",
            step_field="service_step",
            plan=catalog.service,
            inside=_SERVICE_STAY.lasts,
            timeout_option="service_callback_timeout",
            abort_leaves=True,
            on_done=_SERVICE_STAY.done,
            advice="Fix the cause, then service again, or abort to give the machine back.",
            **_SERVICE_STAY.around_steps(),
        ),
        Flow(
            name="leave_service",
            title="Leaving the service",
            running=states.SERVICING,
            waiting=states.SERVICEWAIT,
            done_event="done",
            first=(_SERVICE_STAY.leaving,),
            skip=lambda task: not _SERVICE_STAY.lasts(task),
            timeout_option="service_callback_timeout",
            on_done=_SERVICE_STAY.done,
            on_fail=_SERVICE_STAY.failed,
            advice="Fix the cause and abort again.",
        ),
        Flow(
            name=children.FLOW,
            title="Work for the parent node",
            running=None,
            done_event="done",
            plan=catalog.for_parent,
            on_done=lambda task: children.note(task, None),
            on_fail=lambda task, exc: children.note(task, exc.message),
            advice="Fix the cause and repeat what was asked of the parent.",
        ),
    )
}
