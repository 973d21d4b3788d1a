"""Ingot's defaults for the options of oslo.messaging's RabbitMQ driver, and what of an operator's will not work.

What an operator sets in ``[oslo_messaging_rabbit]`` or in ``transport_url`` counts.
"""

from collections.abc import Iterator, Mapping

import certifi
import oslo_messaging
from oslo_config import cfg
from oslo_messaging import opts

from ingot.common import errors

GROUP = "oslo_messaging_rabbit"

NOTIFICATIONS = "oslo_messaging_notifications"

_FORM = (
    "Use rabbit://LOGIN@HOST:PORT/VIRTUAL_HOST, with user:password as LOGIN, $$ for each $ in it, and a comma between "
    "several LOGIN@HOST:PORT."
)

_DRIVERS = ("rabbit", "kombu", "fake")
"""How the addresses of brokers begin; there is none behind a fake one."""

_DEFAULTS: Mapping[str, object] = {
    # Replicated: a broker that goes away takes no queue with it. Replies, too, or an API would wait for one in vain.
    "rabbit_quorum_queue": True,
    "rabbit_transient_quorum_queue": True,
    # How long a process may go on waiting when the broker is back, in seconds. Meanwhile sweeps do the work.
    "rabbit_interval_max": 5,
    # A broker that is unresponsive is given up after so many seconds, and another one of transport_url taken.
    "heartbeat_timeout_threshold": 30,
    # With no authorities the driver would take any certificate: those that all else here trusts.
    "ssl_ca_file": certifi.where(),
}


def register(conf: cfg.ConfigOpts) -> None:
    """Register the driver's options, with Ingot's defaults."""
    options = dict(opts.list_opts())[GROUP]
    conf.register_opts(options, group=GROUP)
    for name, value in _DEFAULTS.items():
        conf.set_default(name, value, group=GROUP)


def address(conf: cfg.ConfigOpts) -> oslo_messaging.TransportURL:
    """Return the address of the brokers.

    :raises ConfigurationError: transport_url is no address of brokers.
    """
    try:
        url = oslo_messaging.TransportURL.parse(conf)
        if not str(url.transport).startswith(_DRIVERS):
            raise ValueError(url.transport)
    except (oslo_messaging.InvalidTransportURL, ValueError, cfg.NoSuchOptError) as exc:
        raise errors.ConfigurationError(
            option="transport_url",
            value="***",  # there may be a password in it
            allowed=_FORM,
        ) from exc
    return url


def register_notifications(conf: cfg.ConfigOpts) -> None:
    """Register the options of oslo.messaging's notifications."""
    conf.register_opts(dict(opts.list_opts())[NOTIFICATIONS], group=NOTIFICATIONS)


def notification_address(conf: cfg.ConfigOpts) -> oslo_messaging.TransportURL:
    """Return the address of the brokers that notifications are sent to: by default those of RPC.

    :raises ConfigurationError: it is no address.
    """
    register_notifications(conf)
    given = conf[NOTIFICATIONS].transport_url
    return parse_address(conf, given, f"[{NOTIFICATIONS}] transport_url" if given else "transport_url")


def parse_address(conf: cfg.ConfigOpts, given: str | None, option: str) -> oslo_messaging.TransportURL:
    """Return an address of brokers that an option has.

    :param given: None: that of RPC.
    :raises ConfigurationError: it is no address.
    """
    try:
        return oslo_messaging.TransportURL.parse(conf, given)
    except (oslo_messaging.InvalidTransportURL, ValueError) as exc:
        raise errors.ConfigurationError(option=option, value="***", allowed=_FORM) from exc


def is_default(conf: cfg.ConfigOpts, name: str, group: str | None = None) -> bool:
    """Return whether an option has a default, its own or Ingot's, because it is not set."""
    location = conf.get_location(name, group)
    return location is None or not location.location.is_user_controlled


def find_problems(conf: cfg.ConfigOpts) -> Iterator[str]:
    """Say which configured options do not work, or not as an operator would think.

    :raises ConfigurationError: as :func:`address`.
    """
    register(conf)
    driver, hosts = conf[GROUP], address(conf).hosts
    if driver.rabbit_ha_queues and (driver.rabbit_quorum_queue or driver.rabbit_transient_quorum_queue):
        yield "rabbit_ha_queues excludes quorum queues: unset it, RabbitMQ 4 has no mirrored queues any more."
    if driver.ssl and not driver.ssl_ca_file:
        yield "ssl_ca_file is empty, so the broker's certificate is not verified: name its authority."
    if driver.ssl and driver.ssl_ca_file and len(hosts) > 1:
        yield (
            "With several brokers in transport_url the driver verifies who issued their certificates, not that they "
            "were issued for these hosts: let ssl_ca_file name an authority that issues for brokers only."
        )
    if not driver.heartbeat_timeout_threshold:
        yield "heartbeat_timeout_threshold is 0: a broker that became unresponsive is never noticed."
