"""A machine under test: where its BMC is, what another client sees of it, and what can be made to happen to it."""

import atexit
import functools
from typing import Any, ClassVar

import fixtures

from ingot.driver_kit import memory_task, patience
from ingot.driver_kit.stand_in import Service


@functools.cache
def service() -> Service:
    """Return the stand-in for the API and for web servers, of this process."""
    started = Service()
    started.start()
    atexit.register(started.stop)
    return started


class Bench(fixtures.Fixture):
    """A machine, and the task of its node.

    :cvar driver: hardware type of the node.
    :cvar columns: more of the node.
    :cvar troubles: what passes, and must be borne; arguments of :meth:`disturb`.
    :cvar address: key of driver_info with the BMC's address.
    :cvar password: key of driver_info with the BMC's password.
    :cvar vendor_arguments: arguments with which vendor methods of the driver's own work, by method.
    :cvar missing: boot devices that the interface knows and the machine has not.
    :cvar own_drives: what another client calls a drive in the machine, by the device, where a virtual one differs.
    :cvar cd_drives: how many virtual CD drives it has.
    """

    driver: ClassVar[str] = "fake-hardware"
    columns: ClassVar[dict[str, Any]] = {}
    options: ClassVar[dict[str, Any]] = {}
    troubles: ClassVar[tuple[str, ...]] = ()
    address: ClassVar[str] = ""
    password: ClassVar[str] = ""
    vendor_arguments: ClassVar[dict[str, dict[str, Any]]] = {}
    missing: ClassVar[tuple[str, ...]] = ()
    own_drives: ClassVar[dict[str, str]] = {}
    cd_drives: ClassVar[int] = 1

    def _setUp(self) -> None:
        info = self.connect()
        service().files |= {"/vmlinuz": b"kernel", "/image.iso": b"image", "/other.iso": b"another"}
        conf = memory_task.configuration(
            enabled_hardware_types=[self.driver],
            enabled_deploy_interfaces=["ansible", "custom-agent", "direct", "fake", "iscsi", "ramdisk"],
            api__public_endpoint=service().url,
            deploy__external_http_url=service().url,
            conductor__power_state_change_timeout=int(patience.seconds(20)),
            **self.options,
        )
        ramdisk = {"deploy_kernel": f"{service().url}/kernel", "deploy_ramdisk": f"{service().url}/initrd"}
        node = memory_task.node(**{"driver": self.driver, "driver_info": {**ramdisk, **info}, **self.columns})
        self.task = memory_task.MemoryTask(conf, node)
        self.task.ports = [memory_task.port(mac) for mac in self.macs()]
        assert self.task.missing == {}, self.task.missing

    def again(self, **info: Any) -> memory_task.MemoryTask:
        """Return a task of the same machine, with other ``driver_info``."""
        columns = {**self.columns, "driver": self.driver, "driver_info": {**self.task.node.driver_info, **info}}
        return memory_task.MemoryTask(self.task.conf, memory_task.node(**columns))

    def connect(self) -> dict[str, Any]:
        """Take a machine; return where its BMC is, as driver_info."""
        return {}

    def macs(self) -> list[str]:
        return ["52:54:00:00:00:01"]

    # What another client sees

    def seen_power(self) -> str | None:
        return self.task.node.power_state

    def seen_boot_device(self) -> tuple[str | None, bool | None] | None:
        """Return the device and whether it is persistent; None: there is no other client."""
        return None

    def seen_boot_mode(self) -> str | None:
        return None

    def count_log(self, part: str) -> int:
        """Return how often the machine's log has a text."""
        return 0

    # What can be made to happen

    def await_system(self) -> None:
        """Wait until the machine runs something that notices the power button."""

    def limit_time(self, seconds: int) -> None:
        """Let an operation take this long at most."""

    def silence(self) -> None:
        """Let the BMC say nothing from now on."""
        raise NotImplementedError

    def speak(self) -> None:
        """Undo :meth:`silence` and :meth:`close`."""
        raise NotImplementedError

    def close(self) -> None:
        """Let the BMC be away from now on."""
        raise NotImplementedError

    def disturb(self, trouble: str) -> None:
        """Let one of the troubles happen to what comes next."""
        raise NotImplementedError

    def fault(self, name: str, value: Any = None) -> None:
        """Order a fault of the rack."""
        raise NotImplementedError

    def clear(self) -> None:
        """End all faults."""
