"""What Ingot counts and measures for Prometheus: all metrics, each declared once (used by all).

A metric is a constant of this module. Its name, help, labels and buckets are a row of :data:`TABLE`, from which the
page *Metrics* of the guide is generated. To add one, declare it below, where its part of Ingot stands, and
use it where it happens::

    metrics.FLOWS.labels(flow.name, "failed").inc()

Where code is hot, look the labelled child up once, when the module or the object is made, and keep it::

    self._sent = metrics.WAKEUPS.labels("sent")
    ...
    self._sent.inc()

``inc`` and ``observe`` take about a microsecond, a lookup another one, and neither takes a statement or a request.
What would have to be kept up to date for nothing is a :func:`scraped_gauge`: what knows the values is asked for them
when Prometheus asks, see :func:`ask`.

Labels have few values, known when the program is written: routes, not paths; kinds of errors, not messages. The uuid
or name of a node is never one, nor what a user, a machine or a BMC can choose: :class:`Known` replaces such a value.
"""

import enum
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

import prometheus_client
from prometheus_client import Counter, Gauge, Histogram, core, exposition, process_collector
from prometheus_client import Metric as Metric

LOG = logging.getLogger(__name__)


class Part(enum.Flag):
    """The processes that serve a metric; ``ingot`` is both, and serves all."""

    API = enum.auto()
    CONDUCTOR = enum.auto()
    ALL = API | CONDUCTOR


class Row(NamedTuple):
    """One metric.

    :param name: as Prometheus knows it, without what it adds (``_bucket``, ``_sum``, ``_count``).
    :param kind: ``counter``, ``gauge`` or ``histogram``.
    :param labels: names, in the order in which ``labels()`` takes their values.
    :param buckets: upper bounds, for a histogram.
    """

    name: str
    kind: str
    help: str
    labels: tuple[str, ...]
    part: Part
    buckets: tuple[float, ...] = ()


Samples = Iterable[tuple[Sequence[str], float]]
"""Values of a scraped gauge, each with those of its labels."""

TABLE: dict[str, Row] = {}
"""All metrics by name."""

REGISTRY = prometheus_client.CollectorRegistry(auto_describe=False)

prometheus_client.disable_created_metrics()  # type: ignore[no-untyped-call]  # a second series for each, of no use

_QUICK = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0)
"""Seconds of requests and of the database."""

_REMOTE = (0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 15.0, 60.0)
"""Seconds of what waits for another process or a BMC."""

_LONG = (1.0, 10.0, 60.0, 300.0, 900.0, 1800.0, 3600.0, 10800.0, 86400.0)
"""Seconds of what machines do."""

OTHER = "other"
"""Stands for all values of a label that are not known."""


class ScrapedGauge:
    """A gauge whose values are read when they are served."""

    def __init__(self, row: Row) -> None:
        self.row = row

    def __call__(self, samples: Samples) -> Metric:
        """Return these values as Prometheus gets them."""
        family = core.GaugeMetricFamily(self.row.name, self.row.help, labels=self.row.labels)
        for labels, value in samples:
            family.add_metric(labels, value)
        return family


class Known(dict[str, str]):
    """The values that a label may have; any other becomes :data:`OTHER`: ``metrics.STEP_NAMES[step.step]``.

    :param most: how many there are at most: more than in any site that makes sense.
    """

    def __init__(self, values: Iterable[str] = (), most: int = 300) -> None:
        super().__init__()
        self._most = most
        self.add(values)

    def add(self, values: Iterable[str]) -> None:
        """Take more values, as those of drivers that were loaded."""
        for value in sorted(values):
            if len(self) < self._most:
                self[value] = value

    def __missing__(self, value: str) -> str:
        return OTHER


def _add(name: str, kind: str, text: str, labels: Sequence[str], part: Part, buckets: Sequence[float] = ()) -> Row:
    row = Row(name, kind, text, tuple(labels), part, tuple(buckets))
    TABLE[name] = row
    return row


def counter(part: Part, name: str, text: str, *labels: str) -> Counter:
    """Declare what is counted; its name ends in ``_total``."""
    _add(name, "counter", text, labels, part)
    return Counter(name, text, labels, registry=REGISTRY)


