"""Runs what takes long on the agent as a step: posted once, read at each heartbeat, found again after a crash."""

import time
from collections.abc import Callable, Mapping

from oslo_log import log

from ingot.common import errors, steps
from ingot.common.json_types import Json
from ingot.common.steps import StepJson
from ingot.drivers.agent import answers, booting, client, session
from ingot.drivers.interfaces import results
from ingot.drivers.interfaces.task import Task

LOG = log.getLogger(__name__)

_PAUSE = 5.0

_REFUSED_LONG_ENOUGH = 4.0
"""Seconds after which an agent whose machine still refuses to connect to it has ended: it listens until then."""

Params = Mapping[str, object] | Callable[[], Mapping[str, object]]


def run(task: Task, name: str, params: Params) -> results.Result:
    """Run an asynchronous command to its end; to be called again until it answers done.

    A conductor that died after posting and before writing that down leaves a command that no task knows. So the first
    call looks for one: an agent's commands after the last one whose outcome was handled can only be of this step.

    :param name: extension.command.
    :param params: or a function that returns them, called only when the command is posted.
    :returns: done with the command's result as ``hook_result``.
    :raises StepFailed: the command failed, or the agent was restarted and has lost it.
    :raises AgentVersionMismatch: the agent is not the one that the steps were planned with.
    :raises AgentGone: its machine refuses to connect to it.
    :raises AgentUnreachable: it cannot be reached for longer than ``[agent] command_timeout`` times
        ``max_command_attempts``; once is enough if it does not call anymore either.
    """
    _check_version(task)
    agent = client.AgentClient(task)
    try:
        command = _find_or_start(task, agent, name, params)
    except (errors.AgentBusy, errors.AgentUnreachable) as exc:
        return _retry_later(task, exc)
    task.memory.pop("trouble_since", None)
    if command["command_status"] == client.RUNNING:
        return results.WaitForAgent(watch=True)
    session.note_facts(task, ended=command["id"])
    task.memory.pop("command", None)
    return _read_outcome(name, command)


def _check_version(task: Task) -> None:
    """Check that the agent that called last is the one that was asked for its steps."""
    planned = session.read_facts(task).get("agent_version")
    version = task.node.agent_version
    if None not in (planned, version) and version != planned:
        raise errors.AgentVersionMismatch(f"agent {version} answers; the steps were planned with {planned}")


def _find_or_start(task: Task, agent: client.AgentClient, name: str, params: Params) -> answers.Command:
    ident = task.memory.get("command")
    command = agent.command(ident) if ident else _find_unclaimed(task, agent, name)
    if command is None and ident:
        raise errors.StepFailed(f"the agent does not know command {name} {ident} anymore: it was restarted")
    if command is None:
        command = agent.start(name, params() if callable(params) else params)
    task.memory["command"] = command["id"]
    return command


def _find_unclaimed(task: Task, agent: client.AgentClient, name: str) -> answers.Command | None:
    listed = agent.commands()
    idents = [command["id"] for command in listed]
    ended = session.read_facts(task).get("ended")
    unclaimed = listed[idents.index(ended) + 1 :] if ended in idents else listed
    short_name = name.rpartition(".")[2]
    ours = [command for command in unclaimed if command["command_name"] == short_name]
    if not ours:
        return None
    LOG.info("Node %s: going on with command %s %s of its agent", task.node.uuid, name, ours[-1]["id"])
    return ours[-1]


def _retry_later(task: Task, exc: errors.AgentError) -> results.PollAfter:
    waited = time.time() - task.memory.setdefault("trouble_since", time.time())
    if isinstance(exc, errors.AgentRefused) and waited >= _REFUSED_LONG_ENOUGH:
        raise errors.AgentGone(reason=exc.message)
    limit = task.conf.agent.command_timeout * (task.conf.agent.max_command_attempts if session.is_alive(task) else 1)
    if waited >= limit:
        raise exc
    LOG.warning("Node %s: %s; trying again for %s s in all", task.node.uuid, exc, limit)
    return results.PollAfter(max(_PAUSE, waited / 2))


def _read_outcome(name: str, command: answers.Command) -> results.Done:
    status = command["command_status"]
    if status == client.SUCCEEDED:
        return results.Done(command["command_result"])
    if status.endswith("_VERSION_MISMATCH"):
        raise errors.AgentVersionMismatch(
            f"the agent refused {name}, as it is not the one that the steps were planned with: "
            f"{client.error_text(command)}"
        )
    raise errors.StepFailed(f"agent command {name} failed: {client.error_text(command)}")


# Steps of the agent's


