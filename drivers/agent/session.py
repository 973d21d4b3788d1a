"""What is known of the agent that runs on a node's machine now: one owner for these facts.

Address, token, certificate and version are columns that heartbeats fill. What the conductor learned by asking is in
``driver_internal_info["agent"]``: ``versions`` of its hardware managers, ``offered`` (by kind of flow and step:
whether the step wants a reboot), ``ended``, the last command whose outcome was taken, and ``used_as_found``, whether
fast track has found it there.
"""

from typing import Any

from ingot.common import clock, states
from ingot.drivers.task import Task

_KEY = "agent"

_COLUMNS: dict[str, None] = dict.fromkeys(
    ("agent_url", "agent_token", "agent_version", "agent_verify_ca", "agent_status", "agent_last_heartbeat")
)


def known(task: Task, what: str, default: Any = None) -> Any:
    """A fact noted with :func:`note`."""
    return task.node.driver_internal_info.get(_KEY, {}).get(what, default)


def note(task: Task, **facts: Any) -> None:
    """Notes facts about the agent; they are written with the next write of the task."""
    noted = {**task.node.driver_internal_info.get(_KEY, {}), **facts}
    task.set(driver_internal_info={**task.node.driver_internal_info, _KEY: noted})


def wants_reboot(task: Task, kind: str, label: str) -> bool | None:
    """Whether the agent wants a reboot after a step of a kind, ``interface.step``; None: it did not offer that step."""
    wanted: bool | None = known(task, "offered", {}).get(kind, {}).get(label)
    return wanted


def forget(task: Task) -> None:
    """The machine is off, or runs something else: the token is worthless and the next agent gets a new one."""
    left = {key: value for key, value in task.node.driver_internal_info.items() if key != _KEY}
    task.set(driver_internal_info=left, **_COLUMNS)


def forget_connection(task: Task) -> None:
    """As :func:`forget`, for a reboot between two steps: the versions that the plan was made with stay known."""
    note(task, ended=None)
    task.set(**_COLUMNS)


def alive(task: Task, within: float | None = None) -> bool:
    """Whether an agent has called since the machine was booted, and lately.

    :param within: seconds that its last heartbeat may be old; ``[api] ramdisk_heartbeat_timeout`` by default.
    """
    heartbeat = task.node.agent_last_heartbeat
    if task.node.agent_url is None or heartbeat is None:
        return False
    limit = task.conf.api.ramdisk_heartbeat_timeout if within is None else within
    return bool((clock.now() - heartbeat).total_seconds() <= limit)


def fast_track(task: Task) -> bool:
    """Whether a flow shall use the agent that is running instead of booting a new one, and leave it running."""
    options = task.conf.deploy
    powered = task.node.power_state == states.POWER_ON
    return bool(options.fast_track) and powered and alive(task, within=options.fast_track_timeout)
