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
    *("provision_state", "flow", "driver", "conductor_group", "agent_token"),
)
_HEARTBEAT = ("id", "uuid", "driver", "conductor_group", "provision_state", "agent_token")


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


def issue_token(db: Database, node: models.Node) -> str | None:
    """Write and return a new token for the agent of a node; None when an agent has shown the one that there is.

    Until the first heartbeat it is not known whether an agent has got it: the answer may have been lost, or the agent
    restarted. An agent that asks again gets another one, and the one before is invalid.

    :param node: as :func:`look_up` read it; the token that it shows decides between two agents that ask at once.
    """
    token = secrets.token_urlsafe(32)
    fresh = {"agent_token": token, "updated_at": _NODES.c.updated_at}
    same = _NODES.c.agent_token.is_not_distinct_from(node.agent_token)
    own = sa.update(_NODES).where(_NODES.c.id == node.id, _NODES.c.agent_url.is_(None), same)
    return token if db.write(own.values(fresh)) == 1 else None


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
    :returns: False if nothing was written: the agent was given up meanwhile, or the node was deleted.
    """
    # The agent may have been forgotten since its token was checked: it must not come back by a late heartbeat.
    same_agent = sa.and_(_NODES.c.id == node.id, _NODES.c.agent_token == node.agent_token)
    moment = clock.now()
    # The database decides, not what was read: the wait may have begun, or ended, since.
    waits = _NODES.c.provision_state.in_(sorted(states.WAITING))
    heartbeat = {
        **values,
        "agent_last_heartbeat": moment,
        "updated_at": _NODES.c.updated_at,
        "due_at": sa.case((waits, moment), else_=_NODES.c.due_at),
    }
    return db.write(sa.update(_NODES).where(same_agent).values(heartbeat)) == 1


def record_inspection(db: Database, node: models.Node) -> None:
    """Write that the agent of a machine has reported its inventory, which is a heartbeat, without any lock.

    :param node: needs id.
    """
    moment = clock.now()
    heartbeat = {"agent_last_heartbeat": moment, "due_at": moment, "updated_at": _NODES.c.updated_at}
    db.write(sa.update(_NODES).where(_NODES.c.id == node.id, _NODES.c.flow.is_not(None)).values(heartbeat))
