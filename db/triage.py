"""Finds the nodes that need attention, and the work under way with its progress, whatever the fleet's size.

What a node's row says alone is chosen and counted by one statement. Whether work is stuck, or waits for its agent, is
judged node by node, by what it waits for and by what its step usually takes: of the nodes with work, those at most
whose steps have run for longest (:data:`MOST_JUDGED`).
"""

import datetime
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import sqlalchemy as sa
from oslo_config import cfg

from ingot.common import clock, states, triage
from ingot.common.json_types import Hold
from ingot.common.steps import read_plan
from ingot.common.triage import Cause, Next
from ingot.common.waits import Wait
from ingot.db import durations, explanations, maintenance, models, node_lists, nodes
from ingot.db.durations import Past, Step, Usual
from ingot.db.engine import Database
from ingot.db.explanations import Online
from ingot.db.listing import Condition, Either

MOST_SHOWN = 50
"""Nodes of a group, and of the work, that are shown."""

MOST_JUDGED = 2000
"""Nodes with work that are judged."""

LATE_FACTOR, LATE_S = 2, 60
"""A step is overdue after so many times its usual duration, but not in its first seconds beyond that."""

_NODES = nodes.NODES

_WHO = ("id", "uuid", "name", "owner", "lessee")
COLUMNS = tuple(
    dict.fromkeys((*_WHO, *explanations.COLUMNS, *maintenance.FLAG, "last_error", "target_provision_state"))
)
"""What must be known of a node to say what it needs."""

_OF_WORK = tuple(dict.fromkeys((*_WHO, *explanations.COLUMNS, "maintenance")))

_NO_AGENT_YET = (Wait.BOOT_SCRIPT, Wait.AGENT_START, Wait.FIRST_HEARTBEAT)
_AGENT_AT_WORK = (Wait.HEARTBEAT, Wait.COMMAND)
_NO_CONDUCTOR = (Wait.NO_CONDUCTOR, Wait.DEAD_CONDUCTOR)

Mine = Sequence[Condition | Either]
"""Conditions of lists of nodes: what the request may see."""


class Finding(NamedTuple):
    """What a node needs.

    :param reason: in words.
    :param by: who holds it.
    :param step: at which it stands, as ``interface.step``.
    """

    node: models.Node
    cause: Cause
    since: datetime.datetime | None
    reason: str | None
    next: Next
    by: str | None = None
    step: str | None = None


class Progress(NamedTuple):
    """Where work under way stands.

    :param position: of the step in the plan, from 0.
    :param began: when the run did; the step has begun at ``node.step_started_at``.
    :param usual: what the step usually takes.
    :param fraction: of the time that the whole run takes; None: a step that is still to come has no past.
    :param basis: the weakest of what ``fraction`` and ``usual`` are from: a node's past before its class's, before
        that of all.
    """

    node: models.Node
    step: str | None
    position: int
    steps: int
    began: datetime.datetime | None
    waits_for: str
    usual: Usual | None
    basis: str | None
    fraction: float | None
    ends_at: datetime.datetime | None


class Overview(NamedTuple):
    """What a fleet needs.

    :param found: by cause, those that are shown.
    :param counts: by cause, how many there are.
    :param working: how many nodes have work.
    :param stale_at: when this is different though nothing happens: the next node is stuck.
    """

    found: Mapping[Cause, list[Finding]]
    counts: Mapping[Cause, int]
    work: list[Progress]
    working: int
    stale_at: datetime.datetime | None


class _Troubled(models.Node):
    cause: str
    of_cause: int


class _Working(models.Node):
    working: int
    cause: str | None


_ROW_CAUSES: Mapping[Cause, sa.ColumnElement[bool]] = {
    Cause.UNRESPONSIVE: _NODES.c.fault == maintenance.POWER_FAULT,
    Cause.FAILED: sa.or_(
        _NODES.c.provision_state.in_(sorted(triage.FAILURES)),
        sa.and_(_NODES.c.provision_state == states.ENROLL, _NODES.c.last_error.is_not(None)),
    ),
    Cause.HELD: _NODES.c.provision_state.in_(sorted(states.HELD)),
    Cause.MAINTENANCE: _NODES.c.maintenance == sa.true(),  # MariaDB has no index for "is true"
}
"""What a node's row says alone; the first that applies counts, and all go before what its work needs."""

_ROW_CAUSE = sa.case(*((condition, cause.value) for cause, condition in _ROW_CAUSES.items()))

OF_ROWS = frozenset(_ROW_CAUSES) - {Cause.UNRESPONSIVE}
"""Causes for which no work has to be judged."""


