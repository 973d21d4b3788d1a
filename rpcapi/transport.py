"""The two ways to a conductor: oslo.messaging between processes, a direct hand-over inside one process.

Both carry the same JSON, so that nothing works in one and fails in the other. A result travels in an envelope,
``{"result": ...}`` or ``{"error": {"type": ..., "message": ...}}``, so that an error keeps its class.
"""

import os
import ssl
import threading
import time
from collections.abc import Callable, Mapping
from concurrent import futures
from typing import Any, NamedTuple, Protocol

import amqp
import orjson
import oslo_messaging
from kombu import connection as kombu_connection
from kombu import exceptions as kombu_exceptions
from oslo_config import cfg
from oslo_log import log
from oslo_messaging._drivers import amqpdriver
from oslo_messaging.rpc import server as rpc_server

from ingot.common import context, errors, metrics, tracing
from ingot.common.conf import broker
from ingot.common.json_types import Json
from ingot.rpcapi import versions

LOG = log.getLogger(__name__)

TOPIC, EXCHANGE_SUFFIX = "ingot.conductors", ".durable"
"""What the names of queues begin with, and what is added to ``[DEFAULT] control_exchange``.

The type of a queue or an exchange cannot be changed: a release that needs another type gives them other names."""

PATIENCE_S = 60
"""How long a caller waits for an answer, even if there are keepalives."""

SILENCE_S = 15
"""Conductors that work on a call send a keepalive twice in this time: a call to one that is dead or frozen ends."""

QUESTION_SILENCE_S = 4
"""The same for a call that changes nothing: it does no harm if it is carried out after its caller has given up."""

_LATEST_BEGIN = 0.75
"""The share of a caller's patience within which work must have begun: the rest is for the work itself."""

_AWAY = (oslo_messaging.MessagingException, kombu_exceptions.OperationalError)
"""What is raised when the broker is away: oslo.messaging lets kombu's error through where it opens a new connection."""

# What takes messages looks 1, 2, 4 ... ms after each one for others to acknowledge, of which RPC has none. That is a
# private name of oslo.messaging: without it a deployment takes a tenth more processor time, and nothing else changes.
amqpdriver.ACK_REQUEUE_EVERY_SECONDS_MIN = 0.02

_LOST = metrics.WAKEUPS.labels("lost")

_PROBE_S = 5
_MOST_WAITING = 1000


def to_primitive(value: object) -> Any:
    """Return a value as the other side will see it: dictionaries, lists, strings, numbers, booleans, None.

    :raises TypeError: it holds something that has no JSON form.
    """
    return orjson.loads(orjson.dumps(value, option=orjson.OPT_UTC_Z))


def build_context(ctx: context.RequestContext, patience: float) -> Json:
    """Return the context of a call as it crosses the bus.

    It has the moments by which it must ``arrive`` and the work ``begin``, in seconds since the epoch. After them the
    caller may be gone. A request that has failed for it must not be carried out then, as by a conductor that is thawed.

    :param patience: seconds for which the caller waits for the answer.
    """
    now = time.time()
    by = {"arrive": now + SILENCE_S, "begin": now + patience * _LATEST_BEGIN}
    return {**to_primitive(ctx.to_dict()), "by": by}


def seconds_left(ctx: Mapping[str, Any], what: str) -> float:
    """Return the seconds left for a request to ``arrive`` or its work to ``begin``; negative if it is late.

    A wake-up has no limit.
    """
    now = time.time()
    left: float = ctx.get("by", {}).get(what, now + PATIENCE_S * _LATEST_BEGIN) - now
    return left


def refuse_late(ctx: Mapping[str, Any], what: str) -> None:
    """Raise ServiceUnavailable where it is too late for a request to ``arrive`` or its work to ``begin``."""
    if (left := seconds_left(ctx, what)) < 0:
        late = f"{-left:.0f} s too late. If that happens often, compare the clocks of the hosts"
        raise errors.ServiceUnavailable(what="This conductor", reason=f"the request came to {what} {late}")


