"""Audit events in CADF (DSP0262), as Ironic sends them: by keystonemiddleware, as notifications of oslo.messaging.

The middleware stands between the user and the handler, as in Ironic: who is refused a login is not in it. It gets a
request without body, token and secrets of the URL. A thread sends what it makes: no request waits for a broker. Where
there is no map file, nothing of it is loaded.
"""

import configparser
import io
import logging
import pathlib
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

import orjson
from oslo_config import cfg
from werkzeug.wrappers import Response

from ingot.api.web.exchange import Exchange
from ingot.common import context, errors, later, masking
from ingot.notifications import bus, notifier

if TYPE_CHECKING:
    from keystonemiddleware import audit
else:
    audit = later.Module("keystonemiddleware.audit")

GROUP = "audit_middleware_notifications"

_SETTINGS = ("audit_map_file", "ignore_req_list")
_LOG_NAME = {"log_name": "ingot.audit.cadf"}

# The library warns of settings that it reads itself, as they are no options of its group.
_WRONG = tuple(f'The option "{name}" is not known' for name in (*_SETTINGS, *_LOG_NAME))
logging.getLogger("keystonemiddleware._common.config").addFilter(
    lambda record: not record.getMessage().startswith(_WRONG)
)

_LEFT_OUT = ("/boot/", "/healthcheck")
"""Beginnings of URLs that no event is about: what machines read, whose URLs have tickets, and probes."""

_WORK = "ingot.work"
_UNKNOWN = "unknown"
_SECTIONS: Mapping[str, str] = {
    "custom_actions": "END_OF_URL = ACTION, or END_OF_URL/METHOD = ACTION",
    "path_keywords": "PART_OF_URL = WHAT_FOLLOWS_IT",
    "service_endpoints": "TYPE_OF_SERVICE = TYPE_IN_EVENTS",
}


class _HasStatus(Protocol):
    """An answer."""

    @property
    def status_code(self) -> int: ...


_Answer = TypeVar("_Answer", bound=_HasStatus)


class Asked(NamedTuple):
    """A request whose user is known.

    :param catalog: Keystone's services, as JSON; None: the user's token has none.
    :param base: scheme and host, as clients see the API.
    """

    ctx: context.RequestContext
    catalog: str | None
    method: str
    path: str
    query: str
    base: str
    address: str
    agent: str


def describe(exchange: Exchange, base: str) -> Asked:
    """Return what events say of a request, and take the catalog, which is long, from the context: that may last."""
    environ, ctx = exchange.environ, exchange.ctx
    catalog, ctx.catalog = ctx.catalog, None
    query, agent = (str(environ.get(name, "")) for name in ("QUERY_STRING", "HTTP_USER_AGENT"))
    return Asked(ctx, catalog, environ["REQUEST_METHOD"], exchange.path, query, base, exchange.address, agent)


def check(conf: cfg.ConfigOpts) -> None:
    """Refuse a map that cannot be used, and events that nothing would send.

    :raises ConfigurationError: there are such options.
    """
    file = conf.audit.audit_map_file
    if not (conf.audit.enabled and file):
        return
    wrong = _find_mistake(file)
    if wrong:
        raise errors.ConfigurationError(option="[audit] audit_map_file", value=file, allowed=wrong)
    _register(conf)
    options = conf[GROUP]
    bus.check_audit(conf, options.transport_url)
    if options.use_oslo_messaging and not (options.driver or bus.has_drivers(conf)):
        raise errors.ConfigurationError(
            option=f"[{GROUP}] driver",
            value=None,
            allowed="With audit_map_file something must send the events: write messagingv2 for RabbitMQ, log for the "
            "log, or noop for nothing; in [oslo_messaging_notifications] it is for all notifications.",
        )


def _register(conf: cfg.ConfigOpts) -> None:
    for group, options in audit.list_opts():
        conf.register_opts(options, group=group)


def _find_mistake(file: str) -> str | None:
    """Return what is wrong with a map; the library passes over most of it."""
    parser = configparser.ConfigParser()
    try:
        parser.read_string(pathlib.Path(file).read_text(encoding="utf-8"), source=file)
        for section in parser.sections():
            parser.items(section)
    except OSError as exc:
        return f"The file cannot be read: {exc.strerror}. etc/api_audit_map.conf is one to begin with."
    except (configparser.Error, UnicodeDecodeError) as exc:
        return f"The file cannot be used: {exc}."
    if unknown := sorted(set(parser.sections()) - set(_SECTIONS)):
        known = "; ".join(f"[{name}] with {form}" for name, form in _SECTIONS.items())
        return f"Nothing reads its section [{unknown[0]}]. There are: [DEFAULT] with target_endpoint_type; {known}."
    if not parser.has_section("path_keywords"):
        return "It has no section [path_keywords], so that no event would say what it is about."
    return None


