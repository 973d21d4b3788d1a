"""Ports for the servers of tests and laboratories that must be known before the server binds them.

A port that is free now may be another's a moment later: any outgoing connection takes one, and so does the next
process that looks for one. The ports here lie below those that the kernel gives to outgoing connections, and this
process leases them from all others that ask here, by an abstract socket's name that the kernel frees when it ends.
"""

import contextlib
import pathlib
import secrets
import socket

LOOPBACK = "127.0.0.1"
FIRST = 9000
"""Below it are the ports that the rack and the services have by default, which guides show and tests type."""

_EPHEMERAL = pathlib.Path("/proc/sys/net/ipv4/ip_local_port_range")

_leases: list[socket.socket] = []


def tcp(count: int = 1) -> int:
    """Return a TCP port of the loopback that stays free until this process, or a child that is given it, binds it.

    :param count: how many ports in a row are free then; this is the first.
    """
    return _row(socket.SOCK_STREAM, count)


def udp(count: int) -> int:
    """Return the first of ``count`` UDP ports in a row; a rack whose ports need not be known binds port 0."""
    return _row(socket.SOCK_DGRAM, count)


def _row(kind: socket.SocketKind, count: int) -> int:
    """Lease the ports in a row and return the first.

    :raises OSError: no such row was found.
    """
    last = int(_EPHEMERAL.read_text().split()[0]) - count
    if last <= FIRST:
        raise OSError(f"{_EPHEMERAL} leaves no ports above {FIRST} that outgoing connections do not take")
    for _ in range(1000):
        first = FIRST + secrets.randbelow(last - FIRST)
        with contextlib.ExitStack() as held, contextlib.suppress(OSError):
            leases = [held.enter_context(_lease(kind, port)) for port in range(first, first + count)]
            held.pop_all()
            _leases.extend(leases)
            return first
    raise OSError(f"no {count} free ports in a row on {LOOPBACK}")


def _lease(kind: socket.SocketKind, port: int) -> socket.socket:
    """Lease a port.

    :raises OSError: the port is in use, or leased.
    """
    with socket.socket(socket.AF_INET, kind) as probe:
        probe.bind((LOOPBACK, port))
    lease = socket.socket(socket.AF_UNIX, kind)
    try:
        lease.bind(f"\0ingot-port-{kind.name}-{port}")
    except OSError:
        lease.close()
        raise
    return lease
