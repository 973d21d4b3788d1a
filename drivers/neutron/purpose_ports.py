"""Ports of Neutron that conductors create: one for each network card with which a machine boots the agent.

That a node may have some is noted in the node before the first is created, and forgotten when the last is gone:
whatever dies in between, they are found by the node's uuid, which they carry, and by what they say of themselves.
"""

import contextlib
import time
from collections.abc import Collection, Iterable, Iterator
from typing import Final

from oslo_log import log

from ingot.common import errors
from ingot.common.json_types import Json
from ingot.common.waits import Wait
from ingot.db import models
from ingot.drivers.interfaces import places, results
from ingot.drivers.interfaces.task import Task
from ingot.drivers.neutron import active_ports, bindings
from ingot.drivers.neutron.connection import OWNER, Neutron
from ingot.drivers.neutron.purposes import BY_NAME, Purpose

LOG = log.getLogger(__name__)

_ENTERED: Final = "neutron_networks"
"""Key of ``driver_internal_info``: the purposes for which there may be ports."""

_READY_AT = "ports_set_up_at"
"""Key of ``task.memory``: when the machine may boot."""


def list_entered(task: Task) -> list[Purpose]:
    """Return the purposes for which a node may have ports; Ironic has noted some of those that it left behind."""
    entered = set(task.node.driver_internal_info.get(_ENTERED, ()))
    entered |= {name for name, one in BY_NAME.items() if any(one.note in port.internal_info for port in task.ports)}
    return [one for name, one in BY_NAME.items() if name in entered]


def _note_entered(task: Task, entered: Collection[Purpose]) -> None:
    names, info = [name for name, one in BY_NAME.items() if one in entered], task.node.driver_internal_info
    if names != info.get(_ENTERED, []):
        left = {key: value for key, value in info.items() if key != _ENTERED}
        task.set(driver_internal_info={**left, _ENTERED: names} if names else left)


def list_connected(task: Task) -> dict[str, models.Port]:
    """Return the machine's ports that have one in Neutron on a network of the operator's, by that one's uuid."""
    noted = ((port.internal_info.get(one.note), port) for one in BY_NAME.values() for port in task.ports)
    return {ident: port for ident, port in noted if ident}


def enter(task: Task, neutron: Neutron, purpose: Purpose, needs_link: bool, is_strict: bool) -> results.Answer:
    """Connect the machine to a network: done when its ports are there, had the time to be set up, and are active.

    Ports that are there already stay, if they are as they would be made.

    :param needs_link: see :func:`bindings.find_lack`.
    :param is_strict: whether a port that Neutron has not bound is an error.
    :raises IngotError: a port cannot be had. Then none is left, unless Neutron does not answer.
    """
    if _READY_AT not in task.memory:
        network = neutron.find_network(*purpose.read_network(task))["id"]
        neutron.check_security_groups(*purpose.read_security_groups(task))
        expected = {port.uuid: _describe(task, purpose, port, network) for port in _choose_ports(task, needs_link)}
        _note_entered(task, {*list_entered(task), purpose})
        task.save()  # before there are ports
        with _leaving_after_failure(task, neutron, purpose):
            created = _create_ports(task, neutron, purpose, expected, is_strict)
        task.keep_port_notes(purpose.note, created)
        LOG.info("Node %s: on the %s network %s with ports %s", task.node.uuid, purpose.name, network, created)
        task.memory[_READY_AT] = time.time() + task.conf.neutron.port_setup_delay
    left = task.memory[_READY_AT] - time.time()
    if left > 0:
        return results.PollAfter(left, waits_for=Wait.PORTS, until=task.memory[_READY_AT])
    noted = [port.internal_info[purpose.note] for port in task.ports if purpose.note in port.internal_info]
    with _leaving_after_failure(task, neutron, purpose):
        waited = active_ports.wait(task, neutron, noted)
    if waited is results.DONE:
        del task.memory[_READY_AT]
    return waited


@contextlib.contextmanager
def _leaving_after_failure(task: Task, neutron: Neutron, purpose: Purpose) -> Iterator[None]:
    """Leave no port behind, except where the step is tried again because Neutron does not answer."""
    try:
        yield
    except errors.NetworkServiceUnavailable:
        raise
    except errors.IngotError:
        try:
            leave(task, neutron, purpose)
        except errors.IngotError as also:
            LOG.warning("Node %s: ports on the %s network may stay: %s", task.node.uuid, purpose.name, also.message)
        raise


