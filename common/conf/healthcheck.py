"""Options of the [healthcheck] group: what balancers and probes learn of the API."""

from oslo_config import cfg

HEALTHCHECK: list[cfg.Opt] = [
    cfg.BoolOpt(
        "enabled",
        default=True,
        help="Answer GET /healthcheck, without authentication: 200 while the API can serve requests, else 503.",
    ),
    cfg.BoolOpt(
        "detailed",
        default=False,
        help="Name each part, and what is wrong with it, in the answer. All who reach the API can read it.",
    ),
    cfg.StrOpt(
        "disable_by_file_path",
        help="While this file exists, GET /healthcheck answers 503, and balancers send no more requests. All others "
        "are served as before.",
    ),
]
