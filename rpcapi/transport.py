"""The two ways to a conductor: oslo.messaging between processes, a direct hand-over inside one process.

Both carry the same JSON, so that nothing works in one and fails in the other. A result travels in an envelope,
``{"result": ...}`` or ``{"error": {"type": ..., "message": ...}}``: an error keeps its class without the transport
knowing any of Ingot's classes.
"""

import functools
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import futurist
import orjson
import oslo_messaging
from futurist import rejection
from kombu import exceptions as kombu_exceptions
from oslo_config import cfg
from oslo_log import log

from ingot.common import context, errors
from ingot.common.conf import broker
from ingot.rpcapi import queue_sets, versions

LOG = log.getLogger(__name__)

_AWAY = (oslo_messaging.MessagingException, kombu_exceptions.OperationalError)
"""What is raised when the broker is away: oslo.messaging lets kombu's error through where it opens a new connection."""

SILENCE_S = 15
"""Conductors that work on a call give a sign of life twice in this time: that of one that is dead or frozen ends."""

_LATEST_BEGIN = 0.75
"""The share of a caller's patience within which work must have begun: the rest is for the work itself."""

_THREADS = 4
_MOST_WAITING = 1000


class Limits(NamedTuple):
    """The patience of whoever calls, in seconds.

    :param silence: for a sign of life from who was asked.
    :param answer: for the answer, even if there are signs of life.
    """

    silence: float = SILENCE_S
    answer: float = 60


def to_primitive(value: Any) -> Any:
    """``value`` as the other side will see it: dictionaries, lists, strings, numbers, booleans, None.

    :raises TypeError: it holds something that has no JSON form.
    """
    return orjson.loads(orjson.dumps(value, option=orjson.OPT_UTC_Z))


def build_context(ctx: context.RequestContext, limits: Limits) -> dict[str, Any]:
    """The context of a call as it crosses the bus, with the moments by which it must ``arrive`` and the work ``begin``,
    in seconds since the epoch. After them the caller may be gone: what it was told has failed must not happen then,
    as when a conductor that was frozen is thawed."""
    now = time.time()
    by = {"arrive": now + limits.silence, "begin": now + limits.answer * _LATEST_BEGIN}
    return {**to_primitive(ctx.to_dict()), "by": by}


def seconds_left(ctx: Mapping[str, Any], what: str) -> float:
    """The seconds that are left for a request to ``arrive`` or its work to ``begin``; less than none if it is late.

    Wakeups may ring as late as they like, and release 0.1 says nothing about its calls.
    """
    now = time.time()
    left: float = ctx.get("by", {}).get(what, now + Limits().answer * _LATEST_BEGIN) - now
    return left


def refuse_late(ctx: Mapping[str, Any], what: str) -> None:
    """
    :raises ServiceUnavailable: it is too late for a request to ``arrive`` or its work to ``begin``.
    """
    if (left := seconds_left(ctx, what)) < 0:
        late = (
            f"the request came to {what} {-left:.0f} s too late. If that happens often, compare the clocks of the hosts"
        )
        raise errors.ServiceUnavailable(what="This conductor", reason=late)


def answer(ctx: Mapping[str, Any], method: Callable[..., Any], *args: Any, **kwargs: Any) -> dict[str, Any]:
    """Runs a method of the endpoint and packs what came of it. This is the edge of an RPC call: nothing escapes.

    :param ctx: of the request, as it crossed the bus.
    """
    try:
        refuse_late(ctx, "arrive")
        return {"result": to_primitive(method(*args, **kwargs))}
    except errors.IngotError as exc:
        return {"error": {"type": type(exc).__name__, "message": exc.message}}
    except Exception:
        LOG.exception("RPC method %s failed unexpectedly", method.__qualname__)
        message = "Unexpected error on the conductor; its log has the details."
        return {"error": {"type": "IngotError", "message": message}}


def unpack(envelope: dict[str, Any]) -> Any:
    """The result in an envelope.

    :raises IngotError: the error in it, of the class it had on the other side.
    """
    if "error" in envelope:
        raise errors.by_name(envelope["error"]["type"])(envelope["error"]["message"])
    return envelope["result"]


class Transport(Protocol):
    """How the client reaches one conductor.

    ``call`` returns the envelope of the answer and raises ServiceUnavailable when none came; ``cast`` raises
    ServiceUnavailable when it is clear already that the message cannot be handed over. ``version`` is the highest one
    that every conductor serves that may be asked.
    """

    def call(
        self, host: str, method: str, version: str, ctx: context.RequestContext, args: dict[str, Any]
    ) -> dict[str, Any]: ...

    def cast(self, host: str, method: str, version: str, ctx: context.RequestContext, args: dict[str, Any]) -> None: ...


class LocalTransport:
    """API and conductor in one process: the endpoint is called on the caller's thread, through the same JSON."""

    limits = Limits()

    def __init__(self) -> None:
        self._endpoints: dict[str, Any] = {}

    def serve(self, host: str, endpoint: Any) -> None:
        """From now on ``host`` is served by ``endpoint``."""
        self._endpoints[host] = endpoint

    def stop(self, host: str) -> None:
        self._endpoints.pop(host, None)

    def call(
        self, host: str, method: str, version: str, ctx: context.RequestContext, args: dict[str, Any]
    ) -> dict[str, Any]:
        if host not in self._endpoints:
            raise errors.ServiceUnavailable(what=f"Conductor {host}", reason="it does not run in this process")
        served: dict[str, Any] = getattr(self._endpoints[host], method)(
            build_context(ctx, self.limits), **to_primitive(args)
        )
        return served

    def cast(self, host: str, method: str, version: str, ctx: context.RequestContext, args: dict[str, Any]) -> None:
        self.call(host, method, version, ctx, args)


