"""Runbooks: steps under a name, for manual cleaning and servicing of the nodes that share one of their traits."""

from collections.abc import Callable

from ingot.api.nodes import steps
from ingot.api.web import call as calls
from ingot.api.web import collection, crud, fields, operations, tables, trait_names
from ingot.api.web.call import Call, Reply
from ingot.api.web.fields import POST, Field
from ingot.api.web.operations import operation
from ingot.common import errors
from ingot.common import trait_names as names
from ingot.common.json_types import Json
from ingot.db import node_crud, step_lists
from ingot.db.step_lists import RUNBOOKS, RunbookWithSteps

# Real booleans only: other resources take words as well.
_FLAG = fields.FieldType({"type": ["boolean", "null"]}, empty=False)
_NAME = fields.FieldType({"type": "string", "minLength": 1, "maxLength": 255}, fields.parse_name)

TABLE = tables.Table(
    "runbook",
    (
        Field("uuid", 92, fields.UUID, write=POST, brief=True, sortable=True),
        Field("name", 92, _NAME, brief=True, sortable=True, required=True),
        tables.links_field("runbooks"),
        Field("created_at", 92, sortable=True),
        Field("updated_at", 92, sortable=True),
        Field("steps", 92, steps.OF_RUNBOOK, required=True),
        Field("disable_ramdisk", 92, _FLAG, sortable=True),
        Field("extra", 92, fields.OBJECT),
        Field("public", 92, _FLAG, sortable=True, edit="baremetal:runbook:update:public"),
        Field("owner", 92, fields.TEXT, sortable=True, edit="baremetal:runbook:update:owner"),
        Field("description", steps.RUNBOOK_TRAITS_SINCE, fields.TEXT, sortable=True),
        Field("traits", steps.RUNBOOK_TRAITS_SINCE),
    ),
    newer=errors.Invalid,
)


def _prepare(call: Call, values: Json, row: RunbookWithSteps | None) -> Json:
    if "name" in values and call.minor < steps.RUNBOOK_TRAITS_SINCE and not names.is_trait(values["name"]):
        hint = f"Before version 1.{steps.RUNBOOK_TRAITS_SINCE} a runbook is called like a trait: {names.FORM}."
        raise errors.Invalid(field="name", value=values["name"], allowed=hint)
    if row is None and call.ctx.system_scope != "all":
        values = _set_project(call, values)
    if row is not None and values.get("public"):
        values = {"owner": None, **values}
    after = {**(vars(row) if row else {}), **values}
    if after["public"] and after["owner"] is not None:
        hint = "A public runbook has no owner: send owner null or public false in the same request."
        raise errors.Invalid(field="owner", value=after["owner"], allowed=hint)
    return values


def _set_project(call: Call, values: Json) -> Json:
    """Return a new runbook of a request that is not the system's: it belongs to the request's project, if any."""
    project = call.ctx.project_id
    if values["owner"] not in (None, "", project):
        hint = "A new runbook belongs to the project of the request; only a system-scoped one may name another."
        raise errors.Invalid(field="owner", value=values["owner"], allowed=hint)
    if project and values["public"]:
        hint = "A runbook of a project cannot be public; only a system-scoped request can make one."
        raise errors.Invalid(field="public", value=True, allowed=hint)
    return {**values, "owner": project}


_DESCRIBED = collection.Collection(
    "runbooks",
    TABLE,
    RUNBOOKS.source,
    marker=operations.parse_filled,
    complete=steps.complete_runbooks,
    ownership=steps.RUNBOOK_OWNERSHIP,
)

CRUD = crud.Crud(_DESCRIBED, RUNBOOKS, prepare=_prepare)


@operation(answer=trait_names.LISTED)
def traits_index(call: Call, ident: str) -> Reply:
    runbook = CRUD.read(call, ident)
    return Reply({"traits": runbook.traits}, version=runbook.version)


@operation(body=trait_names.LIST, answer=operations.EMPTY_204)
def traits_replace(call: Call, ident: str) -> Reply:
    _change_traits(call, ident, lambda _present: set(call.body["traits"]))
    return calls.NO_CONTENT


@operation(answer=operations.EMPTY_204)
def traits_clear(call: Call, ident: str) -> Reply:
    _change_traits(call, ident, lambda _present: set())
    return calls.NO_CONTENT


@operation(body=trait_names.NOTHING, answer=operations.EMPTY_204)
def traits_add(call: Call, ident: str, trait: str) -> Reply:
    name = trait_names.parse_trait_in_url(trait)
    uuid = _change_traits(call, ident, lambda present: present | {name})
    return calls.NO_CONTENT._replace(headers={"Location": f"{call.base}/v1/runbooks/{uuid}/traits/{name}"})


@operation(answer=operations.EMPTY_204)
def traits_remove(call: Call, ident: str, trait: str) -> Reply:
    # One that is not there is no error, unlike with nodes (measured contract).
    _change_traits(call, ident, lambda present: present - {trait})
    return calls.NO_CONTENT


def _change_traits(call: Call, ident: str, change: Callable[[set[str]], set[str]]) -> str:
    def attempt() -> str:
        runbook = CRUD.read_to_write(call, ident)
        after = change(set(runbook.traits))
        if len(after) > node_crud.MOST_TRAITS:
            raise errors.Invalid(
                field="traits", value=len(after), allowed=f"A runbook has at most {node_crud.MOST_TRAITS}."
            )
        if after != set(runbook.traits):
            step_lists.set_runbook_traits(call.db, runbook, after)
        return runbook.uuid

    return calls.retry_if_changed(attempt)
