"""Power by the agent that runs on a machine: it restarts its machine, and an operator does the rest by hand."""

import time

from oslo_log import log

from ingot.common import errors, states
from ingot.common.waits import Wait
from ingot.drivers.agent import answers, client, session
from ingot.drivers.interfaces import results
from ingot.drivers.interfaces.power import PowerInterface
from ingot.drivers.interfaces.task import Task

LOG = log.getLogger(__name__)

_RESTART = "standby.run_image"
_BY_HAND = "power interface agent can only restart a machine on which the agent runs; do it by hand"

_PAUSE = 1.0
_PATIENCE = 10.0
"""Seconds after which an agent that answered, was perhaps asked, and does not answer anymore has restarted."""


class AgentPower(PowerInterface):
    """The power interface ``agent``, for machines whose BMC cannot be used or that have none.

    The agent is asked by a command, and forgotten when it has accepted it. What a conductor was doing that died in
    between is found out from the agent's commands; or from its silence, since it had answered just before.
    """

    sees_changes = False
    switches = False

    def validate(self, task: Task) -> None:
        if not self.conf.deploy.fast_track:
            allowed = "true, where power interface agent is used: the agent must go on running between two flows."
            raise errors.Invalid(field="[deploy] fast_track", value=False, allowed=allowed)

    def get_power_state(self, task: Task) -> str | None:
        return states.POWER_ON if session.is_alive(task) else None

    def get_supported_power_states(self, task: Task) -> list[str]:
        return [states.REBOOT, states.SOFT_REBOOT]

    def start_power_change(self, task: Task, target: str) -> None:
        raise errors.HardwareError(what=f"Power change to {target!r}", reason=_BY_HAND)

    def restart(self, task: Task) -> results.Result:
        """Have the agent restart its machine, once.

        :raises HardwareError: no agent runs.
        :raises AgentError: it refuses, or does not answer.
        """
        memory = task.memory
        if "asked_at" in memory:
            return self._ask_once(task)
        if not session.is_alive(task):
            raise errors.HardwareError(what="Restarting the machine", reason=f"no agent runs on it, and {_BY_HAND}")
        memory["known"] = len(_list_restarts(client.AgentClient(task)))
        memory["asked_at"] = time.time()
        task.set(boot_address=None)
        return results.PollAfter(0.0, waits_for=Wait.AGENT)  # written down before it is asked

    def _ask_once(self, task: Task) -> results.Result:
        waited = max(0.0, time.time() - task.memory["asked_at"])
        agent = client.AgentClient(task)
        try:
            asked = _list_restarts(agent)[task.memory["known"] :]
            command = asked[-1] if asked else agent.start(_RESTART, {})
        except client.CommandNotFound:
            raise
        except errors.AgentError as exc:  # refused too: the next agent does not know this one's token
            if waited < _PATIENCE:
                until = task.memory["asked_at"] + _PATIENCE
                return results.PollAfter(_PAUSE, waits_for=Wait.AGENT, until=until)
            if isinstance(exc, errors.AgentBusy):
                raise
            LOG.warning("Node %s: its agent has gone while it was asked to restart: %s", task.node.uuid, exc)
        else:
            if command["command_status"] not in (client.RUNNING, client.SUCCEEDED):
                raise errors.AgentError(what=f"Agent command {_RESTART}", reason=client.error_text(command))
        session.drop(task)
        task.set(power_state=states.POWER_ON)
        return results.DONE


def _list_restarts(agent: client.AgentClient) -> list[answers.Command]:
    return [command for command in agent.commands() if _RESTART.endswith(f".{command['command_name']}")]
