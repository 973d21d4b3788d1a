"""Explains why a node is where it is: what it waits for, since when and until when, what comes next, and usual causes.

One answer for the API, the timeline and the command: from the node's row, without a statement of its own. Who knows
which conductors are online says so, and then the answer does, too.
"""

import datetime
from collections.abc import Collection
from typing import NamedTuple

from oslo_config import cfg

from ingot.common import clock, masking, states
from ingot.common.json_types import Json
from ingot.common.states import StepState
from ingot.common.steps import read_plan
from ingot.common.waits import OWN_MEMORY, TEXTS, Wait
from ingot.db import conductors, models, outbox
from ingot.db.conductors import RingMember
from ingot.db.engine import Database

COLUMNS = (
    *("uuid", "driver", "conductor_group", "driver_internal_info", "provision_state", "provision_updated_at"),
    *("fault", "maintenance_reason", "reservation", "lock_purpose", "locked_at", "flow", "run_id"),
    *("abort_requested", "power_request", "target_power_state", "due_at", "step_state", "step_started_at"),
    *("step_deadline", "step_memory", "boot_script_at", "agent_token_at", "agent_last_heartbeat"),
)
"""What is read of the node."""

_LATE_SWEEPS = 3
"""Sweeps after which work that no conductor has taken up is late."""

_PASSING = (Wait.TURN, Wait.CONDUCTOR)
_PASSING_S = 2 * outbox.SEEN_LOCK_S

_END_OF_CALENDAR = datetime.datetime.max.replace(tzinfo=datetime.UTC).timestamp() - 1
"""Seconds since 1970. Drivers and options may name more."""

_WITHOUT_WAIT = (None, StepState.NEXT, StepState.RUNNING)
_AGENT_WAITS = (StepState.WAITING, StepState.WATCHING, StepState.ENDING)
_SIGNS = {
    "boot script fetched": "boot_script_at",
    "node looked up": "agent_token_at",
    "heartbeat": "agent_last_heartbeat",
}


class Online(NamedTuple):
    """The conductors that are online.

    :param hosts: all of them.
    :param members: those on rings, each with each of its drivers.
    """

    hosts: Collection[str]
    members: Collection[RingMember]

    def serve(self, node: models.Node) -> bool:
        group = node.conductor_group.lower()
        return any((one.conductor_group.lower(), one.driver) == (group, node.driver) for one in self.members)


def read_online(db: Database, timeout: float) -> Online:
    """Return which conductors are online; two statements.

    :param timeout: as that of :func:`ingot.db.conductors.online_hosts`.
    """
    return Online(conductors.online_hosts(db, timeout), conductors.ring_members(db, timeout))


def explain(conf: cfg.ConfigOpts, node: models.Node, online: Online | None = None) -> Json:
    """Return what a node waits for and why.

    :param node: needs :data:`COLUMNS`.
    :param online: None: it is not known, and every conductor passes for alive.
    """
    wait, since, until = find_wait(conf, node, online)
    text = TEXTS.get(wait)
    facts = _list_facts(node, until)
    seen = [(moment, name) for name, column in _SIGNS.items() if (moment := getattr(node, column))]
    return {
        "kind": wait if text else Wait.HARDWARE.value,
        "waits_for": text.what.format(**facts) if text else wait,
        "since": since,
        "until": until,
        "provision_state": node.provision_state,
        "flow": node.flow,
        "step": facts["step"] if node.flow else None,
        "conductor": node.reservation,
        "last_sign": {"what": max(seen)[1], "at": max(seen)[0]} if seen else None,
        "next": (text or TEXTS[Wait.HARDWARE]).after.format(**facts),
        "advice": (text or TEXTS[Wait.HARDWARE]).advice.format(**facts),
        "usual_causes": [cause.format(**facts) for cause in text.causes] if text else [],
        "notes": [masking.mask_text(note) for note in _list_notes(node, wait)],
    }


def explain_now(db: Database, conf: cfg.ConfigOpts, node: models.Node) -> Json:
    """Return what :func:`explain` does, knowing which conductors are online; two statements if there is work."""
    return explain(conf, node, read_online_for(db, conf, node))


def read_online_for(db: Database, conf: cfg.ConfigOpts, node: models.Node) -> Online | None:
    """Return which conductors are online; None if a node has no work, for which it does not matter."""
    has_work = node.flow is not None or bool(node.power_request) or node.reservation is not None
    return read_online(db, conf.conductor.heartbeat_timeout) if has_work else None


def list_changes(conf: cfg.ConfigOpts, node: models.Node, online: Online | None) -> list[datetime.datetime]:
    """Return the moments at which an explanation becomes another one though nothing happens; parameters as of explain.

    A lock is taken without an event, and one that lasts for less than :data:`ingot.db.outbox.SEEN_LOCK_S` ends so.
    """
    wait, since, until = find_wait(conf, node, online)
    moments = [until]
    if wait in _PASSING and since is not None:
        moments.append(since + datetime.timedelta(seconds=_PASSING_S))
    if wait != Wait.TURN and node.due_at is not None:
        moments.append(node.due_at + datetime.timedelta(seconds=_LATE_SWEEPS * conf.conductor.sweep_interval))
    if node.agent_last_heartbeat is not None:
        silence = datetime.timedelta(seconds=conf.api.ramdisk_heartbeat_timeout)
        moments.append(node.agent_last_heartbeat + silence)
    return [moment for moment in moments if moment is not None]


