"""Inspection rules: actions on a node whose inspected inventory meets conditions.

Two tables hold the operators and the arguments that they need. Arguments come by name or in their order.
"""

from collections.abc import Mapping

from ingot.api.web import call as calls
from ingot.api.web import collection, crud, fields, operations, tables
from ingot.api.web.call import Call, Reply
from ingot.api.web.fields import POST, Field
from ingot.api.web.operations import Param, operation
from ingot.common import errors, masking, patterns
from ingot.common.json_types import Json
from ingot.db import inventory, models

SINCE = 96
"""Minor version that brought inspection rules."""

PHASE = "main"

_MOST_TURNS = 1000  # of a loop: a worker of the conductor does them one after the other

ACTIONS: Mapping[str, tuple[str, ...]] = {
    "fail": ("msg",),
    "log": ("msg",),
    "set-attribute": ("path", "value"),
    "extend-attribute": ("path", "value"),
    "del-attribute": ("path",),
    "set-capability": ("name", "value"),
    "unset-capability": ("name",),
    "add-trait": ("name",),
    "remove-trait": ("name",),
    "set-plugin-data": ("path", "value"),
    "extend-plugin-data": ("path", "value"),
    "unset-plugin-data": ("path",),
    "set-port-attribute": ("port_id", "path", "value"),
    "extend-port-attribute": ("port_id", "path", "value"),
    "del-port-attribute": ("port_id", "path"),
    "api-call": ("url",),
}
"""The arguments that an action needs, in their order."""

_TESTS: Mapping[str, tuple[str, ...]] = {
    "eq": ("values",),
    "lt": ("values",),
    "gt": ("values",),
    "is-empty": ("value",),
    "in-net": ("address", "subnet"),
    "matches": ("value", "regex"),
    "contains": ("value", "regex"),
    "one-of": ("value",),
    "is-none": ("value",),
    "is-true": ("value",),
    "is-false": ("value",),
}

CONDITIONS: Mapping[str, tuple[str, ...]] = {**_TESTS, **{f"!{name}": needed for name, needed in _TESTS.items()}}
"""The arguments that a condition needs, in their order; with an exclamation mark it must not be met."""


def _build_operators_type(known: Mapping[str, tuple[str, ...]], least: int, **also: Json) -> fields.FieldType:
    """Return the type of a list of uses of some operators.

    :param least: how many there must be.
    :param also: further keys of a use.
    """
    one = fields.object_schema(
        {
            "op": {"enum": list(known)},
            "args": {"type": ["object", "array"]},
            "loop": {"type": ["array", "object"], "maxItems": _MOST_TURNS, "maxProperties": _MOST_TURNS},
            **also,
        },
        required=("op", "args"),
    )

    def parse(name: str, value: list[Json]) -> list[Json]:
        for index, used in enumerate(value):
            needed, args = known[used["op"]], used["args"]
            missing = needed[len(args) :] if isinstance(args, list) else [arg for arg in needed if arg not in args]
            if missing:
                raise errors.Invalid(
                    f"{name}.{index} ({used['op']}): missing required argument(s): {', '.join(missing)}. "
                    f"Needed: {', '.join(needed)}."
                )
            if "regex" in needed:
                regex = args[needed.index("regex")] if isinstance(args, list) else args["regex"]
                patterns.check_unfilled(f"{name}.{index}.regex", regex)
        return value

    return fields.FieldType({"type": "array", "items": one, "minItems": least}, parse)


def _build_guarded_field(name: str, written: fields.FieldType) -> Field:
    """Return a field that is shown with secrets masked, and as null where the rule is sensitive."""

    def show(rule: models.InspectionRule, _call: Call) -> object:
        return None if rule.sensitive else masking.mask(getattr(rule, name))

    schema = {"type": ["array", "null"], "items": {"type": "object"}}
    return Field(
        name, SINCE, written, compute=show, needs=(name, "sensitive"), required=True, schema=schema, masked=True
    )


_PRIORITY = fields.FieldType({"type": "integer", "minimum": 0, "maximum": 9999}, lambda _name, value: int(value), 0)
_PHASE = fields.FieldType({"enum": [PHASE]}, empty=PHASE)
_SENSITIVE = fields.FieldType({"type": ["boolean", "null"]}, empty=False)

TABLE = tables.Table(
    "inspection rule",
    Field("uuid", SINCE, fields.UUID_OR_EMPTY, write=POST, brief=True, sortable=True),
    Field("description", SINCE, fields.TEXT, brief=True, sortable=True),
    Field("priority", SINCE, _PRIORITY, brief=True, sortable=True),
    Field("phase", SINCE, _PHASE, brief=True, sortable=True),
    *tables.record_fields("inspection_rules", SINCE),
    Field("sensitive", SINCE, _SENSITIVE, sortable=True),
    _build_guarded_field(
        "conditions", _build_operators_type(CONDITIONS, 0, multiple={"enum": ["any", "all", "first", "last"]})
    ),
    _build_guarded_field("actions", _build_operators_type(ACTIONS, 1)),
)


def _refuse_update(call: Call, _rule: models.InspectionRule, _changes: Json) -> None:
    """Refuse an update that no rule can have.

    :raises Invalid: the phase is replaced by null; it can be removed, which leaves the usual one.
    """
    for change in call.body:
        if change["path"] == "/phase" and change["op"] != "remove" and change.get("value") is None:
            raise errors.Invalid(field="phase", value=None, allowed=f"There is one phase: {PHASE}.")


_RULES = collection.Collection(
    "inspection_rules",
    TABLE,
    inventory.RULES.source,
    (Param("phase", operations.parse_names, column="phase", test="one_of_given"),),
    marker=lambda name, given: fields.parse_text(name, given) or None,
)

CRUD = crud.Crud(_RULES, inventory.RULES, ident=fields.parse_uuid, refuse_update=_refuse_update)


@operation(answer=operations.EMPTY_204)
def delete_all(call: Call) -> Reply:
    inventory.delete_all_rules(call.db)
    return calls.NO_CONTENT
