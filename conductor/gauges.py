"""What a conductor answers when Prometheus asks for its state: heartbeat, ring, queues, circuit breakers."""

import time
from collections.abc import Iterable

from ingot.common import metrics
from ingot.conductor.dispatcher import NodeQueues
from ingot.conductor.flows import FLOWS
from ingot.conductor.membership import Membership
from ingot.conductor.power import PowerSynchronizer
from ingot.conductor.steps import reserved
from ingot.conductor.task.task_manager import Services
from ingot.drivers.interfaces import base

_OF_AGENTS = (
    *("apply_configuration", "burnin_cpu", "burnin_disk", "burnin_gpu", "burnin_memory", "burnin_network"),
    *("clean_uefi_nvram", "create_configuration", "delete_configuration", "erase_devices", "erase_devices_express"),
    *("erase_devices_metadata", "erase_pstore", "execute_bootc_install", "inject_files", "update_nvidia_nic_firmware"),
    *("update_nvidia_nic_firmware_image", "update_nvidia_nic_firmware_settings", "write_image"),
)
"""Steps of ironic-python-agent without hardware managers of an operator's own."""


class Gauges:
    """Reads the state of a conductor, without a statement."""

    def __init__(
        self, services: Services, membership: Membership, queues: NodeQueues, synchronizer: PowerSynchronizer
    ) -> None:
        self._services = services
        self._membership = membership
        self._queues = queues
        self._synchronizer = synchronizer

    def serve(self) -> None:
        """Have Prometheus find this conductor, and the names of its steps."""
        made = self._services.hardware.list_interfaces()
        of_drivers = {step["step"] for one in made for kind in base.KINDS for step in one.declared_steps(kind)}
        of_flows = {entry.name for flow in FLOWS.values() for entry in (*flow.first, *flow.last)}
        metrics.STEP_NAMES.add({*_OF_AGENTS, *reserved.STEPS, *of_drivers, *of_flows})
        # What has not happened yet is counted as zero, so that the first time can be seen.
        for name in FLOWS:
            for outcome in ("done", "failed", "aborted"):
                metrics.FLOWS.labels(name, outcome)
        for driver in self._services.hardware.drivers:
            for outcome in ("answered", "refused", "unanswered"):
                metrics.BMC_CALLS.labels(driver, outcome)
        metrics.ask("conductor", self._collect)

    def _collect(self) -> Iterable[metrics.Metric]:
        services, load, lease = self._services, self._queues.read_load(), self._services.lease
        if (silence := lease.read_silence()) is not None:
            yield metrics.CONDUCTOR_HEARTBEAT([((), time.time() - silence)])
        yield metrics.CONDUCTOR_DRAINED([((), float(services.leaving.is_set()))])
        yield metrics.RING_MEMBERS([((), len(self._membership.others) + 1)])
        yield metrics.NODES_OWNED([((), self._synchronizer.owned)])
        yield metrics.NODES_WITH_WORK([((), load.nodes)])
        yield metrics.JOBS_WAITING([((), load.jobs)])
        threads = [((pool.name, state), getattr(pool, state)) for pool in load.pools for state in ("busy", "most")]
        yield metrics.WORKERS(threads)
        yield metrics.CIRCUITS_OPEN([((), services.circuit_breakers.count_open())])
        states, modes = services.consoles.count()
        yield metrics.CONSOLES([((state,), count) for state, count in states.items()])
        yield metrics.CONSOLE_READERS([((mode,), count) for mode, count in modes.items()])
