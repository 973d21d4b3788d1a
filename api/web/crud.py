"""Create, read, update, delete of resources that are rows without a state machine: declared, not coded five times."""

from collections.abc import Callable, Mapping
from typing import Generic, Protocol, TypeVar

from oslo_utils import uuidutils

from ingot.api.web import call as calls
from ingot.api.web import collection, fields, operations, tables, versions
from ingot.api.web.call import Call, Reply
from ingot.api.web.operations import Operation, operation
from ingot.common.json_types import Json
from ingot.db import listing, models
from ingot.db.engine import Database
from ingot.db.rows import AnyRow

_NOUNS = {
    **{"Allocation": "allocation", "Chassis": "chassis", "Deploy template": "deploytemplate", "Port": "port"},
    **{"Portgroup": "portgroup", "Rule": "inspectionrule", "Runbook": "runbook"},
    **{"Volume connector": "volumeconnector", "Volume target": "volumetarget"},
}
"""What notifications call the resources that they tell of, by noun."""

_Row = TypeVar("_Row", bound=models.Row, contravariant=True)


class Store(Protocol[_Row]):
    """The query module of the resource in ``ingot.db``."""

    def create(self, db: Database, values: Mapping[str, object], /) -> int: ...

    def update(self, db: Database, record: _Row, values: Mapping[str, object], /) -> None: ...

    def delete(self, db: Database, record: _Row, /) -> None: ...


class Crud(Generic[AnyRow]):
    """The operations of a resource.

    :param store: its query module.
    :param ident: checks what stands for it in a URL.
    :param prepare: makes columns of written values (its third argument is the row that is changed, or None for a new
        one): what names other objects becomes their ids.
    :param refuse_update: raises when the changes are not allowed now, and
    :param refuse_delete: when the row must stay.
    :param where: conditions of the list beside its declared filters.
    """

    def __init__(
        self,
        described: collection.Collection[AnyRow],
        store: Store[AnyRow],
        *,
        ident: Callable[[str, str], str] = fields.parse_ident,
        prepare: Callable[[Call, Json, AnyRow | None], Json] = lambda _call, values, _row: values,
        refuse_update: Callable[[Call, AnyRow, Json], None] = lambda *_any_time: None,
        refuse_delete: Callable[[Call, AnyRow], None] = lambda *_any_time: None,
        where: Callable[[Call], list[listing.Condition]] = lambda _call: [],
    ) -> None:
        self._described = described
        self._store = store
        self._ident = ident
        self._noun = _NOUNS.get(described.source.noun)
        self._prepare = prepare
        self._refuse_update = refuse_update
        self._refuse_delete = refuse_delete
        shown, created = (operations.Answer(status, described.one) for status in (200, 201))
        self.index: Operation = collection.build_list(described, where)
        self.detail: Operation = collection.build_list(described, where, detail=True)
        self.show: Operation = operation(operations.FIELDS, answer=shown)(self._show)
        self.create: Operation = operation(body=described.table.creation, answer=created)(self._create)
        self.update: Operation = operation(body=tables.PATCH_BODY, answer=shown)(self._update)
        self.delete: Operation = operation(answer=operations.EMPTY_204)(self._delete)

    def read(self, call: Call, given: str) -> AnyRow:
        """Return the whole row that a URL names.

        :raises Invalid: no object can have this name.
        :raises NotFound: there is none, or none that the request may see.
        :raises Forbidden: the request may not do this with it.
        """
        noun, ownership = self._described.source.noun, self._described.ownership
        record = listing.get(call.db, self._described.source, self._ident(noun.lower(), given))
        if ownership:
            call.access.require_seen(call.rule, ownership.target(record), noun, given)
        self._described.complete(call, [record], self._described.table.select(versions.MAX))
        call.note(record)
        return record

    def read_to_write(self, call: Call, given: str) -> AnyRow:
        """Return the whole row that a request is about to write to; see :meth:`read`.

        :raises PreconditionFailed: it is not as the client knows it.
        """
        record = self.read(call, given)
        if call.preconditions:
            call.preconditions.check(self._described.source.noun, record)
        return record

    def carry(self, call: Call, record: AnyRow, changes: Json) -> None:
        """Change first what depends on the row elsewhere: if that fails, the row stays. It is safe to repeat."""

    def _render(self, call: Call, record: AnyRow) -> Json:
        return self._described.table.select(call.minor, call.query.get("fields")).render(record, call)

    def _show(self, call: Call, ident: str) -> Reply:
        record = self.read(call, ident)
        return Reply(self._render(call, record), version=record.version)

    def _create(self, call: Call) -> Reply:
        given = collection.build_row(self._described.table, call.body)
        values = self._prepare(call, given, None)
        values["uuid"] = values["uuid"] or uuidutils.generate_uuid()
        with call.notifier.change(call.ctx, self._noun, "create", {**given, **values}) as tell:
            self._store.create(call.db, values)
            record = self.read(call, values["uuid"])
            call.note(record, anew=True)
            tell(record)
        path = f"{call.path.rstrip('/')}/{values['uuid']}"
        return calls.created_reply(call, self._render(call, record), path, record.version)

    def _update(self, call: Call, ident: str) -> Reply:
        record = self._change(call, ident)
        return Reply(self._render(call, record), version=record.version)

    @calls.repeat_if_changed
    def _change(self, call: Call, ident: str) -> AnyRow:
        record = self.read_to_write(call, ident)
        changes = collection.read_changes(call, self._described, record)
        self._refuse_update(call, record, changes)
        if not changes:
            return self.read(call, record.uuid)
        values = self._prepare(call, changes, record)
        with call.notifier.change(call.ctx, self._noun, "update", {**vars(record), **changes, **values}) as tell:
            self.carry(call, record, changes)
            self._store.update(call.db, record, values)
            written = self.read(call, record.uuid)
            tell(written)
        return written

    @calls.repeat_if_changed
    def _delete(self, call: Call, ident: str) -> Reply:
        record = self.read_to_write(call, ident)
        self._refuse_delete(call, record)
        with call.notifier.change(call.ctx, self._noun, "delete", record):
            self._store.delete(call.db, record)
        return calls.NO_CONTENT
