"""The queues by which conductors are reached.

The kind of a queue cannot be changed, so a release that wants another kind gives its queues other names, and while a
rolling upgrade lasts there are two sets of them, two lanes. Conductors listen on both; a client sends on the newest one
that every online conductor knows. So all meet, whatever is upgraded first. ``ingot-dbsync contract`` ends that time:
conductors that start after it listen on the newest only.
"""

from collections.abc import Sequence
from typing import NamedTuple

import oslo_messaging
from oslo_config import cfg

from ingot.common.conf import broker
from ingot.db import schema
from ingot.db.engine import Database
from ingot.rpcapi import versions


class QueueSet(NamedTuple):
    """One set of queues.

    :param since: RPC version of the conductors that listen on it.
    :param topic: what its queues' names begin with.
    :param exchange: what is added to ``[DEFAULT] control_exchange``: an exchange has a kind, too.
    :param options: of the RabbitMQ driver, in place of Ingot's defaults.
    """

    since: str
    topic: str
    exchange: str = ""
    options: tuple[tuple[str, str], ...] = ()

    def target(self, conf: cfg.ConfigOpts, **more: str) -> oslo_messaging.Target:
        return oslo_messaging.Target(topic=self.topic, exchange=conf.control_exchange + self.exchange, **more)

    def url(self, conf: cfg.ConfigOpts) -> oslo_messaging.TransportURL:
        """The transport_url with the lane's options, from where the driver takes them; what an operator set counts."""
        url = broker.address(conf)
        if url.transport == "rabbit":
            url.query |= {name: value for name, value in self.options if not broker.chosen(conf, name)}
        return url


QUORUM = QueueSet(since="1.1", topic="ingot.conductors", exchange=".durable")
CLASSIC = QueueSet(since="1.0", topic="ingot.conductor", options=tuple((name, "false") for name in broker.QUORUM))
"""The one of release 0.1, which left the kind of its queues to the driver."""

QUEUE_SETS = (QUORUM, CLASSIC)


def for_version(version: str) -> QueueSet:
    """The lane to send on.

    :param version: the highest RPC version that every conductor serves that may be asked.
    """
    served = versions.version_tuple(version)
    return next(queue_set for queue_set in QUEUE_SETS if versions.version_tuple(queue_set.since) <= served)


def select_to_serve(db: Database) -> Sequence[QueueSet]:
    """The lanes that a conductor listens on: the first only once the release before is gone for good."""
    return QUEUE_SETS[:1] if schema.is_contracted(db) else QUEUE_SETS
