"""Steps under a name: deploy templates and runbooks.

A deployment gets the steps of a deploy template for a trait of the same name (specification 003). A runbook is for
manual cleaning and servicing of the nodes that share one of its traits.
"""

import functools
from collections.abc import Collection

from ingot.api.nodes import nodes, steps
from ingot.api.web import call as calls
from ingot.api.web import collection, crud, fields, operations, tables, trait_names
from ingot.api.web.call import Call, Reply
from ingot.api.web.fields import POST, Field
from ingot.api.web.operations import Answer, Param, Plain, operation
from ingot.common import errors
from ingot.common import trait_names as names
from ingot.common.json_types import Json
from ingot.db import fleet, node_crud
from ingot.db import step_lists as rows
from ingot.db.step_lists import RunbookWithSteps, TemplateWithSteps

TEMPLATE_TABLE = tables.Table(
    "template",
    Field("uuid", 55, fields.UUID, write=POST, brief=True, sortable=True),
    Field("name", 55, trait_names.TYPE, brief=True, sortable=True, required=True),
    *tables.record_fields("deploy_templates", 55),
    # In lists too: specification 003 shows them there.
    tables.masked_field("steps", 55, type=steps.OF_TEMPLATE, brief=True, required=True),
    Field("extra", 55, fields.OBJECT),
    # Accepted and forgotten: clients send it to templates as they do to runbooks.
    Field("description", 55, fields.TEXT, write=POST, hidden=True),
)


def _forget_description(_call: Call, values: Json, _row: TemplateWithSteps | None) -> Json:
    return {name: value for name, value in values.items() if name != "description"}


_TEMPLATES = collection.Collection(
    "deploy_templates",
    TEMPLATE_TABLE,
    rows.TEMPLATES.source,
    marker=operations.parse_filled,
    complete=functools.partial(collection.complete_lists, name="steps", read=rows.TEMPLATES.steps_of),
)

TEMPLATES = crud.Crud(_TEMPLATES, rows.TEMPLATES, prepare=_forget_description)

HYPHENATED = crud.Crud(_TEMPLATES._replace(name="deploy-templates"), rows.TEMPLATES, prepare=_forget_description)
"""The same under the URL, and with the list's key, of specification 003."""

# Real booleans only: other resources take words as well.
_FLAG = fields.FieldType({"type": ["boolean", "null"]}, empty=False)
_NAME = fields.FieldType({"type": "string", "minLength": 1, "maxLength": 255}, fields.parse_name)

RUNBOOK_TABLE = tables.Table(
    "runbook",
    Field("uuid", 92, fields.UUID, write=POST, brief=True, sortable=True),
    Field("name", 92, _NAME, brief=True, sortable=True, required=True),
    *tables.record_fields("runbooks", 92),
    tables.masked_field("steps", 92, type=steps.OF_RUNBOOK, required=True),
    Field("disable_ramdisk", 92, _FLAG, sortable=True),
    Field("extra", 92, fields.OBJECT),
    Field("public", 92, _FLAG, sortable=True, edit="baremetal:runbook:update:public"),
    Field("owner", 92, fields.TEXT, sortable=True, edit="baremetal:runbook:update:owner"),
    Field("description", steps.RUNBOOK_TRAITS_SINCE, fields.TEXT, sortable=True),
    Field("traits", steps.RUNBOOK_TRAITS_SINCE),
    newer=errors.Invalid,
)


def _prepare_runbook(call: Call, values: Json, row: RunbookWithSteps | None) -> Json:
    if "name" in values and call.minor < steps.RUNBOOK_TRAITS_SINCE and not names.is_trait(values["name"]):
        since = steps.RUNBOOK_TRAITS_SINCE
        hint = f"Before version 1.{since} a runbook is called like a trait: {names.FORM}; this does not match."
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


RUNBOOKS = crud.Crud(
    collection.Collection(
        "runbooks",
        RUNBOOK_TABLE,
        rows.RUNBOOKS.source,
        marker=operations.parse_filled,
        complete=steps.complete_runbooks,
        ownership=steps.RUNBOOK_OWNERSHIP,
    ),
    rows.RUNBOOKS,
    prepare=_prepare_runbook,
)


def _show_traits(call: Call, ident: str) -> Reply:
    """List the traits."""
    runbook = RUNBOOKS.read(call, ident)
    return Reply({"traits": runbook.traits}, version=runbook.version)


@calls.repeat_if_changed
def _change_traits(call: Call, ident: str, added: Collection[str], removed: Collection[str] | None) -> str:
    # Removing one that is not there is no error, unlike with nodes (measured contract).
    runbook = RUNBOOKS.read_to_write(call, ident)
    present = set(runbook.traits)
    after = (set() if removed is None else present - set(removed)) | set(added)
    if len(after) > node_crud.MOST_TRAITS:
        raise errors.Invalid(
            field="traits", value=len(after), allowed=f"A runbook has at most {node_crud.MOST_TRAITS}."
        )
    if after != present:
        rows.set_runbook_traits(call.db, runbook, after)
    return runbook.uuid


TRAITS = trait_names.build_operations("runbooks", _show_traits, _change_traits)


# Which nodes they are for: Ingot's own

_NODE = {
    **dict.fromkeys(("uuid", "provision_state", "driver"), fields.TEXT_SCHEMA),
    **dict.fromkeys(("name", "resource_class"), fields.OPTIONAL_TEXT_SCHEMA),
    "maintenance": fields.FLAG_SCHEMA,
}
_MATCHING = {
    "traits": {"type": "array", "items": fields.TEXT_SCHEMA},
    **{key: {"type": "integer"} for key in ("total", "matching", "offset", "limit")},
    "nodes": {"type": "array", "items": fields.complete_schema(_NODE)},
}
_declare = operation(
    Param("offset", operations.parse_offset),
    Param("limit", operations.parse_limit),
    answer=Answer(shows=Plain(fields.complete_schema(_MATCHING))),
)


@_declare
def list_nodes_of_template(call: Call, ident: str) -> Reply:
    """List the nodes that have the trait of a deploy template: their deployments may ask for its steps."""
    return _list_nodes(call, [TEMPLATES.read(call, ident).name])


@_declare
def list_nodes_of_runbook(call: Call, ident: str) -> Reply:
    """List the nodes that have one of the traits of a runbook: they can be cleaned and serviced by it."""
    return _list_nodes(call, RUNBOOKS.read(call, ident).traits)


def _list_nodes(call: Call, traits: Collection[str]) -> Reply:
    """Return a part of the nodes that have one of some traits and that the request may see, by name."""
    own = collection.build_ownership_conditions(call, nodes.NODES)
    has_trait = fleet.Test("has_row", "trait", tuple(fleet.Pattern(trait) for trait in traits))
    terms = [fleet.Term((has_trait,))]
    total, matching = fleet.count(call.db, own, terms)
    offset = call.query.get("offset", 0)
    limit = min(call.query.get("limit", call.conf.api.max_limit), call.conf.api.max_limit)
    found = fleet.read(call.db, tuple(_NODE), own, terms, fleet.Part(offset=offset, limit=limit))
    counts = {"total": total, "matching": matching, "offset": offset, "limit": limit}
    shown = [{name: getattr(node, name) for name in _NODE} for node in found]
    return Reply({"traits": list(traits), **counts, "nodes": shown})
