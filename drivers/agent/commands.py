"""Runs what takes long on the agent as a step: posted once, read at heartbeats, found again after a crash."""

import time
from collections.abc import Callable, Mapping

from oslo_log import log

from ingot.common import clock, errors, steps
from ingot.common.json_types import Json, OfferedSteps
from ingot.common.steps import StepJson
from ingot.common.waits import Wait
from ingot.drivers.agent import answers, booting, client, session
from ingot.drivers.interfaces import results
from ingot.drivers.interfaces.task import Task

LOG = log.getLogger(__name__)

_PAUSE = 5.0

_REFUSED_LONG_ENOUGH = 4.0
"""Seconds after which an agent whose machine still refuses to connect to it has ended: it listens until then."""

TROUBLE = "trouble_since"
"""Key of a step's memory as long as the agent cannot be asked."""

Params = Callable[[], Mapping[str, object]]


def run(task: Task, name: str, build_params: Params) -> results.Result:
    """Run an asynchronous command to its end; to be called again until it answers done.

    :param name: extension.command.
    :param build_params: called only when the command is posted.
    :returns: done with the command's result as ``hook_result``.
    :raises StepFailed: the command failed, or the agent was restarted and has lost it.
    :raises AgentVersionMismatch: the agent is not the one that the steps were planned with.
    :raises AgentGone: its machine refuses to connect to it.
    :raises AgentUnreachable: it cannot be reached for longer than ``[agent] command_timeout`` times
        ``max_command_attempts``; once is enough if it does not call anymore either.
    """
    planned, version = session.read_facts(task).get("agent_version"), task.node.agent_version
    if None not in (planned, version) and version != planned:
        raise errors.AgentVersionMismatch(reason=f"agent {version} answers; the steps were planned with {planned}")
    agent = client.AgentClient(task)
    try:
        command = _find_posted(task, agent, name) or agent.start(name, build_params())
    except (errors.AgentBusy, errors.AgentUnreachable) as exc:
        return retry_later(task, exc)
    task.memory["command"] = command["id"]
    task.memory.pop(TROUBLE, None)
    if command["command_status"] == client.RUNNING:
        return results.WaitForAgent(watch=True)
    session.note_facts(task, ended=command["id"])
    del task.memory["command"]
    return _read_outcome(name, command)


def _find_posted(task: Task, agent: client.AgentClient, name: str) -> answers.Command | None:
    """Return the command if it was posted.

    A conductor that died after posting and before writing that down leaves a command that no task knows. A call looks
    for one, unless it is the first of all. Of this step are the commands after the last one whose outcome was handled.
    """
    if task.is_first_call:
        return None
    listed = agent.commands()
    by_ident = {command["id"]: command for command in listed}
    ident, ended = task.memory.get("command"), session.read_facts(task).get("ended")
    if ident:
        if ident not in by_ident:
            raise errors.StepFailed(f"the agent does not know command {name} {ident} anymore: it was restarted")
        return by_ident[ident]
    unclaimed = listed[list(by_ident).index(ended) + 1 :] if ended in by_ident else listed
    ours = [command for command in unclaimed if command["command_name"] == name.rpartition(".")[2]]
    if not ours:
        return None
    LOG.info("Node %s: going on with command %s %s of its agent", task.node.uuid, name, ours[-1]["id"])
    return ours[-1]


def retry_later(task: Task, exc: errors.AgentError) -> results.PollAfter:
    """Return when to ask the agent again that is busy or did not answer; :func:`run` says when it raises that.

    Who calls it takes ``TROUBLE`` out of the memory when the agent has answered.
    """
    waited = time.time() - task.memory.setdefault(TROUBLE, time.time())
    if isinstance(exc, errors.AgentRefused) and waited >= _REFUSED_LONG_ENOUGH:
        raise errors.AgentGone(reason=exc.message)
    limit = task.conf.agent.command_timeout * (task.conf.agent.max_command_attempts if session.is_alive(task) else 1)
    if waited >= limit:
        raise exc
    LOG.warning("Node %s: %s; trying again for %s s in all", task.node.uuid, exc, limit)
    until = task.memory[TROUBLE] + limit
    return results.PollAfter(max(_PAUSE, waited / 2), waits_for=Wait.AGENT, until=until)


def _read_outcome(name: str, command: answers.Command) -> results.Done:
    status = command["command_status"]
    if status == client.SUCCEEDED:
        return results.Done(command["command_result"])
    if status.endswith("VERSION_MISMATCH"):
        raise errors.AgentVersionMismatch(
            reason=f"the agent refused {name}, as it is not the one that the steps were planned with: "
            f"{client.error_text(command)}"
        )
    raise errors.StepFailed(f"agent command {name} failed: {client.error_text(command)}")


def get_steps(task: Task, kind: str) -> tuple[StepJson, ...]:
    """Return the steps that the running agent offers for a kind of flow, each once.

    In a deployment there are none from an agent that is older than deploy steps (specification 000). What the flow is
    committed to is noted: the versions of agent and hardware managers, and which steps want a reboot. Also noted is
    that the agent's commands until now are of the past.

    :raises AgentError: the agent does not answer, or its answer cannot be used; or it knows nothing of cleaning or
        servicing, which must not pass for work that is done.
    """
    offer, ended = _read_offer(task, kind)
    reboots = {steps.get_label(step): step["reboot_requested"] for step in offer.steps}
    _keep_offer(task, kind, offer)
    session.note_facts(
        task,
        versions=offer.versions,
        agent_version=task.node.agent_version,
        offered={**session.read_facts(task).get("offered", {}), kind: reboots},
        ended=ended,
    )
    return offer.steps


