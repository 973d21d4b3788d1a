"""Options of traces."""

from oslo_config import cfg

TRACING: list[cfg.Opt] = [
    cfg.BoolOpt(
        "enabled",
        default=False,
        help="Whether requests, flows, steps and calls to BMCs are traced by OpenTelemetry and sent by OTLP over HTTP. "
        "It needs the extra ingot[otel]. Variables of the environment (OTEL_EXPORTER_OTLP_HEADERS, "
        "OTEL_RESOURCE_ATTRIBUTES ...) count, too.",
    ),
    cfg.URIOpt(
        "endpoint",
        schemes=["http", "https"],
        help="Where a collector takes spans, with its path: http://collector:4318/v1/traces. Unset: as "
        "OTEL_EXPORTER_OTLP_ENDPOINT says.",
    ),
    cfg.FloatOpt(
        "sample_ratio",
        default=1.0,
        min=0.0,
        max=1.0,
        help="Share of the requests that are traced. What a client traces itself, by the header traceparent, is traced "
        "as the client says.",
    ),
]
