"""The names of traits, wherever a client writes them: of nodes, of runbooks, and as names of deploy templates."""

from ingot.api.web import fields, operations
from ingot.common import errors, trait_names


def parse_trait(name: str, value: str) -> str:
    """Return a trait's name, a standard or a custom one."""
    if not trait_names.is_trait(value):
        raise errors.Invalid(field=name, value=value, allowed=f"A trait is {trait_names.FORM}.")
    return value


TYPE = fields.FieldType({"type": "string", "minLength": 1, "maxLength": 255}, parse_trait)

_IN_URL = fields.Schema("trait", TYPE.schema)


def parse_trait_in_url(given: str) -> str:
    """Return a trait's name from a URL."""
    _IN_URL.check(given)
    return parse_trait("trait", given)


def _parse_list(name: str, value: list[str]) -> list[str]:
    return [parse_trait(name, given) for given in value]


LIST = fields.Body(
    "traits",
    (
        fields.Field(
            "traits", type=fields.FieldType({"type": "array", "items": TYPE.schema}, _parse_list), required=True
        ),
    ),
)
"""The body of a request that gives something all its traits."""

LISTED = operations.Answer(shows=operations.Plain(fields.list_schema("traits", TYPE.schema)))
"""The answer with all traits of something."""

NOTHING = fields.Body("trait request", ())
"""The body of a request that names one trait in its URL."""
