"""The application: what happens around every request, whatever its resource. The only module of the web framework.

Order: route, method, user, version, query, body, handler. Every refusal on the way is an error of
:mod:`ingot.common.errors` and becomes an answer in one place.
"""

import contextlib
import functools
import hashlib
import logging
import pathlib
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, cast

import flask
import orjson
from oslo_config import cfg
from oslo_log import log
from werkzeug import routing, wrappers

from ingot.api import routes
from ingot.api.auth import identity, sessions
from ingot.api.auth.access import Access
from ingot.api.auth.rules import RULES
from ingot.api.web import access_log, faults, fields, operations, preconditions, proxies, streams, versions, web_console
from ingot.api.web.audit_trail import Subject, Trail
from ingot.api.web.cadf import Events, describe
from ingot.api.web.call import Call, LockWaits, Reply
from ingot.api.web.consoles import ConsoleRelay, ConsoleRelays
from ingot.api.web.cross_origin import wrap
from ingot.api.web.exchange import Environ, Exchange
from ingot.api.web.operations import Operation, Route
from ingot.api.web.preconditions import Preconditions
from ingot.api.web.streams import Downloads, Feed
from ingot.api.web.tallies import TALLIES
from ingot.common import errors, masking, tracing
from ingot.db.engine import Database
from ingot.notifications import notifier
from ingot.rpcapi.client import ConductorClient

LOG = log.getLogger(__name__)

_JSON = "application/json"

_BODY_SIZES = {
    "/states/provision": "max_json_body_size_provision",
    "/continue_inspection": "max_json_body_size_inspection",
}

_EVERYTHING = Access()
_CONDITIONS = frozenset(("HTTP_IF_MATCH", "HTTP_IF_NONE_MATCH"))

_NO_STATE = "/v1/nodes/<node>/states/<name>"
_QUIET = frozenset(("/", "/v1", "/healthcheck", "/v1/heartbeat/<node>"))
"""Routes of probes and of agents, whose requests are many and say nothing unless they are refused."""

_ROOTS = frozenset((web_console.ROOT, *(route.path.split("/")[1] for route in routes.ROUTES)))

FEED = "ingot.feed"
"""The extension of the application that the web server closes when it stops."""

CONSOLES = "ingot.consoles"
"""The extension of the application that ends open consoles when the web server stops."""

NOTIFIER, TRAIL, CADF = SENDERS = "ingot.notifier", "ingot.audit_trail", "ingot.cadf"
"""The extensions that notify, write the audit trail and send its events, closed when the web server has stopped."""

BODY_LIMIT = "ingot.body_limit"
"""The extension of the application that returns how many bytes the body of a request to a path may have."""


def create_app(conf: cfg.ConfigOpts, db: Database, client: ConductorClient) -> flask.Flask:
    """Return the WSGI application.

    :raises ConfigurationError: the users of http_basic cannot be read.
    """
    return _Application(conf, Api(conf, db, client), proxies.ProxyHeaders(conf))


