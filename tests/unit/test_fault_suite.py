"""The judges of the fault suite (tests/gate/faults) are judged: each rule finds what breaks it, and nothing else."""

import datetime
from collections.abc import Callable
from typing import Any, ClassVar

import testtools

from ingot.common import states
from ingot.db.models import Record
from tests.gate.faults import invariants, schedule
from tests.gate.faults.invariants import STEP_ORDER, Evidence
from tests.gate.faults.kinds import KINDS
from tests.gate.faults.schedule import Fault
from tests.gate.faults.site import STAMP
from tests.gate.faults.workload import Request

NODE, OTHER = "11111111-1111-4111-8111-111111111111", "22222222-2222-4222-8222-222222222222"
ERASE = "erase_devices_metadata"
FOUNDED = 1_700_000_000.0
TIMEOUT = 8.0


def attempt(number: int, run: str, flow: str, index: int, step: str, state: str = "done", node: int = 1) -> Record:
    where = {"id": number, "node_id": node, "run_id": run, "flow": flow, "step_index": index}
    return Record(**where, interface="deploy", step=step, state=state, attempt=1, conductor="one")


def write(number: int, account: str, changed: str, old: tuple[str | None, int], new: tuple[str | None, int]) -> Record:
    lock = dict(zip(("old_reservation", "old_lock_epoch"), old, strict=True))
    lock |= dict(zip(("new_reservation", "new_lock_epoch"), new, strict=True))
    return Record(id=number, at=FOUNDED + number, account=account, node_id=1, changed=changed, **lock)


def sign(host: str, at: float) -> Record:
    given = datetime.datetime.fromtimestamp(FOUNDED + at, datetime.UTC).replace(tzinfo=None)
    return Record(at=FOUNDED + at, hostname=host, heartbeat_at=given)


def noted(host: str, at: float) -> Record:
    """Return the sign that a conductor's witness gives."""
    return Record(**vars(sign(host, at - TIMEOUT)) | {"at": FOUNDED + at})


def request(verb: str, end: str, asked_at: float = 0.0) -> Request:
    return Request("machine-0", NODE, verb, "202", FOUNDED + asked_at, FOUNDED + asked_at + 9, end)


def good() -> Evidence:
    """Return evidence of a good run: one machine is provided and deployed.

    A conductor was killed, another took over.
    """
    deployment = ["engrave", *STEP_ORDER]
    return Evidence(
        requests=[request("provide", states.AVAILABLE), request("active", states.ACTIVE, 10)],
        complaints=[],
        nodes=[
            Record(
                id=1,
                uuid=NODE,
                name="machine-0",
                provision_state=states.ACTIVE,
                reservation=None,
                flow=None,
                request={},
                due_at=None,
            ),
        ],
        attempts=[
            attempt(1, "clean", "clean", 0, "prepare_cleaning"),
            attempt(2, "clean", "clean", 1, ERASE),
            *(attempt(10 + place, "deploy", "deploy", place, step) for place, step in enumerate(deployment)),
        ],
        writes=[
            write(20, "api-0", "provision_state", (None, 1), (None, 1)),
            write(21, "one", "reservation,lock_epoch", (None, 1), ("one", 2)),
            write(22, "one", "step_state", ("one", 2), ("one", 2)),
            write(23, "api-0", "agent_last_heartbeat", ("one", 2), ("one", 2)),
            write(40, "two", "reservation,lock_epoch", ("one", 2), ("two", 3)),
            write(41, "two", "reservation,provision_state", ("two", 3), (None, 3)),
        ],
        signs=[sign("one", 20), sign("one", 24), sign("two", 39)],
        machines=[{"name": "machine-0", "commands": [{"boot": 1, "step": STAMP, "status": "SUCCEEDED"}]}],
        plates=[(NODE, "deploy")],
        faults=[],
        heartbeat_timeout=TIMEOUT,
    )


def failed(seen: Evidence) -> None:
    seen.requests.append(request("active", states.DEPLOYFAIL, 100))
    seen.attempts.append(attempt(90, "second", "deploy", 0, "deploy", "failed"))


def of_machine(seen: Evidence) -> None:
    failed(seen)
    seen.faults.append((FOUNDED + 99, FOUNDED + 101, Fault(0, "bmc silent", "machine-0", 2)))


def killed(seen: Evidence, until: float = 60) -> None:
    """Kill the second conductor, whose next life registers last of all."""
    seen.faults.append((FOUNDED + 30, FOUNDED + 35, Fault(0, "conductor killed", "two", 5)))
    seen.signs[:] = [sign("one", 20), sign("one", 24), sign("two", until)]


def cut_short(seen: Evidence) -> None:
    failed(seen)
    seen.requests[-1].error = f"the conductor that ran it was lost, and {invariants.NOT_AGAIN}"


def interrupted(seen: Evidence) -> None:
    seen.attempts.insert(4, attempt(12, "deploy", "deploy", 2, "write_image", "interrupted"))
    for number, row in enumerate(seen.attempts):
        row.id = number


