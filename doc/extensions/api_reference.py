"""Sphinx directive ``api-reference``: the API's description (doc/openapi.json) as sections of a page."""

import json
import pathlib
from collections.abc import Iterator
from typing import Any

import rst
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

DOCUMENT = pathlib.Path(__file__).parents[1] / "openapi.json"
METHODS = ("get", "post", "put", "patch", "delete")
_WIDTHS = (30, 55, 15)


class ApiReference(SphinxDirective):
    """Takes nothing; stands on a page of its own, below its title."""

    has_content = False

    def run(self) -> list[nodes.Node]:
        self.env.note_dependency(str(DOCUMENT))
        document = json.loads(DOCUMENT.read_text())
        return self.parse_text_to_nodes("\n".join(_page(document)), allow_section_headings=True)


def _page(document: dict[str, Any]) -> Iterator[str]:
    for tag in document["tags"]:
        yield from rst.heading(tag["name"].replace("_", " ").capitalize(), "-")
        for path, operations in document["paths"].items():
            for method in METHODS:
                if method in operations and tag["name"] in operations[method]["tags"]:
                    yield from _operation(f"{method.upper()} {path}", operations[method], document)
    yield from rst.heading("Objects", "-")
    for name, schema in document["components"]["schemas"].items():
        if "properties" in schema:
            yield from ("", f".. _api-{name.lower()}:", "")
            yield from rst.heading(name, "^")
            yield from _fields(schema, "Field")


def _operation(title: str, about: dict[str, Any], document: dict[str, Any]) -> Iterator[str]:
    yield from rst.heading(title, "^")
    yield from (about["summary"] + _since(about, " From version {} on."), "")
    query = [parameter for parameter in about["parameters"] if parameter.get("in") == "query"]
    if query:
        rows = [(parameter["name"], _kind(parameter["schema"]), _since(parameter)) for parameter in query]
        yield from rst.table(("Parameter", "Type", "Since"), rows, _WIDTHS)
    body = about.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema")
    if body and "$ref" in body:
        yield from ("Body: a JSON patch (RFC 6902 with add, replace and remove).", "")
    elif body:
        yield from _fields(body, "Key of the body")
    for status, answer in about["responses"].items():
        if status[0] in "23":
            yield from (f"- **{status}** {_answered(answer)}",)
    yield ""


def _answered(answer: dict[str, Any]) -> str:
    for media, content in answer.get("content", {}).items():
        if media != "application/json":
            return f"{answer['description']} It is {media}."
        schema = content["schema"]
        if "$ref" in schema:
            return f"{answer['description']} {_link(schema)}"
        lists = [
            f"``{name}``: {_link(one['items'])}" for name, one in schema.get("properties", {}).items() if _is_page(one)
        ]
        return " ".join((answer["description"], *lists))
    return str(answer["description"])


def _is_page(schema: dict[str, Any]) -> bool:
    return "$ref" in schema.get("items", {})


def _link(reference: dict[str, Any]) -> str:
    name = reference["$ref"].rpartition("/")[2]
    return f":ref:`{name} <api-{name.lower()}>`"


def _fields(schema: dict[str, Any], title: str) -> Iterator[str]:
    required = schema.get("required", ())
    rows = [
        (name + (" (required)" if name in required else ""), _kind(field), _since(field))
        for name, field in schema.get("properties", {}).items()
    ]
    if rows:
        yield from rst.table((title, "Type", "Since"), rows, _WIDTHS)


def _kind(schema: dict[str, Any]) -> str:
    if "enum" in schema:
        return "one of " + ", ".join(json.dumps(value) for value in schema["enum"])
    if "anyOf" in schema:
        return ", or ".join(_kind(one) for one in schema["anyOf"])
    names = schema.get("type", "anything")
    names_text = " or ".join(names) if isinstance(names, list) else str(names)
    return names_text + (f" ({schema['format']})" if "format" in schema else "")


def _since(about: dict[str, Any], template: str = "{}") -> str:
    brought = about.get("x-openstack")
    return template.format(brought["min-ver"]) if brought else ""


def setup(app: Sphinx) -> dict[str, Any]:
    """Registers the directive."""
    app.add_directive("api-reference", ApiReference)
    return {"parallel_read_safe": True}