def answer(ctx: Mapping[str, Any], method: Callable[..., object], *args: object, **kwargs: object) -> Json:
    """Run a method of the endpoint and pack its outcome. This is the edge of an RPC call: nothing escapes.

    :param ctx: of the request, as it crossed the bus.
    """
    context.RequestContext.from_dict(dict(ctx))  # the thread's from now on
    try:
        refuse_late(ctx, "arrive")
        with tracing.span(f"serve {method.__name__}", ctx.get("traceparent"), "SERVER"):
            return {"result": to_primitive(method(*args, **kwargs))}
    except errors.IngotError as exc:
        return {"error": {"type": type(exc).__name__, "message": exc.message}}
    except Exception:
        LOG.exception("RPC method %s failed unexpectedly", method.__qualname__)
        message = "Unexpected error on the conductor; its log has the details."
        return {"error": {"type": "IngotError", "message": message}}


def unpack(envelope: Json) -> Any:
    """Return the result in an envelope.

    :raises IngotError: the error in it, of the class it had on the other side.
    """
    if "error" in envelope:
        raise errors.by_name(envelope["error"]["type"])(envelope["error"]["message"])
    return envelope["result"]


class Transport(Protocol):
    """How the client reaches one conductor.

    ``call`` returns the envelope of the answer and raises ConductorAway when none came; ``cast`` raises
    ServiceUnavailable when it is clear already that the message cannot be handed over. ``version`` is the highest one
    that every conductor serves that may be asked. ``trouble`` is why the last message could not be sent.
    ``stays_inside`` is whether conductors are in this process only.
    """

    stays_inside: bool

    @property
    def trouble(self) -> str | None: ...

    def call(self, host: str, method: str, version: str, ctx: context.RequestContext, args: Json) -> Json: ...

    def cast(self, host: str, method: str, version: str, ctx: context.RequestContext, args: Json) -> None: ...


class LocalTransport:
    """API and conductor in one process: the endpoint is called on the caller's thread, through the same JSON."""

    patience: float = PATIENCE_S
    trouble: str | None = None
    stays_inside = True

    def __init__(self) -> None:
        self._endpoints: dict[str, object] = {}

    def serve(self, host: str, endpoint: object) -> None:
        """Have ``host`` served by ``endpoint`` from now on."""
        self._endpoints[host] = endpoint

    def stop(self, host: str) -> None:
        """Have ``host`` served no more."""
        self._endpoints.pop(host, None)

    def call(self, host: str, method: str, version: str, ctx: context.RequestContext, args: Json) -> Json:
        if host not in self._endpoints:
            raise errors.ConductorAway(what=f"Conductor {host}", reason="it does not run in this process")
        serve = getattr(self._endpoints[host], method)
        envelope: Json = serve(build_context(ctx, self.patience), **to_primitive(args))
        return envelope

    def cast(self, host: str, method: str, version: str, ctx: context.RequestContext, args: Json) -> None:
        self.call(host, method, version, ctx, args)


class Wakeup(NamedTuple):
    """One message to a conductor that something has work: a method of :data:`versions.WAKEUPS`, sent for a request."""

    method: str
    version: str
    ctx: context.RequestContext
    args: Json