def build_cause(judged: Mapping[Cause, Collection[int]]) -> sa.ColumnElement[str]:
    """Return the cause for which a node is in a group of the overview; NULL: it needs nothing.

    :param judged: see :func:`judge`.
    """
    # As literals: there are more of them than one statement may have parameters.
    of_work = (
        (_NODES.c.id.in_(sa.bindparam(None, sorted(ids), expanding=True, literal_execute=True)), cause.value)
        for cause, ids in judged.items()
    )
    return sa.case(*((condition, cause.value) for cause, condition in _ROW_CAUSES.items()), *of_work)


def judge(db: Database, conf: cfg.ConfigOpts, mine: Mine) -> dict[Cause, list[int]]:
    """Return by cause the ids of the nodes whose work needs something: the same as :func:`read_overview` does.

    Three statements, and another one once in a while.
    """
    work = _list_work(db, mine)
    online = explanations.read_online(db, conf.conductor.heartbeat_timeout) if work else None
    past = durations.read_past(db, _list_asked(work, ()))
    found: defaultdict[Cause, list[int]] = defaultdict(list)
    for judged in filter(None, (judge_work(conf, node, online, past) for node in work if node.cause is None)):
        found[judged.cause].append(judged.node.id)
    return found


def read_overview(db: Database, conf: cfg.ConfigOpts, mine: Mine) -> Overview:
    """Return what a fleet needs: six statements, and another one once in a while."""
    counts: Counter[Cause] = Counter()
    found: defaultdict[Cause, list[Finding]] = defaultdict(list)
    for troubled in _list_troubled(db, mine):
        cause = Cause(troubled.cause)
        counts[cause] = troubled.of_cause
        found[cause].append(_find_by_row(troubled, cause))
    work = _list_work(db, mine)
    shown = sorted(work, key=lambda node: node.provision_updated_at or datetime.datetime.max)[:MOST_SHOWN]
    online = explanations.read_online(db, conf.conductor.heartbeat_timeout) if work else None
    past = durations.read_past(db, _list_asked(work, shown))
    late: list[datetime.datetime] = []
    for node in (node for node in work if node.cause is None):
        judged = judge_work(conf, node, online, past)
        if judged is not None:
            counts[judged.cause] += 1
            found[judged.cause].append(judged)
        if judged is None or judged.cause is Cause.WAITING:
            late += filter(None, [_find_late_at(conf, node, _find_usual(past, node))])
    runs = [node.run_id for node in shown if node.run_id]
    starts = durations.read_run_starts(db, runs) if runs else {}
    return Overview(
        {cause: _list_first(group) for cause, group in found.items()},
        counts,
        [measure_progress(conf, node, online, past, starts.get(node.run_id or "")) for node in shown],
        work[0].working if work else 0,
        min(late, default=None),
    )


def _list_first(found: Iterable[Finding]) -> list[Finding]:
    """Return those that are shown: of stuck and waiting ones those of the longest time, of others the latest."""
    known = sorted(found, key=lambda one: (one.since or datetime.datetime.min, one.node.id))
    first = known if known[0].cause in (Cause.OVERDUE, Cause.WAITING) else known[::-1]
    return first[:MOST_SHOWN]


def _where(mine: Mine) -> list[sa.ColumnElement[bool]]:
    return [condition.clause(node_lists.SOURCE) for condition in mine]


def _list_troubled(db: Database, mine: Mine) -> list[_Troubled]:
    """Return the nodes whose rows alone say what they need, some of each cause, each with how many there are of it."""
    among = sa.select(_NODES.c.id, _ROW_CAUSE.label("cause"), _NODES.c.provision_updated_at)
    chosen = among.where(sa.or_(*_ROW_CAUSES.values()), *_where(mine)).subquery("chosen")
    latest = (chosen.c.provision_updated_at.desc(), chosen.c.id.desc())
    ranked = sa.select(
        chosen.c.id,
        chosen.c.cause,
        sa.func.count().over(partition_by=chosen.c.cause).label("of_cause"),
        sa.func.row_number().over(partition_by=chosen.c.cause, order_by=latest).label("place"),
    ).subquery("ranked")
    columns = models.columns(_NODES, COLUMNS)
    shown = sa.select(ranked.c.cause, ranked.c.of_cause, *columns).join(_NODES, _NODES.c.id == ranked.c.id)
    return db.read_all(_Troubled, shown.where(ranked.c.place <= MOST_SHOWN).order_by(ranked.c.cause, ranked.c.place))


