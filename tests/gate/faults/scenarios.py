"""What is played: which faults, during which work, and how it is judged."""

import time
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import fixtures
import sqlalchemy as sa
import testtools

from ingot.db import models
from tests import patience as waiting
from tests.functional.deployment import lab
from tests.gate.faults import audit, invariants, schedule, takeover
from tests.gate.faults.injector import Injector
from tests.gate.faults.invariants import Evidence
from tests.gate.faults.kinds import KINDS, WEIGHTS
from tests.gate.faults.schedule import Fault
from tests.gate.faults.site import DATABASES, Site
from tests.gate.faults.workload import Workload

STUCK_AFTER_S = waiting.seconds(400.0)
"""After this long, what was accepted is stuck."""

QUICK: Mapping[str, Mapping[str, Any]] = {
    "conductor": {
        "heartbeat_interval": 2,
        "heartbeat_timeout": 8,
        "deploy_callback_timeout": 240,
        "clean_callback_timeout": 240,
        "node_history_max_entries": 100_000,
    },
}
"""Options with which a conductor is found dead in eight seconds, and an agent that says nothing in four minutes."""

USUAL: Mapping[str, Mapping[str, Any]] = {
    "DEFAULT": {"hash_ring_reset_interval": 5},
    "conductor": {"heartbeat_interval": 5, "heartbeat_timeout": 30, "sweep_interval": 5},
}
"""The defaults, which a laboratory else makes quicker."""


@dataclass(frozen=True)
class Storm:
    """Random faults while machines are deployed, undeployed and cleaned.

    :param machines: how many.
    :param deployments: how many must end well.
    :param faults: how many happen; meanwhile deployments go on.
    :param every: seconds between two of them.
    :param weights: how often which kind comes.
    :param patience: seconds after which what was accepted is stuck.
    """

    machines: int = 40
    deployments: int = 200
    faults: int = 60
    every: float = 5.0
    weights: Mapping[str, int] = field(default_factory=lambda: WEIGHTS)
    patience: float = STUCK_AFTER_S
    options: Mapping[str, Mapping[str, Any]] = field(default_factory=lambda: QUICK)


LONG = Storm()
SHORT = Storm(machines=6, deployments=12, faults=len(KINDS), every=3.0, weights=dict.fromkeys(KINDS, 1))
"""For the gate: every kind of fault once."""


@dataclass(frozen=True)
class Outcome:
    """What came of it.

    :param title: what was played.
    :param command: plays it again.
    :param facts: what is worth knowing: [(what, how much)].
    :param broken: what breaks each invariant.
    :param faults: those of the schedule that happened.
    :param lab: has the logs of all processes, while the stage lasts.
    """

    title: str
    command: str
    facts: list[tuple[str, str]]
    broken: Mapping[str, list[str]]
    faults: list[Fault]
    lab: lab.Lab

    @property
    def is_good(self) -> bool:
        return not any(self.broken.values())


def storm(stage: fixtures.Fixture | testtools.TestCase, backend: str, plan: Storm, seed: int) -> Outcome:
    """Build a site, let faults happen until there are enough deployments, undo all faults, and judge.

    :param stage: what keeps site and faults until its own end.
    """
    site = stage.useFixture(Site(backend, plan.machines, plan.options))
    faults = schedule.draw(seed, plan.faults, plan.every, site.victims, plan.weights)
    print(f"seed {seed}, {DATABASES[backend]}:", *faults, sep="\n", flush=True)
    began = time.monotonic()
    until = began + max((fault.at for fault in faults), default=0.0) + plan.every
    work = Workload(site, lambda begun: begun < plan.deployments or time.monotonic() < until, plan.patience)
    injector = stage.useFixture(Injector(site, faults))
    work.start()
    work.wait()
    injector.finish()
    taken = time.monotonic() - began
    evidence = gather(site, work, injector.happened, plan.options)
    return Outcome(
        title=f"{len(injector.happened)} random faults, one every {plan.every:g} s",
        command=f"storm --backend {backend} --seed {seed} --machines {plan.machines} "
        f"--deployments {plan.deployments} --faults {plan.faults} --every {plan.every:g}",
        facts=[*_common_facts(site, work, evidence), ("seconds", f"{taken:.0f}")],
        broken=invariants.broken(evidence),
        faults=sorted((fault for _began, _ended, fault in injector.happened), key=lambda fault: fault.at),
        lab=site.lab,
    )