def _keep_offer(task: Task, kind: str, offer: answers.StepOffer) -> None:
    """Keep for the operator, also when the agent is gone, what it has offered."""
    info = task.node.driver_internal_info
    own = {steps.get_label(step): step["priority"] for step in offer.steps}
    offered: dict[str, OfferedSteps] = {
        **info.get("steps_offered", {}),
        kind: {"at": clock.iso(clock.now()), "priorities": own},
    }
    task.set(driver_internal_info={**info, "steps_offered": offered, "hardware_manager_version": offer.versions})


def recall_steps(task: Task, kind: str) -> OfferedSteps | None:
    """Return what the last agent that was asked has offered for a kind of flow."""
    return task.node.driver_internal_info.get("steps_offered", {}).get(kind)


def _read_offer(task: Task, kind: str) -> tuple[answers.StepOffer, str | None]:
    """Return what the agent offers, and the last one of its commands until now."""
    agent, name = client.AgentClient(task), f"{kind}.get_{kind}_steps"
    try:
        offer = agent.ask_for(name, client.build_node_params(task), lambda answer: answers.read_offer(answer, kind))
        return offer, agent.last_asked
    except client.CommandNotFound as exc:
        if kind == "deploy":
            past = agent.commands()
            return answers.StepOffer((), None), past[-1]["id"] if past else None
        raise errors.AgentError(
            what=f"Agent {task.node.agent_version} in the machine",
            reason=f"it knows no {kind} steps: boot another one ({exc.message})",
        ) from exc


def read_offered(task: Task, kind: str) -> dict[str, bool]:
    """Return what :func:`get_steps` noted of the agent's steps: ``interface.step`` -> whether it wants a reboot."""
    return session.read_facts(task).get("offered", {}).get(kind, {})


def execute_step(
    task: Task, kind: str, step: StepJson, read_secrets: Callable[[], Json] | None = None
) -> results.Result:
    """Run one of the agent's steps, and the reboot that it may request; to be called again until it answers done.

    :param read_secrets: returns what the agent's ``instance_info`` has besides, as it is; called when the command is
        posted.
    :returns: done with the agent's result: ``<kind>_result`` and ``<kind>_step``.
    :raises AgentVersionMismatch: also when another agent, or one with other hardware managers, answers after the
        reboot.
    """
    return _execute(task, kind, lambda: step, bool(step.get("reboot_requested")), read_secrets)


def execute_by_name(task: Task, kind: str, interface: str, name: str, build_args: Params) -> results.Result:
    """Run the agent's step of a name, for a driver's step of that name, as :func:`execute_step` does.

    Whether the machine is rebooted is the agent's word, as noted by :func:`get_steps`.

    :param build_args: called only when the command is posted.
    """

    def build_step() -> Mapping[str, object]:
        return {"interface": interface, "step": name, "priority": 0, "args": build_args()}

    return _execute(task, kind, build_step, read_offered(task, kind).get(f"{interface}.{name}", False))


def _execute(
    task: Task, kind: str, build_step: Params, reboot: bool, read_secrets: Callable[[], Json] | None = None
) -> results.Result:
    def build_params() -> Json:
        versions, about = session.read_facts(task).get("versions"), client.build_node_params(task)
        if read_secrets is not None:
            about["node"]["instance_info"] = {**about["node"]["instance_info"], **read_secrets()}
        return {**about, "step": dict(build_step()), f"{kind}_version": versions}

    if "rebooting" not in task.memory:
        result = run(task, f"{kind}.execute_{kind}_step", build_params)
        if isinstance(result, results.Done) and not isinstance(result.hook_result, Mapping):
            result = results.Done({})  # hooks tell an agent that has no result from a step that no agent ran
        if not isinstance(result, results.Done) or not reboot:
            return result
        task.memory["rebooting"] = {"result": result.hook_result, "version": task.node.agent_version}
    before = task.memory["rebooting"]
    result = results.run_phases(task, *booting.REBOOT, lambda task: _check_same_agent(task, kind, before["version"]))
    return results.Done(before["result"]) if isinstance(result, results.Done) else result


def _check_same_agent(task: Task, kind: str, version: str | None) -> results.Result:
    """Check that the agent that came back is the one that the steps were planned with (specification 000)."""
    before = "after the reboot that the step requested,"
    if task.node.agent_version != version:
        raise errors.AgentVersionMismatch(
            reason=f"{before} agent {task.node.agent_version} answers; the steps were planned with {version}"
        )
    planned = session.read_facts(task).get("versions")
    try:
        versions = _read_offer(task, kind)[0].versions
    except (errors.AgentBusy, errors.AgentUnreachable) as exc:
        return retry_later(task, exc)
    if versions != planned:
        raise errors.AgentVersionMismatch(
            reason=f"{before} the agent has hardware managers {versions}; the steps were planned with {planned}"
        )
    return results.DONE