class Events:
    """Sends the events of requests, if there is a map.

    :ivar outbound: the thread that sends them; None: they are off, or go into the log by themselves.
    """

    def __init__(self, conf: cfg.ConfigOpts) -> None:
        """:raises ConfigurationError: as :func:`check`."""
        self.is_on = bool(conf.audit.enabled and conf.audit.audit_map_file)
        self.outbound: bus.Outbound | None = None
        self._middleware: Any = None
        if not self.is_on:
            return
        check(conf)
        self._publisher = f"{notifier.API}.{conf.host}"
        settings = _LOG_NAME | {name: conf.audit[name] for name in _SETTINGS}
        # It would make a notifier of its own, with which requests wait for brokers.
        self._middleware = audit.AuditMiddleware(
            _serve, **settings, oslo_config_config=conf, use_oslo_messaging="false"
        )
        options = conf[GROUP]
        if options.use_oslo_messaging:
            self.outbound = bus.Outbound(bus.connect_audit(conf, options.transport_url, options.driver, options.topics))
            self._middleware._notifier = self  # the library has no door for it

    def covers(self, path: str) -> bool:
        """Return whether a route has events, when they are on."""
        return not path.startswith(_LEFT_OUT)

    def watch(self, asked: Asked, work: Callable[[], _Answer]) -> _Answer:
        """Answer a request, with an event before and one after.

        :raises Exception: what ``work`` raises.
        """
        kept: list[_Answer | Exception] = []

        def answer() -> int:
            try:
                response = work()
            except Exception as exc:  # noqa: BLE001 - it is raised below
                kept.append(exc)
                return exc.code if isinstance(exc, errors.IngotError) else HTTPStatus.INTERNAL_SERVER_ERROR
            kept.append(response)
            return response.status_code

        Response.from_app(self._middleware, {**_build_environ(asked), _WORK: answer})
        if isinstance(kept[0], Exception):
            raise kept[0]
        return kept[0]

    def notify(self, _ctx: object, event_type: str, payload: Mapping[str, Any]) -> None:
        """Take an event of the middleware."""
        if self.outbound is not None:
            message = bus.Message(context.current(), self._publisher, event_type, "info", dict(payload))
            self.outbound.add(message)

    def close(self) -> None:
        """Send what waits, for some seconds at most."""
        if self.outbound is not None:
            self.outbound.close()


def _serve(environ: dict[str, Any], start_response: Callable[..., object]) -> list[bytes]:
    status = environ[_WORK]()
    start_response(f"{status} {HTTPStatus(status).phrase}", [])
    return []


def _build_environ(asked: Asked) -> dict[str, Any]:
    """Return what the middleware learns of a request, in the words of WSGI."""
    ctx = asked.ctx
    scheme, _, host = asked.base.partition("://")
    host, _, prefix = host.partition("/")
    path, _, query = masking.mask_text(f"{asked.path}?{asked.query}").partition("?")
    known = {
        "HTTP_X_USER_ID": ctx.user_id,
        "HTTP_X_USER_NAME": ctx.user_name,
        "HTTP_X_PROJECT_ID": ctx.project_id,
        "HTTP_X_IDENTITY_STATUS": "Confirmed" if ctx.user_id else None,
        "HTTP_USER_AGENT": asked.agent or None,
        "openstack.global_request_id": ctx.global_request_id,
    }
    return {
        "REQUEST_METHOD": asked.method,
        "SCRIPT_NAME": f"/{prefix}" if prefix else "",
        "PATH_INFO": path.encode().decode("latin-1"),  # as WSGI wants it
        "QUERY_STRING": query,
        "HTTP_HOST": host,
        "SERVER_NAME": host.partition(":")[0],
        "SERVER_PORT": host.partition(":")[2] or "80",
        "SERVER_PROTOCOL": "HTTP/1.1",
        "REMOTE_ADDR": asked.address or _UNKNOWN,
        "HTTP_X_SERVICE_CATALOG": asked.catalog or _build_catalog(asked.base),
        "openstack.request_id": ctx.request_id,
        "wsgi.url_scheme": scheme,
        "wsgi.input": io.BytesIO(),
        "wsgi.errors": io.StringIO(),
        "wsgi.version": (1, 0),
        "wsgi.multithread": True,
        "wsgi.multiprocess": False,
        "wsgi.run_once": False,
        **{name: value for name, value in known.items() if value is not None},
    }


def _build_catalog(base: str) -> str:
    """Return the catalog of a site without Keystone, or of a request without a user: this API is all there is."""
    own = {"type": "baremetal", "name": "ingot", "endpoints": [{"publicURL": base}]}
    return orjson.dumps([own]).decode()
