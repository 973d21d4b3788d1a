"""The application: what happens around every request, whatever its resource. The only module of the web framework.

Order: route, method, user, version, query, body, handler. Every refusal on the way is an error of
:mod:`ingot.common.errors` and becomes an answer in one place.
"""

import contextlib
import functools
import hashlib
import logging
import pathlib
import re
import threading
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, NoReturn

import flask
import orjson
from oslo_config import cfg
from oslo_context import context as oslo_context
from oslo_log import log
from werkzeug import routing

from ingot.api import routes
from ingot.api.auth import identity
from ingot.api.auth.access import Access
from ingot.api.auth.rules import RULES
from ingot.api.web import faults, fields, operations, preconditions, proxies, streams, versions
from ingot.api.web.call import Call, Reply
from ingot.api.web.operations import Operation, Route
from ingot.api.web.preconditions import Preconditions
from ingot.api.web.streams import Downloads, Feed
from ingot.common import context, errors, masking, networks
from ingot.db.engine import Database
from ingot.rpcapi.client import ConductorClient

LOG = log.getLogger(__name__)
ACCESS = log.getLogger("ingot.api.access")

_GLOBAL_REQUEST_ID = re.compile(r"req-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_JSON = "application/json"
_MEDIA_RANGE = re.compile(r"(?P<name>\*|[\w!#$%&'*+.^`|~-]+/[\w!#$%&'*+.^`|~-]+)\s*(?P<parameters>(;.*)?)", re.ASCII)
_WEIGHT = re.compile(r";\s*q\s*=\s*(0(?:\.\d*)?|1(?:\.0*)?)\s*(?:;|$)", re.ASCII | re.IGNORECASE)

_BODY_SIZES = {
    "/states/provision": "max_json_body_size_provision",
    "/continue_inspection": "max_json_body_size_inspection",
}

_LONGEST_PATH = 500  # characters, in the access log
_LONGEST_NAME = 255  # of a user, in the history of a node
_EVERYTHING = Access()
_FIRST_PAUSE_S = 0.05

_NO_STATE = "/v1/nodes/<node>/states/<name>"
_QUIET = frozenset(("/", "/v1", "/v1/heartbeat/<node>"))
"""Routes of probes and of agents, whose requests are many and say nothing unless they are refused."""

_ROOTS = frozenset(route.path.split("/")[1] for route in routes.ROUTES)

FEED = "ingot.feed"
"""The extension of the application that the web server closes when it stops."""

BODY_LIMIT = "ingot.body_limit"
"""The extension of the application that returns how many bytes the body of a request to a path may have."""


def create_app(conf: cfg.ConfigOpts, db: Database, client: ConductorClient) -> flask.Flask:
    """Return the WSGI application.

    :raises ConfigurationError: the users of http_basic cannot be read.
    """
    here = str(pathlib.Path(__file__).parent)  # the framework cannot find the folder of a namespace package
    app = flask.Flask("ingot.api", static_folder=None, root_path=here, instance_path=here)
    app.url_map.strict_slashes = False
    app.url_map.merge_slashes = False
    api = Api(conf, db, client)
    app.extensions[FEED] = api.feed
    app.extensions[BODY_LIMIT] = api.body_limit
    app.view_functions[_NO_STATE] = _refuse_state
    for route in routes.ROUTES:
        app.view_functions[route.path] = functools.partial(api.answer, route)
    for path in app.view_functions:
        # Without methods of its own a rule matches all of them: the table of routes says which are allowed.
        app.url_map.add(routing.Rule(path, endpoint=path, methods=None))
    app.register_error_handler(Exception, _refuse)
    app.before_request(_begin)
    app.after_request(_sign)
    headers = proxies.ProxyHeaders(conf)
    app.wsgi_app = functools.partial(_serve, app.wsgi_app, headers)  # type: ignore[method-assign]
    return app


class Answer(NamedTuple):
    """What the application answers.

    :param lasting: a body that is sent without a thread, instead of ``body``.
    :param close: ends it, if it must be ended.
    """

    status: int
    headers: list[tuple[bytes, bytes]]
    body: bytes = b""
    lasting: streams.Lasting | None = None
    close: Callable[[], None] | None = None


def collect(wsgi_app: Callable[..., Iterable[bytes]], environ: dict[str, Any]) -> Answer:
    """Have the application answer a request that has arrived whole."""
    lasting: list[streams.Lasting] = []
    begun: list[tuple[str, list[tuple[str, str]]]] = []
    environ[streams.TAKE] = lasting.append
    try:
        parts = wsgi_app(environ, lambda status, headers, _exc=None: begun.append((status, headers)))
        close = getattr(parts, "close", None)
        try:
            body = b"" if lasting else b"".join(parts)
        finally:
            if close and not lasting:
                close()
    except Exception:  # the edge of a request: the application itself answers what it can
        LOG.exception("The application failed")
        return Answer(500, [(b"content-length", b"0")])
    status, headers = begun[-1]
    encoded = [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in headers]
    return Answer(int(status[:3]), encoded, body, lasting[0] if lasting else None, close)


def _serve(wsgi_app: Any, headers: proxies.ProxyHeaders, environ: dict[str, Any], start_response: Any) -> Any:
    """Serve what proxies pass on, and other spellings of a URL: without a version, and with ``.json`` at its end."""
    peer = environ.get("REMOTE_ADDR", proxies.UNKNOWN)
    if peer.startswith("::ffff:") or not proxies.HEADERS.isdisjoint(environ):
        headers.correct(environ)
    path = environ["PATH_INFO"]
    if f"{path}/".split("/")[1] not in _ROOTS:
        path = f"/v1{path}"
    if path.startswith("/v1/") and path.endswith(".json"):
        own, common = environ.get("HTTP_X_OPENSTACK_IRONIC_API_VERSION"), environ.get("HTTP_OPENSTACK_API_VERSION")
        with contextlib.suppress(errors.VersionRefused):  # the request is refused later, with its headers
            if versions.negotiate(own, common) < 91:
                path = path.removesuffix(".json")
    environ["PATH_INFO"] = path
    return wsgi_app(environ, start_response)


def _refuse_state(node: str, name: str) -> NoReturn:
    """Refuse a state that nodes do not have. Measured: reading it is 404, as everywhere, but setting it is 405."""
    if _read_method(flask.request) == "GET":
        known = (route.path.rpartition("/")[2] for route in routes.ROUTES if route.path.startswith(_NO_STATE[:-6]))
        raise errors.NotFound(f"The states of a node have no {name[:80]}. There are: {', '.join(sorted(known))}.")
    flask.g.allow = ""
    raise errors.MethodNotAllowed(method=flask.request.method[:20], allowed="none")


class Api:
    """What all requests share."""

    def __init__(self, conf: cfg.ConfigOpts, db: Database, client: ConductorClient) -> None:
        self._conf = conf
        self._db = db
        self._client = client
        self._auth = identity.load_strategy(conf)
        self.feed = Feed(conf, db)
        self._waiting_slots = threading.Semaphore(max(1, conf.api.api_threads // 4))
        self._downloads = Downloads(conf)
        # As with Ironic: proxies that say how clients see the API know it better.
        fixed = None if conf.oslo_middleware.enable_proxy_headers_parsing else conf.api.public_endpoint
        self._public_endpoint = (fixed or "").rstrip("/")

    def answer(self, route: Route, **ident: str) -> flask.Response:
        """Answer a request to a URL of the table.

        :raises IngotError: it is refused.
        """
        request = flask.request
        if request.method == "OPTIONS":
            return _build_empty(200, {"Allow": route.allowed})
        if route.for_machines:
            self._check_machine(route, request)
        operation = _find_operation(route, request)
        access = self._authenticate(route, request)
        flask.g.minor = _read_minor(route, request)
        if flask.g.minor < operation.since:
            if route.first:
                route.first(self._call(operation, request, access, None), **ident)
            raise route.too_new_error(_read_method(request))
        if access.limited and (operation.rule not in RULES or RULES[operation.rule].at_once):
            access.require(operation.rule)
        conditions = None
        if any(name in request.headers for name in preconditions.HEADERS):
            conditions = preconditions.read_preconditions(request.headers)
            if _read_method(request) != "GET" and not route.tagged:
                conditions.refuse_tags()
        call = self._call(operation, request, access, conditions)
        reply = self._wait_for_lock(lambda: operation.handler(call, **ident))
        if access.limited:
            access.check_required()
        return _build_response(reply, operation.answer.media, request, conditions)

    def _check_machine(self, route: Route, request: flask.Request) -> None:
        """Refuse a client that is no machine, as far as networks tell.

        :raises Forbidden: its address is in none of those of machines.
        """
        flask.g.secret = True
        permitted, address = self._conf.api.machine_networks, _read_address(request)
        if permitted and not networks.contain(permitted, address):
            known = address or f"an unknown address, by way of {request.remote_addr or 'the unix socket'}"
            LOG.warning("%s is refused to %s, which is in no network of [api] machine_networks", route.path, known)
            raise errors.Forbidden("Machines and their agents are answered on their networks only.")

    def _wait_for_lock(self, handle: Callable[[], Reply]) -> Reply:
        """Wait a moment for a node that is locked: mostly the request before this one is still being served.

        A request that is refused because of a lock has written nothing, so that the whole handler can run again. Only
        some may wait: threads that wait serve no other requests.
        """
        try:
            return handle()
        except errors.NodeLocked:
            if not self._conf.api.lock_wait_timeout or not self._waiting_slots.acquire(blocking=False):
                raise
        until = time.monotonic() + self._conf.api.lock_wait_timeout
        pause = _FIRST_PAUSE_S
        try:
            while (left := until - time.monotonic()) > pause:
                time.sleep(pause)
                with contextlib.suppress(errors.NodeLocked):
                    return handle()
                pause *= 2
            time.sleep(max(left, 0))
            return handle()
        finally:
            self._waiting_slots.release()

    def _authenticate(self, route: Route, request: flask.Request) -> Access:
        """Find out who sends a request, unless it is public, and return what they may do."""
        ids: identity.RequestIds = flask.g.ids
        if route.public:
            return _EVERYTHING
        if self._auth is None:  # what a client says goes into the history of the node
            user, project = (request.headers.get(f"X-{name}-Id", "")[:_LONGEST_NAME] for name in ("User", "Project"))
            flask.g.ctx = context.RequestContext(user_id=user or None, project_id=project or None, **ids)
            flask.g.ctx.update_store()
            return _EVERYTHING
        flask.g.ctx = self._auth.identify(request.environ, **ids)
        flask.g.ctx.update_store()
        return self._auth.access(flask.g.ctx)

    def _call(
        self, operation: Operation, request: flask.Request, access: Access, conditions: Preconditions | None
    ) -> Call:
        minor: int = flask.g.minor
        return Call(
            conf=self._conf,
            db=self._db,
            client=self._client,
            ctx=flask.g.ctx,
            access=access,
            rule=operation.rule,
            feed=self.feed,
            downloads=self._downloads,
            headers=request.headers,
            minor=minor,
            address=_read_address(request),
            base=self._public_endpoint or request.root_url.rstrip("/"),
            path=request.path,
            query=operations.read_query(operation.query, request.args, minor) if request.args else {},
            body=operation.body.check(self._read_body(request), minor) if operation.body else None,
            preconditions=None if _read_method(request) == "GET" else conditions,
        )

    def body_limit(self, path: str) -> int:
        """Return how many bytes the body of a request to a path may have."""
        own = next((name for end, name in _BODY_SIZES.items() if path.rstrip("/").endswith(end)), "max_json_body_size")
        return int(self._conf.api[own]) * 1024

    def _read_body(self, request: flask.Request) -> Any:
        """Return the parsed body; None for an empty one.

        :raises BodyTooLarge: it has more bytes than are accepted.
        :raises TooDeep: its lists and objects are nested deeper than is accepted.
        :raises Invalid: it is not JSON, or did not arrive whole.
        """
        limit, declared = self.body_limit(request.path), request.content_length or 0
        try:
            raw = b"" if declared > limit else request.stream.read(limit + 1)
        except (OSError, ValueError) as exc:
            raise errors.Invalid(
                f"The request body cannot be read: {exc}. Send a Content-Length that is true, or whole chunks."
            ) from exc
        if max(declared, len(raw)) > limit:
            raise errors.BodyTooLarge(size=max(declared, len(raw)), limit=limit)
        if len(raw) < declared:
            raise errors.Invalid(f"The request body ended after {len(raw)} of {declared} bytes.")
        if not raw.strip():
            return None
        try:
            parsed = orjson.loads(raw)
        except orjson.JSONDecodeError as exc:
            raise errors.Invalid(f"The request body is not JSON: {exc}. Send a JSON document in UTF-8.") from exc
        if fields.is_deeper_than(parsed, self._conf.api.max_json_body_depth):
            raise faults.TooDeep(limit=self._conf.api.max_json_body_depth)
        if parsed is None:
            raise errors.Invalid("The request body is null. Send a JSON object or list, or leave the body out.")
        return parsed


def _find_operation(route: Route, request: flask.Request) -> Operation:
    """Return what a request asks for. Its user is not known yet.

    :raises IngotError: the route does not serve such a request, whatever the user.
    """
    if "\0" in request.path:
        raise errors.Invalid(field="URL", value=request.path, allowed="No name holds a NUL.")
    method = _read_method(request)
    if method not in route.operations:
        if _read_minor(route, request) < route.since:  # the refusal names the version that the URL needs
            raise route.too_new_error(method[:20])
        flask.g.allow = route.allowed
        raise errors.MethodNotAllowed(method=request.method[:20], allowed=flask.g.allow)
    operation = route.operations[method]
    accept = request.headers.get("Accept", "*/*")
    if operation.answer.media == _JSON and accept not in ("*/*", _JSON) and not _accepts_json(accept):
        raise errors.NotAcceptable(accept=accept[:80])
    return operation


def _read_address(request: flask.Request) -> str:
    """Return the address of the client itself; unknown where it may be that of a proxy before many."""
    hidden = proxies.HIDDEN in request.environ
    return proxies.UNKNOWN if hidden else request.environ.get("REMOTE_ADDR", proxies.UNKNOWN)


def _read_method(request: flask.Request) -> str:
    """Return the method of a request; HEAD is GET, whose answer then loses its body."""
    return "GET" if request.method == "HEAD" else request.method


def _accepts_json(accept: str) -> bool:
    """Return whether a client accepts JSON (RFC 9110, 12.5.1). A header in which nothing can be read says nothing.

    The most exact range that matches decides. Parameters do not matter: JSON has none.
    """
    ranges: dict[str, float] = {}
    for given in urllib.request.parse_http_list(accept):
        if found := _MEDIA_RANGE.fullmatch(given):
            name = "*/*" if found["name"] == "*" else found["name"].lower()
            weight = _WEIGHT.search(found["parameters"])
            ranges[name] = max(ranges.get(name, 0.0), float(weight[1]) if weight else 1.0)
    exact = next((name for name in (_JSON, "application/*", "*/*") if name in ranges), None)
    return ranges[exact] > 0 if exact else not ranges


def _read_minor(route: Route, request: flask.Request) -> int:
    """Return the minor version that a request speaks.

    :raises VersionRefused: the version cannot be read, or is not served.
    """
    if route.any_version:
        return versions.MAX
    return versions.negotiate(request.headers.get(versions.HEADER), request.headers.get("OpenStack-API-Version"))


def _begin() -> None:
    """Give the request its ids: all that is logged for it carries them, a refusal of its user too."""
    flask.g.began = time.monotonic()
    given = flask.request.headers.get("X-OpenStack-Request-ID", "")
    known = given if _GLOBAL_REQUEST_ID.fullmatch(given) else None
    flask.g.ids = {"request_id": oslo_context.generate_request_id(), "global_request_id": known, "overwrite": False}
    flask.g.ctx = context.RequestContext(**flask.g.ids)
    flask.g.ctx.update_store()


def _build_response(
    reply: Reply, media: str, request: flask.Request, conditions: Preconditions | None
) -> flask.Response:
    body: Any = reply.body
    is_get = _read_method(request) == "GET"
    if media != _JSON or isinstance(body, str):  # the method of a vendor may answer with a text
        return _build_as_it_is(reply, "text/plain" if media == _JSON else media, request)
    data = b"" if body is None else orjson.dumps(body, option=orjson.OPT_NAIVE_UTC)
    headers = dict(reply.headers)
    if reply.version is not None or (is_get and data):
        digest = hashlib.blake2b(data, digest_size=8).hexdigest()
        tag = digest if reply.version is None else f"{reply.version}-{digest}"  # see preconditions
        headers["ETag"] = f'"{tag}"'
        if conditions and is_get and conditions.check_answer(tag):
            return flask.Response(status=304, headers=headers)
    return flask.Response(data, reply.status, headers, mimetype=_JSON) if data else _build_empty(reply.status, headers)


def _build_as_it_is(reply: Reply, media: str, request: flask.Request) -> flask.Response:
    """Return an answer whose body is sent as the handler made it: a text, or a stream that may last."""
    body: Any = reply.body
    response = flask.Response(body, reply.status, reply.headers, mimetype=media)
    if isinstance(body, str | bytes):
        return response
    response.direct_passthrough = True
    if request.method == "HEAD":
        body.close()
        response.response = iter(())
    elif streams.TAKE in request.environ:
        request.environ[streams.TAKE](body)
    return response


def _build_empty(status: int, headers: Mapping[str, str]) -> flask.Response:
    """Return an answer without a body; clients would parse one that has a type."""
    response = flask.Response(status=status, headers=headers)
    del response.headers["Content-Type"]
    return response


def _refuse(exc: Exception) -> flask.Response:
    """Return the answer to a request that cannot be served. This is the edge of a request: nothing escapes."""
    error = faults.build_error(exc)
    headers = faults.build_headers(error) | ({"Allow": flask.g.allow} if "allow" in flask.g else {})
    return flask.Response(faults.build_body(error, "minor" in flask.g), error.code, headers, mimetype=_JSON)


def _sign(response: flask.Response) -> flask.Response:
    """Add the headers of every answer."""
    own_id = flask.g.ids["request_id"]
    response.headers["X-Content-Type-Options"] = "nosniff"
    if "secret" in flask.g:
        response.headers["Cache-Control"] = "no-store"
    response.headers.update({"OpenStack-Request-Id": own_id, "X-OpenStack-Request-Id": own_id})
    if "minor" in flask.g:
        spoken = {versions.HEADER: f"1.{flask.g.minor}", "Vary": f"{versions.HEADER}, OpenStack-API-Version"}
        response.headers.update({**versions.RANGE, **spoken})
    _log_access(flask.request, response.status_code)
    return response


def _log_access(request: flask.Request, status: int) -> None:
    path, found = request.path, request.view_args or {}
    if "ticket" in found:
        path = path.replace(found["ticket"], masking.MASK)
    log_access(
        request.method,
        path,
        status,
        time.monotonic() - request.environ.get(streams.ARRIVED, flask.g.began),
        quiet=request.url_rule is not None and request.url_rule.endpoint in _QUIET,
        address=request.remote_addr,
        user=flask.g.ctx.user_id,
        request_id=flask.g.ids["request_id"],
    )


def log_access(method: str, path: str, status: int, seconds: float, *, quiet: bool = False, **who: str | None) -> None:
    """Write the line of a request into the access log, also of one that is refused, whatever server the API runs in.

    :param seconds: from its arrival to the beginning of its answer.
    :param quiet: whether it is one of many that say nothing, unless it is refused.
    :param who: address, user and request id, as far as they are known.
    """
    level = logging.DEBUG if quiet and status < 400 else logging.INFO
    if ACCESS.isEnabledFor(level):
        address, user, ident = (_quote(who.get(name) or "-") for name in ("address", "user", "request_id"))
        asked = _quote(method), _quote(path[:_LONGEST_PATH])
        ACCESS.log(
            level, "%s %s %d %.1f ms, user %s, from %s, %s", *asked, status, seconds * 1000, user, address, ident
        )


def _quote(text: str) -> str:
    """Return a text in which nothing can pass for another line, or another word of this one."""
    return urllib.parse.quote(text, safe="/:@!$&'()*+,;=[]<>")
