"""What must hold when all is over, each rule a function from the evidence to what breaks it."""

import datetime
import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from ingot.common import states
from ingot.db import models
from tests import patience
from tests.functional.deployment.core_steps import CORE
from tests.gate.faults.schedule import Fault
from tests.gate.faults.site import STAMP
from tests.gate.faults.workload import Request

UNGUARDED = frozenset(
    "updated_at revision outbox outbox_at due_at abort_requested maintenance maintenance_reason maintenance_holds "
    "fault agent_url agent_token agent_token_at agent_address agent_version agent_verify_ca agent_status "
    "agent_last_heartbeat boot_script_at boot_ticket boot_address".split()
)
"""Columns that are written without a lock: heartbeats and requests. Any other column is written by the holder of the
lock, or while there is none."""

OF_STEPS = frozenset(("step_state", "step_attempt", "step_memory"))
"""Columns that are never written without the lock."""

LOCK = frozenset(("reservation", "lock_epoch", "lock_attempts", "lock_purpose", "locked_at"))
NOT_AGAIN = "the step is not safe to repeat"
_NOTICED_WITHIN_S = 5.0
_KILLED_WITHIN_S = patience.seconds(0.5)
STEP_ORDER = [name for name, _priority in CORE]


@dataclass(frozen=True)
class Evidence:
    """All that is known about a run.

    :param requests: what tenants asked for.
    :param complaints: what tenants found to be wrong.
    :param nodes: rows of nodes at the end.
    :param attempts: rows of the step runs.
    :param writes: rows of ``audit.WRITES``.
    :param signs: rows of ``audit.SIGNS``.
    :param machines: the rack's, with the commands of their agents.
    :param plates: what was engraved, (node, run) each time.
    :param faults: that were to happen: (when it began, when it ended, what it was).
    :param heartbeat_timeout: of the conductors.
    """

    requests: list[Request]
    complaints: list[str]
    nodes: list[models.Record]
    attempts: list[models.Record]
    writes: list[models.Record]
    signs: list[models.Record]
    machines: list[dict[str, Any]]
    plates: list[tuple[str, str]]
    faults: list[tuple[float, float, Fault]]
    heartbeat_timeout: float


Finding = Iterator[str]


def tenants_are_content(seen: Evidence) -> Finding:
    """Check that disks hold the image, nothing was refused and nothing took for ever."""
    yield from seen.complaints


def accepted_requests_have_ended(seen: Evidence) -> Finding:
    for request in seen.requests:
        if not request.end:
            yield f"{request.machine}: {request.verb}, accepted ({request.known}), has not ended"


def failures_are_the_machines_own(seen: Evidence) -> Finding:
    """Check that failures come from the machine, or from an interrupted step that must not be repeated."""
    for request in seen.requests:
        if request.end and not request.went_well and not _at_fault(seen, request) and NOT_AGAIN not in request.error:
            yield f"{request.machine}: {request.verb} ended in {request.end}: {request.error}"


def _at_fault(seen: Evidence, request: Request) -> bool:
    """Return whether something was wrong with the machine itself meanwhile."""
    return any(
        fault.victim == request.machine and began <= request.ended_at and ended >= request.asked_at
        for began, ended, fault in seen.faults
    )


def nodes_are_at_rest(seen: Evidence) -> Finding:
    """Check that no node is transient, reserved or has pending work."""
    for node in seen.nodes:
        if node.provision_state not in states.STABLE | states.FAILED or node.reservation or node.flow or node.request:
            yield (
                f"{node.name} is left {node.provision_state}, locked by {node.reservation}, in flow {node.flow}, due "
                f"{node.due_at}"
            )


def each_request_ran_once(seen: Evidence) -> Finding:
    """Check that the step runs have one run for each request, and no other."""
    flows = {"active": "deploy", "deleted": "delete", "service": "service"}
    asked = Counter((request.node, flows[request.verb]) for request in seen.requests if request.verb in flows)
    uuids = {node.id: node.uuid for node in seen.nodes}
    runs = {(uuids[row.node_id], row.flow, row.run_id) for row in seen.attempts if row.flow in flows.values()}
    ran = Counter((uuid, flow) for uuid, flow, _run in runs)
    for one in sorted(asked.keys() | ran.keys()):
        if asked[one] != ran[one]:
            yield f"node {one[0]}: {asked[one]} requests for flow {one[1]} were accepted, and {ran[one]} ran"


