"""The session of a browser: who uses the web console, and what they may do."""

import datetime
import importlib.metadata
from typing import Any

from werkzeug import http

from ingot.api.auth import identity, sessions
from ingot.api.web import fields, operations, versions
from ingot.api.web.call import NO_CONTENT, Call, Reply
from ingot.api.web.fields import Field
from ingot.api.web.operations import Answer, Plain, operation
from ingot.common import context, errors
from ingot.common.json_types import Json

_RELEASE = importlib.metadata.version("ingot")
_NO_STORE = {"Cache-Control": "no-store"}
_HEADER_VALUE = "1"

_SHOWN = fields.complete_schema(
    {
        "strategy": {"enum": ["noauth", "http_basic", "keystone"]},
        "authenticated": fields.FLAG_SCHEMA,
        **dict.fromkeys(("user", "project", "expires_at"), fields.OPTIONAL_TEXT_SCHEMA),
        "roles": {"type": "array", "items": fields.TEXT_SCHEMA},
        "version": fields.TEXT_SCHEMA,
        "release": fields.OPTIONAL_TEXT_SCHEMA,
    }
)
_LOGIN = fields.Body(
    "session",
    Field("user", type=fields.text(shortest=1, nullable=False), required=True),
    Field("password", type=fields.text(longest=4096, nullable=False), required=True),
    *(Field(name, type=fields.TEXT) for name in ("user_domain", "project", "project_domain")),
)


def _describe(call: Call, ctx: context.RequestContext | None, session: sessions.Session | None) -> Json:
    """Return what the console must know of a person.

    :param ctx: of the person; None: there is none.
    """
    ends = session and datetime.datetime.fromtimestamp(int(session.expires), datetime.UTC)
    return {
        "strategy": call.conf.auth_strategy,
        "authenticated": ctx is not None,
        "user": ctx and (ctx.user_name or ctx.user_id),
        "project": ctx and (ctx.project_name or ctx.project_id),
        "roles": sorted(ctx.roles) if ctx else [],
        "expires_at": ends and ends.isoformat(),
        "version": versions.RANGE[versions.MAX_HEADER],
        "release": _RELEASE if ctx else None,
    }


@operation(answer=Answer(shows=Plain(_SHOWN)))
def show(call: Call) -> Reply:
    """Show who sends the request, if it has a session or other credentials."""
    call.sessions.require_enabled()
    known = call.conf.auth_strategy == "noauth" or call.ctx.user_id is not None
    return Reply(_describe(call, call.ctx if known else None, call.session), 200, _NO_STORE)


@operation(body=_LOGIN, answer=Answer(201, shows=Plain(_SHOWN)))
def create(call: Call) -> Reply:
    """Log in: check a password, and answer with the cookie of a session."""
    call.sessions.require_enabled()
    if call.conf.auth_strategy == "noauth":  # all are in
        return Reply(_describe(call, call.ctx, None), 201, _NO_STORE)
    _require_header(call)
    body: dict[str, Any] = call.body
    if call.subject is not None:
        call.subject.given = body["user"]
    opened = call.sessions.open(identity.Login(**body), call.address)
    for name in ("user_id", "user_name", "project_id", "project_name"):  # for the audit trail, and the access log
        setattr(call.ctx, name, getattr(opened.ctx, name))
    cookie = _build_cookie(call, opened.cookie, opened.session)
    return Reply(_describe(call, opened.ctx, opened.session), 201, {**_NO_STORE, "Set-Cookie": cookie})


@operation(answer=operations.EMPTY_204)
def delete(call: Call) -> Reply:
    """Log out: have the browser forget the cookie, and end what it stands for where that is possible."""
    call.sessions.require_enabled()
    if call.subject is not None:
        call.subject.counts = call.session is not None  # without, it changes nothing, and all may send it
    if call.conf.auth_strategy == "noauth":
        return NO_CONTENT
    _require_header(call)
    if call.session is not None:
        call.sessions.close(call.session)
        call.consoles.end_session(call.session)
    return Reply(None, 204, {**_NO_STORE, "Set-Cookie": _build_cookie(call, "", None)})


def _require_header(call: Call) -> None:
    """Refuse what a page of another site could have sent.

    :raises Invalid: the header is missing that no form can set.
    """
    given = call.headers.get(sessions.HEADER)
    if given != _HEADER_VALUE:
        allowed = f"Send the header {sessions.HEADER}: {_HEADER_VALUE}, which shows that no other site is behind it."
        raise errors.Invalid(field=sessions.HEADER, value=given, allowed=allowed)


def _build_cookie(call: Call, value: str, session: sessions.Session | None) -> str:
    """Return the header that sets the cookie, or, without a session, removes it."""
    return http.dump_cookie(
        sessions.name_cookie(call.base),
        value,
        max_age=0 if session is None else session.seconds_left,
        path="/",
        secure=call.base.startswith("https:"),
        httponly=True,
        samesite="Strict",
    )