class _Application(flask.Flask):
    """Has everything around a request done here, in one function.

    Requests are handed on: none of the contexts of Flask is made, in which other code could look for them.
    """

    def __init__(self, conf: cfg.ConfigOpts, api: "Api", headers: proxies.ProxyHeaders) -> None:
        here = str(pathlib.Path(__file__).parent)  # the framework cannot find the folder of a namespace package
        super().__init__("ingot.api", static_folder=None, root_path=here, instance_path=here)
        self._api = api
        self._headers = headers
        self._console = web_console.ConsoleFiles(conf)
        self.extensions[FEED] = api.feed
        self.extensions[CONSOLES] = api.consoles
        self.extensions |= {NOTIFIER: api.notifier, TRAIL: api.trail, CADF: api.events}
        self.extensions[BODY_LIMIT] = api.body_limit
        # Without methods of its own a rule matches all of them: the table of routes says which are allowed.
        rules = [routing.Rule(path, endpoint=path, methods=None) for path in (_NO_STATE, *api.routes)]
        self.url_map = routing.Map(rules, strict_slashes=False, merge_slashes=False)
        self._urls = routing.MapAdapter(self.url_map, "", "/", None, "http", "/", "GET")
        self._outermost = wrap(conf, self._serve)

    def wsgi_app(self, environ: Environ, start_response: Any) -> Any:
        """Answer a request, of a page of another site perhaps."""
        return self._outermost(environ, start_response)

    def _serve(self, environ: Environ, start_response: Any) -> Any:
        """Answer a request. This is its edge: no error gets out."""
        self._correct(environ)
        exchange = Exchange(self.request_class(environ))
        try:
            response = self._open_file(exchange)
            if response is None:
                exchange.endpoint, exchange.named = self._urls.match(exchange.path)
                response = self._api.answer(exchange)
        except Exception as exc:  # noqa: BLE001 - what is no refusal is logged there
            response = _refuse(exchange, exc)
        if exchange.subject is not None and exchange.subject.counts:
            self._api.trail.record(exchange.sum_up(response.status_code, exchange.subject))
        signs = _sign(exchange, response.status_code)

        def start(status: str, headers: list[tuple[str, str]], _exc: Any = None) -> Any:
            own = [header for header in headers if header[0] not in signs]
            return start_response(status, [*own, *signs.items()])

        return response(environ, start)

    def _open_file(self, exchange: Exchange) -> flask.Response | None:
        """Return a file of the web console, which has no route; None if the request is for the API."""
        path = exchange.path
        is_of_console = path == web_console.HOME or path.startswith(web_console.PREFIX)
        if not (is_of_console or (path == "/" and "HTTP_ACCEPT" in exchange.environ)):
            return None
        if (reply := self._console.answer(exchange.request.method, path, exchange.environ)) is None:
            return None
        exchange.endpoint = web_console.PREFIX
        return flask.Response(cast(bytes, reply.body), reply.status, reply.headers)

    def _correct(self, environ: Environ) -> None:
        """Take what proxies pass on, and other spellings of a URL: without a version, with ``.json`` at its end."""
        peer = environ.get("REMOTE_ADDR", proxies.UNKNOWN)
        if peer.startswith("::ffff:") or not proxies.HEADERS.isdisjoint(environ):
            self._headers.correct(environ)
        path = environ["PATH_INFO"]
        if f"{path}/".split("/")[1] not in _ROOTS:
            path = f"/v1{path}"
        if path.startswith("/v1/") and path.endswith(".json"):
            with contextlib.suppress(errors.VersionRefused):  # the request is refused later, with its headers
                if versions.negotiate(*_read_versions(environ)) < 91:
                    path = path.removesuffix(".json")
        environ["PATH_INFO"] = path


class Answer(NamedTuple):
    """What the application answers.

    :param lasting: a body that is sent without a thread, instead of ``body``; or what takes over the connection.
    :param close: ends it, if it must be ended.
    """

    status: int
    headers: list[tuple[bytes, bytes]]
    body: bytes = b""
    lasting: streams.Lasting | ConsoleRelay | None = None
    close: Callable[[], None] | None = None


def collect(wsgi_app: Callable[..., Iterable[bytes]], environ: dict[str, Any]) -> Answer:
    """Have the application answer a request that has arrived whole."""
    lasting: list[streams.Lasting | ConsoleRelay] = []
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
    if lasting:
        return Answer(int(status[:3]), encoded, lasting=lasting[0], close=close or lasting[0].close)
    return Answer(int(status[:3]), encoded, body, close=close)


