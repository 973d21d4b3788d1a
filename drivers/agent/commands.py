"""Runs what takes long on the agent as a step: posted once, looked up at each heartbeat, adopted after a crash."""

import time
from collections.abc import Callable, Mapping
from typing import Any

from oslo_log import log

from ingot.common import errors
from ingot.drivers import results
from ingot.drivers.agent import answers, booting, client, offered_steps, session
from ingot.drivers.task import Task

LOG = log.getLogger(__name__)

_PAUSE = 5.0

_REFUSED_LONG_ENOUGH = 4.0
"""Seconds after which an agent whose machine still refuses to connect to it has ended: it listens until then."""

Params = Mapping[str, Any] | Callable[[], Mapping[str, Any]]


def run(task: Task, name: str, params: Params) -> results.Result:
    """Runs an asynchronous command to its end; to be called again until it answers done.

    A conductor that died after posting and before writing that down leaves a command that nobody knows. So the first
    call looks for one: an agent's commands after the last one whose outcome was taken can only be of this step.

    :param name: extension.command.
    :param params: or a function that gives them, called only when the command is posted.
    :returns: done with the command's result as ``hook_result``.
    :raises StepFailed: the command failed, or the agent was started anew and has lost it.
    :raises AgentVersionMismatch: the agent is not the one that the steps were planned with.
    :raises AgentGone: its machine refuses to connect to it.
    :raises AgentUnreachable: it cannot be reached for longer than ``[agent] command_timeout`` times
        ``max_command_attempts``; once is enough if it does not call any more either.
    """
    _check_version(task)
    agent = client.AgentClient(task)
    try:
        command = _command(task, agent, name, params)
    except (errors.AgentBusy, errors.AgentUnreachable) as exc:
        return _later(task, exc)
    task.memory.pop("trouble_since", None)
    if command["command_status"] == client.RUNNING:
        return results.WaitForAgent(watch=True)
    session.note(task, ended=command["id"])
    task.memory.pop("command", None)
    return _outcome(name, command)


def _check_version(task: Task) -> None:
    """Sees that the agent that called last is the one that was asked for its steps."""
    planned = session.known(task, "agent_version")
    found = task.node.agent_version
    if None not in (planned, found) and found != planned:
        raise errors.AgentVersionMismatch(f"agent {found} answers; the steps were planned with {planned}")


def _command(task: Task, agent: client.AgentClient, name: str, params: Params) -> answers.Command:
    ident = task.memory.get("command")
    command = agent.command(ident) if ident else _adopted(task, agent, name)
    if command is None and ident:
        raise errors.StepFailed(f"the agent does not know command {name} {ident} any more: it was started anew")
    if command is None:
        command = agent.start(name, params() if callable(params) else params)
    task.memory["command"] = command["id"]
    return command


def _adopted(task: Task, agent: client.AgentClient, name: str) -> answers.Command | None:
    listed = agent.commands()
    idents = [command["id"] for command in listed]
    ended = session.known(task, "ended")
    unclaimed = listed[idents.index(ended) + 1 :] if ended in idents else listed
    short_name = name.rpartition(".")[2]
    ours = [command for command in unclaimed if command["command_name"] == short_name]
    if not ours:
        return None
    LOG.info("Node %s: going on with command %s %s of its agent", task.node.uuid, name, ours[-1]["id"])
    return ours[-1]


def _later(task: Task, exc: errors.AgentError) -> results.Result:
    waited = time.time() - task.memory.setdefault("trouble_since", time.time())
    if isinstance(exc, errors.AgentRefused) and waited >= _REFUSED_LONG_ENOUGH:
        raise errors.AgentGone(reason=exc.message)
    limit = task.conf.agent.command_timeout * (task.conf.agent.max_command_attempts if session.alive(task) else 1)
    if waited >= limit:
        raise exc
    LOG.warning("Node %s: %s; trying again for %s s in all", task.node.uuid, exc, limit)
    return results.LookAgain(max(_PAUSE, waited / 2))


def _outcome(name: str, command: answers.Command) -> results.Done:
    status = command["command_status"]
    if status == client.SUCCEEDED:
        return results.Done(command["command_result"])
    if status.endswith("_VERSION_MISMATCH"):
        raise errors.AgentVersionMismatch(
            f"the agent refused {name}, as it is not the one that the steps were planned with: "
            f"{client.complaint(command)}"
        )
    raise errors.StepFailed(f"agent command {name} failed: {client.complaint(command)}")


# Steps of the agent's


