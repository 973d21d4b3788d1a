"""What a DHCP server learns of a node that is about to boot from the network ([dhcp] dhcp_provider).

``dnsmasq`` reads two directories while it runs: of ``dhcp-hostsdir`` which machines it answers, of ``dhcp-optsdir``
what they boot. It forgets nothing of a file that is removed, so a machine that is to get no answers is barred. Neutron
has what machines boot in the ports that these have there.
"""

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from ingot.common import boot_loaders, errors
from ingot.common.boot_loaders import CLIENTS, GRUB, IPXE
from ingot.common.conf import opts
from ingot.drivers.interfaces import boot
from ingot.drivers.interfaces.task import Task
from ingot.drivers.neutron import boot_options

_CLIENTS: Mapping[tuple[str, str], str] = {
    ("bios", "x86_64"): "bios",
    ("uefi", "x86_64"): "efi-x86-64",
    ("uefi", "aarch64"): "efi-arm64",
}
"""By boot mode and architecture of nodes, the tag of a client of :data:`boot_loaders.CLIENTS`."""

_USUAL = "x86_64"


class _Provider(NamedTuple):
    """A kind of DHCP server: what checks a node, admits its machine, and bars it."""

    check: Callable[[Task], None] = lambda _task: None
    admit: Callable[[Task, str], None] = lambda _task, _chain: None
    bar: Callable[[Task], None] = lambda _task: None


def check(task: Task) -> None:
    """Refuse a node whose DHCP server could not learn of it.

    :raises Invalid: a directory cannot be written to, or the node has no ports in Neutron.
    """
    _find_provider(task).check(task)


def _check_directories(task: Task) -> None:
    for option in ("dhcp_hostsdir", "dhcp_optsdir"):
        place = task.conf.dnsmasq[option]
        if not os.access(place, os.W_OK | os.X_OK):
            allowed = "With [dhcp] dhcp_provider = dnsmasq: a directory that the conductor's user may write to."
            raise errors.Invalid(field=f"[dnsmasq] {option}", value=place, allowed=allowed)


def admit(task: Task, chain: str) -> None:
    """Have the machine answered, and given its loader.

    :param chain: which one UEFI starts, :data:`boot_loaders.IPXE` or :data:`boot_loaders.GRUB`.
    :raises IngotError: the server cannot learn of it.
    """
    _find_provider(task).admit(task, chain)


def bar(task: Task) -> None:
    """Have the machine not answered any more.

    :raises IngotError: the server cannot learn of it.
    """
    _find_provider(task).bar(task)


def _find_provider(task: Task) -> _Provider:
    return _PROVIDERS[task.conf.dhcp.dhcp_provider]


def _write_files(task: Task, chain: str) -> None:
    lines = "".join(f"{line}\n" for line in _list_options(task, chain))
    for address in _list_addresses(task):
        tag = _name_tag(address)
        # What it boots comes first: the machine may ask as soon as it is known.
        _write(task, "dhcp_optsdir", address, lines.format(tag=tag))
        _write(task, "dhcp_hostsdir", address, f"{address},set:{tag},set:ingot\n")


def _bar_files(task: Task) -> None:
    for address in _list_addresses(task):
        _write(task, "dhcp_hostsdir", address, f"{address},ignore\n")
        try:
            _place(task, "dhcp_optsdir", address).unlink(missing_ok=True)
        except OSError as exc:
            raise _cannot_write(exc) from exc


def _list_addresses(task: Task) -> list[str]:
    return [port.address for port in task.ports if port.pxe_enabled]


def _list_options(task: Task, chain: str) -> list[str]:
    """Return what a machine boots, as lines of dhcp-optsdir; iPXE has the tag ``ipxe`` by the server's own file."""
    return [
        f"tag:{{tag}},tag:{IPXE},option:bootfile-name,{_build_script_url(task)}",
        f"tag:{{tag}},tag:!{IPXE},option:bootfile-name,{_choose_file(task, chain)}",
    ]


def _build_script_url(task: Task) -> str:
    return f"{opts.agent_api_url(task.conf)}/{boot_loaders.SCRIPT}"


def _choose_file(task: Task, chain: str) -> str:
    """Return the loader that the machine's firmware starts."""
    architecture = str(task.node.properties.get("cpu_arch") or _USUAL)
    found = _CLIENTS.get((boot.find_boot_mode(task), architecture), _CLIENTS["uefi", _USUAL])
    return next(client for client in CLIENTS if client.tag == found).file(chain)


def _write_options(task: Task, chain: str) -> None:
    boot_options.write(task, _choose_file(task, chain), _build_script_url(task))


def _name_tag(address: str) -> str:
    return f"ingot-{address.replace(':', '')}"


def _place(task: Task, option: str, address: str) -> Path:
    return Path(task.conf.dnsmasq[option], f"{_name_tag(address)}.conf")


def _write(task: Task, option: str, address: str, text: str) -> None:
    """Put a file in place at once; dnsmasq leaves out files whose names begin with a dot."""
    place = _place(task, option, address)
    fresh = place.with_name(f".{place.name}")
    try:
        fresh.write_text(text)
        fresh.chmod(0o644)
        os.replace(fresh, place)
    except OSError as exc:
        raise _cannot_write(exc) from exc


def _cannot_write(exc: OSError) -> errors.StepFailed:
    return errors.StepFailed(f"the DHCP server does not learn of the machine: {exc.filename}: {exc.strerror}")


def choose_chain(boot_interface: str) -> str:
    """Return what UEFI starts on nodes with a boot interface."""
    return GRUB if boot_interface == "pxe" else IPXE


_PROVIDERS: Mapping[str, _Provider] = {
    "none": _Provider(),
    "dnsmasq": _Provider(_check_directories, _write_files, _bar_files),
    "neutron": _Provider(boot_options.check, _write_options, boot_options.erase),
}
"""By [dhcp] dhcp_provider."""
