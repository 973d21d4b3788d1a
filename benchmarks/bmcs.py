"""Reads the power of a fleet of simulated BMCs, some of them silent: in threads, and with one loop for all.

    python -m benchmarks.bmcs --machines 1000 --silent 10

One process plays all BMCs, with the virtual rack's code; this one reads each of them once, as a round of the power
states' reading does.
"""

import argparse
import contextlib
import multiprocessing
import selectors
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent import futures
from multiprocessing.connection import Connection
from typing import Any

from benchmarks import report
from ingot.common import errors
from ingot.drivers.interfaces import bmc_loop
from ingot.drivers.ipmi import session
from ingot.rack import bmc
from ingot.rack.faults import Faults

STATUS = session.Request(0x00, 0x01)


class _Chassis:
    """A machine that obeys at once."""

    def __init__(self) -> None:
        self.powered = True
        self.uuid = uuid.uuid4()
        self.faults = Faults()

    def power(self, action: str) -> bool:
        self.powered = action not in ("off", "soft")
        return True

    def interrupt(self) -> bool:
        return True

    def boot_setting(self) -> None:
        return None

    def set_boot_setting(self, device: str, persistent: bool, efi: bool) -> None:
        """Ignore the setting: the machine is not booted."""


def _play(machines: int, silent: int, pipe: Connection) -> None:
    """Answer as all the BMCs, until the process is ended.

    :param silent: every which one never answers; 0: none.
    """
    ready = selectors.DefaultSelector()
    ports = []
    for number in range(machines):
        chassis = _Chassis()
        if silent and number % silent == 0:
            chassis.faults.order("bmc_silent")
        made = bmc.RackBmc(chassis, "127.0.0.1", 0, "admin", "password")
        ready.register(made, selectors.EVENT_READ)
        ports.append(made.port)
    pipe.send(ports)
    while True:
        for key, _ in ready.select():
            made = key.fileobj  # type: ignore[assignment]
            made.receive()


@contextlib.contextmanager
def play(machines: int, silent: int) -> Iterator[list[session.Address]]:
    """Yield the addresses of BMCs that another process plays."""
    processes = multiprocessing.get_context("spawn")  # this process has threads
    here, there = processes.Pipe()
    player = processes.Process(target=_play, args=(machines, silent, there), daemon=True)
    player.start()
    try:
        yield [session.Address("127.0.0.1", port, "admin", "password") for port in here.recv()]
    finally:
        player.terminate()
        player.join()


def in_threads(number: int) -> Callable[[list[session.Address], int], list[float]]:
    """Return a reader with a pool of threads, each of which waits for one BMC at a time."""

    def read(addresses: list[session.Address], timeout: int) -> list[float]:
        def one(address: session.Address) -> float | None:
            try:
                session.call(address, timeout, STATUS)
            except errors.HardwareUnreachable:
                return None
            return time.monotonic()

        with futures.ThreadPoolExecutor(number) as pool:
            return [moment for moment in pool.map(one, addresses) if moment is not None]

    return read


def at_once(addresses: list[session.Address], timeout: int) -> list[float]:
    """Read all of them at the same time, without a thread for any."""
    moments: list[float] = []

    def note_end(reading: "futures.Future[Any]") -> None:
        if reading.exception() is None:
            moments.append(time.monotonic())

    readings = [bmc_loop.submit(session.call_async(address, timeout, STATUS)) for address in addresses]
    for reading in readings:
        reading.add_done_callback(note_end)
    futures.wait(readings)
    return moments


def measure(read: Callable[[list[session.Address], int], list[float]], given: argparse.Namespace) -> Any:
    """Measure the cost of one round."""
    with play(given.machines, given.silent) as addresses:
        began, used = time.monotonic(), time.process_time()
        moments = read(addresses, given.timeout)
        return {
            "answers": len(moments),
            "seconds until the last live one is read": max(moments) - began,
            "seconds until the round ends": time.monotonic() - began,
            "processor seconds": time.process_time() - used,
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--machines", type=int, default=1000)
    parser.add_argument(
        "--silent", type=int, default=10, help="every which one is silent; 0: none (default: %(default)s)"
    )
    parser.add_argument("--timeout", type=int, default=20, help="seconds given to a BMC (default: %(default)s)")
    parser.add_argument("--threads", type=int, nargs="*", default=[8, 100], help="sizes of pools to compare with")
    given = parser.parse_args()
    facts = report.circumstances()
    readers = {"loop": at_once, **{f"{number} threads": in_threads(number) for number in given.threads}}
    report.finish("bmcs", facts, {"By reader": [{"reader": name, **measure(readers[name], given)} for name in readers]})


if __name__ == "__main__":
    main()
