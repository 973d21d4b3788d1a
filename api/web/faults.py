"""How an error becomes an answer. The one place where HTTP meets the errors of :mod:`ingot.common.errors`.

A client finds the message under ``error_message``, as a text that is JSON again: that is what clients of this API
parse. What the request's handler refused has ``faultcode`` and ``faultstring``; what did not reach a handler (unknown
URL, wrong method, unknown version) has ``code``, ``title`` and ``description``; what the limits of a body refused is
not wrapped.
"""

from http import HTTPStatus

import orjson
from oslo_log import log
from werkzeug import exceptions

from ingot.api.auth import identity
from ingot.api.web import versions
from ingot.common import errors
from ingot.common.json_types import Json

LOG = log.getLogger(__name__)

RETRY_AFTER = 5
"""Seconds after which a client may try again what was not available."""


class TooDeep(errors.Invalid):
    template = "Request body is nested too deeply: lists and objects may be nested {limit} deep."


def build_error(exc: Exception) -> errors.IngotError:
    """Return the error to answer with: Ingot's own, the web framework's, or for a defect one that refers to the log."""
    if isinstance(exc, errors.IngotError):
        if exc.code >= HTTPStatus.INTERNAL_SERVER_ERROR:
            LOG.warning("Answered %d: %s", exc.code, exc.message)
        return exc
    if isinstance(exc, exceptions.NotFound):
        return errors.RouteNotFound()
    if isinstance(exc, exceptions.HTTPException) and (exc.code or 500) < HTTPStatus.INTERNAL_SERVER_ERROR:
        return errors.Invalid(exc.description or exc.name)
    LOG.error("Unexpected error in request", exc_info=exc)
    return errors.IngotError("An unexpected error occurred; the log of the API has the details.")


def build_body(error: errors.IngotError, handled: bool) -> bytes:
    """Return the answer's body.

    :param handled: whether the request got as far as having a version.
    """
    fault = {
        "faultcode": "Client" if error.code < HTTPStatus.INTERNAL_SERVER_ERROR else "Server",
        "faultstring": error.message,
    }
    if isinstance(error, errors.BodyTooLarge | TooDeep):
        return orjson.dumps(fault)
    inner: Json = fault | {"debuginfo": None}
    if not handled:
        inner = {"code": error.code, "title": HTTPStatus(error.code).phrase, "description": error.message}
    return orjson.dumps({"error_message": orjson.dumps(inner).decode()})


def build_headers(error: errors.IngotError) -> dict[str, str]:
    """Return the headers that belong to an error."""
    if isinstance(error, identity.Challenged):
        return {"WWW-Authenticate": error.challenge}
    if isinstance(error, errors.VersionRefused):
        return dict(versions.RANGE)
    if error.code in (HTTPStatus.SERVICE_UNAVAILABLE, HTTPStatus.TOO_MANY_REQUESTS):
        return {"Retry-After": str(RETRY_AFTER)}
    if error.code == HTTPStatus.UPGRADE_REQUIRED:
        return {"Upgrade": "websocket"}  # RFC 9110, 15.5.22
    return {}