BREAKS: dict[str, tuple[str, Callable[[Evidence], Any]]] = {
    "a tenant finds another image": ("tenants_are_content", lambda seen: seen.complaints.append("not its image")),
    "a request is lost": (
        "accepted_requests_have_ended each_request_ran_once",
        lambda seen: seen.requests.append(request("active", "", 100)),
    ),
    "a deployment fails": ("failures_are_the_machines_own", failed),
    "a node stays locked": ("nodes_are_at_rest", lambda seen: vars(seen.nodes[0]).update(reservation="one")),
    "a node is stuck": ("nodes_are_at_rest", lambda seen: vars(seen.nodes[0]).update(provision_state=states.DEPLOYING)),
    "a request is doubled": (
        "each_request_ran_once",
        lambda seen: seen.attempts.append(attempt(90, "second", "deploy", 0, "deploy")),
    ),
    "a step is done twice": (
        "steps_are_in_order deployments_are_complete",
        lambda seen: seen.attempts.append(attempt(90, "deploy", "deploy", 6, "boot_instance")),
    ),
    "a step is left out": ("steps_are_in_order deployments_are_complete", lambda seen: seen.attempts.pop(4)),
    "the last step comes alone": (
        "steps_are_in_order deployments_are_complete",
        lambda seen: seen.attempts.__delitem__(slice(2, -1)),
    ),
    "a machine is not erased": ("machines_are_cleaned", lambda seen: seen.attempts.pop(1)),
    "a plate is engraved twice": ("nothing_was_engraved_twice", lambda seen: seen.plates.append((NODE, "deploy"))),
    "a plate is not engraved": ("nothing_was_engraved_twice", lambda seen: seen.plates.clear()),
    "an agent does a step twice": (
        "agents_did_nothing_twice",
        lambda seen: seen.machines[0]["commands"].append(seen.machines[0]["commands"][0]),
    ),
    "one writes under the lock of another": (
        "writes_carry_the_lock",
        lambda seen: seen.writes.insert(5, write(41, "one", "step_memory", ("two", 3), ("two", 3))),
    ),
    "one writes after it has lost the lock and the other has given it back": (
        "writes_carry_the_lock",
        lambda seen: seen.writes.append(write(42, "one", "provision_state,step_state", (None, 3), (None, 3))),
    ),
    "a lock is taken with work in the same write": (
        "writes_carry_the_lock",
        lambda seen: vars(seen.writes[1]).update(changed="reservation,lock_epoch,step_state"),
    ),
    "an epoch is used twice": (
        "locks_have_one_holder",
        lambda seen: seen.writes.append(write(42, "one", "reservation", (None, 3), ("one", 3))),
    ),
    "an epoch goes back": (
        "locks_have_one_holder",
        lambda seen: seen.writes.append(write(42, "two", "reservation,lock_epoch", (None, 3), ("two", 2))),
    ),
    "a lock is taken for another conductor": (
        "locks_have_one_holder",
        lambda seen: seen.writes.append(write(42, "one", "reservation,lock_epoch", (None, 3), ("two", 4))),
    ),
    "a lock changes unseen": ("locks_have_one_holder", lambda seen: seen.writes.pop(1)),
    "a conductor works before it has registered again": ("conductors_register_first", killed),
    "a lock is taken from the living": ("locks_have_one_holder", lambda seen: seen.signs.append(sign("one", 34))),
}
"""What happens: (the rules that see it, what it leaves behind)."""

HARMLESS: dict[str, Callable[[Evidence], Any]] = {
    "nothing": lambda seen: None,
    "a fault of the machine": of_machine,
    "a step that must not be repeated is cut short": cut_short,
    "a step that may be repeated is interrupted": interrupted,
    "a conductor comes back while its lock is taken": lambda seen: seen.signs.append(sign("one", 38)),
    "a conductor registers again before it works": lambda seen: killed(seen, until=39),
    "a write changes nothing": lambda seen: seen.writes.insert(5, write(41, "one", "", ("two", 3), ("two", 3))),
    "a witness notes a death": lambda seen: seen.signs.extend((sign("one", 34), noted("one", 39))),
    "a statement arrives late": lambda seen: seen.signs.append(Record(**vars(sign("one", 25)) | {"at": FOUNDED + 34})),
}


class InvariantsTest(testtools.TestCase):
    def test_each_rule_finds_what_breaks_it(self) -> None:
        for what, (rules, happen) in BREAKS.items():
            seen = good()
            happen(seen)
            found = [name for name, findings in invariants.broken(seen).items() if findings]
            self.assertEqual(rules.split(), found, what)

    def test_no_rule_is_without_something_that_breaks_it(self) -> None:
        broken = {rule for rules, _happen in BREAKS.values() for rule in rules.split()}
        self.assertEqual({rule.__name__ for rule in invariants.RULES}, broken)

    def test_they_hold_for_what_is_harmless(self) -> None:
        for what, happen in HARMLESS.items():
            seen = good()
            happen(seen)
            self.assertEqual({rule.__name__: [] for rule in invariants.RULES}, invariants.broken(seen), what)


class ScheduleTest(testtools.TestCase):
    VICTIMS: ClassVar = {
        "conductors": ["c0", "c1", "c2"], "apis": ["a0", "a1"], "brokers": ["b"], "databases": ["d"],
        "machines": [f"m{number}" for number in range(6)],
    }  # fmt: skip

    def draw(self, seed: int, count: int = 60) -> list[Fault]:
        return schedule.draw(seed, count, 5.0, self.VICTIMS, dict.fromkeys(KINDS, 1))

    def test_a_seed_is_a_schedule(self) -> None:
        self.assertEqual(self.draw(3), self.draw(3))
        self.assertNotEqual(self.draw(3), self.draw(4))

    def test_every_kind_comes_before_one_comes_again(self) -> None:
        for seed in range(20):
            self.assertEqual(sorted(KINDS), sorted(fault.kind for fault in self.draw(seed, len(KINDS))))

    def test_no_process_has_two_faults_at_once(self) -> None:
        for seed in range(20):
            well_from: dict[str, float] = {}
            for fault in self.draw(seed):
                self.assertGreaterEqual(fault.at, well_from.get(fault.victim, 0.0))
                well_from[fault.victim] = fault.at + fault.seconds
