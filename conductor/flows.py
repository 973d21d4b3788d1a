"""The table of flows: everything the engine knows about what can be done with a node stands here.

A new flow is one more record (and the verb that asks for it, in the API).
"""

import dataclasses
from collections.abc import Callable

from oslo_log import log

from ingot.common import clock, errors, states
from ingot.conductor.inspection import process
from ingot.conductor.steps import children, planning
from ingot.conductor.steps.flow import Entry, Flow, has_not_started
from ingot.conductor.task.task_manager import Task
from ingot.db import allocations
from ingot.drivers.agent import session
from ingot.drivers.images import configdrive
from ingot.drivers.interfaces import power_control, results
from ingot.drivers.interfaces.base import get_interface
from ingot.drivers.interfaces.boot import BootInterface
from ingot.drivers.interfaces.deploy import DeployInterface
from ingot.drivers.interfaces.inspect import InspectInterface
from ingot.drivers.interfaces.rescue import RescueInterface
from ingot.drivers.interfaces.results import Answer

LOG = log.getLogger(__name__)

_MANAGED = ("power", "management", "network")


@dataclasses.dataclass(frozen=True, slots=True)
class AgentSessionPhase:
    """The time that a machine spends in the agent, between the first and the last entries of a flow.

    :param purpose: in the words of the deploy interface's methods ``prepare_`` and ``tear_down_``.
    :param fault: the node's fault after a failure, until the same has ended well.
    """

    purpose: str
    fault: str

    @property
    def _mark(self) -> str:
        """Key of driver_internal_info from when a machine enters until it has left, whatever fails."""
        return f"in_agent_for_{self.purpose}"

    def is_under_way(self, task: Task) -> bool:
        """Return whether the machine is there, or was left there by what failed."""
        return self._mark in task.node.driver_internal_info

    def forget(self, task: Task) -> None:
        left = {name: fact for name, fact in task.node.driver_internal_info.items() if name != self._mark}
        task.set(driver_internal_info=left)

    @property
    def enter_entry(self) -> Entry:
        def enter(task: Task) -> Answer:
            task.set(driver_internal_info={**task.node.driver_internal_info, self._mark: True})
            answer: Answer = getattr(task.driver.deploy, name)(task)
            return answer

        name = f"prepare_{self.purpose}"
        return Entry("deploy", name, enter)

    @property
    def leave_entry(self) -> Entry:
        def leave(task: Task) -> Answer:
            return results.run_phases(task, getattr(task.driver.deploy, name), self.forget)

        name = f"tear_down_{self.purpose}"
        return Entry("deploy", name, leave)

    def end_fault(self, task: Task) -> None:
        """End the maintenance for a failure, once the same has ended well. That for other reasons stays."""
        task.end_fault(self.fault)

    def fail(self, task: Task, exc: errors.IngotError) -> None:
        """Leave the machine as it is, for an operator.

        A power cycle in the middle of a firmware update could destroy it (specification 002).
        """
        if has_not_started(task):
            return
        session.forget(task)
        entering = task.step is not None and task.step.key == self.enter_entry.as_step().key
        is_refusal = isinstance(exc, errors.Invalid) and entering  # the request was wrong, and none of its steps ran
        if not is_refusal and not isinstance(exc, errors.Aborted):
            task.begin_fault(self.fault, exc.message)


_CLEANING_PHASE = AgentSessionPhase("cleaning", states.FAULTS[states.CLEANFAIL])
_SERVICE_PHASE = AgentSessionPhase("service", states.FAULTS[states.SERVICEFAIL])


def _verify_power(task: Task) -> Answer:
    """Prove that the credentials work: the BMC tells the power state."""
    task.driver.power.validate(task)
    power_control.read_power_state(task)
    return results.DONE


_VERIFY_POWER = Entry("power", "verify_power", _verify_power)


def _prepare_deploy(task: Task) -> Answer:
    requested = task.node.request.get("configdrive")
    if requested is not None:
        keeps_parts = get_interface(task, DeployInterface).keeps_drive_parts
        drive = configdrive.build(task, requested, keeps_parts)
        if isinstance(drive, results.PollAfter):
            return drive
        rest = {name: value for name, value in task.node.request.items() if name != "configdrive"}
        task.set(configdrive=drive, request=rest)
    return get_interface(task, DeployInterface).prepare(task)


