"""What is known of the agent that runs on a node's machine now: one owner for these facts.

Address, token, certificate and version are columns that heartbeats fill. What the conductor learned by asking is in
``driver_internal_info["agent"]``; its keys are those of ``AgentFacts``.
"""

import secrets
from typing import Unpack

from ingot.common import clock, states
from ingot.common.json_types import AgentFacts, InternalInfo
from ingot.drivers.interfaces.task import Task

_COLUMNS: dict[str, None] = dict.fromkeys(
    (
        *("agent_url", "agent_token", "agent_token_at", "agent_address"),
        *("agent_version", "agent_verify_ca", "agent_status", "agent_last_heartbeat"),
    )
)


def read_facts(task: Task) -> AgentFacts:
    """Return the facts noted with :func:`note_facts`."""
    return read_facts_of(task.node.driver_internal_info)


def read_facts_of(info: InternalInfo) -> AgentFacts:
    """Return the facts in a node's driver_internal_info."""
    return info.get("agent", {})


def note_facts(task: Task, **facts: Unpack[AgentFacts]) -> None:
    """Note facts about the agent; they are written with the next write of the task."""
    task.set(driver_internal_info={**task.node.driver_internal_info, "agent": {**read_facts(task), **facts}})


def is_needed(task: Task) -> bool:
    """Return whether only the agent can restart its machine: until it has, the ways to it are kept."""
    return task.driver.power is not None and not task.driver.power.switches


def forget(task: Task) -> None:
    """Forget the agent: the machine is off, or runs something else, and the next agent gets a new token."""
    left = {key: value for key, value in task.node.driver_internal_info.items() if key != "agent"}
    task.set(driver_internal_info=left)
    _disconnect(task)


def close(task: Task) -> None:
    """Forget the agent, and expect none: a stranger that looks the node up gets no token until Ingot boots an agent."""
    forget(task)
    if is_needed(task):
        note_facts(task, closed=True)
    else:
        choose_token(task)  # of no agent


def choose_token(task: Task) -> None:
    """Choose the token of the agent that is booted next: no machine that asks for it is given it."""
    task.set(agent_token=secrets.token_urlsafe(32))


def forget_connection(task: Task) -> None:
    """Forget the agent for a reboot between two steps: the versions that the plan was made with stay known."""
    note_facts(task, ended=None, closed=False)
    _disconnect(task)


def _disconnect(task: Task) -> None:
    if not is_needed(task):
        task.set(**_COLUMNS)


def drop(task: Task) -> None:
    """Forget where an agent is that has restarted its machine, or has ended before it could.

    None is expected afterwards if the agent was closed since.
    """
    task.set(**_COLUMNS)
    if read_facts(task).get("closed"):
        choose_token(task)


def is_alive(task: Task, within: float | None = None) -> bool:
    """Return whether an agent has called since the machine was booted, and lately.

    :param within: seconds that its last heartbeat may be old; ``[api] ramdisk_heartbeat_timeout`` by default.
    """
    heartbeat = task.node.agent_last_heartbeat
    if task.node.agent_url is None or heartbeat is None:
        return False
    limit = task.conf.api.ramdisk_heartbeat_timeout if within is None else within
    return bool((clock.now() - heartbeat).total_seconds() <= limit)


def can_fast_track(task: Task) -> bool:
    """Return whether a flow is to use the agent that is running instead of booting a new one, and leave it running."""
    options = task.conf.deploy
    powered = task.node.power_state == states.POWER_ON or is_needed(task)
    return bool(options.fast_track) and powered and is_alive(task, within=options.fast_track_timeout)
