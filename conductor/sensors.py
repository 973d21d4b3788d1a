"""Reads the sensors of machines, tells other services what they read, and shows it to Prometheus.

As with power states no node is locked, and BMCs that do not answer are left alone for longer and longer. Machines are
read one after the other over the whole interval, so that neither a conductor nor a management network has a peak.
"""

import threading
import time
from collections.abc import Callable, Iterable
from typing import NamedTuple

import futurist
from oslo_log import log
from oslo_utils import uuidutils

from ingot.common import clock, context, errors, metrics, states
from ingot.common.json_types import Json
from ingot.conductor import sensor_forms
from ingot.conductor.sensor_forms import Sample
from ingot.conductor.task import task_manager
from ingot.conductor.task.task_manager import Services
from ingot.db import maintenance, models, node_lists

LOG = log.getLogger(__name__)

_COLUMNS = ("uuid", "name", "driver", "conductor_group", "provision_state", "reservation", *maintenance.FLAG)

MOST_SENSORS = 300
"""Of one machine; what is beyond is not shown as metrics."""

MOST_SAMPLES = 200_000
"""Of all machines of a conductor, some 100 MB."""

_HELP = "What a sensor reads, or 0 (OK), 1 (warning), 2 (critical) for how a part is."


class _Read(NamedTuple):
    """What was read of a machine, and when, by the monotonic clock."""

    at: float
    samples: list[Sample]


class SensorReader:
    """Reads the sensors of a conductor's machines on a thread of its own, some at a time.

    :param owns: whether a node is this conductor's.
    """

    def __init__(self, services: Services, owns: Callable[[models.Node], bool]) -> None:
        self._services = services
        self._options = services.conf.sensor_data
        self._owns = owns
        self._latest: dict[str, _Read] = {}
        self._begun: dict[str, float] = {}
        """When the last reading of each machine began, by the monotonic clock."""
        self._running: set[str] = set()
        self._places = threading.BoundedSemaphore(self._options.workers)
        self._executor = futurist.ThreadPoolExecutor(max_workers=self._options.workers)
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="sensors", daemon=True)

    def start(self) -> None:
        """Begin, if sensors are to be read."""
        if self._options.send_sensor_data and self._options.enable_for_nodes:
            metrics.ask("sensors", self.collect)
            self._thread.start()

    def stop(self) -> None:
        """Begin no other reading."""
        self._stopped.set()
        self._executor.shutdown(wait=False)

    def _run(self) -> None:
        while not self._stopped.is_set():
            began = time.monotonic()
            context.admin().update_store()
            try:
                self.read(self.list_nodes(), began)
            except errors.ServiceUnavailable as exc:
                LOG.warning("Sensors are not read now: %s", exc.message)
            except Exception:  # the edge of a thread
                LOG.exception("Reading sensors failed unexpectedly")
            self._stopped.wait(max(began + self._options.interval - time.monotonic(), 1))

    def list_nodes(self) -> list[str]:
        """Return the nodes whose machines are to be read."""
        services, every = self._services, self._options.enable_for_undeployed_nodes
        found = node_lists.list_of_drivers(services.db, services.group, services.hardware.drivers, _COLUMNS)
        return [
            node.uuid
            for node in found
            if (every or node.provision_state == states.ACTIVE)
            and not maintenance.pauses_sync(node)
            and self._owns(node)
        ]

    def read(self, uuids: list[str], began: float) -> None:
        """Begin to read machines, evenly over the interval; it returns when the last has begun.

        Those come first whose last reading is the oldest, so that no round leaves the same ones to the next.
        """
        self._forget()
        self._begun = {uuid: self._begun.get(uuid, 0.0) for uuid in uuids}
        for number, uuid in enumerate(sorted(uuids, key=self._begun.__getitem__)):
            due = began + number * self._options.interval / len(uuids)
            if self._stopped.wait(max(due - time.monotonic(), 0)):
                return
            if uuid in self._running:
                continue
            if not self._places.acquire(timeout=self._options.wait_timeout):
                left = len(uuids) - number
                LOG.warning("%d machines are left to the next round: all [sensor_data] workers read sensors", left)
                return
            self._running.add(uuid)
            self._begun[uuid] = time.monotonic()
            try:
                self._executor.submit(self._read_one, uuid)
            except RuntimeError:  # the pool was shut down: the conductor stops
                self._leave(uuid)
                return

    def _leave(self, uuid: str) -> None:
        self._running.discard(uuid)
        self._places.release()

    def _read_one(self, uuid: str) -> None:
        try:
            self._tell(uuid)
        except errors.UnsupportedInterface as exc:
            LOG.debug("Node %s: its sensors are not read: %s", uuid, exc.message)
        except errors.IngotError as exc:
            LOG.warning("Node %s: its sensors are not read: %s", uuid, exc.message)
        except Exception:  # the edge of a worker, and perhaps code of a plug-in's
            LOG.exception("Reading the sensors of node %s failed unexpectedly", uuid)
        finally:
            self._leave(uuid)

    def _tell(self, uuid: str) -> None:
        ctx, services = context.admin(), self._services
        with task_manager.acquire(services, ctx, uuid, "reading sensors", shared=True) as task:
            node, driver = task.node, task.driver
            bmc = driver.power.bmc(task) if driver.power else uuid
            if driver.management is None or not services.circuit_breakers.can_call(bmc):
                return
            found = driver.management.get_sensors(task)
        message: Json = {
            "message_id": uuidutils.generate_uuid(),
            "timestamp": clock.now().isoformat(timespec="microseconds"),
            "node_uuid": uuid,
            "node_name": node.name,
            "instance_uuid": node.instance_uuid,
            "event_type": f"hardware.{node.driver}.metrics.update",
            "payload": sensor_forms.build_payload(node.driver, found, self._options.data_types),
        }
        if message["payload"]:
            self._keep(uuid, sensor_forms.build_samples(node.driver, message)[:MOST_SENSORS])
            services.notifier.tell_meters(ctx, f"hardware.{node.driver}.metrics", message)

    def _keep(self, uuid: str, samples: list[Sample]) -> None:
        others = sum(len(read.samples) for known, read in [*self._latest.items()] if known != uuid)
        if others + len(samples) > MOST_SAMPLES:
            LOG.warning("Node %s: its sensors are not shown: there are %d values already", uuid, others)
            return
        self._latest[uuid] = _Read(time.monotonic(), samples)

    def _forget(self) -> None:
        """Remove what was read too long ago: a machine that does not answer any more shows no old temperature."""
        oldest = time.monotonic() - 2 * self._options.interval - self._options.wait_timeout
        for uuid in [uuid for uuid, read in [*self._latest.items()] if read.at < oldest]:
            self._latest.pop(uuid, None)

    def collect(self) -> Iterable[metrics.Metric]:
        """Return the metrics of all machines, as Prometheus gets them."""
        self._forget()
        families: dict[str, metrics.Metric] = {}
        for read in [*self._latest.values()]:
            for sample in read.samples:
                if sample.name not in families:
                    families[sample.name] = metrics.Metric(sample.name, _HELP, "gauge")
                families[sample.name].add_sample(sample.name, {**sample.labels}, sample.value)
        return families.values()
