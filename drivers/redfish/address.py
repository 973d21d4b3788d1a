"""What a node's driver_info says of its Redfish BMC: where it is, which machine, and how to log in."""

import os
import ssl
import urllib.parse
from typing import NamedTuple, TypeGuard

from oslo_config import cfg
from oslo_utils import strutils

from ingot.common import errors
from ingot.common.json_types import Json

AUTH_TYPES = ("auto", "session", "basic")

PORTS = {"http": 80, "https": 443}
"""The usual ports."""

_LONGEST_PATH = 1024

_NO_SYSTEM = ("", "/redfish/v1", "/redfish/v1/")  # the path of an address that names only the BMC

_TLS_VERSIONS = {"1.1": ssl.TLSVersion.TLSv1_1, "1.2": ssl.TLSVersion.TLSv1_2, "1.3": ssl.TLSVersion.TLSv1_3}

PROPERTIES: dict[str, str] = {
    "redfish_address": "Address of the BMC: host, host:port or URL; https where there is no scheme. Required.",
    "redfish_system_id": "Path of the machine's resource, as /redfish/v1/Systems/1. Optional where the BMC has one "
    "machine only.",
    "redfish_username": "User name. Default: requests are sent without logging in.",
    "redfish_password": "Password. Default: none.",
    "redfish_verify_ca": "What the BMC's certificate is verified with: true (authorities of the host), false (not at "
    "all), or the path of a file or directory of certificates. Default: [redfish] verify_ca.",
    "redfish_auth_type": "session, basic, or auto: a session where the BMC has them. Default: [redfish] auth_type.",
    "redfish_tls_minimum_version": "1.1, 1.2 or 1.3: the oldest version of TLS that is spoken. Default: [redfish] "
    "tls_minimum_version.",
    "redfish_tls_ciphers": "Cipher suites for TLS up to 1.2, as OpenSSL writes them. Default: [redfish] tls_ciphers.",
}


class Trust(NamedTuple):
    """What a BMC's certificate is verified with.

    :param authorities: True: those of the host; False: nothing; or the path of a file or directory.
    :param minimum: oldest version of TLS, None: OpenSSL's own.
    :param ciphers: None: OpenSSL's own.
    """

    authorities: bool | str = True
    minimum: str | None = None
    ciphers: str | None = None

    def build_context(self) -> ssl.SSLContext:
        """
        :raises OSError: a file cannot be read, or holds no certificates.
        """
        if self.authorities is False:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        elif self.authorities is True:
            context = ssl.create_default_context()
        elif os.path.isdir(self.authorities):
            context = ssl.create_default_context(capath=self.authorities)
        else:
            context = ssl.create_default_context(cafile=self.authorities)
        if self.minimum is not None:
            context.minimum_version = _TLS_VERSIONS[self.minimum]
        if self.ciphers is not None:
            context.set_ciphers(self.ciphers)
        return context


