"""What queues the broker of the functional tests has."""

import kombu
from amqp import exceptions

from tests.functional import services


def listeners(name: str) -> int | None:
    """Return how many consumers a queue has; None if there is no queue of that name."""
    address = services.broker_url().replace("rabbit://", "amqp://", 1)
    with kombu.Connection(address) as connection, connection.channel() as channel:
        try:
            return int(channel.queue_declare(name, passive=True).consumer_count)
        except exceptions.NotFound:
            return None


def is_quorum(name: str) -> bool:
    """Return whether an existing queue is a quorum queue."""
    address = services.broker_url().replace("rabbit://", "amqp://", 1)
    with kombu.Connection(address) as connection, connection.channel() as channel:
        try:
            channel.queue_declare(name, durable=True, auto_delete=False, arguments={"x-queue-type": "quorum"})
        except exceptions.PreconditionFailed:
            return False
        return True