class Api:
    """What all requests share.

    :ivar routes: by path.
    """

    def __init__(self, conf: cfg.ConfigOpts, db: Database, client: ConductorClient) -> None:
        self.routes = {route.path: route for route in routes.ROUTES}
        self._conf = conf
        self._db = db
        self._client = client
        self._auth = identity.load_strategy(conf)
        self._sessions = sessions.Sessions(conf, self._auth)
        self.feed = Feed(conf, db, is_alone=client.stays_inside)
        self._lock_waits = LockWaits(conf)
        self._downloads = Downloads(conf)
        self.consoles = ConsoleRelays(conf)
        tracing.start(conf, "ingot-api")
        self.trail = Trail(conf, db)
        self.events = Events(conf)
        self.notifier = notifier.Notifier(conf, notifier.API)
        # As with Ironic: proxies that say how clients see the API know it better.
        fixed = None if conf.oslo_middleware.enable_proxy_headers_parsing else conf.api.public_endpoint
        self._public_endpoint = (fixed or "").rstrip("/")

    def answer(self, exchange: Exchange) -> flask.Response:
        """Answer a request to a URL of the table.

        :raises IngotError: it is refused.
        """
        route = self._find_route(exchange)
        if exchange.method == "OPTIONS":
            return _build_empty(200, {"Allow": route.allowed})
        if route.for_machines:
            exchange.is_secret = True
            if self._conf.api.machine_networks:
                proxies.check_machine(self._conf, route.path, exchange.address, exchange.request.remote_addr)
        operation = _find_operation(route, exchange)
        rule = operation.rule if exchange.method != "GET" else None
        if operation.escalation:
            rule = operation.escalation.find_rule(exchange.request.args)
        if rule is not None and not route.for_machines:
            exchange.rule = rule
            exchange.subject = Subject() if self.trail.is_on else None
        access = self._authenticate(route, exchange)
        if not (self.events.is_on and self.events.covers(route.path)):
            return self._serve(route, operation, exchange, access)
        serve = functools.partial(self._serve, route, operation, exchange, access)
        return self.events.watch(describe(exchange, self._find_base(exchange)), serve)

    def _serve(self, route: Route, operation: Operation, exchange: Exchange, access: Access) -> flask.Response:
        """Answer a request whose user is known; what refuses it is raised."""
        exchange.minor = _read_minor(route, exchange)
        if exchange.minor < operation.since:
            if route.first:
                route.first(self._call(operation, exchange, access, None), **exchange.named)
            raise route.too_new_error(exchange.method)
        if access.limited and (operation.rule not in RULES or RULES[operation.rule].at_once):
            access.require(operation.rule)
        is_plain = _CONDITIONS.isdisjoint(exchange.environ)
        conditions = None if is_plain else preconditions.read(exchange.request.headers, exchange.method, route.tagged)
        call = self._call(operation, exchange, access, conditions)
        handle = functools.partial(operation.handler, call, **exchange.named)
        reply = self._trace(exchange, route.path, handle) if tracing.THIS.tracer else self._wait_for_lock(handle)
        if access.limited:
            access.check_required()
        return _build_response(reply, operation.answer.media, exchange, conditions)

    def _find_route(self, exchange: Exchange) -> Route:
        """Return the route of a request.

        :raises IngotError: nodes have no such state. Measured: reading it is 404, as everywhere, but setting it is 405.
        """
        if exchange.endpoint != _NO_STATE:
            return self.routes[exchange.endpoint]
        if exchange.method == "GET":
            known = (path.rpartition("/")[2] for path in self.routes if path.startswith(_NO_STATE[:-6]))
            name = exchange.named["name"][:80]
            raise errors.NotFound(f"The states of a node have no {name}. There are: {', '.join(sorted(known))}.")
        exchange.allow = ""
        raise errors.MethodNotAllowed(method=exchange.method[:20], allowed="none")

    def _trace(self, exchange: Exchange, path: str, handle: Callable[[], Reply]) -> Reply:
        own = {"http_request_method": exchange.method, "http_route": path, "ingot_request_id": exchange.ctx.request_id}
        with tracing.serve(f"{exchange.method} {path}", exchange.environ.get("HTTP_TRACEPARENT"), **own):
            return self._wait_for_lock(handle)

    def _wait_for_lock(self, handle: Callable[[], Reply]) -> Reply:
        """Wait a moment for a node that is locked: mostly the request before this one is still being served."""
        try:
            return handle()
        except errors.NodeLocked as exc:
            return self._lock_waits.repeat(handle, exc)

    def _authenticate(self, route: Route, exchange: Exchange) -> Access:
        """Find out who sends a request, unless it is public, and return what they may do."""
        if route.public:
            if route.path == sessions.PATH:
                with contextlib.suppress(errors.NotAuthenticated):  # the answer says so
                    self._identify(exchange)
            return _EVERYTHING
        self._identify(exchange)
        return self._auth.access(exchange.ctx)

    def _identify(self, exchange: Exchange) -> None:
        """Find out who sends a request.

        :raises NotAuthenticated: it has no valid credentials, nor a session.
        """
        if sessions.SIGNS.isdisjoint(exchange.environ):
            exchange.ctx = self._auth.identify(exchange.environ, **exchange.ids)
        else:
            exchange.ctx, exchange.session = self._sessions.identify(exchange.environ, **exchange.ids)
        exchange.ctx.update_store()

    def _call(self, operation: Operation, exchange: Exchange, access: Access, conditions: Preconditions | None) -> Call:
        request, minor = exchange.request, exchange.minor or versions.MIN
        query = operations.read_query(operation.query, request.args, minor) if request.query_string else {}
        body = (
            operation.body.check(fields.read_body(self._conf, request, self.body_limit(exchange.path)), minor)
            if operation.body
            else None
        )
        if exchange.subject is not None:
            exchange.subject.note_body(body)
        return Call(
            conf=self._conf,
            db=self._db,
            client=self._client,
            ctx=exchange.ctx,
            access=access,
            rule=operation.rule,
            feed=self.feed,
            downloads=self._downloads,
            consoles=self.consoles,
            sessions=self._sessions,
            session=exchange.session,
            notifier=self.notifier,
            subject=exchange.subject,
            headers=request.headers,
            minor=minor,
            address=exchange.address,
            base=self._find_base(exchange),
            path=exchange.path,
            query=query,
            body=body,
            preconditions=None if exchange.method == "GET" else conditions,
            changes=exchange.method != "GET",
            offers_web_socket=sessions.OFFER in exchange.environ,
        )

    def _find_base(self, exchange: Exchange) -> str:
        return self._public_endpoint or exchange.request.root_url.rstrip("/")

    def body_limit(self, path: str) -> int:
        """Return how many bytes the body of a request to a path may have."""
        own = next((name for end, name in _BODY_SIZES.items() if path.rstrip("/").endswith(end)), "max_json_body_size")
        return int(self._conf.api[own]) * 1024