def leave(task: Task, neutron: Neutron, purpose: Purpose) -> None:
    """Delete the ports that the machine has on a network, if there may be any."""
    entered = list_entered(task)
    if purpose not in entered:
        return
    noted = {port.internal_info[purpose.note] for port in task.ports if purpose.note in port.internal_info}
    found = {port["id"] for port in _list_ports(task, neutron, purpose)}
    for ident in sorted(noted | found):
        neutron.delete_port(ident)
    _note_entered(task, [one for one in entered if one != purpose])
    task.keep_port_notes(purpose.note, {})
    LOG.info("Node %s: off the %s network; deleted ports: %s", task.node.uuid, purpose.name, sorted(noted | found))


def _list_ports(task: Task, neutron: Neutron, purpose: Purpose) -> Iterator[Json]:
    for port in neutron.list_ports(device_id=task.node.uuid, device_owner=OWNER):
        if purpose.is_described(port["description"]):
            yield port


def _choose_ports(task: Task, needs_link: bool) -> list[models.Port]:
    """Return the ports that get one in Neutron; those that lack something are left out while there are others.

    :raises Invalid: there are none.
    """
    asked = task.ports if task.conf.neutron.add_all_ports else places.list_booting(task)
    return places.choose_ports(task, asked, lambda port: bindings.find_lack(port, needs_link), "connected")


def _describe(task: Task, purpose: Purpose, port: models.Port, network: str) -> Json:
    """Return what a port is created with: all in one request, so that there is never half a port."""
    _option, groups = purpose.read_security_groups(task)
    attributes: Json = {
        **bindings.describe(task, port),
        "network_id": network,
        "admin_state_up": True,
        "device_id": task.node.uuid,
        "device_owner": OWNER,
        "description": purpose.describe(task.conf),
    }
    if groups:
        attributes["security_groups"] = groups
    if not port.pxe_enabled:
        attributes["fixed_ips"] = []
    return attributes


def _create_ports(
    task: Task, neutron: Neutron, purpose: Purpose, expected: dict[str, Json], is_strict: bool
) -> dict[str, str]:
    """Return the ports of Neutron by those of the machine: found, or created."""
    there = list(_list_ports(task, neutron, purpose))
    kept = {port["mac_address"]: port for port in there if _fits(port, expected.values())}
    for port in there:
        if port not in kept.values():
            neutron.delete_port(port["id"])
    created: dict[str, str] = {}
    for uuid, attributes in expected.items():
        port = kept.get(attributes["mac_address"]) or _create_port(task, neutron, attributes)
        check_bound(port, attributes, is_strict)
        created[uuid] = port["id"]
    return created


def _fits(port: Json, expected: Iterable[Json]) -> bool:
    """Return whether a port is as one would be created, and was bound, as far as one can see."""
    compared = ("mac_address", "network_id", bindings.HOST, bindings.PROFILE)
    is_bound = port[bindings.VIF_TYPE] != "binding_failed"
    return is_bound and any(all(port[name] == one[name] for name in compared) for one in expected)


def _create_port(task: Task, neutron: Neutron, attributes: Json) -> Json:
    require_agent(neutron, attributes)
    port = neutron.create_port(attributes)
    count = task.conf.neutron.dhcpv6_stateful_address_count
    if count > 1 and port["fixed_ips"] and neutron.has_stateful_addresses(port):
        more = [{"subnet_id": port["fixed_ips"][0]["subnet_id"]}] * (count - 1)
        neutron.update_port(port["id"], {"fixed_ips": [*port["fixed_ips"], *more]})
    return port


def require_agent(neutron: Neutron, attributes: Json) -> None:
    """
    :param attributes: of :func:`bindings.describe`.
    :raises NetworkServiceUnavailable: the agent that switches a smart NIC does not run.
    """
    host = attributes[bindings.HOST]
    if attributes[bindings.TYPE] == bindings.SMART_NIC and not neutron.has_live_agent(host):
        reason = f"no agent of Neutron is alive on host {host}; a smart NIC runs its own"
        raise errors.NetworkServiceUnavailable(what=f"The port of the smart NIC of {host}", reason=reason)


def check_bound(port: Json, attributes: Json, is_strict: bool) -> None:
    """
    :param attributes: with which it was to be bound.
    :raises NetworkError: no mechanism driver has bound it, and that is an error.
    """
    if port[bindings.VIF_TYPE] != "binding_failed":
        return
    reason = (
        f"no mechanism driver has bound it (binding:vif_type is binding_failed): {bindings.TYPE} "
        f"{attributes[bindings.TYPE]}, {bindings.HOST} {attributes[bindings.HOST]}, {bindings.PROFILE} "
        f"{attributes[bindings.PROFILE]}. See the log of neutron-server, and [neutron] fail_on_port_binding_failure"
    )
    if is_strict or attributes[bindings.TYPE] == bindings.SMART_NIC:
        raise errors.NetworkError(what=f"Port {port['id']} on network {port['network_id']}", reason=reason)
    LOG.warning("Port %s on network %s: %s", port["id"], port["network_id"], reason)
