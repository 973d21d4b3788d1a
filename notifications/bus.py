"""Sends notifications by oslo.messaging, on a thread of its own: nothing that happens to a node waits for a broker."""

import contextlib
import itertools
import queue
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import amqp
import oslo_messaging
from kombu import exceptions as kombu_exceptions
from oslo_config import cfg
from oslo_log import log

from ingot.common import context, errors, metrics
from ingot.common.conf import broker
from ingot.common.json_types import Json

LOG = log.getLogger(__name__)

EXCHANGE = "ironic"
"""Where consumers of Ironic's notifications listen, unless ``[DEFAULT] control_exchange`` names another exchange."""

_CLASSIC = {"rabbit_quorum_queue": "false", "rabbit_transient_quorum_queue": "false"}
"""Queues of notifications are none of RPC: consumers declare them, too, and must agree on their type."""

MOST_WAITING = 2000
"""Notifications that wait for a broker at most, some 10 MB; what comes after them is lost."""

PATIENCE_S = 5.0
"""How long the end of a process waits for notifications to be sent."""

_SUMMARY_S = 10.0
_LOG_EVERY_S = 60.0
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.2, 10.0

_AWAY = (oslo_messaging.MessagingException, kombu_exceptions.OperationalError, amqp.AMQPError, OSError)
"""What is raised where a broker is away, or refuses a queue that it has in another form."""


class Message(NamedTuple):
    """A notification.

    :param ctx: of the request that it is about.
    :param priority: ``debug``, ``info``, ``warning``, ``error`` or ``critical``.
    :param is_sensor_data: whether it goes to the topics of oslo.messaging's own option, as meters do.
    """

    ctx: context.RequestContext
    publisher: str
    event_type: str
    priority: str
    payload: Json
    is_sensor_data: bool = False


class Outbound:
    """The thread that sends notifications. It begins with the first one, which may come after a server has forked.

    :param send: sends one; may wait for as long as a broker is away.
    :ivar sent: how many were handed to oslo.messaging's drivers.
    :ivar lost: how many were not, since too many waited or the process ended.
    """

    def __init__(self, send: Callable[[Message], None], most_waiting: int = MOST_WAITING) -> None:
        self._send = send
        self._waiting: queue.Queue[Message | None] = queue.Queue(most_waiting)
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._closed = False
        self._unlogged = 0
        self._logged_at = -_SUMMARY_S
        self.sent = self.lost = 0
        self._count_sent, self._count_lost = (metrics.NOTIFICATIONS.labels(outcome) for outcome in ("sent", "lost"))

    def add(self, message: Message) -> None:
        """Have a notification sent soon. It never waits: where too many do already, the notification is lost."""
        with self._lock:
            if self._thread is None and not self._closed:
                self._thread = threading.Thread(target=self._run, name="notifications", daemon=True)
                self._thread.start()
            try:
                if self._closed:
                    raise queue.Full
                self._waiting.put_nowait(message)
            except queue.Full:
                self._lose(message)

    def _lose(self, message: Message) -> None:
        """Count a notification that is not sent, and log it; of many at once, one line in ten seconds."""
        self._note_loss(1)
        self._unlogged += 1
        if time.monotonic() - self._logged_at >= _SUMMARY_S:
            LOG.error(
                "%d notifications lost (%d in all): %d wait for the broker already. The last was %s",
                *(self._unlogged, self.lost, self._waiting.qsize(), message.event_type),
            )
            self._unlogged, self._logged_at = 0, time.monotonic()

    def _note_loss(self, count: int) -> None:
        self.lost += count
        self._count_lost.inc(count)

    def close(self, patience: float = PATIENCE_S) -> None:
        """Send what waits, for at most so many seconds, and end the thread. What is left then is lost, and counted."""
        with self._lock:
            was_open, self._closed = not self._closed, True
            thread = self._thread
        if thread is None or not was_open:
            return
        until = time.monotonic() + patience
        with contextlib.suppress(queue.Full):  # the thread waits for the broker
            self._waiting.put(None, timeout=patience)
        thread.join(max(until - time.monotonic(), 0))
        if thread.is_alive():
            left = self._waiting.qsize()
            self._note_loss(left)
            LOG.error("%d notifications lost: the broker did not take them before this process ended", left)

    def _run(self) -> None:
        while (message := self._waiting.get()) is not None:
            message.ctx.update_store()
            try:
                self._send(message)
                self.sent += 1
                self._count_sent.inc()
            except errors.ServiceUnavailable:
                self._note_loss(1)
            except Exception:  # the edge of a thread
                self._note_loss(1)
                LOG.exception("Sending the notification %s failed unexpectedly", message.event_type)


class _Contexts(oslo_messaging.NoOpSerializer):  # type: ignore[misc]  # it has no types
    """Has the ids and the user of a request cross the bus; oslo.messaging has taken the token away before."""

    def serialize_context(self, ctxt: context.RequestContext) -> Json:
        return ctxt.to_dict()


