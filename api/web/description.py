"""The API's description as an OpenAPI 3.1 document, made from the tables that the API itself is made of.

Routes give paths and methods, operations their parameters, bodies and answers, tables of fields the schemas. The
extension ``x-openstack`` has the microversion that brought a path, a parameter or a field.
"""

import functools
import inspect
import re
from collections.abc import Callable, Iterable, Iterator, Mapping

from ingot.api.web import collection, fields, operations, preconditions, tables, versions
from ingot.api.web.call import Call, Reply
from ingot.api.web.operations import Operation, Route, operation
from ingot.common.json_types import Json

PATH = "/ingot/v1/openapi.json"

_TEXT = fields.TEXT_SCHEMA
_FLAG = {"anyOf": [{"type": "boolean"}, {"enum": ["t", "true", "on", "y", "yes", "f", "false", "off", "n", "no"]}]}

_PARSED: Mapping[Callable[[str, str], object], Json] = {
    fields.parse_flag: _FLAG,
    fields.parse_uuid: {"type": "string", "format": "uuid"},
    fields.parse_mac: {"type": "string", "pattern": "^[0-9a-fA-F]{2}(:[0-9a-fA-F]{2}){5}$"},
    operations.parse_direction: {"enum": ["asc", "desc"]},
    operations.parse_filled: {"type": "string", "minLength": 1},
    operations.parse_limit: {"type": "integer", "minimum": 1, "maximum": 10**11},
    operations.parse_names: {"type": "array", "items": _TEXT},
}
"""By what parses a query parameter, its schema; any other is text."""

_ERROR = {
    "description": "What was wrong. error_message is a text that is JSON again: its faultstring (the request was "
    "refused by its handler) or description (there is no such URL, method or version) is the message. About a body "
    "that is too large or too deep that inner object is the whole answer.",
    "anyOf": [
        {"type": "object", "required": ["error_message"], "properties": {"error_message": _TEXT}},
        {"type": "object", "required": ["faultstring"], "properties": {"faultcode": _TEXT, "faultstring": _TEXT}},
    ],
}

_HEADERS: Mapping[str, Json] = {
    versions.HEADER: {
        "description": f"The API version that the request speaks; 1.{versions.MIN} without it.",
        "schema": {"type": "string", "pattern": r"^(1\.[1-9][0-9]{0,2}|latest)$", "default": f"1.{versions.MIN}"},
        "example": "latest",
    },
    "If-Match": {
        "description": "Serve the request only if the object is as one of these entity tags says (or, with *, there "
        "is one); refuse it with 412 otherwise.",
        "schema": _TEXT,
    },
    "If-None-Match": {
        "description": "Serve the request only if the object is not as one of these entity tags says; answer a GET "
        "with 304, and refuse anything else with 412, otherwise.",
        "schema": _TEXT,
    },
}

_EMPTY: Mapping[int, str] = {101: "It goes on as a websocket.", 202: "It was accepted.", 204: "It is done."}

_DONE: Mapping[str, str] = {"GET": "Show", "POST": "Create", "PATCH": "Change"}

_IDENTS: Mapping[str, str] = {
    "node": "UUID of a node, or from version 1.5 on its name.",
    "ident": "UUID, or the name where such objects have names.",
}


def build_document(routes: Iterable[Route]) -> Json:
    """Return the description of these routes."""
    named: Json = {"Error": _ERROR, "Patch": tables.PATCH_BODY.schema.document}
    ordered = sorted(routes, key=lambda route: route.path)
    paths = {template_path(route.path): dict(_describe_operations(route, named)) for route in ordered}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Ingot Bare Metal API",
            "version": f"1.{versions.MAX}",
            "description": "Turns racks of bare-metal machines into an API. Under /v1 is what OpenStack clients "
            "speak; under /ingot/v1 what they do not know yet.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "tags": [{"name": name} for name in dict.fromkeys(map(_read_tag, ordered))],
        "paths": paths,
        "components": {
            "schemas": dict(sorted(named.items())),
            "parameters": {name: {"name": name, "in": "header", **about} for name, about in _HEADERS.items()},
            "responses": {
                "Error": _describe_content("application/json", _build_reference("schemas", "Error"), "It was refused.")
            },
            "securitySchemes": {
                "basic": {"type": "http", "scheme": "basic"},
                "token": {"type": "apiKey", "in": "header", "name": "X-Auth-Token"},
            },
        },
        "security": [{}, {"basic": []}, {"token": []}],
    }