def _find_operation(route: Route, exchange: Exchange) -> Operation:
    """Return what a request asks for. Its user is not known yet.

    :raises IngotError: the route does not serve such a request, whatever the user.
    """
    if "\0" in exchange.path:
        raise errors.Invalid(field="URL", value=exchange.path, allowed="No name holds a NUL.")
    operation = route.operations.get(exchange.method)
    if operation is None:
        if _read_minor(route, exchange) < route.since:  # the refusal names the version that the URL needs
            raise route.too_new_error(exchange.method[:20])
        exchange.allow = route.allowed
        raise errors.MethodNotAllowed(method=exchange.request.method[:20], allowed=exchange.allow)
    accept = exchange.environ.get("HTTP_ACCEPT", "*/*")
    if operation.answer.media == _JSON and accept not in ("*/*", _JSON) and not operations.accepts_json(accept):
        raise errors.NotAcceptable(accept=accept[:80])
    return operation


def _read_minor(route: Route, exchange: Exchange) -> int:
    """Return the minor version that a request speaks.

    :raises VersionRefused: the version cannot be read, or is not served.
    """
    return versions.MAX if route.any_version else versions.negotiate(*_read_versions(exchange.environ))


def _read_versions(environ: Environ) -> tuple[str | None, str | None]:
    return environ.get("HTTP_X_OPENSTACK_IRONIC_API_VERSION"), environ.get("HTTP_OPENSTACK_API_VERSION")


def _build_response(reply: Reply, media: str, exchange: Exchange, conditions: Preconditions | None) -> flask.Response:
    body: Any = reply.body
    is_get = exchange.method == "GET"
    if media != _JSON or isinstance(body, str):  # the method of a vendor may answer with a text
        return _build_as_it_is(reply, "text/plain" if media == _JSON else media, exchange.request)
    data = b"" if body is None else orjson.dumps(body, option=orjson.OPT_NAIVE_UTC)
    headers = dict(reply.headers)
    if reply.version is not None or (is_get and data):
        digest = hashlib.blake2b(data, digest_size=8).hexdigest()
        tag = digest if reply.version is None else f"{reply.version}-{digest}"  # see preconditions
        headers["ETag"] = f'"{tag}"'
        if conditions and is_get and conditions.check_answer(tag):
            return flask.Response(status=304, headers=headers)
    return flask.Response(data, reply.status, headers, mimetype=_JSON) if data else _build_empty(reply.status, headers)


def _build_as_it_is(reply: Reply, media: str, request: wrappers.Request) -> flask.Response:
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


def _refuse(exchange: Exchange, exc: Exception) -> flask.Response:
    """Return the answer to a request that cannot be served."""
    error = faults.build_error(exc)
    exchange.refusal = error.message
    headers = faults.build_headers(error) | ({} if exchange.allow is None else {"Allow": exchange.allow})
    body = faults.build_body(error, handled=exchange.minor is not None)
    return flask.Response(body, error.code, headers, mimetype=_JSON)


def _sign(exchange: Exchange, status: int) -> Mapping[str, str]:
    """Log an answer, and return the headers that all have."""
    own_id = exchange.ids["request_id"]
    signs = {"X-Content-Type-Options": "nosniff", "OpenStack-Request-Id": own_id, "X-OpenStack-Request-Id": own_id}
    if exchange.is_secret:
        signs["Cache-Control"] = "no-store"
    if exchange.minor is not None:
        spoken = {versions.HEADER: f"1.{exchange.minor}", "Vary": f"{versions.HEADER}, OpenStack-API-Version"}
        signs |= versions.RANGE | spoken
    path, ticket = exchange.path, exchange.named.get("ticket")
    seconds = time.monotonic() - exchange.environ.get(streams.ARRIVED, exchange.began)
    counted, timed = TALLIES[exchange.method, exchange.endpoint, status // 100]
    counted.inc()
    timed.observe(seconds)
    quiet = exchange.endpoint in _QUIET and status < 400
    if quiet and not access_log.ACCESS.isEnabledFor(logging.DEBUG):
        return signs
    access_log.write(
        exchange.request.method,
        path.replace(ticket, masking.MASK) if ticket else path,
        status,
        seconds,
        quiet=quiet,
        address=exchange.request.remote_addr,
        user=exchange.ctx.user_id,
        request_id=own_id,
    )
    return signs