class Wakeups:
    """The thread that sends wake-ups, outside of the requests that cause them.

    With a broker that is away or unresponsive, sending one takes seconds, and an API whose threads all wait for that
    would answer no request. What comes for a conductor while a message is under way goes together in the next one. The
    thread begins with the first wake-up, which may come after a WSGI server has forked.

    :param send: sends wake-ups to a conductor; raises ServiceUnavailable where that is not possible.
    :ivar trouble: why the last one could not be sent; None: it was.
    """

    def __init__(self, send: Callable[[str, list[Wakeup]], None], most_waiting: int = _MOST_WAITING) -> None:
        self._send = send
        self._most_waiting = most_waiting
        self._sender = futures.ThreadPoolExecutor(max_workers=1, thread_name_prefix="wake-ups")
        self.trouble: str | None = None
        self._lock = threading.Lock()
        self._waiting: dict[str, dict[tuple[str, str], Wakeup]] = {}  # by host, then by method and uuid

    def add(self, host: str, wakeup: Wakeup) -> None:
        """Have a wake-up sent soon. One that cannot be sent is lost; the sweep finds its work.

        One of the same node that still waits is replaced.

        :raises ServiceUnavailable: too many wait already.
        """
        key = wakeup.method, wakeup.args[versions.WAKEUPS[wakeup.method]]
        with self._lock:
            if key not in self._waiting.get(host, ()) and sum(map(len, self._waiting.values())) >= self._most_waiting:
                raise errors.ServiceUnavailable(what="The message bus", reason="too many messages wait for it")
            if host not in self._waiting:
                self._sender.submit(self._send_to, host)
            self._waiting.setdefault(host, {})[key] = wakeup

    def close(self) -> None:
        """End the thread; what has not been sent is lost."""
        self._sender.shutdown(wait=False, cancel_futures=True)

    def _send_to(self, host: str) -> None:
        with self._lock:
            wakeups = list(self._waiting.pop(host).values())
        wakeups[0].ctx.update_store()
        try:
            self._send(host, wakeups)
            self.trouble = None
        except errors.ServiceUnavailable as exc:
            self.trouble = exc.message
            _LOST.inc(len(wakeups))
            for wakeup in wakeups:
                wakeup.ctx.update_store()
                LOG.warning("Wake-up not sent, the sweep will find its work: %s", exc.message)
        except Exception:  # the edge of a worker
            _LOST.inc(len(wakeups))
            LOG.exception("Sending %d wake-ups failed unexpectedly", len(wakeups))


def check_brokers(conf: cfg.ConfigOpts) -> bool:
    """Return whether a broker of transport_url is there; log that none is, with host and port.

    :raises ConfigurationError: those that are there refuse user, password or virtual host, or a file for TLS is not.
    """
    broker.register(conf)
    url = broker.address(conf)
    if str(url.transport).startswith("fake"):
        return True
    options, refused, away = conf[broker.GROUP], [], []
    tls = _read_tls(options) if options.ssl else False
    for host in url.hosts or [oslo_messaging.TransportHost("localhost")]:
        place = f"{host.hostname}:{host.port or (5671 if tls else 5672)}"
        user, secret = host.username or "guest", host.password or "guest"
        try:
            with kombu_connection.Connection(  # type: ignore[no-untyped-call]
                hostname=host.hostname,
                port=host.port,
                userid=user,
                password=secret,
                virtual_host=url.virtual_host or "/",
                ssl=tls,
                connect_timeout=_PROBE_S,
            ) as connection:
                connection.connect()
            return True
        except (amqp.AccessRefused, amqp.NotAllowed) as exc:
            refused.append(
                f"{place} refuses user {user} for the virtual host {url.virtual_host or '/'} ({exc.message})"
            )
        except (*_AWAY, amqp.AMQPError, OSError) as exc:
            away.append(f"{place} ({exc})")
    if refused:
        raise errors.ConfigurationError(option="transport_url", value="***", allowed=f"{'; '.join(refused)}.")
    LOG.warning(
        "No broker can be reached: %s. Work goes on without, found by searches each %d s, and answers that need "
        "another process have to wait",
        ", ".join(away),
        conf.conductor.sweep_interval,
    )
    return False


def _read_tls(options: cfg.ConfigOpts.GroupAttr) -> dict[str, object]:
    """Return how brokers are spoken to with TLS.

    :raises ConfigurationError: a file cannot be read.
    """
    names = {"ca_certs": "ssl_ca_file", "certfile": "ssl_cert_file", "keyfile": "ssl_key_file"}
    files = {key: options[name] for key, name in names.items() if options[name]}
    for key, file in files.items():
        if not os.access(file, os.R_OK):
            option = f"[{broker.GROUP}] {names[key]}"
            raise errors.ConfigurationError(option=option, value=file, allowed="There is no such file to be read.")
    return {**files, "cert_reqs": ssl.CERT_REQUIRED}