def gauge(part: Part, name: str, text: str, *labels: str) -> Gauge:
    """Declare what goes up and down, and is kept up to date where it changes."""
    _add(name, "gauge", text, labels, part)
    return Gauge(name, text, labels, registry=REGISTRY)


def histogram(part: Part, name: str, text: str, *labels: str, buckets: Sequence[float]) -> Histogram:
    """Declare what is measured and counted in buckets; its name ends in the unit, ``_seconds``."""
    _add(name, "histogram", text, labels, part, buckets)
    return Histogram(name, text, labels, registry=REGISTRY, buckets=buckets)


def scraped_gauge(part: Part, name: str, text: str, *labels: str) -> ScrapedGauge:
    """Declare a gauge whose values :func:`ask` gets."""
    return ScrapedGauge(_add(name, "gauge", text, labels, part))


class _Asked:
    """A collector of the library that asks functions."""

    def __init__(self) -> None:
        self.sources: dict[str, Callable[[], Iterable[Metric]]] = {}

    def collect(self) -> Iterator[Metric]:
        for name, source in list(self.sources.items()):
            try:
                yield from list(source())
            except Exception:  # the edge of a source: Prometheus gets all others
                LOG.exception("The metrics of %s cannot be read", name)


_ASKED = _Asked()
REGISTRY.register(_ASKED)


def ask(name: str, source: Callable[[], Iterable[Metric]]) -> None:
    """Have a function asked for the values of scraped gauges.

    :param name: of the source; another one of the same name takes its place.
    :param source: returns families, as ``[NODES(samples), ...]``. It must be fast: Prometheus waits.
    """
    _ASKED.sources[name] = source


class _Part:
    """The metrics of some processes, as the library expects a registry.

    :param part: whose metrics.
    """

    def __init__(self, part: Part) -> None:
        self._others = {name.removesuffix("_total") for name, row in TABLE.items() if not part & row.part}

    def collect(self) -> Iterator[Metric]:
        return (family for family in REGISTRY.collect() if family.name not in self._others)


CONTENT_TYPE = exposition.CONTENT_TYPE_PLAIN_0_0_4


def render(part: Part) -> bytes:
    """Return the metrics of a part of Ingot in the text format of Prometheus, version 0.0.4."""
    return exposition.generate_latest(_Part(part))


process_collector.ProcessCollector(registry=REGISTRY)

# The API

API_REQUESTS = counter(
    Part.API, "ingot_api_requests_total", "Requests answered, by route and class of their status.",
    "method", "route", "status",
)  # fmt: skip
API_REQUEST_SECONDS = histogram(
    Part.API, "ingot_api_request_duration_seconds", "Time from the arrival of a request to the start of its answer.",
    "method", "route", buckets=_QUICK,
)  # fmt: skip
API_CONNECTIONS = scraped_gauge(Part.API, "ingot_api_connections", "Connections that clients have open.")
API_THREADS = scraped_gauge(
    Part.API, "ingot_api_threads", "Threads that answer requests: those at work, and all there may be.", "state"
)
API_WAITING = scraped_gauge(Part.API, "ingot_api_requests_waiting", "Requests that have arrived and wait for a thread.")
API_CONSOLES = scraped_gauge(Part.API, "ingot_api_consoles", "Serial consoles that clients have open.")

SESSIONS = counter(
    Part.API, "ingot_console_sessions_total",
    "Sessions of the web console: opened, refused to open, closed by their users, and requests after their end.",
    "outcome",
)  # fmt: skip

BOOT_SCRIPTS = counter(
    Part.API, "ingot_boot_scripts_total",
    "Scripts and configurations that boot loaders fetched, by loader and by what the machine boots.",
    "loader", "boots",
)  # fmt: skip
DISCOVERED = counter(
    Part.API, "ingot_discovered_machines_total", "Inventories of machines that are not enrolled: kept, or refused.",
    "outcome",
)  # fmt: skip

# The site, as the database knows it

