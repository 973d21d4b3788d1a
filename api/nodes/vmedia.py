"""Virtual media of nodes: images that a machine sees as if they were in drives of its own."""

from ingot.api.nodes.management import ask
from ingot.api.web import call as calls
from ingot.api.web import fields, operations
from ingot.api.web.call import Call, Reply
from ingot.api.web.fields import Field
from ingot.api.web.operations import Answer, Param, Plain, operation
from ingot.common import errors

DEVICE_TYPES = ("disk", "cdrom", "floppy")

_SOURCES = ("http", "local", "swift")
_SCHEMES = ("http", "https", "file", "glance", "oci")


def _image_url(name: str, value: str) -> str:
    scheme = value.partition("://")[0]
    if scheme == value or scheme not in _SCHEMES:
        raise errors.Invalid(
            field=name, value=value, allowed=f"Expected a URL that begins with one of: {', '.join(_SCHEMES)}."
        )
    return fields.parse_text(name, value)


_MEDIUM = fields.Body(
    "vmedia",
    (
        Field("device_type", type=fields.FieldType({"enum": list(DEVICE_TYPES)}), required=True),
        Field("image_url", type=fields.FieldType({"type": "string", "maxLength": 2**16}, _image_url), required=True),
        Field("image_download_source", type=fields.FieldType({"enum": list(_SOURCES)})),
    ),
)


@operation(since=93, answer=Answer(shows=Plain({"type": "array", "items": {"type": "object"}})))
def show(call: Call, node: str) -> Reply:
    return Reply(ask(call, node, "get_virtual_media"))


@operation(body=_MEDIUM, answer=operations.EMPTY_204)
def attach(call: Call, node: str) -> Reply:
    given = call.body
    about = {"device_type": given["device_type"], "image_url": given["image_url"]}
    ask(call, node, "attach_virtual_media", **about, source=given.get("image_download_source"))
    return calls.NO_CONTENT


def _device_types(name: str, given: str) -> list[str]:
    named = operations.parse_names(name, given)
    unknown = [one for one in named if one not in DEVICE_TYPES]
    if unknown:
        known = ", ".join(DEVICE_TYPES)
        raise errors.Invalid(field=name, value=", ".join(unknown), allowed=f"Allowed are some of {known}.")
    return list(named) or list(DEVICE_TYPES)


@operation(Param("device_types", _device_types, repeats=True), answer=operations.EMPTY_204)
def detach(call: Call, node: str) -> Reply:
    ask(call, node, "detach_virtual_media", device_types=call.query.get("device_types", list(DEVICE_TYPES)))
    return calls.NO_CONTENT
