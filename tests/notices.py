"""Notifications as oslo.messaging's own driver for tests takes them, for tests of what is sent."""

from typing import Any

from oslo_config import cfg
from oslo_messaging.notify import _impl_test as drivers
from oslo_serialization import jsonutils

from ingot.common.conf import broker
from ingot.notifications.notifier import Notifier


def switch_on(conf: cfg.ConfigOpts, level: str | None = "info") -> None:
    """Have notifications given to the driver for tests, which forgets those of earlier tests."""
    conf.set_override("notification_level", level)
    broker.notification_address(conf)  # registers the group
    conf.set_override("driver", ["test"], broker.NOTIFICATIONS)
    conf.set_override("transport_url", "fake://", broker.NOTIFICATIONS)
    drivers.reset()


def take(notifier: Notifier) -> list[dict[str, Any]]:
    """Return the messages that were sent, oldest first, once all have been; the notifier sends no more."""
    notifier.close(60)
    sent = [message for _ctx, message, _priority, _retry in drivers.NOTIFICATIONS]
    drivers.reset()
    for message in sent:
        jsonutils.dumps(message)  # as the driver of RabbitMQ does: it refuses what it cannot write
    return sent


def list_types() -> list[str]:
    """Return the event types of what has been sent by now."""
    return [message["event_type"] for _ctx, message, _priority, _retry in drivers.NOTIFICATIONS]


def data(message: dict[str, Any]) -> dict[str, Any]:
    """Return the data of a message's payload object."""
    found: dict[str, Any] = message["payload"]["ironic_object.data"]
    return found
