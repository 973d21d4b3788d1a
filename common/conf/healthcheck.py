"""Options of the [healthcheck] group: what balancers and probes learn of the API."""

from oslo_config import cfg

from ingot.common import networks

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
    cfg.ListOpt(
        "backends",
        default=[],
        help="Further checks, plug-ins of oslo.middleware: disable_by_files_ports and enable_by_files, or those of "
        "other packages. The database is asked in any case, and disable_by_file_path is looked at without "
        "disable_by_file, too.",
    ),
    cfg.ListOpt(
        "disable_by_file_paths",
        default=[],
        help="For disable_by_files_ports: PORT:PATH, while such a file exists an API at this port answers 503.",
    ),
    cfg.ListOpt(
        "enable_by_file_paths",
        default=[],
        help="For enable_by_files: GET /healthcheck answers 503 while none of these files exists.",
    ),
    networks.build_option(
        "allowed_source_ranges",
        default=[],
        help="Networks, or addresses, to which GET /healthcheck is answered; 404 to all others. Empty: to all.",
    ),
    cfg.BoolOpt(
        "ignore_proxied_requests",
        default=False,
        help="Answer 404 to GET /healthcheck with headers of a proxy (X-Forwarded-For and the like): balancers ask "
        "directly, and no other client is answered.",
    ),
]
