"""Ingot's defaults for the options of oslo.messaging's RabbitMQ driver, and what of an operator's will not work.

What an operator sets in ``[oslo_messaging_rabbit]`` or in ``transport_url`` counts.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import oslo_messaging
from oslo_config import cfg
from oslo_messaging import opts
from requests.utils import DEFAULT_CA_BUNDLE_PATH

from ingot.common import errors

GROUP = "oslo_messaging_rabbit"

QUORUM: Mapping[str, Any] = {
    # Replicated: a broker that goes away takes no queue with it. Replies, too, or an API would wait for one in vain.
    "rabbit_quorum_queue": True,
    "rabbit_transient_quorum_queue": True,
}
"""Of what kind queues are. That cannot be changed for queues that exist."""

_CONNECTIONS: Mapping[str, Any] = {
    # How long a process may go on waiting when the broker is back, in seconds. Meanwhile sweeps do the work.
    "rabbit_interval_max": 5,
    # A broker that says nothing is given up after so many seconds, and another one of transport_url taken.
    "heartbeat_timeout_threshold": 30,
    # With no authorities the driver would take any certificate: those that all else here trusts.
    "ssl_ca_file": DEFAULT_CA_BUNDLE_PATH,
}


def register(conf: cfg.ConfigOpts) -> None:
    """Makes the driver's options known, with Ingot's defaults."""
    options = dict(opts.list_opts())[GROUP]
    conf.register_opts(options, group=GROUP)
    for name, value in (*QUORUM.items(), *_CONNECTIONS.items()):
        conf.set_default(name, value, group=GROUP)


def address(conf: cfg.ConfigOpts) -> oslo_messaging.TransportURL:
    """
    :raises ConfigurationError: transport_url is no address of brokers.
    """
    try:
        return oslo_messaging.TransportURL.parse(conf)
    except (oslo_messaging.InvalidTransportURL, ValueError) as exc:
        raise errors.ConfigurationError(
            option="transport_url",
            value="***",  # there may be a password in it
            allowed="Use rabbit://user:password@host:port,user:password@another-host:port/virtual-host.",
        ) from exc


def chosen(conf: cfg.ConfigOpts, name: str) -> bool:
    """Whether an operator has set an option of the driver's."""
    where = conf.get_location(name, group=GROUP)
    in_file = where is not None and where.location.is_user_controlled
    return in_file or name in address(conf).query


def problems(conf: cfg.ConfigOpts) -> Iterator[str]:
    """What of the configured options does not work, or not as an operator would think, in words.

    :raises ConfigurationError: as :func:`address`.
    """
    register(conf)
    driver, hosts = conf[GROUP], address(conf).hosts
    if driver.rabbit_ha_queues and (driver.rabbit_quorum_queue or driver.rabbit_transient_quorum_queue):
        yield "rabbit_ha_queues excludes quorum queues: unset it, RabbitMQ 4 has no mirrored queues any more."
    if driver.ssl and not driver.ssl_ca_file:
        yield "ssl_ca_file is empty, so nobody looks whose certificate the broker has: name its authority."
    if driver.ssl and driver.ssl_ca_file and len(hosts) > 1:
        yield (
            "With several brokers in transport_url the driver verifies who issued their certificates, not that they "
            "were issued for these hosts: let ssl_ca_file name an authority that issues for brokers only."
        )
    if not driver.heartbeat_timeout_threshold:
        yield "heartbeat_timeout_threshold is 0: a broker that fell silent is never noticed."