def _start_console(task: Task) -> None:
    """Start a console that was in use before the deployment; that it does not start does no other harm."""
    if not task.node.console_enabled or task.driver.console is None:
        return
    try:
        task.driver.console.resume_console(task)
    except errors.IngotError as exc:
        LOG.warning("Node %s: its console does not start again: %s", task.node.uuid, exc.message)
        task.set(console_enabled=False)


def _stop_console(task: Task) -> None:
    """Stop the console of an instance that goes; it stays enabled for the next one. Those who read it have to leave."""
    task.consoles.stop(task.node.uuid, "the instance is deleted")  # first, or they would learn of another reason
    if task.node.console_enabled and task.driver.console is not None:
        task.driver.console.stop_console(task)


def _tear_down(task: Task) -> Answer:
    deploy = task.driver.deploy
    return results.run_phases(task, _stop_console, _end_rescue, deploy.tear_down, deploy.clean_up, _detach_vifs)


def _detach_vifs(task: Task) -> None:
    """Give the ports of its networks back to the user who leaves the machine."""
    network = task.driver.network
    for vif in network.list_vifs(task) if network is not None else ():
        network.detach_vif(task, vif["id"])


def _end_rescue(task: Task) -> None:
    """Leave the rescue; an instance may be deleted while its machine is rescued."""
    if task.driver.rescue is not None:
        task.driver.rescue.clean_up(task)


def _adopt(task: Task) -> Answer:
    get_interface(task, BootInterface).validate(task)
    return get_interface(task, DeployInterface).adopt(task)


def _inspect(task: Task) -> Answer:
    if "inventory_before" not in task.node.request:
        request = {**task.node.request, **process.describe_before(task)}
        task.set(inspection_started_at=clock.now(), inspection_finished_at=None, request=request)
    return get_interface(task, InspectInterface).inspect_hardware(task)


def _fail_inspection(task: Task, _exc: errors.IngotError) -> None:
    if not has_not_started(task):
        task.set(inspection_started_at=None)
        _clean_up(task, "failed inspection", "inspect")


def _rescue(task: Task) -> Answer:
    return get_interface(task, RescueInterface).rescue(task, task.node.request["rescue_password"])


def _end_unrescue(task: Task) -> None:
    """Give the machine back; also after a service that had failed before the rescue."""
    _SERVICE_PHASE.forget(task)
    _start_console(task)


def _is_cleaning_off(task: Task) -> bool:
    own: bool | None = task.node.automated_clean
    return not (task.conf.conductor.automated_clean if own is None else own)


def _end_automated_clean(task: Task) -> None:
    if not _is_cleaning_off(task):  # otherwise nothing is proven
        _CLEANING_PHASE.end_fault(task)


def _forget_instance(task: Task) -> None:
    if task.node.instance_uuid is not None:  # an allocation has set it, if there is one
        allocations.forget(task.db, task.node.id)
    task.set(instance_uuid=None, instance_name=None, instance_info={}, configdrive=None, raid_config={})
    _SERVICE_PHASE.forget(task)


def _switch_off_after(
    what: str, interface_type: str, abort_fault: str | None = None
) -> Callable[[Task, errors.IngotError], None]:
    """Return a failure hook that switches the machine off.

    What is neither one system nor the other does not run. The agent's session ends with it, and nothing stays outside
    of the machine.

    :param interface_type: of the interface that cleans up.
    :param abort_fault: the node's fault, with maintenance, if it cannot after an abort.
    """

    def fail(task: Task, exc: errors.IngotError) -> None:
        if has_not_started(task):
            return  # a rebuild that is refused leaves the instance running
        session.forget(task)
        is_unresponsive = isinstance(exc, errors.HardwareUnreachable) and not isinstance(exc, errors.AgentError)
        if task.driver.power is not None and not is_unresponsive and not power_control.stays_on(task):
            _try(task, what, power_control.switch_off)
        wrong = _clean_up(task, what, interface_type)
        if wrong and abort_fault and isinstance(exc, errors.Aborted):
            task.begin_fault(abort_fault, wrong.message)

    return fail


def _clean_up(task: Task, after: str, interface_type: str) -> errors.IngotError | None:
    """Do as :func:`_try` with the node's interface of a type, if it has one."""
    interface = getattr(task.driver, interface_type)
    return None if interface is None else _try(task, after, interface.clean_up)


