"""The two ways to a conductor: oslo.messaging between processes, a direct hand-over inside one process."""

import functools
from typing import Any, Protocol

import oslo_messaging
from kombu import exceptions as kombu_exceptions
from oslo_config import cfg
from oslo_log import log

from ingot import rpcapi
from ingot.common import context, errors
from ingot.rpcapi import bells, methods, wire

LOG = log.getLogger(__name__)

_AWAY = (oslo_messaging.MessagingException, kombu_exceptions.OperationalError)
"""What is raised when the broker is away: oslo.messaging lets kombu's error through where it opens a new connection."""


class Transport(Protocol):
    """How the client reaches one conductor.

    ``call`` returns the envelope of the answer and raises ServiceUnavailable when none came; ``cast`` raises
    ServiceUnavailable when it is clear already that the message cannot be handed over.
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
    """oslo.messaging: RabbitMQ by ``transport_url``. One topic; each conductor is a server of it.

    :param conf: must be oslo.config's global object, see ``ingot.common.conf.loader.load``.
    """

    def __init__(self, conf: cfg.ConfigOpts) -> None:
        self._bells = bells.Bells()
        self._transport = oslo_messaging.get_rpc_transport(conf)
        target = oslo_messaging.Target(topic=rpcapi.TOPIC)
        # A request must not wait for a broker that is away: the sweep makes up for a bell, a call answers 503.
        self._client = oslo_messaging.get_rpc_client(
            self._transport, target, version_cap=methods.RPC_VERSION, call_monitor_timeout=wire.SILENCE_S, retry=1
        )
        self.limits = wire.Limits(answer=conf.rpc_response_timeout)

    def server(self, host: str, endpoint: Any) -> Any:
        """The RPC server of a conductor; its ``start``, ``stop`` and ``wait`` are the caller's."""
        target = oslo_messaging.Target(topic=rpcapi.TOPIC, server=host, version=methods.RPC_VERSION)
        return oslo_messaging.get_rpc_server(
            self._transport,
            target,
            [endpoint],
            executor="threading",
            access_policy=oslo_messaging.ExplicitRPCAccessPolicy,
        )

    def call(
        self, host: str, method: str, version: str, ctx: context.RequestContext, args: dict[str, Any]
    ) -> dict[str, Any]:
        prepared = self._client.prepare(server=host, version=version)
        try:
            envelope: dict[str, Any] = prepared.call(wire.question(ctx, self.limits), method, **wire.primitive(args))
        except _AWAY as exc:
            raise errors.ServiceUnavailable(what=f"Conductor {host}", reason=f"{method} got no answer: {exc}") from exc
        return envelope

    def cast(self, host: str, method: str, version: str, ctx: context.RequestContext, args: dict[str, Any]) -> None:
        self._bells.send(functools.partial(self._cast, host, method, version, ctx, args))

    def _cast(self, host: str, method: str, version: str, ctx: context.RequestContext, args: dict[str, Any]) -> None:
        try:
            self._client.prepare(server=host, version=version).cast(ctx.to_dict(), method, **wire.primitive(args))
        except _AWAY as exc:
            raise errors.ServiceUnavailable(what="The message bus", reason=str(exc)) from exc

    def close(self) -> None:
        self._bells.close()
        self._transport.cleanup()
