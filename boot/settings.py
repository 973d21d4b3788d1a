"""What [boot_services] says, read and checked once."""

import ipaddress
import re
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from oslo_config import cfg

from ingot.common import boot_loaders, errors
from ingot.common.conf import opts

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,31}", re.ASCII)
_INTERFACE = re.compile(r"[^\s/,*]{1,15}", re.ASCII)
_DOMAIN = re.compile(r"(?:[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?\.?)+", re.ASCII)

_FORM = "Expected [NAME=]FIRST-LAST/PREFIX with addresses of one IPv4 network, or [NAME=]NETWORK/PREFIX."


class Network(NamedTuple):
    """A network that machines boot in.

    :param span: first and last address that is given away; None: another DHCP server gives addresses.
    """

    name: str
    network: ipaddress.IPv4Network
    span: tuple[ipaddress.IPv4Address, ipaddress.IPv4Address] | None
    router: ipaddress.IPv4Address | None = None
    dns_server: ipaddress.IPv4Address | None = None


class Settings(NamedTuple):
    """What ingot-boot is to do.

    :param answers_unknown: whether machines that are not enrolled are answered.
    :param chain: what UEFI starts by default: one of those of :mod:`ingot.common.boot_loaders`.
    :param api: address of the API for machines, without a slash at the end.
    :param user: of dnsmasq, where root starts it.
    """

    interfaces: tuple[str, ...]
    networks: tuple[Network, ...]
    domain: str
    lease_seconds: int
    max_leases: int
    answers_unknown: bool
    chain: str
    api: str
    directory: Path
    user: str

    @property
    def tftp_root(self) -> Path:
        """Directory that TFTP serves."""
        return self.directory / "tftp"

    @property
    def script(self) -> str:
        """Address of what iPXE starts with."""
        return f"{self.api}/{boot_loaders.SCRIPT}"

    def locate(self, client: boot_loaders.Client, file: str) -> str:
        """Return what firmware is to fetch: the URL of a loader, or its name where it comes by TFTP."""
        return f"{self.api}/boot/loaders/{file}" if client.by_http else file


def read(conf: cfg.ConfigOpts, needs_networks: bool = True) -> Settings:
    """Return what the options say.

    :param needs_networks: whether it is for a dnsmasq of Ingot's own.
    :raises ConfigurationErrors: they cannot be used; the message names all that is wrong.
    """
    refusals = errors.Refusals()
    options = conf.boot_services
    networks = _read_networks(conf, refusals)
    _check(refusals, "interfaces", options.interfaces, _INTERFACE, "Names of network interfaces.")
    _check(refusals, "domain", [options.domain] if options.domain else [], _DOMAIN, "A domain name.")
    if needs_networks:
        for name in ("interfaces", "dhcp_ranges"):
            if not options[name]:
                refusals.messages.append(f"[boot_services] {name} is not set: ingot-boot needs at least one.")
    refusals.finish()
    unknown = options.unknown_machines
    return Settings(
        interfaces=tuple(options.interfaces),
        networks=networks,
        domain=options.domain,
        lease_seconds=options.lease_seconds,
        max_leases=options.max_leases,
        answers_unknown=conf.auto_discovery.enabled if unknown == "auto" else unknown == "answer",
        chain=options.loader,
        api=opts.agent_api_url(conf),
        directory=Path(options.directory),
        user=options.user,
    )


def _check(refusals: errors.Refusals, name: str, values: list[str], allowed: re.Pattern[str], words: str) -> None:
    """Note values that may not stand in a file of dnsmasq."""
    for value in values:
        if not allowed.fullmatch(value):
            refusals.messages.append(f"[boot_services] {name}: {value!r} cannot be used. {words}")


def _read_networks(conf: cfg.ConfigOpts, refusals: errors.Refusals) -> tuple[Network, ...]:
    options, found = conf.boot_services, []
    for number, given in enumerate(options.dhcp_ranges, start=1):
        try:
            found.append(_parse_range(given, f"net{number}"))
        except ValueError as exc:
            refusals.messages.append(f"[boot_services] dhcp_ranges: {given!r} cannot be used: {exc}. {_FORM}")
    names = [network.name for network in found]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        refusals.messages.append(f"[boot_services] dhcp_ranges: {', '.join(twice)} stands for two networks.")
    routers = _read_addresses("routers", options.routers, found, refusals)
    servers = _read_addresses("dns_servers", options.dns_servers, found, refusals)
    return tuple(
        network._replace(router=routers.get(network.name), dns_server=servers.get(network.name)) for network in found
    )


def _parse_range(given: str, default: str) -> Network:
    """
    :raises ValueError: it has another form; the message says what is wrong.
    """
    name, equals, rest = given.rpartition("=")
    name = name.strip() if equals else default
    if not _NAME.fullmatch(name):
        raise ValueError(f"the name {name!r} has other characters than letters, digits, - and _")
    addresses, _, prefix = rest.strip().partition("/")
    if not prefix.isdecimal():
        raise ValueError("it has no prefix, such as /24")
    first, dash, last = (part.strip() for part in addresses.partition("-"))
    if not dash:
        return Network(name, ipaddress.IPv4Network(f"{first}/{prefix}"), None)
    span = ipaddress.IPv4Address(first), ipaddress.IPv4Address(last)
    network = ipaddress.IPv4Network(f"{first}/{prefix}", strict=False)
    if span[1] not in network or span[1] < span[0]:
        raise ValueError(f"{last} does not follow {first} in {network}")
    return Network(name, network, span)


def _read_addresses(
    option: str, given: Mapping[str, str], networks: list[Network], refusals: errors.Refusals
) -> dict[str, ipaddress.IPv4Address]:
    known, found = [network.name for network in networks], {}
    for name, text in given.items():
        try:
            found[name] = ipaddress.IPv4Address(text.strip())
        except ValueError:
            refusals.messages.append(f"[boot_services] {option}: {text!r} is no IPv4 address.")
        if name not in known:
            there_are = ", ".join(known) or "none"
            refusals.messages.append(
                f"[boot_services] {option}: dhcp_ranges has no network {name!r}; there are: {there_are}."
            )
    return found
