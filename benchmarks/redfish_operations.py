"""What operations over Redfish cost: processor time of the conductor and of the BMC, and sessions.

    python -m benchmarks.redfish_operations --times 200

The virtual rack plays one BMC, with TLS. Each operation is done again and again; the first login is not counted.
"""

import argparse
import time
from collections.abc import Callable, Iterator
from typing import Any

import requests

from benchmarks import bmcs, processes, report
from ingot.common import states
from ingot.drivers.redfish import connection
from tests.unit.drivers import fakes

OPERATIONS: dict[str, Callable[[fakes.MemoryTask], object]] = {
    "power state": lambda task: task.driver.power.get_power_state(task),
    "power on, which it is": lambda task: task.driver.power.start_power_change(task, states.POWER_ON),
    "reset": lambda task: task.driver.power.start_power_change(task, states.REBOOT),
    "boot device": lambda task: task.driver.management.get_boot_device(task),
    "boot device set": lambda task: task.driver.management.set_boot_device(task, "pxe"),
    "boot mode and secure boot": lambda task: task.driver.management.read_boot_mode(task),
    "virtual media": lambda task: task.driver.management.get_virtual_media(task),
    "lights": lambda task: task.driver.management.get_supported_indicators(task),
    "BIOS settings with registry": lambda task: task.driver.bios.cache_bios_settings(task),
    "versions of firmware": lambda task: task.driver.firmware.cache_firmware_components(task),
    "inspection": lambda task: task.driver.inspect.inspect_hardware(task),
}


def _count_sessions(info: dict[str, Any]) -> int:
    """Return how many sessions the BMC has; this request opens none."""
    answer = requests.get(
        f"{info['redfish_address']}/redfish/v1/SessionService/Sessions",
        auth=(info["redfish_username"], info["redfish_password"]),
        verify=info["redfish_verify_ca"],
        timeout=30,
    )
    return len(answer.json()["Members"])


def measure(times: int) -> Iterator[dict[str, Any]]:
    with bmcs.play(bmcs.DRIVERS["redfish"], 1, 0) as fleet:
        conf = fakes.configuration(enabled_hardware_types=["redfish"], default_inspect_interface="redfish")
        task = fakes.MemoryTask(conf, fakes.node(driver="redfish", driver_info=fleet.infos[0]))
        for name, operate in OPERATIONS.items():
            operate(task)
            rack, used = processes.cpu([fleet.pid]), time.process_time()
            for _ in range(times):
                operate(task)
            spent = time.process_time() - used
            played = processes.cpu_between(rack, processes.cpu([fleet.pid]))
            yield {
                "operation": name,
                "ms of the conductor": 1000 * spent / times,
                "ms of the BMC that is played": 1000 * played / times,
                "sessions on the BMC": _count_sessions(fleet.infos[0]),
            }
        connection.log_out()
        yield {"operation": "end of the process", "sessions on the BMC": _count_sessions(fleet.infos[0])}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--times", type=int, default=200, help="(default: %(default)s)")
    given = parser.parse_args()
    report.finish("redfish-operations", report.circumstances(), {"By operation": [*measure(given.times)]})


if __name__ == "__main__":
    main()
