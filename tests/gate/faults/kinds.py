"""What can go wrong: each kind of fault with how often it comes, how long it lasts, what it does to the site and how
it ends. To add one, add a row."""

import signal
from collections.abc import Callable
from typing import NamedTuple

from tests.gate.faults.site import Site

SLOW_S = 0.1
"""By how much every answer of a slow database is late, and every question."""

Act = Callable[[Site, str], None]
"""Does something to a victim."""


class Kind(NamedTuple):
    """A kind of fault.

    :param victims: what it befalls: a key of ``Site.victims``.
    :param weight: how often it comes, compared with the others.
    :param seconds: the shortest and the longest.
    """

    victims: str
    weight: int
    seconds: tuple[float, float]
    begin: Act
    end: Act


def _kill(site: Site, name: str) -> None:
    site.dead.add(name)
    site.processes[name].stop(signal.SIGKILL)


def _revive(site: Site, name: str) -> None:
    site.dead.discard(name)  # the supervisor starts it


def _freeze(site: Site, name: str) -> None:
    site.processes[name].send(signal.SIGSTOP)


def _thaw(site: Site, name: str) -> None:
    site.processes[name].send(signal.SIGCONT)


def _stop_server(site: Site, name: str) -> None:
    site.servers[name].stop()


def _start_server(site: Site, name: str) -> None:
    site.start_server(name)


def _cut(site: Site, name: str) -> None:
    site.wires[name].hold()


def _reconnect(site: Site, name: str) -> None:
    site.wires[name].resume()


def _slow(site: Site, _name: str) -> None:
    site.database_line.delay = SLOW_S


def _quick(site: Site, _name: str) -> None:
    site.database_line.delay = 0.0


def _machine(fault: str, value: str | None = None, times: int | None = None) -> tuple[Act, Act]:
    """Return the start and the end of a fault that the rack knows."""
    return (
        lambda site, machine: site.control().order_fault(machine, fault, value, times),
        lambda site, machine: site.control().clear_faults(machine, fault),
    )


def _agent_dies(step: str) -> tuple[Act, Act]:
    return _machine("agent_dies_at_step", step, 1)


KINDS: dict[str, Kind] = {
    "conductor killed": Kind("conductors", 4, (0, 12), _kill, _revive),
    "conductor frozen": Kind("conductors", 3, (10, 20), _freeze, _thaw),
    "conductor cut off from bus": Kind("conductors", 3, (5, 20), _cut, _reconnect),
    "api killed": Kind("apis", 3, (0, 5), _kill, _revive),
    "api frozen": Kind("apis", 2, (2, 8), _freeze, _thaw),
    "broker stopped": Kind("brokers", 2, (2, 15), _stop_server, _start_server),
    "database stopped": Kind("databases", 2, (2, 12), _stop_server, _start_server),
    "database slow": Kind("databases", 2, (3, 10), _slow, _quick),
    "agent dies while writing": Kind("machines", 2, (15, 20), *_agent_dies("write_image")),
    "agent dies while erasing": Kind("machines", 1, (15, 20), *_agent_dies("erase_devices_metadata")),
    "heartbeats lost": Kind("machines", 2, (5, 15), *_machine("heartbeat_lost")),
    "bmc silent": Kind("machines", 2, (5, 25), *_machine("bmc_silent")),
}
WEIGHTS = {name: kind.weight for name, kind in KINDS.items()}