def show(routes: Callable[[], Iterable[Route]]) -> Operation:
    """Return the operation that answers with the description of all routes, itself among them."""
    build = functools.cache(lambda: build_document(routes()))

    @operation(answer=operations.Answer(shows=operations.Plain({"type": "object", "required": ["openapi", "paths"]})))
    def describe(call: Call) -> Reply:
        """Show this document."""
        return Reply(build())

    return describe


def _describe_operations(route: Route, named: Json) -> Iterator[tuple[str, Json]]:
    for method, served in route.operations.items():
        described = {
            "operationId": re.sub(r"[^\w-]+", "_", f"{method.lower()}{route.path}").strip("_"),
            "tags": [_read_tag(route)],
            "summary": _summarize(method, served),
            "parameters": list(_describe_parameters(route, method, served)),
            **({"requestBody": _describe_body(served.body)} if served.body else {}),
            "responses": _describe_responses(route, method, served, named),
            **fields.version_extension(served.since),
        }
        yield method.lower(), described | ({"security": []} if route.public else {})


def _describe_parameters(route: Route, method: str, served: Operation) -> Iterator[Json]:
    for name in re.findall(r"<(\w+)>", route.path):
        about = {"description": _IDENTS[name]} if name in _IDENTS else {}
        yield {"name": name, "in": "path", "required": True, **about, "schema": {"type": "string", "minLength": 1}}
    for param in served.query.values():
        schema = _PARSED.get(param.parse, _TEXT)
        style = {"style": "form", "explode": False} if schema.get("type") == "array" else {}
        yield {"name": param.name, "in": "query", **style, "schema": schema, **fields.version_extension(param.since)}
    if not route.any_version:
        yield _build_reference("parameters", versions.HEADER)
    if route.tagged or method == "GET":
        yield from (_build_reference("parameters", name) for name in preconditions.HEADERS)


def _describe_body(body: operations.Body) -> Json:
    patches = body is tables.PATCH_BODY
    schema = _build_reference("schemas", "Patch") if patches else body.schema.document
    return {"required": patches or bool(schema.get("required")), "content": {"application/json": {"schema": schema}}}


def _describe_responses(route: Route, method: str, served: Operation, named: Json) -> Json:
    status, shows, media, also = served.answer
    refused = {code: _build_reference("responses", "Error") for code in ("4XX", "5XX")}
    others = {"304": {"description": "The client has it."}} if method == "GET" else {}
    others |= {str(also): {"description": _EMPTY[also]}} if also else {}
    if status >= 400:  # a URL without the name of an object
        return refused
    if shows is None:
        return {str(status): {"description": _EMPTY[status]}} | refused
    return {str(status): _describe_content(media, shows.schema(named), "The answer."), **others, **refused}


def _describe_content(media: str, schema: Json, about: str) -> Json:
    return {"description": about, "content": {media: {"schema": schema}}}


def _summarize(method: str, served: Operation) -> str:
    """Return what an operation does: its handler's summary, or one made of its answer."""
    doc = inspect.getdoc(served.handler)
    if doc:
        return " ".join(doc.split("\n\n")[0].split())
    shape = served.answer.shows
    if isinstance(shape, collection.Page):
        return f"List {shape.key.replace('_', ' ')}."
    if isinstance(shape, collection.One):
        return f"{_DONE.get(method, method)}: {shape.table.noun}."
    name: str = served.handler.__name__
    return f"{name.strip('_').replace('_', ' ').capitalize()}."


def _build_reference(section: str, name: str) -> dict[str, str]:
    return {"$ref": f"#/components/{section}/{name}"}


def template_path(path: str) -> str:
    return re.sub(r"<(\w+)>", r"{\1}", path)


def _read_tag(route: Route) -> str:
    """Return the subject of a path: its first segment after the version."""
    subject = next((part for part in route.path.split("/") if part not in ("", "ingot", "v1")), "versions")
    return subject.removesuffix(".json").replace("-", "_")
