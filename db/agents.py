"""Queries for agents: lookup and heartbeat, the most frequent requests of all, on narrow sets of columns."""

import secrets
from collections.abc import Collection, Mapping

import sqlalchemy as sa

from ingot.common import clock, states
from ingot.db import models, nodes
from ingot.db.engine import Database

_NODES = nodes.NODES
_PORTS = models.table(models.Port)

_LOOKED_UP = (
    *("id", "uuid", "revision", "properties", "instance_info", "driver_internal_info", "target_raid_config"),
    *("provision_state", "flow", "driver", "conductor_group"),
    *("agent_token", "agent_token_at", "agent_address", "agent_url"),
)
_HEARTBEAT = (
    *("id", "uuid", "driver", "conductor_group", "provision_state"),
    *("agent_token", "agent_url", "agent_verify_ca"),
)


def look_up(db: Database, node_uuid: str | None, addresses: Collection[str]) -> models.Node | None:
    """Return the node of a uuid, or the one that has a port with one of the MAC addresses.

    :returns: None if there is none, or if the addresses belong to several nodes.
    """
    statement = sa.select(*models.columns(_NODES, _LOOKED_UP))
    if node_uuid is not None:
        statement = statement.where(_NODES.c.uuid == node_uuid)
    else:
        owners = sa.select(_PORTS.c.node_id).where(_PORTS.c.address.in_(addresses))
        statement = statement.where(_NODES.c.id.in_(owners))
    found = db.read_all(models.Node, statement)
    return found[0] if len(found) == 1 else None


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
        fresh = {"agent_token": token, "agent_token_at": moment, "agent_address": address}
        own = sa.update(_NODES).where(_NODES.c.id == node.id, _NODES.c.agent_token.is_(None))
        if db.write(own.values(**fresh, updated_at=_NODES.c.updated_at)) == 1:
            return token
        node = look_up(db, node.uuid, ()) or node  # another request was faster: it may be the same agent's
    issued_at = node.agent_token_at
    is_same = bool(address) and node.agent_address == address
    if node.agent_url is not None or not is_same or issued_at is None:
        return None
    return node.agent_token if issued_at > clock.after(-lifetime) else None


def request_check(db: Database, node: models.Node) -> bool:
    """Make a node due whose step waits for an agent, because another agent has looked it up.

    The one it waits for may be gone. Lookup needs no authentication, and all that follows is that the conductor asks
    the agent that it knows, not again before it has done so.

    :returns: whether there is something to ask.
    """
    moment = clock.now()
    watched = (_NODES.c.id == node.id, _NODES.c.step_state == states.StepState.WATCHING, _NODES.c.due_at > moment)
    return db.write(sa.update(_NODES).where(*watched).values(due_at=moment, updated_at=_NODES.c.updated_at)) == 1


def read_for_heartbeat(db: Database, ident: str) -> models.Node:
    """Return what checking a heartbeat needs of a node.

    :raises NotFound: there is no such node.
    """
    return nodes.get(db, ident, _HEARTBEAT)


def record_heartbeat(db: Database, node: models.Node, values: Mapping[str, object]) -> bool:
    """Write a checked heartbeat without any lock.

    A node that waits for its agent becomes due in the same statement, so that the sweep finds it even if the wake-up of
    its conductor is lost.

    :param values: agent_url, agent_version, agent_verify_ca, agent_status.
    :param node: as :func:`read_for_heartbeat` read it; its token is what the agent has shown.
    :returns: False if nothing was written: the agent was given up meanwhile, the node was deleted, or another agent of
        this boot was faster.
    """
    # The agent may have been forgotten since its token was checked: it must not come back by a late heartbeat.
    same_boot = sa.and_(_NODES.c.id == node.id, _NODES.c.agent_token == node.agent_token)
    # Nor may one of two agents that show the token take the place of the other.
    same_url, same_certificate = (
        _NODES.c[name].is_not_distinct_from(values.get(name)) for name in ("agent_url", "agent_verify_ca")
    )
    same_agent = sa.or_(_NODES.c.agent_url.is_(None), sa.and_(same_url, same_certificate))
    moment = clock.now()
    # The database decides, not what was read: the wait may have begun, or ended, since.
    waits = _NODES.c.provision_state.in_(sorted(states.WAITING))
    heartbeat = {
        **values,
        "agent_last_heartbeat": moment,
        "updated_at": _NODES.c.updated_at,
        "due_at": sa.case((waits, moment), else_=_NODES.c.due_at),
    }
    return db.write(sa.update(_NODES).where(same_boot, same_agent).values(heartbeat)) == 1


def record_inspection(db: Database, node: models.Node) -> None:
    """Write that the agent of a machine has reported its inventory, which is a heartbeat, without any lock.

    :param node: needs id.
    """
    moment = clock.now()
    heartbeat = {"agent_last_heartbeat": moment, "due_at": moment, "updated_at": _NODES.c.updated_at}
    db.write(sa.update(_NODES).where(_NODES.c.id == node.id, _NODES.c.flow.is_not(None)).values(heartbeat))