class Address(NamedTuple):
    """A BMC, one of its machines, and how to log in.

    :param root: path of the service root, with a slash at the end.
    :param system: path of the machine's resource; None: the only one there is.
    :param username: None: requests need no log-in.
    """

    scheme: str
    host: str
    port: int
    root: str
    system: str | None
    username: str | None
    password: str
    auth_type: str
    trust: Trust

    def __repr__(self) -> str:
        return f"<{self.where}>"

    @property
    def where(self) -> str:
        """The BMC's name in messages, and for its circuit breaker."""
        return f"{self.scheme}://{self.authority}"

    @property
    def authority(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == PORTS[self.scheme] else f"{host}:{self.port}"


def read_address(driver_info: Json, conf: cfg.ConfigOpts) -> Address:
    """Return the BMC that a node's ``driver_info`` names.

    :raises MissingParameter: there is no ``redfish_address``.
    :raises Invalid: a value that cannot be used, with its key.
    """
    if not driver_info.get("redfish_address"):
        raise errors.MissingParameter(where="driver_info", names="redfish_address (of the machine's BMC)")
    scheme, host, port, root = _read_url(driver_info["redfish_address"])
    return Address(
        scheme=scheme,
        host=host,
        port=port,
        root=root,
        system=_read_system(driver_info.get("redfish_system_id")),
        username=_read_text(driver_info, "redfish_username"),
        password=_read_text(driver_info, "redfish_password") or "",
        auth_type=_read_choice(driver_info, "redfish_auth_type", AUTH_TYPES) or conf.redfish.auth_type,
        trust=Trust(
            _read_authorities(driver_info.get("redfish_verify_ca"), conf),
            _read_choice(driver_info, "redfish_tls_minimum_version", tuple(_TLS_VERSIONS))
            or conf.redfish.tls_minimum_version,
            _read_ciphers(_read_text(driver_info, "redfish_tls_ciphers")) or conf.redfish.tls_ciphers,
        ),
    )


def _refuse(key: str, value: object, allowed: str) -> errors.Invalid:
    return errors.Invalid(field=f"driver_info.{key}", value=value, allowed=allowed)


def _is_word(value: object) -> TypeGuard[str]:
    """Return whether a value can be part of a line of HTTP; what parses URLs drops line ends."""
    return isinstance(value, str) and value.isprintable() and " " not in value


def _read_url(value: object) -> tuple[str, str, int, str]:
    """Return scheme, host, port and path of the service root."""
    allowed = "A host, host:port or URL of http or https, without user, query and fragment."
    refused = _refuse("redfish_address", value, allowed)
    if not _is_word(value):
        raise refused
    try:
        parts = urllib.parse.urlsplit(_add_scheme(value))
        host, usual = parts.hostname or "", PORTS[parts.scheme]
        port = usual if parts.port is None else parts.port
        host.encode("idna")  # as those do who look it up
    except (KeyError, ValueError):
        raise refused from None
    if not host or not port or "@" in parts.netloc or parts.query or parts.fragment:
        raise refused
    path = parts.path.rstrip("/").removesuffix("/redfish/v1")
    return parts.scheme, host, port, f"{path}/redfish/v1/"


def _add_scheme(address: str) -> str:
    if "://" in address:
        return address
    is_bare_ipv6 = address.count(":") > 1 and "[" not in address
    return f"https://[{address}]" if is_bare_ipv6 else f"https://{address}"


def _read_system(value: object) -> str | None:
    if value is None or value in _NO_SYSTEM:
        return None
    if not _is_word(value) or not value.startswith("/") or "?" in value or "#" in value or len(value) > _LONGEST_PATH:
        raise _refuse("redfish_system_id", value, "A path that begins with /, as /redfish/v1/Systems/1.")
    return urllib.parse.quote(value.rstrip("/"), safe="/%:@!$&'()*+,;=~") or None


def _read_text(driver_info: Json, key: str) -> str | None:
    value = driver_info.get(key)
    if value is not None and not isinstance(value, str):
        raise _refuse(key, value, "A string.")
    return value or None


def _read_choice(driver_info: Json, key: str, choices: tuple[str, ...]) -> str | None:
    value = driver_info.get(key)
    if value is not None and value not in choices:
        raise _refuse(key, value, f"One of {', '.join(choices)}.")
    return value


def _read_ciphers(value: str | None) -> str | None:
    if value is not None:
        try:
            ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).set_ciphers(value)
        except ssl.SSLError:
            allowed = "Names of cipher suites with colons between, as 'openssl ciphers' has them."
            raise _refuse("redfish_tls_ciphers", value, allowed) from None
    return value


def _read_authorities(value: object, conf: cfg.ConfigOpts) -> bool | str:
    """Return what :class:`Trust` has; a truth value may be a string, as in Ironic."""
    found = conf.redfish.verify_ca if value is None else value
    if isinstance(found, bool):
        return found
    if isinstance(found, str):
        try:
            return bool(strutils.bool_from_string(found, strict=True))
        except ValueError:
            if os.path.exists(found):
                return found
    allowed = "true, false, or the path of a file or directory of certificates that exists on the conductor's host."
    if value is None:
        raise errors.Invalid(field="[redfish] verify_ca", value=found, allowed=allowed)
    raise _refuse("redfish_verify_ca", found, allowed)