def connect(conf: cfg.ConfigOpts) -> Callable[[Message], None] | None:
    """Return what sends a notification by the drivers of ``[oslo_messaging_notifications]``; None if there are none.

    No connection is opened before the first one.

    :raises ConfigurationError: an address of brokers cannot be used.
    """
    broker.register_notifications(conf)
    if not conf[broker.NOTIFICATIONS].driver:
        if conf.notification_level is not None:
            LOG.warning("No notification is sent: set [%s] driver, to messagingv2 for RabbitMQ", broker.NOTIFICATIONS)
        return None
    transport = _open_transport(conf)
    attempts = _Attempts(transport, conf[broker.NOTIFICATIONS].retry)
    versioned = oslo_messaging.Notifier(transport, serializer=_Contexts(), topics=conf.versioned_notifications_topics)
    sensors = oslo_messaging.Notifier(transport, serializer=_Contexts())

    send_sensors, send_versioned = (_build_sender(attempts, one) for one in (sensors, versioned))
    return lambda message: (send_sensors if message.is_sensor_data else send_versioned)(message)


def has_drivers(conf: cfg.ConfigOpts) -> bool:
    """Return whether ``[oslo_messaging_notifications]`` names what sends notifications."""
    broker.register_notifications(conf)
    return bool(conf[broker.NOTIFICATIONS].driver)


def check_audit(conf: cfg.ConfigOpts, url: str | None) -> None:
    """Refuse an address of brokers for audit events that is none.

    :raises ConfigurationError: it is none.
    """
    broker.notification_address(conf)
    if url:
        broker.parse_address(conf, url, "[audit_middleware_notifications] transport_url")


def connect_audit(
    conf: cfg.ConfigOpts, url: str | None, driver: str | None, topics: Sequence[str] | None
) -> Callable[[Message], None]:
    """Return what sends audit events, as keystonemiddleware's options say.

    :param url: of brokers; None, as driver and topics: as ``[oslo_messaging_notifications]`` says.
    :raises ConfigurationError: an address of brokers cannot be used.
    """
    broker.register_notifications(conf)
    transport = _open_transport(conf, url)
    attempts = _Attempts(transport, conf[broker.NOTIFICATIONS].retry)
    return _build_sender(
        attempts, oslo_messaging.Notifier(transport, serializer=_Contexts(), driver=driver, topics=topics)
    )


def _build_sender(attempts: "_Attempts", notifier: oslo_messaging.Notifier) -> Callable[[Message], None]:
    def send(message: Message) -> None:
        attempts.has_failed = False
        prepared = notifier.prepare(publisher_id=message.publisher)
        getattr(prepared, message.priority)(message.ctx, message.event_type, message.payload)
        if attempts.has_failed:  # oslo.messaging's driver has logged it, and raises nothing
            raise errors.ServiceUnavailable(what="The message bus", reason="it did not take a notification")

    return send


class _Attempts:
    """Has a transport try again for as long as the brokers are away.

    That is what oslo.messaging promises. It does so on a connection that breaks, and gives up where it opens one.

    :param most: attempts after the first one; -1: any number.
    :ivar has_failed: whether the last message was given up.
    """

    def __init__(self, transport: oslo_messaging.Transport, most: int) -> None:
        self.has_failed = False
        self._most = most
        self._send = transport._send_notification
        self._logged_at = -_LOG_EVERY_S
        transport._send_notification = self._try

    def _try(self, *args: Any, **kwargs: Any) -> None:
        for number in itertools.count():
            try:
                self._send(*args, **kwargs)
                return
            except _AWAY as exc:
                if 0 <= self._most <= number:
                    self.has_failed = True
                    raise
                if time.monotonic() - self._logged_at >= _LOG_EVERY_S:
                    self._logged_at = time.monotonic()
                    LOG.warning("Notifications wait for the broker: %s", exc)
                time.sleep(min(_FIRST_PAUSE_S * 2 ** min(number, 10), _LONGEST_PAUSE_S))
            except Exception:  # such as a payload that cannot be written as JSON: another attempt fails, too
                self.has_failed = True
                raise


def _open_transport(conf: cfg.ConfigOpts, given: str | None = None) -> oslo_messaging.Transport:
    """Return the transport of notifications, whose exchange and queues are declared as Ironic declares them.

    What an operator has set counts.

    :param given: another address of brokers.
    """
    broker.register(conf)
    url = broker.parse_address(conf, given, "transport_url") if given else broker.notification_address(conf)
    if broker.is_default(conf, "rabbit_quorum_queue", broker.GROUP):
        url.query = {**_CLASSIC, **(url.query or {})}
    uses_own = broker.is_default(conf, "control_exchange")
    if uses_own:
        conf.set_override("control_exchange", EXCHANGE)  # read while the transport is made
    try:
        return oslo_messaging.get_notification_transport(conf, url)
    finally:
        if uses_own:
            conf.clear_override("control_exchange")