NODES = scraped_gauge(
    Part.API, "ingot_nodes", "Nodes, by provision state and whether they are in maintenance.",
    "provision_state", "maintenance",
)  # fmt: skip
NODES_FAULTY = scraped_gauge(Part.API, "ingot_nodes_faulty", "Nodes that have a fault, by its kind.", "fault")
NODES_LOCKED = scraped_gauge(Part.API, "ingot_nodes_locked", "Nodes that are locked.")
NODES_OVERDUE = scraped_gauge(
    Part.API, "ingot_nodes_overdue", "Nodes in a state for longer than [metrics] state_time_limits allows.",
    "provision_state",
)  # fmt: skip
NODES_READ = scraped_gauge(
    Part.API, "ingot_nodes_read_timestamp_seconds", "When the nodes were counted last, in seconds since the epoch."
)
CONDUCTORS_ONLINE = scraped_gauge(
    Part.API, "ingot_conductor_online", "1 for a conductor whose heartbeats arrive, 0 for one that is missing.",
    "conductor",
)  # fmt: skip

# Between API and conductors

RPC_CALLS = counter(
    Part.ALL, "ingot_rpc_calls_total", "Questions to conductors, by method and outcome.", "method", "outcome"
)
RPC_CALL_SECONDS = histogram(
    Part.ALL, "ingot_rpc_call_duration_seconds", "Time until a conductor has answered.", "method", buckets=_REMOTE
)
WAKEUPS = counter(
    Part.ALL, "ingot_wakeups_total", "Wake-ups to conductors: sent, or lost, whose work the next sweep finds.",
    "outcome",
)  # fmt: skip

NOTIFICATIONS = counter(
    Part.ALL, "ingot_notifications_total", "Notifications to other services, by outcome: sent, or lost.", "outcome"
)
AUDIT_EVENTS = counter(
    Part.API, "ingot_audit_events_total", "Audit events: written, or lost, which are in the log only.", "outcome"
)

# The conductor

CONDUCTOR_HEARTBEAT = scraped_gauge(
    Part.CONDUCTOR, "ingot_conductor_heartbeat_timestamp_seconds",
    "When the database took the last heartbeat of this conductor, in seconds since the epoch.",
)  # fmt: skip
CONDUCTOR_DRAINED = scraped_gauge(
    Part.CONDUCTOR, "ingot_conductor_drained", "1 while this conductor hands over its nodes and begins nothing."
)
RING_MEMBERS = scraped_gauge(
    Part.CONDUCTOR, "ingot_conductor_ring_members", "Conductors that this one knows to be online, itself included."
)
NODES_OWNED = scraped_gauge(
    Part.CONDUCTOR, "ingot_conductor_nodes_owned",
    "Nodes of this conductor, without those that were locked or in maintenance when power states were read last.",
)  # fmt: skip
NODES_WITH_WORK = scraped_gauge(
    Part.CONDUCTOR, "ingot_conductor_nodes_with_work", "Nodes that a thread works on, or that wait for one."
)
JOBS_WAITING = scraped_gauge(
    Part.CONDUCTOR, "ingot_conductor_jobs_waiting", "Jobs in the queues of nodes that have not begun."
)
WORKERS = scraped_gauge(
    Part.CONDUCTOR, "ingot_conductor_workers",
    "Threads that work on nodes: those at work, and all there may be; nodes whose BMC is silent have the pool slow.",
    "pool", "state",
)  # fmt: skip
QUEUE_SECONDS = histogram(
    Part.CONDUCTOR, "ingot_conductor_queue_duration_seconds", "Time that a job waited in the queue of its node.",
    buckets=_REMOTE,
)  # fmt: skip
LOCKS = counter(Part.CONDUCTOR, "ingot_conductor_locks_total", "Attempts to lock a node, by outcome.", "outcome")
LOCK_SECONDS = histogram(
    Part.CONDUCTOR, "ingot_conductor_lock_duration_seconds", "Time for which a node was locked.", buckets=_REMOTE
)
LOCKS_HELD = gauge(Part.CONDUCTOR, "ingot_conductor_locks_held", "Nodes that this conductor has locked.")
CONSOLES = scraped_gauge(
    Part.CONDUCTOR, "ingot_conductor_consoles",
    "Serial consoles of this conductor, by state: connecting, open, lost, taken by another client of the BMC, closed.",
    "state",
)  # fmt: skip
CONSOLE_READERS = scraped_gauge(
    Part.CONDUCTOR, "ingot_conductor_console_readers", "Readers of serial consoles, by what they may do.", "mode"
)
TIMER_SECONDS = histogram(
    Part.CONDUCTOR, "ingot_conductor_timer_duration_seconds", "Time that periodic work took.", "timer", buckets=_REMOTE
)
TIMER_FAILURES = counter(
    Part.CONDUCTOR, "ingot_conductor_timer_failures_total", "Periodic work that was put off or failed.", "timer"
)
TIMER_ENDED = gauge(
    Part.CONDUCTOR, "ingot_conductor_timer_last_success_timestamp_seconds",
    "When periodic work ended well the last time, or was begun, in seconds since the epoch.", "timer",
)  # fmt: skip