class Wakeups:
    """Threads that send. They begin with the first bell, which may come after a WSGI server has forked."""

    def __init__(self, most_waiting: int = _MOST_WAITING) -> None:
        full = rejection.reject_when_reached(most_waiting)
        self._executor = futurist.ThreadPoolExecutor(max_workers=_THREADS, check_and_reject=full)

    def send(self, bell: Callable[[], None]) -> None:
        """Has a bell sent soon. One that cannot be sent is lost, and what it was rung for is found without it.

        :raises ServiceUnavailable: too many wait already.
        """
        try:
            self._executor.submit(_send, bell)
        except futurist.RejectedSubmission as exc:
            raise errors.ServiceUnavailable(what="The message bus", reason="too many messages wait for it") from exc

    def close(self) -> None:
        """What has not been sent is lost."""
        self._executor.shutdown(wait=False)


def _send(bell: Callable[[], None]) -> None:
    try:
        bell()
    except errors.ServiceUnavailable as exc:
        LOG.warning("A bell was not rung, the sweep will find what it was for: %s", exc.message)
    except Exception:  # the edge of a worker
        LOG.exception("Sending a bell failed unexpectedly")


class OsloTransport:
    """oslo.messaging: RabbitMQ by ``transport_url``. Each conductor is a server of the topic of each queue set it serves.

    :param conf: must be oslo.config's global object, see ``ingot.common.conf.loader.load``.
    """

    def __init__(self, conf: cfg.ConfigOpts) -> None:
        broker.register(conf)
        self._conf = conf
        self._answered: set[queue_sets.QueueSet] = set()
        self._wakeups = Wakeups()
        self._transports = {
            queue_set: oslo_messaging.get_rpc_transport(conf, queue_set.url(conf))
            for queue_set in queue_sets.QUEUE_SETS
        }
        # A request must not wait for a broker that is away: the sweep makes up for a bell, a call answers 503.
        self._clients = {
            queue_set: oslo_messaging.get_rpc_client(
                bus,
                queue_set.target(conf),
                version_cap=versions.RPC_VERSION,
                call_monitor_timeout=SILENCE_S,
                retry=1,
            )
            for queue_set, bus in self._transports.items()
        }
        self.limits = Limits(answer=conf.rpc_response_timeout)

    def server(self, host: str, endpoint: Any, served: Sequence[queue_sets.QueueSet]) -> "Server":
        """The RPC server of a conductor; its ``start``, ``stop`` and ``wait`` are the caller's.

        :param served: the queue sets that it listens on.
        """
        return Server(
            oslo_messaging.get_rpc_server(
                self._transports[queue_set],
                queue_set.target(self._conf, server=host, version=versions.RPC_VERSION),
                [endpoint],
                executor="threading",
                access_policy=oslo_messaging.ExplicitRPCAccessPolicy,
            )
            for queue_set in served
        )

    def call(
        self, host: str, method: str, version: str, ctx: context.RequestContext, args: dict[str, Any]
    ) -> dict[str, Any]:
        queue_set = queue_sets.for_version(version)
        try:
            self._require_broker(queue_set)
            asked = build_context(ctx, self.limits)
            answer: dict[str, Any] = self._to(host, version).call(asked, method, **to_primitive(args))
            self._answered.add(queue_set)
        except _AWAY as exc:
            raise errors.ServiceUnavailable(what=f"Conductor {host}", reason=f"{method} got no answer: {exc}") from exc
        return answer

    def cast(self, host: str, method: str, version: str, ctx: context.RequestContext, args: dict[str, Any]) -> None:
        self._wakeups.send(functools.partial(self._cast, host, method, version, ctx, args))

    def _cast(self, host: str, method: str, version: str, ctx: context.RequestContext, args: dict[str, Any]) -> None:
        try:
            self._to(host, version).cast(ctx.to_dict(), method, **to_primitive(args))
        except _AWAY as exc:
            raise errors.ServiceUnavailable(what="The message bus", reason=str(exc)) from exc

    def _require_broker(self, queue_set: queue_sets.QueueSet) -> None:
        """Sends a message that no queue is for. The first call opens the connection for answers, which oslo.messaging
        tries for ever, whereas it soon gives up sending."""
        if queue_set not in self._answered:
            self._clients[queue_set].prepare(topic=f"{queue_set.topic}-nobody", version=queue_set.since).cast(
                {}, "nothing"
            )

    def _to(self, host: str, version: str) -> Any:
        return self._clients[queue_sets.for_version(version)].prepare(server=host, version=version)

    def close(self) -> None:
        self._wakeups.close()
        for bus in self._transports.values():
            bus.cleanup()


class Server:
    """A conductor's RPC servers, one in each queue set, as one."""

    def __init__(self, servers: Iterable[Any]) -> None:
        self._servers = list(servers)

    def start(self) -> None:
        for server in self._servers:
            server.start()

    def stop(self) -> None:
        for server in self._servers:
            server.stop()

    def wait(self) -> None:
        for server in self._servers:
            server.wait()
