"""Queries on ports and portgroups."""

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

import sqlalchemy as sa

from ingot.common import clock, errors, states, waits
from ingot.common.json_types import Json
from ingot.db import listing, models, nodes, outbox, rows
from ingot.db.engine import Database, retry_transaction
from ingot.db.models.base import AnyColumn

_PORTS = models.table(models.Port)
_PORTGROUPS = models.table(models.Portgroup)
_NETWORK = frozenset(("portgroup_id", "physical_network"))

_OF_NODE = sa.select(_PORTS).where(_PORTS.c.node_id == sa.bindparam("own_id")).order_by(_PORTS.c.id)


class PortgroupOfNode(models.Portgroup, nodes.OfNode):
    """A portgroup, with what is shown of its node."""

    node_shard: str | None
    node_conductor_group: str


class PortOfNode(models.Port, nodes.OfNode):
    """A port, with what is shown of its node and portgroup."""

    node_shard: str | None
    node_conductor_group: str
    portgroup_uuid: str | None


AnyOfNode = TypeVar("AnyOfNode", bound=nodes.OfNode)
AnyConnected = TypeVar("AnyConnected", PortOfNode, PortgroupOfNode)


def node_columns(table: sa.Table, *names: str) -> dict[str, AnyColumn]:
    """Return columns of the node, as ``node_<name>``, for a table whose rows belong to nodes."""
    own = nodes.NODES.c.id == table.c.node_id
    return {f"node_{name}": sa.select(nodes.NODES.c[name]).where(own).scalar_subquery() for name in names}


def node_is_free(node_id: sa.ColumnElement[int]) -> sa.ColumnElement[bool]:
    """Return the condition that the node with an id is not locked."""
    return sa.exists().where(nodes.NODES.c.id == node_id, nodes.NODES.c.reservation.is_(None))


def refuse_locked(db: Database, owned: nodes.OfNode) -> None:
    """Refuse a change of what belongs to a locked node.

    :param owned: what belongs to a node; needs node_uuid.
    :raises NodeLocked: a conductor works on its node.
    """
    error = nodes.refused_write_error(db, owned.node_uuid)
    if isinstance(error, errors.NodeLocked):
        raise error


class _RowsOfNode(rows.Rows[AnyOfNode]):
    """Rows that are changed and deleted only while their node is not locked. Each write leaves an event of the node."""

    @retry_transaction
    def create(self, db: Database, values: Mapping[str, object]) -> int:
        """Add a row; see :meth:`rows.Rows.insert`."""
        with db.transaction() as connection:
            return self._insert(connection, values)

    def _insert(self, connection: sa.Connection, values: Mapping[str, object]) -> int:
        made = self.insert(connection, values)
        self._tell(connection, values["node_id"])
        return made

    def _tell(self, connection: sa.Connection, *node_ids: Any) -> None:
        """Leave an event of these nodes; of one that is named twice, one."""
        outbox.add_of_nodes(connection, set(node_ids), self.source.table.name)

    @retry_transaction
    def update(self, db: Database, row: AnyOfNode, values: Mapping[str, object]) -> None:
        """Change a row; see :meth:`rows.Rows.write`.

        :raises NodeLocked: a conductor works on the node.
        """
        with _explain_lock(db, row), db.transaction() as connection:
            self._change(connection, row, values)

    def _change(self, connection: sa.Connection, row: AnyOfNode, values: Mapping[str, object]) -> None:
        self.write(connection, row, values, node_is_free(self.source.table.c.node_id))
        before = vars(row)["node_id"]
        self._tell(connection, before, values.get("node_id", before))

    @retry_transaction
    def delete(self, db: Database, row: AnyOfNode) -> None:
        """Remove a row; see :meth:`rows.Rows.remove`.

        :raises NodeLocked: a conductor works on the node.
        """
        with db.transaction() as connection:
            gone = self.remove(connection, row, node_is_free(self.source.table.c.node_id))
            if gone:
                self._tell(connection, vars(row)["node_id"])
        if not gone:
            refuse_locked(db, row)


@contextlib.contextmanager
def _explain_lock(db: Database, row: nodes.OfNode) -> Iterator[None]:
    try:
        yield
    except errors.ChangedMeanwhile:
        refuse_locked(db, row)
        raise


class Ports(_RowsOfNode[PortOfNode]):
    @retry_transaction
    def create(self, db: Database, values: Mapping[str, object]) -> int:
        """Add a port; see :meth:`rows.Rows.insert`.

        :raises Conflict: the ports of its portgroup are on another physical network.
        """
        with db.transaction() as connection:
            if values.get("portgroup_id") is not None:
                _refuse_another_network(connection, values)
            return self._insert(connection, values)

    @retry_transaction
    def update(self, db: Database, row: PortOfNode, values: Mapping[str, object]) -> None:
        """Change a port; see :meth:`rows.Rows.write`.

        :raises NodeLocked: a conductor works on the node.
        :raises Conflict: the ports of its portgroup are on another physical network.
        """
        after = {**vars(row), **values}
        moves = after["portgroup_id"] is not None and not _NETWORK.isdisjoint(values)
        with _explain_lock(db, row), db.transaction() as connection:
            if moves:
                _refuse_another_network(connection, after)
            self._change(connection, row, values)

    def list_of_node(self, db: Database, node_id: int) -> list[models.Port]:
        """Return a node's ports in order of creation."""
        return db.read_all(models.Port, _OF_NODE, own_id=node_id)


_SHOWN = ("uuid", "owner", "lessee", "shard", "conductor_group")
_OWN_PORTGROUP = sa.select(_PORTGROUPS.c.uuid).where(_PORTGROUPS.c.id == _PORTS.c.portgroup_id)