# Flows and their steps

BOOT_RETRIES = counter(
    Part.CONDUCTOR, "ingot_boot_retries_total", "Machines that were restarted because their agent had not called."
)
FLOWS = counter(
    Part.CONDUCTOR, "ingot_flows_total", "Flows that ended: deployments, cleanings and others, by outcome.",
    "flow", "outcome",
)  # fmt: skip
FLOW_SECONDS = histogram(
    Part.CONDUCTOR, "ingot_flow_duration_seconds", "Time from the first step of a flow to its end.",
    "flow", "outcome", buckets=_LONG,
)  # fmt: skip
STEPS = counter(
    Part.CONDUCTOR, "ingot_steps_total", "Attempts of steps that ended, by outcome.",
    "flow", "interface", "step", "outcome",
)  # fmt: skip
STEP_NAMES = Known()
"""Names of steps that a conductor knows: those of its drivers, and those that agents have as they come."""

STEP_SECONDS = histogram(
    Part.CONDUCTOR, "ingot_step_duration_seconds", "Time that an attempt of a step took.",
    "flow", "interface", "step", buckets=_LONG,
)  # fmt: skip

# Hardware

BMC_CALLS = counter(
    Part.CONDUCTOR, "ingot_bmc_calls_total", "Operations on BMCs, by driver of the node and outcome.",
    "driver", "outcome",
)  # fmt: skip
BMC_CALL_SECONDS = histogram(
    Part.CONDUCTOR, "ingot_bmc_call_duration_seconds", "Time that an operation on a BMC took.", "protocol",
    buckets=_REMOTE,
)  # fmt: skip
CIRCUITS_OPEN = scraped_gauge(
    Part.CONDUCTOR, "ingot_bmc_circuit_breakers_open", "BMCs that did not answer the last call."
)

# Other services

NETWORK_REQUESTS = counter(
    Part.CONDUCTOR, "ingot_network_service_requests_total", "What Neutron was asked for, by outcome.", "outcome"
)

SWITCH_CHANGES = counter(
    Part.CONDUCTOR,
    "ingot_switch_changes_total",
    "Ports of switches that were put on a VLAN or taken off one, by outcome.",
    "outcome",
)

POWER_UPDATES = counter(
    Part.CONDUCTOR, "ingot_nova_power_updates_total",
    "Power states of servers for Nova, by outcome: sent, refused by it, or lost.", "outcome"
)  # fmt: skip

STORAGE_REQUESTS = counter(
    Part.CONDUCTOR, "ingot_storage_service_requests_total", "What Cinder was asked for, by outcome.", "outcome"
)

# The database

DB_SECONDS = histogram(
    Part.ALL, "ingot_db_use_duration_seconds", "Time that a connection to the database was in use, by kind of use.",
    "kind", buckets=_QUICK,
)  # fmt: skip
DB_ERRORS = counter(
    Part.ALL, "ingot_db_errors_total", "Uses of the database that failed because it was away, or for a deadlock.",
    "kind",
)  # fmt: skip
DB_CONNECTIONS = scraped_gauge(
    Part.ALL, "ingot_db_connections", "Connections to the database: in use, idle, and all there may be.", "state"
)

# Every process

BUILD = scraped_gauge(Part.ALL, "ingot_build_info", "1, with the release that runs.", "version")
READY = scraped_gauge(
    Part.ALL, "ingot_ready", "1 for each check of readiness that passes, 0 for one that fails.", "check"
)
