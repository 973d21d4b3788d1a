"""The configuration of dnsmasq, for one that ingot-boot runs and for an operator's own."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from ingot.boot.settings import Network, Settings
from ingot.common.boot_loaders import CLIENTS, GRUB, IPXE, Client

ENROLLED, SIGNED = "enrolled", "signed"
"""Tags of machines: of those whose MAC address is that of a port, and of those that start the signed shim and GRUB."""


class Machine(NamedTuple):
    """A machine that is enrolled.

    :param signed: whether it starts the signed shim and GRUB, as nodes with the boot interface pxe do.
    """

    address: str
    signed: bool


def render(settings: Settings) -> str:
    """Return the file of a dnsmasq that serves DHCP and TFTP, and nothing else."""
    return "\n".join([*_list_own(settings), *list_boot(settings), ""])


def render_machines(machines: Iterable[Machine]) -> str:
    """Return the lines by which dnsmasq knows machines."""
    return "".join(f"{one.address},set:{ENROLLED}{f',set:{SIGNED}' * one.signed}\n" for one in machines)


def _list_own(settings: Settings) -> Iterator[str]:
    """Yield what is not about loaders: where it listens, and what it gives to whom."""
    directory = settings.directory
    yield "port=0"
    yield "log-facility=-"
    yield "bind-dynamic"
    yield from (f"interface={name}" for name in settings.interfaces)
    yield f"dhcp-leasefile={directory / 'leases' / 'dnsmasq.leases'}"
    yield f"dhcp-hostsfile={directory / 'machines'}"
    yield f"dhcp-lease-max={settings.max_leases}"
    yield "dhcp-ignore-names"
    yield "dhcp-ignore-clid"
    if not settings.answers_unknown:
        yield f"dhcp-ignore=tag:!{ENROLLED}"
    for network in settings.networks:
        yield from _list_network(network, settings.lease_seconds)
    if any(network.span for network in settings.networks):
        yield "dhcp-authoritative"
    if settings.domain:
        yield f"domain={settings.domain}"
    yield "enable-tftp"
    yield f"tftp-root={settings.tftp_root}"
    yield "tftp-single-port"


def _list_network(network: Network, lease_seconds: int) -> Iterator[str]:
    if network.span is None:
        yield f"dhcp-range=set:{network.name},{network.network.network_address},proxy,{network.network.netmask}"
        return
    first, last = network.span
    yield f"dhcp-range=set:{network.name},{first},{last},{network.network.netmask},{lease_seconds}"
    for option, address in (("router", network.router), ("dns-server", network.dns_server)):
        # Without an address of its own dnsmasq would name itself, which routes nothing and knows no names.
        yield f"dhcp-option=tag:{network.name},option:{option}{f',{address}' if address else ''}"


def list_boot(settings: Settings) -> Iterator[str]:
    """Yield what firmware and iPXE start; each client has the tags of exactly one line."""
    yield f"dhcp-match=set:{IPXE},175"
    yield f"dhcp-userclass=set:{IPXE},iPXE"
    for client in CLIENTS:
        yield from (f"dhcp-match=set:{client.tag},option:client-arch,{code}" for code in client.codes)
    yield f"dhcp-boot=tag:{IPXE},{settings.script}"
    is_proxy = any(network.span is None for network in settings.networks)
    for client in CLIENTS:
        yield from _list_client(settings, client, is_proxy)


def _list_client(settings: Settings, client: Client, is_proxy: bool) -> Iterator[str]:
    tags = f"tag:{client.tag},tag:!{IPXE}"
    default, signed = client.file(settings.chain), client.file(GRUB)
    choices = (
        {tags: default} if default == signed else {f"{tags},tag:!{SIGNED}": default, f"{tags},tag:{SIGNED}": signed}
    )
    for chosen, file in choices.items():
        yield f"dhcp-boot={chosen},{settings.locate(client, file)}"
        if is_proxy and not client.by_http:
            yield from (f"pxe-service={chosen},{code},Ingot,{file}" for code in client.codes)
    if client.by_http:  # the firmware takes no answer that does not say so
        yield f"dhcp-option-force=tag:{client.tag},60,HTTPClient"


def list_needed(chain: str) -> list[str]:
    """Return the names of the loaders of a chain without which no machine of x86 boots."""
    first = [client.file(chain) for client in CLIENTS if client.tag in ("bios", "efi-x86-64")]
    return [*first, *_list_seconds(first)]


def list_others(chain: str) -> list[str]:
    """Return the names of the loaders that are served where this host has them."""
    first = {client.file(which) for client in CLIENTS for which in (chain, GRUB)}
    return sorted({*first, *_list_seconds(first)} - set(list_needed(chain)))


def _list_seconds(names: Iterable[str]) -> list[str]:
    """Return what those of some loaders that are shims start."""
    return [name.replace("boot", "grub") for name in names if name.startswith("boot")]
