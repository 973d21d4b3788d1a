"""The versions documents: what serves here, which versions, which collections."""

from ingot.api.web import fields, tables, versions
from ingot.api.web.call import Call, Reply
from ingot.api.web.operations import Answer, Plain, operation
from ingot.common.json_types import Json

COLLECTIONS: dict[str, int] = {
    "chassis": 1,
    "nodes": 1,
    "ports": 1,
    "drivers": 1,
    "lookup": 22,
    "heartbeat": 22,
    "portgroups": 23,
    "volume": 32,
    "conductors": 49,
    "allocations": 52,
    "events": 54,
    "deploy_templates": 55,
    "shards": 82,
    "continue_inspection": 84,
    "runbooks": 92,
    "inspection_rules": 96,
}
"""What the document of version 1 links to, each with the minor version that brought it."""


def _describe_version(call: Call) -> Json:
    return {
        "id": "v1",
        "links": [{"href": f"{call.base}/v1/", "rel": "self"}],
        "status": "CURRENT",
        "min_version": versions.RANGE[versions.MIN_HEADER],
        "version": versions.RANGE[versions.MAX_HEADER],
    }


_VERSION = fields.complete_schema(
    {**dict.fromkeys(("id", "status", "min_version", "version"), fields.TEXT_SCHEMA), "links": tables.LINKS}
)
_SERVICE = fields.complete_schema(
    {
        **dict.fromkeys(("name", "description"), fields.TEXT_SCHEMA),
        "default_version": _VERSION,
        "versions": {"type": "array", "items": _VERSION},
    }
)
_OWN = {"id": fields.TEXT_SCHEMA, "links": tables.LINKS, "media_types": {"type": "object"}, "version": _VERSION}
_COLLECTIONS = {name: {**tables.LINKS, **fields.version_extension(since)} for name, since in COLLECTIONS.items()}


@operation(answer=Answer(shows=Plain(_SERVICE)))
def service(call: Call) -> Reply:
    version = _describe_version(call)
    about = "Ingot turns racks of bare-metal machines into an API."
    return Reply(
        {"name": "Ingot Bare Metal API", "description": about, "default_version": version, "versions": [version]}
    )


@operation(answer=Answer(shows=Plain(fields.object_schema(_OWN | _COLLECTIONS, _OWN))))
def version_1(call: Call) -> Reply:
    links = {name: tables.build_links(call, f"{name}/") for name, since in COLLECTIONS.items() if since <= call.minor}
    media = {"base": "application/json", "type": "application/vnd.openstack.ironic.v1+json"}
    version = _describe_version(call)
    return Reply({"id": "v1", "links": version["links"], "media_types": media, "version": version, **links})
