"""Reads the power of a fleet of simulated BMCs, some of them silent: in threads, and with one loop for all.

    python -m benchmarks.bmcs --machines 1000 --silent 10 --driver redfish

The virtual rack plays all machines in a process of its own; this one reads each of them, as rounds of the power states'
reading do. The first round of a driver with sessions opens them, those after it use them again.
"""

import argparse
import contextlib
import pathlib
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent import futures
from typing import Any, NamedTuple

from benchmarks import processes, report
from ingot.common import errors
from ingot.conductor import power
from ingot.drivers.redfish import connection
from ingot.rack.process import RackProcess
from tests.unit.drivers import fakes

Info = dict[str, Any]

_LONG = 3600.0


class Driver(NamedTuple):
    """How a hardware type is measured.

    :param power: name of its power interface.
    :param settings: of the rack.
    :param read_info: returns the ``driver_info`` of a machine of a rack.
    :param timeout: the option that ends a call to a BMC.
    :param forget: ends what was kept of all BMCs.
    """

    power: str
    settings: Info
    read_info: Callable[[Mapping[str, Any], Mapping[str, Any]], Info]
    timeout: str
    forget: Callable[[], None]


def _read_ipmi(machine: Mapping[str, Any], _rack: Mapping[str, Any]) -> Info:
    return {"ipmi_address": "127.0.0.1", "ipmi_port": machine["bmc_port"], "ipmi_username": "admin",
            "ipmi_password": "password"}  # fmt: skip


def _read_redfish(machine: Mapping[str, Any], rack: Mapping[str, Any]) -> Info:
    face = machine["redfish"]
    return {"redfish_address": face["address"], "redfish_system_id": face["system"], "redfish_username": "admin",
            "redfish_password": "password", "redfish_verify_ca": rack["redfish_ca_file"]}  # fmt: skip


DRIVERS = {
    "ipmi": Driver("ipmitool", {}, _read_ipmi, "ipmi__command_retry_timeout", lambda: None),
    "redfish": Driver("redfish", {"redfish_base_port": 0}, _read_redfish, "redfish__read_timeout", connection.log_out),
}


class Fleet(NamedTuple):
    """The BMCs of a rack.

    :param infos: ``driver_info`` of each machine.
    :param pid: the process that plays them.
    """

    infos: list[Info]
    pid: int


@contextlib.contextmanager
def play(driver: Driver, machines: int, silent: int) -> Iterator[Fleet]:
    """Yield BMCs that another process plays; their machines obey at once, and boot nothing.

    :param silent: every which one never answers; 0: none.
    """
    quick: dict[str, Any] = {"power_off_delay": 0.0, "shutdown_delay": 0.0, "boot_delay": _LONG, "bmc_base_port": 0}
    with tempfile.TemporaryDirectory(prefix="ingot-benchmark-") as directory:
        with RackProcess(pathlib.Path(directory), machines=machines, **quick, **driver.settings) as rack:
            for machine in rack.machines[:: silent or len(rack.machines) + 1][: machines if silent else 0]:
                rack.control.order_fault(machine["name"], "bmc_silent")
            infos = [driver.read_info(machine, rack.description) for machine in rack.machines]
            yield Fleet(infos, rack.pid or 0)


Reader = Callable[[list[fakes.MemoryTask]], list[float]]
"""Reads the power of machines; returns the moments at which those that answered were read."""


def in_threads(number: int) -> Reader:
    """Return a reader with a pool of threads, each of which waits for one BMC at a time."""

    def one(task: fakes.MemoryTask) -> float | None:
        try:
            task.driver.power.get_power_state(task)
        except errors.HardwareUnreachable:
            return None
        return time.monotonic()

    def read(tasks: list[fakes.MemoryTask]) -> list[float]:
        with futures.ThreadPoolExecutor(number) as pool:
            return [moment for moment in pool.map(one, tasks) if moment is not None]

    return read


def at_once(tasks: list[fakes.MemoryTask]) -> list[float]:
    """Read as many at the same time as a conductor does, without a thread for any."""
    moments: list[float] = []
    places = threading.BoundedSemaphore(power.AT_ONCE)

    def note_end(reading: "futures.Future[Any]") -> None:
        places.release()
        if reading.exception() is None:
            moments.append(time.monotonic())

    readings = []
    for task in tasks:
        places.acquire()
        readings.append(task.driver.power.start_reading(task))
        readings[-1].add_done_callback(note_end)
    futures.wait(readings)
    return moments


def measure(driver: str, name: str, read: Reader, given: argparse.Namespace) -> Iterator[Any]:
    """Measure the cost of some rounds."""
    kind = DRIVERS[driver]
    options: Info = {"enabled_hardware_types": [driver], kind.timeout: given.timeout}
    with play(kind, given.machines, given.silent) as fleet:
        conf = fakes.configuration(**options)
        tasks = [fakes.MemoryTask(conf, fakes.node(driver=driver, driver_info=info)) for info in fleet.infos]
        for number in range(1, given.rounds + 1):
            rack, used, began = processes.cpu([fleet.pid]), time.process_time(), time.monotonic()
            moments = read(tasks)
            ended = time.monotonic()
            yield {
                "driver": driver,
                "reader": name,
                "round": number,
                "answers": len(moments),
                "seconds until the last live one is read": max(moments) - began,
                "seconds until the round ends": ended - began,
                "processor seconds": time.process_time() - used,
                "processor seconds of the rack": processes.cpu_between(rack, processes.cpu([fleet.pid])),
            }
        kind.forget()


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--driver", choices=DRIVERS, nargs="+", default=[*DRIVERS], help="(default: each)")
    parser.add_argument("--machines", type=int, default=1000)
    parser.add_argument(
        "--silent", type=int, default=10, help="every which one is silent; 0: none (default: %(default)s)"
    )
    parser.add_argument("--rounds", type=int, default=2, help="(default: %(default)s)")
    parser.add_argument("--timeout", type=int, default=20, help="seconds given to a BMC (default: %(default)s)")
    parser.add_argument("--threads", type=int, nargs="*", default=[8, 100], help="sizes of pools to compare with")
    given = parser.parse_args()
    facts = report.circumstances()
    readers = {"loop": at_once, **{f"{number} threads": in_threads(number) for number in given.threads}}
    rows = [
        row for driver in given.driver for name, read in readers.items() for row in measure(driver, name, read, given)
    ]
    report.finish("bmcs", facts, {"By reader": rows})


if __name__ == "__main__":
    main()
