"""Sphinx directive ``api-reference``: the API's description (doc/openapi.json) as sections of a page."""

import json
import pathlib
from collections.abc import Iterator
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

DOCUMENT = pathlib.Path(__file__).parents[1] / "openapi.json"
METHODS = ("get", "post", "put", "patch", "delete")


class ApiReference(SphinxDirective):
    """Takes nothing; stands on a page of its own, below its title."""

    has_content = False

    def run(self) -> list[nodes.Node]:
        self.env.note_dependency(str(DOCUMENT))
        document = json.loads(DOCUMENT.read_text())
        return self.parse_text_to_nodes("\n".join(_page(document)), allow_section_headings=True)


def _page(document: dict[str, Any]) -> Iterator[str]:
    for tag in document["tags"]:
        yield from _heading(tag["name"].replace("_", " ").capitalize(), "-")
        for path, operations in document["paths"].items():
            for method in METHODS:
                if method in operations and tag["name"] in operations[method]["tags"]:
                    yield from _operation(f"{method.upper()} {path}", operations[method], document)
    yield from _heading("Objects", "-")
    for name, schema in document["components"]["schemas"].items():
        if "properties" in schema:
            yield from ("", f".. _api-{name.lower()}:", "")
            yield from _heading(name, "^")
            yield from _fields(schema, "Field")


def _operation(title: str, about: dict[str, Any], document: dict[str, Any]) -> Iterator[str]:
    yield from _heading(title, "^")
    yield from (about["summary"] + _since(about, " From version {} on."), "")
    query = [parameter for parameter in about["parameters"] if parameter.get("in") == "query"]
    if query:
        rows = [(parameter["name"], _kind(parameter["schema"]), _since(parameter)) for parameter in query]
        yield from _table(("Parameter", "Type", "Since"), rows)
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
        yield from _table((title, "Type", "Since"), rows)


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


def _heading(title: str, underline: str) -> Iterator[str]:
    yield from ("", title, underline * len(title), "")


def _table(titles: tuple[str, ...], rows: list[tuple[str, ...]]) -> Iterator[str]:
    yield from (".. list-table::", "   :header-rows: 1", "   :widths: 30 55 15", "")
    for row in (titles, *rows):
        yield from (f"   {'*' if number == 0 else ' '} - {cell}" for number, cell in enumerate(row))
    yield ""


def setup(app: Sphinx) -> dict[str, Any]:
    """Registers the directive."""
    app.add_directive("api-reference", ApiReference)
    return {"parallel_read_safe": True}
