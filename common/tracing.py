"""Traces by OpenTelemetry: from a request by way of RPC to a flow, its steps and its calls to BMCs (used by all).

Off, which is the default, a span is one look at a global and nothing of OpenTelemetry is loaded. On, spans go to a
collector by a thread of the SDK, and no work waits for it.

A span of another process or a later hour belongs to the same trace by its ``traceparent`` (W3C Trace Context). It
crosses the bus with the context of a request, and waits in the node's row with who asked for the work.
"""

import contextlib
import importlib.util
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from oslo_config import cfg
from oslo_log import log

from ingot.common import errors, later, masking

if TYPE_CHECKING:
    from opentelemetry import propagate, trace
    from opentelemetry.exporter.otlp.proto.http import trace_exporter
    from opentelemetry.sdk import resources
    from opentelemetry.sdk import trace as sdk
    from opentelemetry.sdk.trace import export, sampling
else:
    propagate = later.Module("opentelemetry.propagate")
    trace = later.Module("opentelemetry.trace")
    trace_exporter = later.Module("opentelemetry.exporter.otlp.proto.http.trace_exporter")
    resources = later.Module("opentelemetry.sdk.resources")
    sdk = later.Module("opentelemetry.sdk.trace")
    export = later.Module("opentelemetry.sdk.trace.export")
    sampling = later.Module("opentelemetry.sdk.trace.sampling")

LOG = log.getLogger(__name__)

_PARENT = "traceparent"
_FLUSH_S = 5.0


class _Tracing:
    """What this process traces with; None: nothing."""

    provider: "sdk.TracerProvider | None" = None
    tracer: "trace.Tracer | None" = None


THIS = _Tracing()
"""For what is hot: without a tracer it need not ask for a span."""


def start(conf: cfg.ConfigOpts, service: str) -> None:
    """Trace from now on, if that is configured; the first call in a process counts.

    :param service: the name of this process for readers of traces.
    :raises ConfigurationError: the packages of the extra are not installed.
    """
    options = conf.tracing
    if not options.enabled or THIS.provider is not None:
        return
    if not _is_installed():
        raise errors.ConfigurationError(
            option="[tracing] enabled", value=True, allowed="Install OpenTelemetry: pip install 'ingot[otel]'."
        )
    about = resources.Resource.create({"service.name": service, "service.instance.id": conf.host})
    sampler = sampling.ParentBased(sampling.TraceIdRatioBased(options.sample_ratio))
    provider = sdk.TracerProvider(resource=about, sampler=sampler, shutdown_on_exit=False)  # flush takes its place
    provider.add_span_processor(export.BatchSpanProcessor(trace_exporter.OTLPSpanExporter(endpoint=options.endpoint)))
    THIS.provider, THIS.tracer = provider, provider.get_tracer("ingot")
    LOG.info("Traces are sent by OpenTelemetry, as %s", service)


def _is_installed() -> bool:
    try:  # other packages bring parts of the namespace
        return importlib.util.find_spec("opentelemetry.exporter.otlp.proto.http.trace_exporter") is not None
    except ModuleNotFoundError:
        return False


def flush() -> None:
    """Send the spans that wait, for some seconds at most; where a process ends."""
    if THIS.provider is not None:
        # The SDK tries each batch again while the collector is away, whatever time-out it is given.
        sender = threading.Thread(target=THIS.provider.force_flush, name="last spans", daemon=True)
        sender.start()
        sender.join(_FLUSH_S)


def current() -> str | None:
    """Return what lets a later span belong to the one that this thread is in; None where there is none."""
    if THIS.tracer is None:
        return None
    carrier: dict[str, str] = {}
    propagate.inject(carrier)
    return carrier.get(_PARENT)


Attributes = dict[str, str | int | float | None]

_Block = contextlib.AbstractContextManager[None]


def serve(name: str, parent: str | None, **attributes: str | int | float | None) -> _Block:
    """Trace what a block does for a client: it begins a trace, or goes on with that of the client.

    :param parent: the client's traceparent.
    :param attributes: what is known of it, without what is secret; underscores stand for dots.
    """
    return _NOTHING if THIS.tracer is None else _span(THIS.tracer, name, parent, "SERVER", attributes)


def span(
    name: str, parent: str | None = None, kind: str = "INTERNAL", **attributes: str | int | float | None
) -> _Block:
    """Trace what a block does, if it is part of a trace: what is done without a request, such as a sweep, is none.

    :param parent: a traceparent from elsewhere; None: the span that this thread is in.
    :param kind: that of OpenTelemetry: SERVER, CLIENT or INTERNAL.
    :param attributes: as with :func:`serve`.
    """
    if THIS.tracer is None or not (parent or trace.get_current_span().is_recording()):
        return _NOTHING
    return _span(THIS.tracer, name, parent, kind, attributes)


_NOTHING: _Block = contextlib.nullcontext()


@contextlib.contextmanager
def _span(tracer: "trace.Tracer", name: str, parent: str | None, kind: str, attributes: Attributes) -> Iterator[None]:
    within = propagate.extract({_PARENT: parent}) if parent else None
    known: Any = {key.replace("_", "."): value for key, value in attributes.items() if value is not None}
    with tracer.start_as_current_span(
        name, within, trace.SpanKind[kind], known, record_exception=False, set_status_on_exception=False
    ) as found:
        try:
            yield
        except BaseException as exc:
            # A message of Ingot's own has no secrets but in URLs; of others only the class is known to have none.
            message = masking.mask_text(exc.message) if isinstance(exc, errors.IngotError) else type(exc).__name__
            found.set_status(trace.Status(trace.StatusCode.ERROR, message[:500]))
            raise
