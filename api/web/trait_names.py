"""The names of traits, wherever a client writes them: of nodes, of runbooks, and as names of deploy templates."""

from ingot.api.web import fields, operations
from ingot.common import errors, trait_names


def parsed(name: str, value: str) -> str:
    """A trait's name: of one's own, or one of the standard ones."""
    if not trait_names.is_trait(value):
        raise errors.Invalid(field=name, value=value, allowed=f"A trait is {trait_names.FORM}.")
    return value


KIND = fields.FieldType({"type": "string", "minLength": 1, "maxLength": 255}, parsed)

_IN_URL = fields.Schema("trait", KIND.schema)


def in_url(given: str) -> str:
    """A trait's name that stands in a URL."""
    _IN_URL.check(given)
    return parsed("trait", given)


def _each(name: str, value: list[str]) -> list[str]:
    return [parsed(name, given) for given in value]


LIST = fields.Body(
    "traits",
    (fields.Field("traits", type=fields.FieldType({"type": "array", "items": KIND.schema}, _each), required=True),),
)
"""The body of a request that gives something all its traits."""

LISTED = operations.Answer(shows=operations.Plain(fields.list_schema("traits", KIND.schema)))
"""The answer with all traits of something."""

NOTHING = fields.Body("trait request", ())
"""The body of a request that names one trait in its URL."""
