"""Create, read, update, delete of resources that are rows without a state machine: declared, not coded five times."""

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from oslo_utils import uuidutils

from ingot.api.web import call as calls
from ingot.api.web import collection, fields, operations, tables, versions
from ingot.api.web.call import Call, Reply
from ingot.api.web.operations import Operation, operation
from ingot.db import listing, models
from ingot.db.engine import Database

Record = models.Record


class Store(Protocol):
    """The query module of the resource in ``ingot.db``."""

    def create(self, db: Database, values: Mapping[str, Any], /) -> int: ...

    def update(self, db: Database, record: Record, values: Mapping[str, Any], /) -> None: ...

    def delete(self, db: Database, record: Record, /) -> None: ...


def _as_written(_call: Call, values: dict[str, Any], _record: Record | None) -> dict[str, Any]:
    return values


def _nothing(_call: Call, _record: Record, _changes: dict[str, Any]) -> None:
    """Most resources can be changed at any time."""


def _no_conditions(_call: Call) -> list[listing.Condition]:
    return []


class Crud:
    """The operations of a resource.

    :param store: its query module.
    :param ident: checks what stands for it in a URL.
    :param prepare: makes columns of written values (its third argument is the row that is changed, or None for a new
        one): what names other objects becomes their ids.
    :param refuse_update: raises when the changes are not allowed now.
    :param where: conditions of the list beside its declared filters.
    """

    def __init__(
        self,
        described: collection.Collection,
        store: Store,
        *,
        ident: Callable[[str, str], str] = fields.parse_ident,
        prepare: Callable[[Call, dict[str, Any], Record | None], dict[str, Any]] = _as_written,
        refuse_update: Callable[[Call, Record, dict[str, Any]], None] = _nothing,
        where: Callable[[Call], list[listing.Condition]] = _no_conditions,
    ) -> None:
        self._described = described
        self._store = store
        self._ident = ident
        self._prepare = prepare
        self._refuse_update = refuse_update
        self._where = where
        shown, created = (operations.Answer(status, described.one) for status in (200, 201))
        self.index: Operation = operation(*described.index_params, answer=described.page)(self._index)
        self.detail: Operation = operation(*described.detail_params, answer=described.page)(self._detail)
        self.show: Operation = operation(operations.FIELDS, answer=shown)(self._show)
        self.create: Operation = operation(body=described.table.creation, answer=created)(self._create)
        self.update: Operation = operation(body=tables.PATCH_BODY, answer=shown)(self._update)
        self.delete: Operation = operation(answer=operations.EMPTY_204)(self._delete)

    def read(self, call: Call, given: str, rule: str | None = None) -> Record:
        """The whole row that a URL means.

        :param rule: the rule of policy for what is done with it; the request's by default.
        :raises Invalid: nothing is called like that.
        :raises NotFound: there is none, or none that the request may see.
        :raises Forbidden: the request may not do this with it.
        """
        noun, ownership = self._described.source.noun, self._described.ownership
        record = listing.get(call.db, self._described.source, self._ident(noun.lower(), given))
        if ownership:
            call.access.require_seen(rule or call.rule, ownership.target(record), noun, given)
        self._described.complete(call, [record], self._described.table.select(versions.MAX))
        return record

    def target(self, call: Call, given: str) -> Record:
        """The whole row that a request is about to write to; see :meth:`read`.

        :raises PreconditionFailed: it is not as the client knows it.
        """
        record = self.read(call, given)
        if call.preconditions:
            call.preconditions.check(self._described.source.noun, record)
        return record

    def _index(self, call: Call) -> Reply:
        return collection.index(call, self._described, self._where(call))

    def _detail(self, call: Call) -> Reply:
        return collection.index(call, self._described, self._where(call), detail=True)

    def _shown(self, call: Call, record: Record) -> dict[str, Any]:
        return self._described.table.select(call.minor, call.query.get("fields")).render(record, call)

    def _show(self, call: Call, ident: str) -> Reply:
        record = self.read(call, ident)
        return Reply(self._shown(call, record), version=record.version)

    def _create(self, call: Call) -> Reply:
        values = self._prepare(call, collection.stored(self._described.table, call.body), None)
        values["uuid"] = values["uuid"] or uuidutils.generate_uuid()
        self._store.create(call.db, values)
        record = self.read(call, values["uuid"])
        path = f"{call.path.rstrip('/')}/{values['uuid']}"
        return calls.created(call, self._shown(call, record), path, record.version)

    def _update(self, call: Call, ident: str) -> Reply:
        uuid = calls.retry_if_changed(lambda: self._change(call, ident))
        record = self.read(call, uuid)
        return Reply(self._shown(call, record), version=record.version)

    def _change(self, call: Call, ident: str) -> str:
        record = self.target(call, ident)
        changes = collection.patched(call, self._described, record)
        self._refuse_update(call, record, changes)
        if changes:
            self._store.update(call.db, record, self._prepare(call, changes, record))
        return str(record.uuid)

    def _delete(self, call: Call, ident: str) -> Reply:
        calls.retry_if_changed(lambda: self._store.delete(call.db, self.target(call, ident)))
        return calls.NO_CONTENT
