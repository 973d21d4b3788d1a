"""Queries for agents: lookup and heartbeat, the most frequent requests of all, on narrow sets of columns."""

import datetime
import secrets
from collections.abc import Collection, Mapping

import sqlalchemy as sa

from ingot.common import clock, states, waits
from ingot.db import models, nodes, outbox
from ingot.db.engine import Database

_NODES = nodes.NODES
_PORTS = models.table(models.Port)

_WAIT = (
    *("reservation", "due_at", "agent_last_heartbeat"),
    *("step_state", "step_started_at", "provision_updated_at"),
)
_LOOKED_UP = (
    *("id", "uuid", "revision", "properties", "instance_info", "driver_internal_info", "target_raid_config"),
    *("provision_state", "flow", "driver", "conductor_group"),
    *("agent_token", "agent_token_at", "agent_address", "agent_url", *_WAIT),
)
_SENT = ("agent_url", "agent_version", "agent_verify_ca", "agent_status")
_HEARTBEAT = ("id", "uuid", "driver", "conductor_group", "provision_state", "flow", "agent_token", *_SENT, *_WAIT)

_FOR_LOOKUP = sa.select(*models.columns(_NODES, _LOOKED_UP))
_BY_UUID = _FOR_LOOKUP.where(_NODES.c.uuid == sa.bindparam("node_uuid"))
_BY_ADDRESSES = _FOR_LOOKUP.where(
    _NODES.c.id.in_(sa.select(_PORTS.c.node_id).where(_PORTS.c.address.in_(sa.bindparam("addresses", expanding=True))))
)


def look_up(db: Database, node_uuid: str | None, addresses: Collection[str]) -> models.Node | None:
    """Return the node of a uuid, or the one that has a port with one of the MAC addresses.

    :returns: None if there is none, or if the addresses belong to several nodes.
    """
    if node_uuid is not None:
        found = db.read_all(models.Node, _BY_UUID, node_uuid=node_uuid)
    else:
        found = db.read_all(models.Node, _BY_ADDRESSES, addresses=[*addresses])
    return found[0] if len(found) == 1 else None


def look_up_by_bmc(db: Database, addresses: Collection[str]) -> models.Node | None:
    """Return the node that has one of the addresses for its BMC and is inspected by an agent that Ingot did not boot.

    :returns: None if there is none, or if several have.
    """
    found = [
        node.uuid
        for node in db.read_all(models.Node, _BOOTED_BY_OTHERS)
        if any(address in _list_bmcs(node) for address in addresses)
    ]
    return look_up(db, found[0], ()) if len(found) == 1 else None


def _list_bmcs(node: models.Node) -> list[str]:
    known = node.driver_internal_info.get(BMC_ADDRESSES)
    return known if isinstance(known, list) else []


BMC_ADDRESSES = "inspected_bmc_addresses"
"""Key of ``driver_internal_info``: addresses of the BMC, while an agent inspects that Ingot did not boot."""

_BOOTED_BY_OTHERS = sa.select(_NODES.c.uuid, _NODES.c.driver_internal_info).where(
    _NODES.c.provision_state.in_((states.INSPECTING, states.INSPECTWAIT)),
    # Mostly there is none, and anyone may ask.
    sa.type_coerce(_NODES.c.driver_internal_info, sa.Text).like(f"%{BMC_ADDRESSES}%"),
)


def issue_token(db: Database, node: models.Node, address: str, lifetime: float) -> str | None:
    """Return the token for the agent of a node; None if it is not for the client that asks.

    A boot has one token, and the first client that asks gets it. That answer may have been lost: the same network
    address gets the token again, for a while, until an agent has shown it in a heartbeat.

    :param node: as :func:`look_up` read it.
    :param address: network address of the client; an empty one is no client's, and not the same as another.
    :param lifetime: seconds for which the token is given out again.
    """
    if node.agent_token is None:
        token, moment = secrets.token_urlsafe(32), clock.now()
        own = {"node_id": node.id, "moment": moment, "new_token": token, "new_address": address}
        events = nodes.as_appended([outbox.build_boot_event("node looked up")])
        if db.write(_ISSUED, has_events=True, **own, **events) == 1:
            return token
        node = look_up(db, node.uuid, ()) or node  # another request was faster: it may be the same agent's
    issued_at = node.agent_token_at
    is_same = bool(address) and node.agent_address == address
    if node.agent_url is not None or not is_same or issued_at is None:
        return None
    return node.agent_token if issued_at > clock.after(-lifetime) else None


_MOMENT = sa.bindparam("moment", type_=_NODES.c.due_at.type)
_KEPT = {"updated_at": _NODES.c.updated_at}
_OWN = _NODES.c.id == sa.bindparam("node_id")

_ISSUED = (
    sa.update(_NODES)
    .where(_OWN, _NODES.c.agent_token.is_(None))
    .values(agent_token=sa.bindparam("new_token"), agent_token_at=_MOMENT, agent_address=sa.bindparam("new_address"))
    .values({**_KEPT, **nodes.APPENDED})
)


