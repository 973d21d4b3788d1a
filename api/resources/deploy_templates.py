"""Deploy templates: steps that a deployment gets for a trait of the same name (specification 003)."""

from ingot.api.nodes import steps
from ingot.api.web import collection, crud, fields, operations, tables, trait_names
from ingot.api.web.call import Call
from ingot.api.web.fields import POST, Field
from ingot.common.json_types import Json
from ingot.db.step_lists import TEMPLATES, TemplateWithSteps

TABLE = tables.Table(
    "template",
    (
        Field("uuid", 55, fields.UUID, write=POST, brief=True, sortable=True),
        Field("name", 55, trait_names.TYPE, brief=True, sortable=True, required=True),
        tables.links_field("deploy_templates"),
        Field("created_at", 55, sortable=True),
        Field("updated_at", 55, sortable=True),
        # In lists too: specification 003 shows them there.
        Field("steps", 55, steps.OF_TEMPLATE, brief=True, required=True),
        Field("extra", 55, fields.OBJECT),
        # Accepted and forgotten: clients send it to templates as they do to runbooks.
        Field("description", 55, fields.TEXT, write=POST, hidden=True),
    ),
)


def _prepare(_call: Call, values: Json, _row: TemplateWithSteps | None) -> Json:
    return {name: value for name, value in values.items() if name != "description"}


_DESCRIBED = collection.Collection(
    "deploy_templates",
    TABLE,
    TEMPLATES.source,
    marker=operations.parse_filled,
    complete=steps.complete_steps(TEMPLATES),
)

CRUD = crud.Crud(_DESCRIBED, TEMPLATES, prepare=_prepare)

HYPHENATED = crud.Crud(_DESCRIBED._replace(name="deploy-templates"), TEMPLATES, prepare=_prepare)
"""The same under the URL, and with the list's key, of specification 003."""