def steps_are_in_order(seen: Evidence) -> Finding:
    """Check that a run begins with its first step and each step begins once, after the one before has ended."""
    for run, rows in _runs(seen.attempts):
        if rows[0].step_index != 0:
            yield f"run {run} begins with {_describe(rows[0])}"
        for before, after in itertools.pairwise(rows):
            again = after.step_index == before.step_index and before.state != "done"
            next_one = after.step_index == before.step_index + 1 and before.state == "done"
            if not (again or next_one):
                yield f"run {run}: after {_describe(before)} came {_describe(after)}"


def deployments_are_complete(seen: Evidence) -> Finding:
    """Check that a deployment whose last step is done has done all its steps."""
    for run, rows in _runs(row for row in seen.attempts if row.flow == "deploy"):
        done = [row.step for row in rows if row.state == "done" and row.step in STEP_ORDER]
        if done[-1:] == STEP_ORDER[-1:] and done != STEP_ORDER:
            yield f"run {run}: a deployment ended with steps {done}"


def machines_are_cleaned(seen: Evidence) -> Finding:
    """Check that each node was erased before it became available after provide or a deletion."""
    erased = Counter(
        row.node_id for row in seen.attempts if row.step == "erase_devices_metadata" and row.state == "done"
    )
    uuids = {node.uuid: node.id for node in seen.nodes}
    freed = Counter(uuids[request.node] for request in seen.requests if request.end == states.AVAILABLE)
    for node, times in freed.items():
        if erased[node] < times:
            yield f"node {node} became available {times} times and was erased {erased[node]} times"


def nothing_was_engraved_twice(seen: Evidence) -> Finding:
    """Check that nothing was engraved twice, or reported as engraved but is not."""
    plates = Counter(seen.plates)
    uuids = {node.id: node.uuid for node in seen.nodes}
    done = {(uuids[row.node_id], row.run_id) for row in seen.attempts if row.step == "engrave" and row.state == "done"}
    for node, run in sorted(plates.keys() | done):
        if plates[node, run] != 1:
            yield f"node {node}: run {run} was engraved {plates[node, run]} times"


def agents_did_nothing_twice(seen: Evidence) -> Finding:
    """Check that no command that an agent has done is sent again, by the rack's own log."""
    for machine in seen.machines:
        done = Counter(
            (command["boot"], command["step"])
            for command in machine["commands"]
            if command["status"] == "SUCCEEDED" and command["step"] == STAMP
        )
        for (boot, step), times in done.items():
            if times > 1:
                yield f"{machine['name']}: its agent did {step} {times} times in boot {boot}"


def writes_carry_the_lock(seen: Evidence) -> Finding:
    """Check that guarded columns are written by the lock's holder, or while there is none.

    A flow's cursor changes only under the lock. Taking a lock changes nothing else with it.
    """
    for write in seen.writes:
        changed = set(filter(None, write.changed.split(","))) - UNGUARDED
        if not changed:
            continue
        other = write.old_reservation not in (None, write.account)
        if write.new_lock_epoch != write.old_lock_epoch and not changed <= LOCK:
            yield f"{_written(write)} took a lock and changed {sorted(changed - LOCK)} with it"
        elif other and write.new_lock_epoch == write.old_lock_epoch:
            yield f"{_written(write)} changed {sorted(changed)} under the lock of {write.old_reservation}"
        elif write.old_reservation is None and changed & OF_STEPS:
            yield f"{_written(write)} changed {sorted(changed & OF_STEPS)} without a lock"