def _list_work(db: Database, mine: Mine) -> list[_Working]:
    """Return nodes with work, those first whose steps have run for longest, with how many there are of them.

    The index on due_at holds only nodes with work, so the cost grows with the work and not with the fleet.
    """
    # As "is not null", for which SQLite would read the whole table.
    under_way = (_NODES.c.due_at > datetime.datetime(1970, 1, 1), _NODES.c.flow.is_not(None))
    began = sa.func.coalesce(_NODES.c.step_started_at, _NODES.c.provision_updated_at)
    more = (sa.func.count().over().label("working"), _ROW_CAUSE.label("cause"))
    columns: list[Any] = [*more, *models.columns(_NODES, _OF_WORK)]
    not_held = _NODES.c.provision_state.not_in(sorted(states.HELD))
    listed = sa.select(*columns).where(*under_way, not_held, *_where(mine)).order_by(began, _NODES.c.id)
    return db.read_all(_Working, listed.limit(MOST_JUDGED))


def list_steps(node: models.Node) -> tuple[list[Step], int]:
    """Return the steps of a node's plan, and the index of the one at which it stands."""
    plan, index = read_plan(node.driver_internal_info)
    return [Step(node.flow or "", step["interface"], step["step"]) for step in plan], index


def _current(node: models.Node) -> Step | None:
    steps, index = list_steps(node)
    return steps[index] if index < len(steps) else None


def _find_usual(past: Past, node: models.Node) -> Usual | None:
    current = _current(node)
    return past.find(node, current) if current else None


def _list_asked(work: Iterable[models.Node], shown: Iterable[models.Node]) -> dict[Step, list[int]]:
    """Return the ids of the nodes whose past is needed, by step: of those shown, all that is to come."""
    asked: defaultdict[Step, list[int]] = defaultdict(list)
    whole = {node.id for node in shown}
    for node in work:
        steps, index = list_steps(node)
        for step in steps[index:] if node.id in whole else steps[index : index + 1]:
            asked[step].append(node.id)
    return asked


# What one node needs


class Need(NamedTuple):
    """What a node needs.

    :param finding: None: nothing.
    :param stale_at: when this, or the node's explanation, is different though nothing happens.
    """

    finding: Finding | None
    stale_at: datetime.datetime | None


def find(db: Database, conf: cfg.ConfigOpts, node: models.Node, online: Online | None) -> Need:
    """Return what a node needs. One statement if it has work, and another one once in a while.

    :param node: needs :data:`COLUMNS`.
    """
    moments = explanations.list_changes(conf, node, online)
    cause = _find_cause(node)
    finding = None if cause is None else _find_by_row(node, cause)
    if cause is None and node.flow is not None:
        current = _current(node)
        past = durations.read_past(db, {current: [node.id]} if current else {})
        finding = judge_work(conf, node, online, past)
        moments += filter(None, [_find_late_at(conf, node, _find_usual(past, node))])
    return Need(finding, min((moment for moment in moments if moment > clock.now()), default=None))


def _find_cause(node: models.Node) -> Cause | None:
    """Return what :func:`_list_troubled` finds by the same rules."""
    if node.fault == maintenance.POWER_FAULT:
        return Cause.UNRESPONSIVE
    state = node.provision_state
    if state in triage.FAILURES or (state == states.ENROLL and node.last_error is not None):
        return Cause.FAILED
    if state in states.HELD:
        return Cause.HELD
    return Cause.MAINTENANCE if node.maintenance else None


def _find_by_row(node: models.Node, cause: Cause) -> Finding:
    holds = [hold for hold in maintenance.read_holds(node) if maintenance.raises_flag(hold)]
    by = ", ".join(dict.fromkeys(filter(None, (hold["user"] for hold in holds)))) or None
    current = _current(node)
    step = f"{current.interface}.{current.step}" if current else None
    if cause is Cause.FAILED:
        after = triage.after_failure(node.provision_state, node.target_provision_state)
        return Finding(node, cause, node.provision_updated_at, node.last_error, after, by, step)
    if cause is Cause.HELD:
        reason = f"It stands still at step {step}." if step else None
        return Finding(node, cause, node.provision_updated_at, reason, triage.of_held(), by, step)
    since, reason = _read_last(holds, node.maintenance_reason)
    if cause is Cause.UNRESPONSIVE:
        return Finding(node, cause, since, reason, triage.of_silent_bmc(), by)
    unconfirmed = maintenance.find_unconfirmed(node) is not None
    by = by or next((hold["conductor"] for hold in reversed(holds) if hold["conductor"]), None)
    return Finding(node, cause, since, reason or "No reason was given.", triage.of_maintenance(unconfirmed), by)


def _read_last(holds: Sequence[Hold], reason: str | None) -> tuple[datetime.datetime | None, str | None]:
    """Return since when a node is held, and all reasons."""
    moments = [datetime.datetime.fromisoformat(hold["since"]) for hold in holds if hold["since"]]
    reasons = dict.fromkeys(hold["reason"] for hold in holds if hold["reason"])
    since = min(moments).astimezone(datetime.UTC).replace(tzinfo=None) if moments else None
    return since, "; ".join(reasons) or reason


