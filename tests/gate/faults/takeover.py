"""A conductor is killed that deploys all machines: how soon do the others go on with them?"""

import signal
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

from oslo_utils import uuidutils

from ingot.common import states
from ingot.common.conf import opts
from ingot.db import conductors
from ingot.rpcapi import client
from tests.gate.faults.invariants import Evidence
from tests.gate.faults.site import Site
from tests.gate.faults.workload import Workload

STAMP_S = 60.0
"""How long one step of each deployment takes: all of them have begun before the first one ends."""

_FIELDS = ("uuid", "provision_state", "reservation", "conductor", "deploy_step")


class Killed(NamedTuple):
    """Who was killed and when, in seconds since the epoch, and the nodes as the API showed them just before."""

    conductor: str
    at: float
    nodes: list[dict[str, Any]]


def play(site: Site, work: Workload) -> Killed:
    """Let one conductor deploy all machines, kill it for good, and wait until all has ended."""
    victim = site.lab.names[0]
    for tenant, uuid in zip(work.tenants, _owned_by(victim, site.lab.names), strict=False):
        tenant.uuid = uuid
    work.start()
    nodes = _once_all_run(site, work)
    site.dead.add(victim)
    site.processes[victim].stop(signal.SIGKILL)
    killed = Killed(victim, time.time(), nodes)
    work.wait()
    return killed


def _owned_by(victim: str, names: list[str]) -> Iterator[str]:
    """Yield the uuids of a conductor's nodes."""
    exponent = opts.load([], prog="ingot-tests", files=[]).hash_partition_exponent
    members = [conductors.RingMember(name, "", "ipmi") for name in names]
    rings = client.Rings(lambda: members, time.monotonic, float("inf"), exponent)
    while True:
        if rings.owner(uuid := uuidutils.generate_uuid(), "", "ipmi") == victim:
            yield uuid


def _once_all_run(site: Site, work: Workload) -> list[dict[str, Any]]:
    """Return the nodes once all deployments have begun or a tenant has given up."""
    while True:
        nodes: list[dict[str, Any]] = site.lab.user.get(f"/v1/nodes?fields={','.join(_FIELDS)}")["nodes"]
        run = [node for node in nodes if _runs(node)]
        if len(run) == len(work.tenants) or not all(tenant.is_alive() for tenant in work.tenants):
            return nodes
        time.sleep(0.5)


def _runs(node: dict[str, Any]) -> bool:
    return node["provision_state"] in (states.DEPLOYING, states.DEPLOYWAIT)


def all_ran_and_were_taken_over(killed: Killed, seen: Evidence) -> Iterator[str]:
    """Yield which deployments did not run or were not taken over; with any, the run proves nothing."""
    resumed = _resumed(killed, seen)
    for node in killed.nodes:
        if not _runs(node) or node["conductor"] != killed.conductor:
            yield f"node {node['uuid']} was {node['provision_state']} with {node['conductor']} when that was killed"
        elif node["uuid"] not in resumed:
            yield f"node {node['uuid']} was touched by no conductor after {killed.conductor} was killed"


def facts(killed: Killed, seen: Evidence) -> list[tuple[str, str]]:
    """Return facts about how it went."""
    resumed = sorted(_resumed(killed, seen).values())
    ends = [request.ended_at - killed.at for request in seen.requests if request.verb == "active" and request.went_well]
    if not (resumed and ends):
        return [("deployments that others went on with", str(len(resumed)))]
    where = Counter(f"{node['deploy_step'].get('step')} ({node['provision_state']})" for node in killed.nodes)
    return [
        ("deployments when it was killed", ", ".join(f"{count} in {step}" for step, count in sorted(where.items()))),
        ("of them locked", str(sum(node["reservation"] is not None for node in killed.nodes))),
        ("seconds from the kill to the first resumed step", f"{resumed[0]:.1f}"),
        ("to the middle one", f"{resumed[len(resumed) // 2]:.1f}"),
        ("to the last one", f"{resumed[-1]:.1f}"),
        ("to the last active machine", f"{max(ends):.1f}"),
    ]


def _resumed(killed: Killed, seen: Evidence) -> dict[str, float]:
    """Return, by node, the seconds after which a survivor first took its lock."""
    uuids = {node.id: node.uuid for node in seen.nodes}
    resumed: dict[str, float] = {}
    for write in seen.writes:
        if write.at > killed.at and write.new_reservation == write.account != killed.conductor:
            resumed.setdefault(uuids[write.node_id], write.at - killed.at)
    return resumed
