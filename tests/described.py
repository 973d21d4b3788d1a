"""Compares answers with the API's description: for tests that send many requests anyway."""

import functools
import json
from typing import Any

import flask
import jsonschema
from werkzeug import exceptions

from ingot.api import routes
from ingot.api.web import description


@functools.cache
def document() -> dict[str, Any]:
    """Return the description of all routes."""
    return description.build_document(routes.ROUTES)


@functools.cache
def _validator(path: str, method: str, status: str) -> jsonschema.Draft202012Validator | None:
    """Return the validator of a JSON body; None where the description has no schema for it.

    :raises KeyError: the description does not know such an answer.
    """
    answers = document()["paths"][path][method.lower()]["responses"]
    answer = answers[status if status in answers else f"{status[0]}XX"]
    if "$ref" in answer:
        answer = document()["components"]["responses"][answer["$ref"].rpartition("/")[2]]
    media = answer.get("content", {}).get("application/json")
    if media is None:
        return None
    return jsonschema.Draft202012Validator({**media["schema"], "components": document()["components"]})


def objection(app: flask.Flask, method: str, url: str, answer: Any) -> str | None:
    """Return what an answer has that the description does not mention; None if nothing.

    :param answer: its status and text.
    """
    try:
        endpoint, _values = app.url_map.bind("localhost").match(url.partition("?")[0], method=method)
    except exceptions.HTTPException:
        return None  # no such URL
    path = description.template_path(str(endpoint))
    about = f"{method} {path}: {answer.status}"
    if method.lower() not in document()["paths"].get(path, ()) or answer.status == 405:
        return None
    try:
        validator = _validator(path, method, str(answer.status))
    except KeyError:
        return f"{about} is not described"
    if validator is None:
        return None
    found = next(validator.iter_errors(json.loads(answer.text or "null")), None)
    return None if found is None else f"{about}: {'.'.join(map(str, found.absolute_path))}: {found.message[:300]}"