def _try(task: Task, after: str, remedy: Callable[[Task], object]) -> errors.IngotError | None:
    """Make the machine safe as far as that is possible.

    :returns: what went wrong.
    """
    try:
        remedy(task)
    except errors.IngotError as also:
        LOG.warning("Node %s: after the %s, %s", task.node.uuid, after, also.message)
        return also
    return None


_MANUAL_CLEAN = Flow(
    name="manual_clean",
    title="Manual cleaning",
    kind="clean",
    running=states.CLEANING,
    waiting=states.CLEANWAIT,
    held=states.CLEANHOLD,
    done_event="manage",
    step_field="clean_step",
    needs=_MANAGED,
    first=(_CLEANING_PHASE.enter_entry,),
    last=(_CLEANING_PHASE.leave_entry,),
    plan=planning.manual_clean,
    collect_after=("flow", "prepare_cleaning"),
    agent_ends_with=("flow", "tear_down_cleaning"),
    timeout_option="clean_callback_timeout",
    on_done=_CLEANING_PHASE.end_fault,
    on_fail=_CLEANING_PHASE.fail,
    advice="Fix the cause, then clean again, or clear maintenance and make the node manageable.",
)

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
            plan=lambda task, in_band, _report: planning.default_steps(task, "verify", in_band),
            advice="Fix the cause and manage the node again.",
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
            on_done=lambda task: task.set(inspection_started_at=None, inspection_finished_at=clock.now()),
            on_fail=_fail_inspection,
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
            on_fail=_switch_off_after("failed rescue", "rescue", abort_fault="rescue abort failure"),
            advice="Fix the cause and rescue again, or unrescue.",
        ),
        Flow(
            name="unrescue",
            title="Unrescue",
            running=states.UNRESCUING,
            done_event="done",
            needs=(*_MANAGED, "rescue"),
            first=(Entry("rescue", "unrescue", lambda task: get_interface(task, RescueInterface).unrescue(task)),),
            on_done=_end_unrescue,
            advice="Fix the cause and unrescue again.",
        ),
        _MANUAL_CLEAN,
        dataclasses.replace(
            _MANUAL_CLEAN,
            name="automated_clean",
            title="Automated cleaning",
            done_event="done",
            plan=lambda task, in_band, _report: planning.default_steps(task, "clean", in_band),
            skip=_is_cleaning_off,
            was_left_in_agent=_CLEANING_PHASE.is_under_way,
            starts_again=True,
            on_done=_end_automated_clean,
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
            plan=planning.deploy,
            collect_after=("deploy", "deploy"),
            agent_ends_with=("deploy", "tear_down_agent"),
            timeout_option="deploy_callback_timeout",
            abort_any_step=True,
            on_done=_start_console,
            on_fail=_switch_off_after("failed deployment", "deploy"),
            advice="Fix the cause and deploy again, or undeploy.",
        ),
        Flow(
            name="delete",
            title="Tear down",
            running=states.DELETING,
            done_event="clean",
            next_flow="automated_clean",
            first=(Entry("deploy", "tear_down", _tear_down),),
            on_done=_forget_instance,
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
            needs=_MANAGED,
            first=(_SERVICE_PHASE.enter_entry,),
            last=(_SERVICE_PHASE.leave_entry,),
            plan=planning.service,
            collect_after=("flow", "prepare_service"),
            agent_ends_with=("flow", "tear_down_service"),
            was_left_in_agent=_SERVICE_PHASE.is_under_way,
            timeout_option="service_callback_timeout",
            abort_leaves=True,
            on_done=_SERVICE_PHASE.end_fault,
            on_fail=_SERVICE_PHASE.fail,
            advice="Fix the cause, then service again, or abort to give the machine back.",
        ),
        Flow(
            name="leave_service",
            title="Leaving the service",
            running=states.SERVICING,
            waiting=states.SERVICEWAIT,
            done_event="done",
            first=(_SERVICE_PHASE.leave_entry,),
            skip=lambda task: not _SERVICE_PHASE.is_under_way(task),
            timeout_option="service_callback_timeout",
            on_done=_SERVICE_PHASE.end_fault,
            on_fail=_SERVICE_PHASE.fail,
            advice="Fix the cause and abort again.",
        ),
        Flow(
            name=children.FLOW,
            title="Work for the parent node",
            running=None,
            done_event="done",
            plan=planning.for_parent,
            on_done=lambda task: children.note_outcome(task, None),
            on_fail=lambda task, exc: children.note_outcome(task, exc.message),
            advice="Fix the cause and repeat what was asked of the parent.",
        ),
    )
}
