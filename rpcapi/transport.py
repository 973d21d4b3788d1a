"""The two ways to a conductor: oslo.messaging between processes, a direct hand-over inside one process."""

import functools
from collections.abc import Iterable, Sequence
from typing import Any, Protocol

import oslo_messaging
from kombu import exceptions as kombu_exceptions
from oslo_config import cfg
from oslo_log import log

from ingot.common import context, errors
from ingot.common.conf import broker
from ingot.rpcapi import bells, lanes, methods, wire

LOG = log.getLogger(__name__)

_AWAY = (oslo_messaging.MessagingException, kombu_exceptions.OperationalError)
"""What is raised when the broker is away: oslo.messaging lets kombu's error through where it opens a new connection."""


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

    limits = wire.Limits()

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
            wire.question(ctx, self.limits), **wire.primitive(args)
        )
        return served

    def cast(self, host: str, method: str, version: str, ctx: context.RequestContext, args: dict[str, Any]) -> None:
        self.call(host, method, version, ctx, args)


class OsloTransport:
    """oslo.messaging: RabbitMQ by ``transport_url``. Each conductor is a server of the topic of each lane it serves.

    :param conf: must be oslo.config's global object, see ``ingot.common.conf.loader.load``.
    """

    def __init__(self, conf: cfg.ConfigOpts) -> None:
        broker.register(conf)
        self._conf = conf
        self._answered: set[lanes.Lane] = set()
        self._bells = bells.Bells()
        self._transports = {lane: oslo_messaging.get_rpc_transport(conf, lane.url(conf)) for lane in lanes.LANES}
        # A request must not wait for a broker that is away: the sweep makes up for a bell, a call answers 503.
        self._clients = {
            lane: oslo_messaging.get_rpc_client(
                bus,
                lane.target(conf),
                version_cap=methods.RPC_VERSION,
                call_monitor_timeout=wire.SILENCE_S,
                retry=1,
            )
            for lane, bus in self._transports.items()
        }
        self.limits = wire.Limits(answer=conf.rpc_response_timeout)

    def server(self, host: str, endpoint: Any, served: Sequence[lanes.Lane]) -> "Server":
        """The RPC server of a conductor; its ``start``, ``stop`` and ``wait`` are the caller's.

        :param served: the lanes that it listens on.
        """
        return Server(
            oslo_messaging.get_rpc_server(
                self._transports[lane],
                lane.target(self._conf, server=host, version=methods.RPC_VERSION),
                [endpoint],
                executor="threading",
                access_policy=oslo_messaging.ExplicitRPCAccessPolicy,
            )
            for lane in served
        )

    def call(
        self, host: str, method: str, version: str, ctx: context.RequestContext, args: dict[str, Any]
    ) -> dict[str, Any]:
        lane = lanes.for_version(version)
        try:
            self._require_broker(lane)
            question = wire.question(ctx, self.limits)
            answer: dict[str, Any] = self._to(host, version).call(question, method, **wire.primitive(args))
            self._answered.add(lane)
        except _AWAY as exc:
            raise errors.ServiceUnavailable(what=f"Conductor {host}", reason=f"{method} got no answer: {exc}") from exc
        return answer

    def cast(self, host: str, method: str, version: str, ctx: context.RequestContext, args: dict[str, Any]) -> None:
        self._bells.send(functools.partial(self._cast, host, method, version, ctx, args))

    def _cast(self, host: str, method: str, version: str, ctx: context.RequestContext, args: dict[str, Any]) -> None:
        try:
            self._to(host, version).cast(ctx.to_dict(), method, **wire.primitive(args))
        except _AWAY as exc:
            raise errors.ServiceUnavailable(what="The message bus", reason=str(exc)) from exc

    def _require_broker(self, lane: lanes.Lane) -> None:
        """Sends a message that no queue is for. The first call opens the connection for answers, which oslo.messaging
        tries for ever, whereas it soon gives up sending."""
        if lane not in self._answered:
            self._clients[lane].prepare(topic=f"{lane.topic}-nobody", version=lane.since).cast({}, "nothing")

    def _to(self, host: str, version: str) -> Any:
        return self._clients[lanes.for_version(version)].prepare(server=host, version=version)

    def close(self) -> None:
        self._bells.close()
        for bus in self._transports.values():
            bus.cleanup()


class Server:
    """A conductor's RPC servers, one in each lane, as one."""

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