def locks_have_one_holder(seen: Evidence) -> Finding:
    """Check that the history of each lock is that of one lock.

    Each write begins where the one before ended, and every epoch has one holder. No lock of a conductor with heartbeats
    was taken.
    """
    last: dict[int, models.Record] = {}
    for write in seen.writes:
        before = last.get(write.node_id)
        if before and _lock(before, "new") != _lock(write, "old"):
            yield f"{_written(write)} follows {_written(before)}, and in between the lock was changed unseen"
        last[write.node_id] = write
        taken = write.new_reservation is not None and write.new_reservation != write.old_reservation
        if write.new_lock_epoch not in (write.old_lock_epoch, write.old_lock_epoch + 1):
            yield f"{_written(write)} moved the epoch from {write.old_lock_epoch} to {write.new_lock_epoch}"
        if taken and write.new_lock_epoch == write.old_lock_epoch:
            yield f"{_written(write)} took the lock for {write.new_reservation} without a new epoch"
        if taken and write.new_reservation != write.account:
            yield f"{_written(write)} took the lock for {write.new_reservation}"
        if is_takeover(write):
            silence = _silence(seen, write.old_reservation, write.at)
            if silence < seen.heartbeat_timeout - 1:
                yield f"{_written(write)} took the lock of {write.old_reservation}, silent for {silence:.1f} s only"


def conductors_register_first(seen: Evidence) -> Finding:
    """Check that a conductor that starts again takes no lock before it has registered.

    What it begins earlier is interrupted by its own start, which releases the locks of its earlier life.
    """
    for began, _ended, fault in seen.faults:
        if fault.kind == "conductor killed":
            killed_at = began + _KILLED_WITHIN_S
            signs = (sign.at for sign in seen.signs if sign.hostname == fault.victim and sign.at > killed_at)
            registered_at = min(signs, default=float("inf"))
            for write in seen.writes:
                if write.new_reservation == fault.victim == write.account and killed_at < write.at < registered_at:
                    yield f"{_written(write)} came before the conductor, killed at {began:.1f}, had registered"


def is_takeover(write: models.Record) -> bool:
    """Return whether a write takes a lock from another conductor."""
    return write.old_reservation not in (None, write.account) and write.new_lock_epoch != write.old_lock_epoch


def _silence(seen: Evidence, host: str, moment: float) -> float:
    """Return how old a conductor's last heartbeat was.

    One that arrived just now may not have been noticed. Where the last sign is older than one before, the conductor's
    witness has noted its death.
    """
    all_signs = [sign for sign in seen.signs if sign.hostname == host and sign.at <= moment]
    if all_signs and all_signs[-1].heartbeat_at < max(sign.heartbeat_at for sign in all_signs):
        return float("inf")
    signs = [sign for sign in seen.signs if sign.hostname == host and sign.at <= moment - _NOTICED_WITHIN_S]
    given = (sign.heartbeat_at.replace(tzinfo=datetime.UTC).timestamp() for sign in signs)
    return moment - max(given, default=0.0)


def _lock(write: models.Record, when: str) -> tuple[str | None, int]:
    return getattr(write, f"{when}_reservation"), getattr(write, f"{when}_lock_epoch")


def _runs(attempts: Iterable[models.Record]) -> Iterator[tuple[str, list[models.Record]]]:
    rows = sorted(attempts, key=lambda row: (row.run_id, row.id))
    for run, group in itertools.groupby(rows, key=lambda row: row.run_id):
        yield run, list(group)


def _describe(row: models.Node) -> str:
    return f"{row.step_index} {row.interface}.{row.step} ({row.state}, attempt {row.attempt}, {row.conductor})"


def _written(write: models.Record) -> str:
    return f"write {write.id} of node {write.node_id} by {write.account} at {write.at:.1f}"


RULES: tuple[Callable[[Evidence], Finding], ...] = (
    tenants_are_content,
    accepted_requests_have_ended,
    failures_are_the_machines_own,
    nodes_are_at_rest,
    each_request_ran_once,
    steps_are_in_order,
    deployments_are_complete,
    machines_are_cleaned,
    nothing_was_engraved_twice,
    agents_did_nothing_twice,
    writes_carry_the_lock,
    locks_have_one_holder,
    conductors_register_first,
)


def broken(seen: Evidence) -> dict[str, list[str]]:
    """Return what breaks each rule; nothing for rules that hold."""
    return {rule.__name__: list(rule(seen)) for rule in RULES}
