"""The line between a conductor and the bus, which can be pulled out."""

import ctypes
import ipaddress
import os
import socket
import subprocess
from pathlib import Path

from ingot.rack import ports
from tests.functional.proxy import Proxy

_NAMESPACES = Path("/run/netns")
_OWN = Path("/proc/thread-self/ns/net")
_FOR_MEASUREMENTS = ipaddress.ip_network("198.18.0.0/15")
"""Addresses that are not in use elsewhere (RFC 2544); a line takes four."""

_NEW_NETWORK = 0x40000000
"""CLONE_NEWNET of setns(2)."""


def line_to(server: tuple[str, int]) -> Proxy:
    """Return a line with its own network where that is allowed, otherwise one that only falls silent."""
    return Wire(server) if allowed() else Proxy(server)


def allowed() -> bool:
    """Return whether this process may make network namespaces."""
    name = f"ingot-try-{os.getpid()}"
    made = subprocess.run(["ip", "netns", "add", name], capture_output=True, check=False).returncode == 0
    if made:
        _ip("netns", "delete", name)
    return made


class Wire(Proxy):
    """Listens in a network namespace, to which a pair of virtual interfaces is the only way. While its far end is down,
    the kernel loses every packet, as with a cable that is pulled out; connections live, and find out by themselves."""

    def _setUp(self) -> None:
        number = ports.tcp()
        self._name, near, self._far = f"ingot-{number}", f"ingot{number}n", f"ingot{number}f"
        network = _FOR_MEASUREMENTS[4 * (number % 2**15)]
        self.host = str(network + 2)
        _ip("netns", "add", self._name)
        self.addCleanup(_ip, "netns", "delete", self._name)  # the interfaces end with it
        _ip("link", "add", near, "type", "veth", "peer", "name", self._far, "netns", self._name)
        _ip("address", "add", f"{network + 1}/30", "dev", near)
        _ip("link", "set", near, "up")
        _ip("-n", self._name, "address", "add", f"{self.host}/30", "dev", self._far)
        self.resume()
        super()._setUp()

    def hold(self) -> None:
        _ip("-n", self._name, "link", "set", self._far, "down")

    def resume(self) -> None:
        _ip("-n", self._name, "link", "set", self._far, "up")

    def _bind(self, port: int) -> socket.socket:
        with (_NAMESPACES / self._name).open() as there, _OWN.open() as here:
            _enter(there.fileno())
            try:
                return super()._bind(port)
            finally:
                _enter(here.fileno())


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True)


def _enter(namespace: int) -> None:
    """Move the calling thread to a network namespace (Python has a function for it from 3.12 on)."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.setns(namespace, _NEW_NETWORK):
        raise OSError(ctypes.get_errno(), "setns")
