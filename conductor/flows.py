"""The table of flows: everything the engine knows about verifying, cleaning, deploying and deleting stands here.

A new flow is one more record (and the verb that asks for it, in the API).
"""

from typing import Any

from oslo_log import log

from ingot.common import errors, states
from ingot.conductor.steps import catalog
from ingot.conductor.steps.flow import Entry, Flow
from ingot.conductor.task_manager import Task
from ingot.drivers import configdrive, power_control, results
from ingot.drivers.agent import session

LOG = log.getLogger(__name__)


def _verify_power(task: Task) -> results.Result:
    """Proves that the credentials work: the BMC tells the power state."""
    task.driver.power.validate(task)
    power_control.read(task)
    return results.DONE


def _prepare_deploy(task: Task) -> Any:
    wanted = task.node.request.get("configdrive")
    if wanted is not None:
        rest = {name: value for name, value in task.node.request.items() if name != "configdrive"}
        task.set(configdrive=configdrive.build(wanted, task.node, task.conf), request=rest)
    return task.driver.deploy.prepare(task)


def _tear_down(task: Task) -> Any:
    return results.in_phases(task, task.driver.deploy.tear_down, task.driver.deploy.clean_up)


def _prepare_cleaning(task: Task) -> Any:
    return results.DONE if task.node.request.get("disable_ramdisk") else task.driver.deploy.prepare_cleaning(task)


def _tear_down_cleaning(task: Task) -> Any:
    return results.DONE if task.node.request.get("disable_ramdisk") else task.driver.deploy.tear_down_cleaning(task)


def _cleaning_is_off(task: Task) -> bool:
    wanted = task.node.automated_clean
    return not (task.conf.conductor.automated_clean if wanted is None else wanted)


def _instance_gone(task: Task) -> None:
    task.set(instance_uuid=None, instance_name=None, instance_info={}, configdrive=None, raid_config={})


def _deploy_failed(task: Task, exc: errors.IngotError) -> None:
    """The machine is switched off, so that a half-written system does not run; the agent's session ends with it."""
    session.forget(task)
    if isinstance(exc, errors.HardwareUnreachable) or task.driver.power is None or task.driver.boot is None:
        return
    try:
        task.driver.power.start_power_change(task, states.POWER_OFF)
        task.driver.boot.clean_up_ramdisk(task)
    except errors.IngotError as also:
        LOG.warning("Node %s: after the failed deployment, %s", task.node.uuid, also.message)


def _clean_failed(task: Task, exc: errors.IngotError) -> None:
    """The machine is left as it is: a power cycle in the middle of a firmware update could destroy it (002)."""
    session.forget(task)
    if task.node.abort_requested or isinstance(exc, errors.Invalid):
        return
    task.set(maintenance=True, maintenance_reason=exc.message, fault="clean failure")


_CLEANING: dict[str, Any] = {
    "kind": "clean",
    "running": states.CLEANING,
    "waiting": states.CLEANWAIT,
    "step_field": "clean_step",
    "first": (Entry("deploy", "prepare_cleaning", _prepare_cleaning),),
    "last": (Entry("deploy", "tear_down_cleaning", _tear_down_cleaning),),
    "plan_at_start": False,
    "collect_after": ("deploy", "prepare_cleaning"),
    "timeout_option": "clean_callback_timeout",
    "on_fail": _clean_failed,
    "advice": "Fix the cause, clear maintenance, then clean again or make the node manageable.",
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
            first=(Entry("power", "verify_power", _verify_power),),
            plan=catalog.verify,
            advice="Correct driver_info and manage the node again.",
        ),
        Flow(
            name="automated_clean",
            title="Automated cleaning",
            done_event="done",
            plan=catalog.automated_clean,
            skip=_cleaning_is_off,
            **_CLEANING,
        ),
        Flow(name="manual_clean", title="Manual cleaning", done_event="manage", plan=catalog.manual_clean, **_CLEANING),
        Flow(
            name="deploy",
            title="Deployment",
            kind="deploy",
            running=states.DEPLOYING,
            waiting=states.DEPLOYWAIT,
            done_event="done",
            step_field="deploy_step",
            first=(Entry("deploy", "prepare", _prepare_deploy),),
            plan=catalog.deploy,
            collect_after=("deploy", "deploy"),
            timeout_option="deploy_callback_timeout",
            abort_any_step=True,
            on_fail=_deploy_failed,
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
    )
}