def request_check(db: Database, node: models.Node) -> bool:
    """Make a node due whose step waits for an agent, because another agent has looked it up.

    The one it waits for may be gone. Lookup needs no authentication, and all that follows is that the conductor asks
    the agent that it knows, not again before it has done so.

    :param node: as :func:`look_up` read it.
    :returns: whether the conductor must be woken up for it.
    """
    moment = clock.now()
    if node.step_state != states.StepState.WATCHING or node.due_at is None or node.due_at <= moment:
        return False
    return db.write(_CHECK, node_id=node.id, moment=moment) == 1 and not _comes_back(node, moment)


_CHECK = (
    sa.update(_NODES)
    .where(_OWN, _NODES.c.step_state == states.StepState.WATCHING, _NODES.c.due_at > _MOMENT)
    .values(due_at=_MOMENT, **_KEPT)
)


def _comes_back(node: models.Node, moment: datetime.datetime) -> bool:
    """Return whether the node's conductor asks the agent in a moment anyway, if the node is due then.

    It has just done so, and will again when the pause is over. Where the clocks of two hosts
    differ, a wake-up that was needed may be left out: then the sweep finds the node.
    """
    asked, began = node.provision_updated_at, node.step_started_at
    if node.reservation is not None or node.step_state != states.StepState.WATCHING or asked is None or began is None:
        return False
    return 0 <= (moment - asked).total_seconds() < waits.pause_after_question(began, asked)


def read_for_heartbeat(db: Database, ident: str) -> models.Node:
    """Return what checking a heartbeat needs of a node.

    :raises NotFound: there is no such node.
    """
    return nodes.get(db, ident, _HEARTBEAT)


def is_repeated(node: models.Node, values: Mapping[str, object]) -> bool:
    """Return whether a checked heartbeat says nothing that the one before has not said a moment ago.

    That one is still to be answered: no conductor has locked the node since, and the next that does asks the agent.

    :param node: as :func:`read_for_heartbeat` read it.
    :param values: as those of :func:`record_heartbeat`.
    """
    last = node.agent_last_heartbeat
    if last is None or node.reservation is not None or node.due_at != last:
        return False
    if any(values.get(name) != getattr(node, name) for name in _SENT):
        return False
    return 0 <= (clock.now() - last).total_seconds() < waits.LONGEST_PAUSE_S


def record_heartbeat(db: Database, node: models.Node, values: Mapping[str, object]) -> bool:
    """Write a checked heartbeat without any lock.

    A node that waits for its agent becomes due in the same statement, so that the sweep finds it even if the wake-up of
    its conductor is lost.

    :param values: agent_url, agent_version, agent_verify_ca, agent_status.
    :param node: as :func:`read_for_heartbeat` read it; its token is what the agent has shown.
    :returns: False if nothing was written: the agent was given up meanwhile, the node was deleted, or another agent of
        this boot was faster.
    """
    sent = {f"new_{name}": values.get(name) for name in _SENT}
    is_first = node.agent_url is None
    events = nodes.as_appended([outbox.build_boot_event("heartbeat")] if is_first else [])
    own = {"node_id": node.id, "shown": node.agent_token, "moment": clock.now()}
    return db.write(_HEARD_FIRST if is_first else _HEARD, is_first, **own, **sent, **events) == 1


def _build_heard() -> sa.Update:
    sent = {name: sa.bindparam(f"new_{name}", type_=_NODES.c[name].type) for name in _SENT}
    # The agent may have been forgotten since its token was checked: it must not come back by a late heartbeat.
    same_boot = sa.and_(_OWN, _NODES.c.agent_token == sa.bindparam("shown"))
    # Nor may one of two agents that show the token take the place of the other.
    same = (_NODES.c[name].is_not_distinct_from(sent[name]) for name in ("agent_url", "agent_verify_ca"))
    same_agent = sa.or_(_NODES.c.agent_url.is_(None), sa.and_(*same))
    # The database decides, not what was read: the wait may have begun, or ended, since.
    is_waiting = _NODES.c.provision_state.in_(sorted(states.WAITING))
    heartbeat = {
        **sent,
        **_KEPT,
        "agent_last_heartbeat": _MOMENT,
        "due_at": sa.case((is_waiting, _MOMENT), else_=_NODES.c.due_at),
    }
    return sa.update(_NODES).where(same_boot, same_agent).values(heartbeat)


_HEARD = _build_heard()
_HEARD_FIRST = _HEARD.values(nodes.APPENDED)


def needs_wakeup(node: models.Node) -> bool:
    """Return whether the conductor must be woken up for a heartbeat that was recorded.

    A conductor that has the node's lock may be about to wait for this heartbeat: it cannot know that it came.

    :param node: as :func:`read_for_heartbeat` read it, before the heartbeat.
    """
    if node.provision_state in states.WAITING:
        return not _comes_back(node, clock.now())
    return node.flow is not None and node.reservation is not None


def record_inspection(db: Database, node: models.Node) -> None:
    """Write that the agent of a machine has reported its inventory, which is a heartbeat, without any lock.

    :param node: needs id.
    """
    db.write(_INSPECTED, node_id=node.id, moment=clock.now())


_INSPECTED = (
    sa.update(_NODES)
    .where(_OWN, _NODES.c.flow.is_not(None))
    .values(agent_last_heartbeat=_MOMENT, due_at=_MOMENT, **_KEPT)
)
