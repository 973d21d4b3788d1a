"""The two ways to a conductor: oslo.messaging between processes, a direct hand-over inside one process.

Both carry the same JSON, so that nothing works in one and fails in the other. A result travels in an envelope,
``{"result": ...}`` or ``{"error": {"type": ..., "message": ...}}``, so that an error keeps its class.
"""

import functools
import os
import ssl
import time
from collections.abc import Callable, Mapping
from typing import Any, Protocol

import amqp
import futurist
import orjson
import oslo_messaging
from futurist import rejection
from kombu import connection as kombu_connection
from kombu import exceptions as kombu_exceptions
from oslo_config import cfg
from oslo_log import log
from oslo_messaging._drivers import amqpdriver

from ingot.common import context, errors
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

# What takes messages looks 1, 2, 4 ... ms after each one for others to acknowledge, which costs more than the message.
amqpdriver.ACK_REQUEUE_EVERY_SECONDS_MIN = 0.02

_PROBE_S = 5
_THREADS = 4
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
    that every conductor serves that may be asked.
    """

    def call(self, host: str, method: str, version: str, ctx: context.RequestContext, args: Json) -> Json: ...

    def cast(self, host: str, method: str, version: str, ctx: context.RequestContext, args: Json) -> None: ...


class LocalTransport:
    """API and conductor in one process: the endpoint is called on the caller's thread, through the same JSON."""

    patience: float = PATIENCE_S

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


class Wakeups:
    """Threads that send wake-ups outside of the requests that cause them.

    With a broker that is away or unresponsive, sending one takes seconds, and an API whose threads all wait for that
    would answer no request. The threads begin with the first wake-up, which may come after a WSGI server has forked.
    """

    def __init__(self, most_waiting: int = _MOST_WAITING) -> None:
        full = rejection.reject_when_reached(most_waiting)
        self._executor = futurist.ThreadPoolExecutor(max_workers=_THREADS, check_and_reject=full)

    def send(self, wakeup: Callable[[], None]) -> None:
        """Have a wake-up sent soon. One that cannot be sent is lost; the sweep finds its work.

        :raises ServiceUnavailable: too many wait already.
        """
        try:
            self._executor.submit(_send, wakeup)
        except futurist.RejectedSubmission as exc:
            raise errors.ServiceUnavailable(what="The message bus", reason="too many messages wait for it") from exc

    def close(self) -> None:
        """End the threads; what has not been sent is lost."""
        self._executor.shutdown(wait=False)


def _send(wakeup: Callable[[], None]) -> None:
    try:
        wakeup()
    except errors.ServiceUnavailable as exc:
        LOG.warning("Wake-up not sent, the sweep will find its work: %s", exc.message)
    except Exception:  # the edge of a worker
        LOG.exception("Sending a wake-up failed unexpectedly")


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


class OsloTransport:
    """oslo.messaging: RabbitMQ by ``transport_url``. Each conductor is a server of the topic.

    :param conf: must be oslo.config's global object, see ``ingot.common.conf.opts.load``.
    """

    def __init__(self, conf: cfg.ConfigOpts) -> None:
        broker.register(conf)
        self._has_answered = False
        self._wakeups = Wakeups()
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
        self._wakeups.send(functools.partial(self._cast, host, method, version, ctx, args))

    def _cast(self, host: str, method: str, version: str, ctx: context.RequestContext, args: Json) -> None:
        ctx.update_store()
        try:
            self._client.prepare(server=host, version=version).cast(ctx.to_dict(), method, **to_primitive(args))
        except _AWAY as exc:
            raise errors.ServiceUnavailable(what="The message bus", reason=str(exc)) from exc

    def close(self) -> None:
        """Close the connections; wake-ups that have not been sent are lost."""
        self._wakeups.close()
        self._bus.cleanup()