Found = tuple[str, datetime.datetime | None, datetime.datetime | None]
"""What is waited for, since when, and until when."""


def find_wait(conf: cfg.ConfigOpts, node: models.Node, online: Online | None) -> Found:
    """Return what a node waits for, since when, and until when; parameters as of :func:`explain`."""
    if node.flow is None and not node.power_request and node.reservation is None:
        return Wait.REQUEST, node.provision_updated_at, None
    began = node.due_at or node.step_started_at or node.provision_updated_at
    if online is not None and not online.serve(node) and node.reservation not in online.hosts:
        return Wait.NO_CONDUCTOR, began, None
    if node.reservation is not None:
        is_dead = online is not None and node.reservation not in online.hosts
        return Wait.DEAD_CONDUCTOR if is_dead else Wait.CONDUCTOR, node.locked_at, None
    is_late = node.due_at is not None and node.due_at < clock.after(-_LATE_SWEEPS * conf.conductor.sweep_interval)
    if is_late or (not node.power_request and node.step_state in _WITHOUT_WAIT):
        return Wait.TURN, began, None
    return _find_wait_of_work(conf, node)


def _find_wait_of_work(conf: cfg.ConfigOpts, node: models.Node) -> Found:
    """Return what the power change or the step of a node has come to wait for; no conductor works on it now."""
    if node.power_request:
        ends_at, limit = node.power_request.get("until"), conf.conductor.power_state_change_timeout
        return Wait.POWER, _read_moment(ends_at and ends_at - limit), _read_moment(ends_at)
    if node.step_state == StepState.HOLDING:
        return Wait.OPERATOR, node.provision_updated_at, None
    if node.step_state in _AGENT_WAITS:
        wait = _find_agent_wait(node)
        since = node.step_started_at if wait is Wait.COMMAND else node.provision_updated_at
        return wait, since, node.step_deadline
    own = node.step_memory.get(OWN_MEMORY, {})
    ends_at, limit = own.get("until"), conf.conductor.step_timeout
    if ends_at is None and limit and node.step_started_at:
        ends_at = node.step_started_at.replace(tzinfo=datetime.UTC).timestamp() + limit
    return own.get("waits_for", Wait.HARDWARE), node.step_started_at, _read_moment(ends_at)


def _find_agent_wait(node: models.Node) -> Wait:
    """Return how far the machine has come."""
    if node.step_state == StepState.WATCHING:
        return Wait.COMMAND
    if node.agent_last_heartbeat is not None:
        return Wait.HEARTBEAT
    if node.agent_token_at is not None:
        return Wait.FIRST_HEARTBEAT
    fetched, began = node.boot_script_at, node.step_started_at
    return Wait.AGENT_START if fetched and (began is None or fetched >= began) else Wait.BOOT_SCRIPT


def _read_moment(seconds: float | None) -> datetime.datetime | None:
    """Return a moment on the clock of ``time.time``; None if there is none, or it is later than calendars reach."""
    if seconds is None or not 0 <= seconds < _END_OF_CALENDAR:
        return None
    return datetime.datetime.fromtimestamp(seconds, datetime.UTC).replace(tzinfo=None)


def _list_facts(node: models.Node, until: datetime.datetime | None) -> dict[str, str | None]:
    """Return what the texts of waits name."""
    plan, index = read_plan(node.driver_internal_info)
    step = f"{plan[index]['interface']}.{plan[index]['step']}" if index < len(plan) else None
    failed = states.next_state(node.provision_state, "fail")
    end = f"the flow fails, and the node becomes '{failed}'" if node.flow and failed else "it fails"
    work = f"flow {node.flow}" if node.flow else "a power change"
    return {
        "late": f"Otherwise {end}, at {clock.iso(until)}." if until else "There is no time limit.",
        "step": step,
        "work": f"{work}, step {step}" if step else work,
        "driver": node.driver,
        "group": node.conductor_group,
        "holder": node.reservation,
        "purpose": node.lock_purpose,
    }


def _list_notes(node: models.Node, wait: str) -> list[str]:
    """Return what is known besides that may be the cause."""
    notes: list[str] = []
    if wait in (Wait.BOOT_SCRIPT, Wait.AGENT_START):
        notes += node.driver_internal_info.get("boot_file_doubts", [])
    if node.abort_requested:
        notes.append("An abort is requested; it takes effect as soon as the step can be aborted, or has ended.")
    if node.fault == "power failure":
        notes.append(f"Its BMC does not answer: {node.maintenance_reason}")
    return notes