PORTGROUPS = _RowsOfNode(
    listing.Source("Portgroup", PortgroupOfNode, node_columns(_PORTGROUPS, *_SHOWN)), "ports. Take them out"
)
PORTS = Ports(
    listing.Source(
        "Port",
        PortOfNode,
        {**node_columns(_PORTS, *_SHOWN), "portgroup_uuid": _OWN_PORTGROUP.scalar_subquery()},
    )
)


def _refuse_another_network(connection: sa.Connection, port: Mapping[str, object]) -> None:
    """Refuse a port in a portgroup on another physical network.

    :param port: what its row will be.
    :raises Conflict: another port of its portgroup is on another physical network, or on none where this is on one.
    """
    # Of two ports that join at once the second waits here for the first; on two nodes of a Galera cluster it fails and
    # is tried again, because both write this.
    own = _PORTGROUPS.c.id == port["portgroup_id"]
    unchanged = {"updated_at": _PORTGROUPS.c.updated_at}  # for clients the portgroup has not changed
    connection.execute(sa.update(_PORTGROUPS).where(own).values(joined=_PORTGROUPS.c.joined + 1, **unchanged))
    others = sa.select(_PORTS.c.physical_network).where(
        _PORTS.c.portgroup_id == port["portgroup_id"], _PORTS.c.id != port.get("id", 0)
    )
    for network in connection.execute(others.distinct()).scalars():
        if network != port.get("physical_network"):
            uuid = connection.execute(sa.select(_PORTGROUPS.c.uuid).where(own)).scalar()
            raise errors.Conflict(
                reason=f"Invalid physical_network: {port.get('physical_network')!r}. The ports of a portgroup are on "
                f"one physical network; those of portgroup {uuid} have {network!r}."
            )


def refuse_taken(db: Database, row: PortOfNode | PortgroupOfNode, address: str) -> None:
    """
    :param row: which is about to get an address.
    :raises Duplicate: another one has it.
    """
    rows_of = PORTS if isinstance(row, PortOfNode) else PORTGROUPS
    table = rows_of.source.table
    if db.read_column(sa.select(table.c.id).where(table.c.address == address, table.c.id != row.id)):
        raise errors.Duplicate(noun=rows_of.source.noun.lower(), field="MAC address", value=address)


def list_portgroups_of_node(db: Database, node_id: int) -> list[models.Portgroup]:
    """Return a node's portgroups in order of creation."""
    own = sa.select(_PORTGROUPS).where(_PORTGROUPS.c.node_id == node_id)
    return db.read_all(models.Portgroup, own.order_by(_PORTGROUPS.c.id))


_MOMENT = sa.bindparam("moment", type_=nodes.NODES.c.due_at.type)
_CHECK = (
    sa.update(nodes.NODES)
    .where(nodes.NODES.c.id == sa.bindparam("own_id"), nodes.NODES.c.step_state == states.StepState.POLLING)
    .where(nodes.NODES.c.due_at > _MOMENT)
    .values(due_at=_MOMENT, updated_at=nodes.NODES.c.updated_at)
)
_WOKEN = ("id", "uuid", "driver", "conductor_group", "step_state", "step_memory")


def request_check(db: Database, address: str, ident: str) -> models.Node | None:
    """Make a node due whose step waits until Neutron has connected ports, because Neutron tells of one of them.

    :param address: MAC address of the port in Neutron.
    :param ident: its uuid.
    :returns: the node, whose conductor must be woken up; None: nothing waits for this port.
    """
    found = _find_by_address(db, address)
    if found is None or ident not in found.internal_info.values():
        return None
    own = sa.select(*models.columns(nodes.NODES, _WOKEN)).where(nodes.NODES.c.id == found.node_id)
    node = db.read_first(models.Node, own)
    if node is None or node.step_memory.get(waits.OWN_MEMORY, {}).get("waits_for") != waits.Wait.PORTS:
        return None
    return node if db.write(_CHECK, own_id=node.id, moment=clock.now()) == 1 else None


def _find_by_address(db: Database, address: str) -> models.Port | models.Portgroup | None:
    port = db.read_first(models.Port, sa.select(_PORTS).where(_PORTS.c.address == address))
    return port or db.read_first(models.Portgroup, sa.select(_PORTGROUPS).where(_PORTGROUPS.c.address == address))


def build_notes(node_id: int, key: str, notes: Mapping[str, str]) -> nodes.ExtraWrite:
    """Return the write of a note on the ports and portgroups of a node: a key of their ``internal_info``.

    :param notes: the values by uuid; the others lose the note.
    """

    def write(connection: sa.Connection) -> None:
        for table in (_PORTS, _PORTGROUPS):
            own = sa.select(table.c.id, table.c.uuid, table.c.internal_info).where(table.c.node_id == node_id)
            for row in connection.execute(own).all():
                if row.internal_info.get(key) != notes.get(row.uuid):
                    info = change_note(row.internal_info, key, notes.get(row.uuid))
                    connection.execute(sa.update(table).where(table.c.id == row.id).values(internal_info=info))

    return write


def change_note(info: Json, key: str, value: str | None) -> Json:
    """Return ``internal_info`` with another note; without it if it is None."""
    left = {name: one for name, one in info.items() if name != key}
    return left if value is None else {**left, key: value}


def find_booting_node(db: Database, address: str) -> models.Node | None:
    """Return the node whose machine asks with a MAC address what to boot: id, uuid, boot_config, boot_address."""
    statement = (
        sa.select(*models.columns(nodes.NODES, ("id", "uuid", "boot_config", "boot_address")))
        .join(_PORTS, _PORTS.c.node_id == nodes.NODES.c.id)
        .where(_PORTS.c.address == address, _PORTS.c.pxe_enabled.is_(True))
    )
    return db.read_first(models.Node, statement)