def get_steps(task: Task, kind: str) -> tuple[offered_steps.OfferedStep, ...]:
    """The steps that the running agent offers for a kind of flow, each once; none, in a deployment, from an agent that
    is older than deploy steps (specification 000).

    Noted is what this offer commits the flow to: the versions of agent and hardware managers, and which steps want a
    reboot; and that what the agent was told until now is the past.

    :raises AgentError: the agent does not tell, or its answer cannot be used; or it knows nothing of cleaning or
        servicing: its silence must not pass for work that is done.
    """
    offer = _ask(task, kind)
    told = {step.label: step.reboot_requested for step in offer.steps}
    past = client.AgentClient(task).commands()
    session.note(
        task,
        versions=offer.versions,
        agent_version=task.node.agent_version,
        offered={**session.known(task, "offered", {}), kind: told},
        ended=past[-1]["id"] if past else None,
    )
    return offer.steps


def _ask(task: Task, kind: str) -> offered_steps.Offer:
    agent, name = client.AgentClient(task), f"{kind}.get_{kind}_steps"
    try:
        offer: offered_steps.Offer = agent.ask(name, _about(task), lambda answer: offered_steps.read(answer, kind))
    except client.NotThere as exc:
        if kind == "deploy":
            return offered_steps.NOTHING
        raise errors.AgentError(
            what=f"Agent {task.node.agent_version} in the machine",
            reason=f"it knows no {kind} steps: boot another one ({exc.message})",
        ) from exc
    return offer


def offers(task: Task, kind: str, interface: str, step: str) -> bool:
    """Whether the agent named a step when :func:`get_steps` asked it."""
    return session.wants_reboot(task, kind, f"{interface}.{step}") is not None


def execute_step(task: Task, kind: str, step: Mapping[str, Any]) -> results.Result:
    """Runs one of the agent's steps, and the reboot that it may ask for; to be called again until it answers done.

    :returns: done with the agent's result: ``<kind>_result`` and ``<kind>_step``.
    :raises AgentVersionMismatch: also when another agent, or one with other hardware managers, answers after the
        reboot.
    """
    return _execute(task, kind, lambda: step, bool(step.get("reboot_requested")))


def execute_by_name(task: Task, kind: str, interface: str, name: str, args: Params) -> results.Result:
    """As :func:`execute_step`, for a driver's step that has the agent's step of that name do the work.

    Whether the machine is rebooted is the agent's word, as noted by :func:`get_steps`.

    :param args: or a function that gives them, called only when the command is posted.
    """

    def step() -> Mapping[str, Any]:
        return {"interface": interface, "step": name, "priority": 0, "args": args() if callable(args) else args}

    return _execute(task, kind, step, bool(session.wants_reboot(task, kind, f"{interface}.{name}")))


def _execute(task: Task, kind: str, step: Callable[[], Mapping[str, Any]], reboot: bool) -> results.Result:
    if "rebooting" not in task.memory:
        answer = run(task, f"{kind}.execute_{kind}_step", lambda: step_params(task, kind, step()))
        if not isinstance(answer, results.Done) or not reboot:
            return answer
        task.memory["rebooting"] = {"result": answer.hook_result, "version": task.node.agent_version}
    before = task.memory["rebooting"]
    answer = results.in_phases(task, *booting.REBOOT, lambda task: _as_before(task, kind, before["version"]))
    return results.Done(before["result"]) if isinstance(answer, results.Done) else answer


def _as_before(task: Task, kind: str, version: str | None) -> results.Result:
    """Sees that the agent that came back is the one that the steps were planned with (specification 000)."""
    if task.node.agent_version != version:
        raise errors.AgentVersionMismatch(
            f"after the reboot that the step asked for, agent {task.node.agent_version} answers; the steps were "
            f"planned with {version}"
        )
    planned = session.known(task, "versions")
    try:
        found = _ask(task, kind).versions
    except (errors.AgentBusy, errors.AgentUnreachable) as exc:
        return _later(task, exc)
    if found != planned:
        raise errors.AgentVersionMismatch(
            f"after the reboot that the step asked for, the agent has hardware managers {found}; the steps were "
            f"planned with {planned}"
        )
    return results.DONE


def _about(task: Task) -> dict[str, Any]:
    return {
        "node": client.node_for_agent(task.node, task.conf),
        "ports": [client.port_for_agent(port) for port in task.ports],
    }


def step_params(task: Task, kind: str, step: Mapping[str, Any]) -> dict[str, Any]:
    """What the agent is given to run a step."""
    return {**_about(task), "step": dict(step), f"{kind}_version": session.known(task, "versions")}
