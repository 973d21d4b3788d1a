"""Refuses options that would leave doors open, or let machines end up where their users do not expect them."""

import ipaddress
import socket
import urllib.parse

from oslo_config import cfg

from ingot.common import errors
from ingot.common.conf import opts
from ingot.common.conf.start import Start

_FAKE = "fake-hardware"

_HOW_TO_LOG_IN = (
    "It has no default. Write under [DEFAULT]: auth_strategy = http_basic and http_basic_auth_user_file = "
    "/etc/ingot/htpasswd, with users made by htpasswd -nbB; or auth_strategy = keystone. Without any, the API is "
    "served with [api] host_ip = 127.0.0.1 only."
)


def check_api(start: Start, own_server: bool = True, given: socket.socket | None = None) -> None:
    """Refuse to serve an API to strangers unless the operator says so.

    :param own_server: whether the API listens itself, as [api] host_ip says.
    :param given: a socket of systemd's on which it listens instead.
    """
    conf = start.conf
    is_local = own_server and _is_private(conf, given)
    if conf.auth_strategy is None:
        if start.has_set("keystone_authtoken", "auth_url", "auth_type", "auth_section", "www_authenticate_uri"):
            message = "auth_strategy is not set, but [keystone_authtoken] is. Write auth_strategy = keystone."
            start.refusals.messages.append(message)
        elif is_local:
            conf.set_default("auth_strategy", "noauth")
        else:
            start.refusals.messages.append(f"auth_strategy is not set. {_HOW_TO_LOG_IN}")
    elif conf.auth_strategy == "noauth" and not is_local:
        start.warnings.append(
            "auth_strategy = noauth, and the API listens for more than this host: every client that reaches it is an "
            "administrator of all machines. Only a closed network makes that safe."
        )
    if conf.auth_strategy == "noauth" and "*" in (conf.cors.allowed_origin or ()):
        start.warnings.append(
            "auth_strategy = noauth, and [cors] allowed_origin = *: each page that a browser on this network opens is "
            "an administrator of all machines. Name the sites that may be."
        )


def _is_private(conf: cfg.ConfigOpts, given: socket.socket | None) -> bool:
    if given is None:
        return bool(conf.api.unix_socket) or is_loopback(str(conf.api.host_ip))
    return given.family == socket.AF_UNIX or is_loopback(given.getsockname()[0])


def check_hardware(start: Start) -> None:
    """Refuse to tell real machines that they find the API on themselves."""
    conf = start.conf
    address = urllib.parse.urlsplit(opts.agent_api_url(conf)).hostname or ""
    is_named = conf.service_catalog.endpoint_override or conf.api.public_endpoint
    real = [name for name in conf.enabled_hardware_types if name != _FAKE]
    if real and not is_named and is_loopback(address):
        start.refusals.messages.append(
            f"my_ip is {address}, and machines of {', '.join(real)} cannot reach the API there. Write the address of "
            "this host on the provisioning network as my_ip, or a URL as [service_catalog] endpoint_override."
        )


def check_transport(conf: cfg.ConfigOpts) -> None:
    """Refuse a process of its own that cannot reach the others.

    :raises ConfigurationError: rpc_transport is not oslo.
    """
    if conf.rpc_transport != "oslo":
        raise errors.ConfigurationError(
            option="rpc_transport",
            value=conf.rpc_transport,
            allowed="APIs and conductors that are processes of their own reach each other with oslo and transport_url. "
            "The command ingot is both in one, and needs neither.",
        )


def is_loopback(host: str) -> bool:
    """Return whether only this host reaches an address."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"