def judge_work(conf: cfg.ConfigOpts, node: models.Node, online: Online | None, past: Past) -> Finding | None:
    """Return what the work of a node needs; None: it is on its way.

    :param node: needs id and what :data:`ingot.db.explanations.COLUMNS` names.
    """
    wait, since, _until = explanations.find_wait(conf, node, online)
    since = node.step_started_at or since
    current = _current(node)
    label = f"{current.interface}.{current.step}" if current else None
    if wait == Wait.BMC:
        explained = explanations.explain(conf, node, online)
        return Finding(node, Cause.UNRESPONSIVE, since, explained["waits_for"], Next(explained["advice"]), step=label)
    usual = _find_usual(past, node)
    late_at = _find_late_at(conf, node, usual)
    is_late = late_at is not None and late_at < clock.now()
    if wait in _NO_CONDUCTOR or is_late:
        explained = explanations.explain(conf, node, online)
        lateness = f"{_describe_lateness(conf, node, label, usual)} " if is_late else ""
        reason = f"{lateness}It waits for: {explained['waits_for']}."
        after = triage.of_stuck(node.provision_state, explained["advice"])
        return Finding(node, Cause.OVERDUE, since, reason, after, step=label)
    if wait in _NO_AGENT_YET or (wait in _AGENT_AT_WORK and _is_silent(conf, node)) or wait == Wait.AGENT:
        explained = explanations.explain(conf, node, online)
        return Finding(
            node, Cause.WAITING, since, explained["waits_for"], triage.of_waiting(explained["advice"]), step=label
        )
    return None


def _is_silent(conf: cfg.ConfigOpts, node: models.Node) -> bool:
    heard = node.agent_last_heartbeat
    return heard is not None and heard < clock.after(-conf.api.ramdisk_heartbeat_timeout)


_BASES = {"node": "here", "class": "on machines with its driver", "all": "in this fleet"}


def _find_late_at(conf: cfg.ConfigOpts, node: models.Node, usual: Usual | None) -> datetime.datetime | None:
    """Return when a node is stuck, unless it goes on before: by what its step usually takes, or its state may."""
    moments = []
    if usual is not None and node.step_started_at is not None:
        seconds = max(usual.seconds * LATE_FACTOR, usual.seconds + LATE_S)
        moments.append(node.step_started_at + datetime.timedelta(seconds=seconds))
    limit = conf.metrics.state_time_limits.get(node.provision_state)
    if limit is not None and node.provision_updated_at is not None:
        moments.append(node.provision_updated_at + datetime.timedelta(seconds=limit))
    return min(moments, default=None)


def _describe_lateness(conf: cfg.ConfigOpts, node: models.Node, label: str | None, usual: Usual | None) -> str:
    """Return in words how long a node takes that is stuck, and what is usual."""
    now = clock.now()
    if usual is not None and node.step_started_at is not None:
        seconds = (now - node.step_started_at).total_seconds()
        if seconds > usual.seconds:
            usually = f"{clock.spell(usual.seconds)} {_BASES[usual.basis]}"
            return f"Step {label} has taken {clock.spell(seconds)}; it usually takes {usually}."
    since = node.provision_updated_at or now
    limit = conf.metrics.state_time_limits[node.provision_state]
    seconds = (now - since).total_seconds()
    return f"In state {node.provision_state} for {clock.spell(seconds)}; {clock.spell(limit)} are expected."


def measure_progress(
    conf: cfg.ConfigOpts, node: models.Node, online: Online | None, past: Past, began: datetime.datetime | None
) -> Progress:
    """Return where the work of a node stands.

    :param began: when the first step did that has ended in this run; None: there is none.
    """
    steps, index = list_steps(node)
    coming = [past.find(node, step) for step in steps[index:]]
    known = [usual for usual in coming if usual is not None]
    usual = coming[0] if coming else None
    now = clock.now()
    began = began or node.step_started_at or node.provision_updated_at
    fraction, ends_at = None, None
    if coming and len(known) == len(coming) and began is not None:
        in_step = (now - node.step_started_at).total_seconds() if node.step_started_at else 0.0
        left = max(known[0].seconds - in_step, 0.0) + sum(later.seconds for later in known[1:])
        whole = (now - began).total_seconds() + left
        fraction, ends_at = round(1 - left / whole, 4) if whole > 0 else 0.0, now + datetime.timedelta(seconds=left)
    bases = [one.basis for one in known if fraction is not None or one is usual]
    return Progress(
        node,
        f"{steps[index].interface}.{steps[index].step}" if index < len(steps) else None,
        index,
        len(steps),
        began,
        explanations.explain(conf, node, online)["waits_for"],
        usual,
        max(bases, key=tuple(_BASES).index) if bases else None,
        fraction,
        ends_at,
    )