def kill(
    stage: fixtures.Fixture | testtools.TestCase, backend: str, machines: int, patience: float = STUCK_AFTER_S
) -> Outcome:
    """Kill the conductor that deploys all machines, for good, and judge."""
    site = stage.useFixture(Site(backend, machines, USUAL, stamp_s=takeover.STAMP_S))
    work = Workload(site, lambda begun: begun < machines, patience)
    killed = takeover.play(site, work)
    evidence = gather(site, work, [], USUAL)
    rule = takeover.all_ran_and_were_taken_over
    broken = {**invariants.broken(evidence), rule.__name__: list(rule(killed, evidence))}
    return Outcome(
        title=f"kill -9 of one of {len(site.lab.names)} conductors, which deploys {machines} machines",
        command=f"kill --backend {backend} --machines {machines}",
        facts=[*_common_facts(site, work, evidence), *takeover.facts(killed, evidence)],
        broken=broken,
        faults=[],
        lab=site.lab,
    )


def _common_facts(site: Site, work: Workload, seen: Evidence) -> list[tuple[str, str]]:
    ended = Counter((request.verb, request.end or "nothing") for request in seen.requests)
    return [
        ("machines", str(len(site.victims["machines"]))),
        *((f"'{verb}' ended in '{end}'", str(count)) for (verb, end), count in sorted(ended.items())),
        ("ended badly", "; ".join(sorted({r.error for r in seen.requests if not r.went_well})) or "nothing"),
        ("requests of which the answer was lost", str(sum(request.known == "seen" for request in seen.requests))),
        ("answers of the API", _counted(work.answers().elements())),
        ("writes of nodes that were checked", str(len(seen.writes))),
        ("locks taken from a dead or frozen conductor", str(sum(map(invariants.is_takeover, seen.writes)))),
        ("step runs, of which interrupted", _steps(seen)),
        (
            "processes started again",
            ", ".join(f"{c} x {n}" for n, c in sorted(Counter(site.revived).items())) or "none",
        ),
        ("the lines to the bus are", _counted(type(line).__name__ for line in site.wires.values())),
    ]


def _counted(what: Iterable[str]) -> str:
    return ", ".join(f"{count} x {name}" for name, count in sorted(Counter(what).items()))


def _steps(seen: Evidence) -> str:
    return f"{len(seen.attempts)}, {sum(row.state == 'interrupted' for row in seen.attempts)}"


_OF_NODES = ("id", "uuid", "name", "provision_state", "reservation", "flow", "request", "due_at")


def gather(
    site: Site, work: Workload, faults: list[tuple[float, float, Fault]], options: Mapping[str, Mapping[str, Any]]
) -> Evidence:
    """Collect what tenants, database and rack know in the end."""
    engine = sa.create_engine(site.url, poolclass=sa.NullPool)
    with engine.connect() as connection:

        def rows(table: sa.Table, *columns: str) -> list[models.Record]:
            selected = [table.c[name] for name in columns] or [table]
            return models.Record.all_of(connection.execute(sa.select(*selected).order_by(table.c.id)))

        return Evidence(
            requests=work.requests,
            complaints=work.complaints,
            nodes=rows(audit.NODES, *_OF_NODES),
            attempts=rows(models.table(models.StepRun)),
            writes=rows(audit.WRITES),
            signs=rows(audit.SIGNS),
            machines=site.control().machines(),
            plates=site.plates(),
            faults=faults,
            heartbeat_timeout=options["conductor"]["heartbeat_timeout"],
        )