class _Server(rpc_server.RPCServer):  # type: ignore[misc]  # it has no types
    """Takes wake-ups on the thread that receives them: they are only queued. Calls are answered by other threads.

    Of these it starts another one when all are busy; oslo.messaging's pool starts one with each message until it is
    full, and they wake up once a second for ever.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._executor_cls = futures.ThreadPoolExecutor

    def _on_incoming(self, incoming: Any) -> None:
        if incoming[0].message.get("method") in (*versions.WAKEUPS, "wake_up"):
            self._process_incoming(incoming)
        else:
            super()._on_incoming(incoming)


class OsloTransport:
    """oslo.messaging: RabbitMQ by ``transport_url``. Each conductor is a server of the topic.

    :param conf: must be oslo.config's global object, see ``ingot.common.conf.opts.load``.
    """

    stays_inside = False

    def __init__(self, conf: cfg.ConfigOpts) -> None:
        broker.register(conf)
        self._has_answered = False
        self._wakeups = Wakeups(self._send)
        self._bus = oslo_messaging.get_rpc_transport(conf, broker.address(conf))  # registers control_exchange
        self._exchange = conf.control_exchange + EXCHANGE_SUFFIX
        # A request must not wait for a broker that is away: the sweep makes up for a wake-up, a call answers 503.
        self._client = oslo_messaging.get_rpc_client(
            self._bus, self._target(), version_cap=versions.RPC_VERSION, call_monitor_timeout=SILENCE_S, retry=1
        )
        self._patience: float = conf.rpc_response_timeout

    def _target(self, **more: str) -> oslo_messaging.Target:
        return oslo_messaging.Target(topic=TOPIC, exchange=self._exchange, **more)

    def server(self, host: str, endpoint: object) -> oslo_messaging.MessageHandlingServer:
        """Return the RPC server of a conductor; its ``start``, ``stop`` and ``wait`` are the caller's."""
        return oslo_messaging.get_rpc_server(
            self._bus,
            self._target(server=host, version=versions.RPC_VERSION),
            [endpoint],
            executor="threading",
            access_policy=oslo_messaging.ExplicitRPCAccessPolicy,
            server_cls=_Server,
        )

    def call(self, host: str, method: str, version: str, ctx: context.RequestContext, args: Json) -> Json:
        try:
            if not self._has_answered:
                # A message that no queue is for. The first call opens the connection for answers, which oslo.messaging
                # tries for ever, whereas it soon gives up sending.
                self._client.prepare(topic=f"{TOPIC}-none", version=versions.RPC_VERSION).cast({}, "nothing")
            silence = QUESTION_SILENCE_S if method in versions.QUESTIONS else SILENCE_S
            to = self._client.prepare(server=host, version=version, call_monitor_timeout=silence)
            envelope: Json = to.call(build_context(ctx, self._patience), method, **to_primitive(args))
            self._has_answered = True
            return envelope
        except _AWAY as exc:
            raise errors.ConductorAway(what=f"Conductor {host}", reason=f"{method} got no answer: {exc}") from exc

    def cast(self, host: str, method: str, version: str, ctx: context.RequestContext, args: Json) -> None:
        self._wakeups.add(host, Wakeup(method, version, ctx, args))

    def _send(self, host: str, wakeups: list[Wakeup]) -> None:
        """Send wake-ups, in one message unless conductors that cannot read it were online when the last one came."""
        version = wakeups[-1].version
        to = self._client.prepare(server=host, version=version)
        try:
            if len(wakeups) > 1 and versions.has_method(version, "wake_up"):
                to.cast({}, "wake_up", wakeups=[(one.method, one.ctx.to_dict(), one.args) for one in wakeups])
                return
            for one in wakeups:
                to.cast(one.ctx.to_dict(), one.method, **one.args)
        except _AWAY as exc:
            raise errors.ServiceUnavailable(what="The message bus", reason=str(exc)) from exc

    @property
    def trouble(self) -> str | None:
        """Why the last wake-up could not be sent."""
        return self._wakeups.trouble

    def close(self) -> None:
        """Close the connections; wake-ups that have not been sent are lost."""
        self._wakeups.close()
        self._bus.cleanup()