def get_steps(task: Task, kind: str) -> tuple[StepJson, ...]:
    """Return the steps that the running agent offers for a kind of flow, each once.

    In a deployment there are none from an agent that is older than deploy steps (specification 000). What this offer
    commits the flow to is noted: the versions of agent and hardware managers, which steps want a reboot, and that the
    agent's commands until now are of the past.

    :raises AgentError: the agent does not answer, or its answer cannot be used; or it knows nothing of cleaning or
        servicing, which must not pass for work that is done.
    """
    offer = _read_offer(task, kind)
    past = client.AgentClient(task).commands()
    reboots = {steps.get_label(step): step["reboot_requested"] for step in offer.steps}
    session.note_facts(
        task,
        versions=offer.versions,
        agent_version=task.node.agent_version,
        offered={**session.read_facts(task).get("offered", {}), kind: reboots},
        ended=past[-1]["id"] if past else None,
    )
    return offer.steps


def _read_offer(task: Task, kind: str) -> answers.StepOffer:
    agent, name = client.AgentClient(task), f"{kind}.get_{kind}_steps"
    try:
        return agent.ask_for(name, _node_params(task), lambda answer: answers.read_offer(answer, kind))
    except client.CommandNotFound as exc:
        if kind == "deploy":
            return answers.NO_STEPS
        raise errors.AgentError(
            what=f"Agent {task.node.agent_version} in the machine",
            reason=f"it knows no {kind} steps: boot another one ({exc.message})",
        ) from exc


def is_offered(task: Task, kind: str, interface: str, step: str) -> bool:
    """Return whether the agent named a step when :func:`get_steps` asked it."""
    return session.wants_reboot(task, kind, f"{interface}.{step}") is not None


def execute_step(task: Task, kind: str, step: StepJson) -> results.Result:
    """Run one of the agent's steps, and the reboot that it may request; to be called again until it answers done.

    :returns: done with the agent's result: ``<kind>_result`` and ``<kind>_step``.
    :raises AgentVersionMismatch: also when another agent, or one with other hardware managers, answers after the
        reboot.
    """
    return _execute(task, kind, lambda: step, bool(step.get("reboot_requested")))


def execute_by_name(task: Task, kind: str, interface: str, name: str, args: Params) -> results.Result:
    """Run the agent's step of a name, for a driver's step of that name, as :func:`execute_step` does.

    Whether the machine is rebooted is the agent's word, as noted by :func:`get_steps`.

    :param args: or a function that returns them, called only when the command is posted.
    """

    def build_step() -> Mapping[str, object]:
        return {"interface": interface, "step": name, "priority": 0, "args": args() if callable(args) else args}

    return _execute(task, kind, build_step, bool(session.wants_reboot(task, kind, f"{interface}.{name}")))


def _execute(
    task: Task, kind: str, build_step: Callable[[], StepJson | Mapping[str, object]], reboot: bool
) -> results.Result:
    if "rebooting" not in task.memory:
        result = run(task, f"{kind}.execute_{kind}_step", lambda: step_params(task, kind, build_step()))
        if not isinstance(result, results.Done) or not reboot:
            return result
        task.memory["rebooting"] = {"result": result.hook_result, "version": task.node.agent_version}
    before = task.memory["rebooting"]
    result = results.run_phases(task, *booting.REBOOT, lambda task: _check_same_agent(task, kind, before["version"]))
    return results.Done(before["result"]) if isinstance(result, results.Done) else result


def _check_same_agent(task: Task, kind: str, version: str | None) -> results.Result:
    """Check that the agent that came back is the one that the steps were planned with (specification 000)."""
    if task.node.agent_version != version:
        raise errors.AgentVersionMismatch(
            f"after the reboot that the step requested, agent {task.node.agent_version} answers; the steps were "
            f"planned with {version}"
        )
    planned = session.read_facts(task).get("versions")
    try:
        versions = _read_offer(task, kind).versions
    except (errors.AgentBusy, errors.AgentUnreachable) as exc:
        return _retry_later(task, exc)
    if versions != planned:
        raise errors.AgentVersionMismatch(
            f"after the reboot that the step requested, the agent has hardware managers {versions}; the steps were "
            f"planned with {planned}"
        )
    return results.DONE


def _node_params(task: Task) -> Json:
    return {
        "node": client.node_for_agent(task.node, task.conf),
        "ports": [client.port_for_agent(port) for port in task.ports],
    }


def step_params(task: Task, kind: str, step: StepJson | Mapping[str, object]) -> Json:
    """Return what the agent is given to run a step."""
    versions = session.read_facts(task).get("versions")
    return {**_node_params(task), "step": dict(step), f"{kind}_version": versions}
