"""Options of the [cors] group: which pages of other sites may ask the API. What they do is oslo.middleware's."""

from oslo_config import cfg

_VERSIONS = tuple(f"X-OpenStack-Ironic-API-{name}" for name in ("Maximum-Version", "Minimum-Version", "Version"))

CORS: list[cfg.Opt] = [
    cfg.ListOpt(
        "allowed_origin",
        help="Sites whose pages may ask the API from a browser, as the browser writes them in the header Origin: "
        "SCHEME://HOST or SCHEME://HOST:PORT, such as https://horizon.example.com. *: all of them. Unset: none, and "
        "nothing is done for them.",
    ),
    cfg.BoolOpt(
        "allow_credentials",
        default=True,
        help="Whether the browser may send cookies and the like along. Tokens in X-Auth-Token are no such thing.",
    ),
    cfg.ListOpt(
        "expose_headers",
        default=[*_VERSIONS, "X-OpenStack-Request-ID"],
        help="Headers of answers that such pages may read, beside those that browsers show in any case.",
    ),
    cfg.IntOpt(
        "max_age",
        default=3600,
        min=0,
        help="Seconds for which browsers may remember what is allowed. 0: as long as is usual for them.",
    ),
    cfg.ListOpt(
        "allow_methods",
        default=["GET", "PUT", "POST", "DELETE", "PATCH"],
        help="Methods that such pages may use.",
    ),
    cfg.ListOpt(
        "allow_headers",
        default=[],
        help="Headers that such pages may send, beside X-Auth-Token, those of versions, and those that browsers send "
        "in any case.",
    ),
]
