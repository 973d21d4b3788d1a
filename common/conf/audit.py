"""Options of the audit trail."""

from oslo_config import cfg

AUDIT: list[cfg.Opt] = [
    cfg.BoolOpt(
        "enabled",
        default=False,
        help="Whether requests that change something are recorded: in the table audit_events, which GET "
        "/ingot/v1/audit shows, and in the log, as a line of JSON of the logger ingot.audit.",
    ),
    cfg.BoolOpt(
        "record_refused",
        default=True,
        help="Whether refused requests are recorded too, those without a login among them (401, 403).",
    ),
    cfg.IntOpt(
        "most_refused",
        default=300,
        min=1,
        help="Refused requests that a process records in a minute at most, and as many without a login (401). What is "
        "beyond is counted, so that guessing passwords fills no database and hides no other refusal.",
    ),
    cfg.StrOpt(
        "ignore_req_list",
        default="",
        help="Methods of HTTP whose requests are not recorded, separated by commas, such as GET,PATCH. Requests with "
        "GET are recorded only with audit_map_file, as notifications.",
    ),
    cfg.IntOpt(
        "max_entries",
        default=1_000_000,
        min=0,
        help="Events that are kept, about 1 KiB each; the oldest are deleted once an hour. 0: any number.",
    ),
    cfg.StrOpt(
        "audit_map_file",
        help="File that says how requests are named in CADF events, as etc/api_audit_map.conf does; one of Ironic can "
        "be used. With it, each request that was authenticated is also sent as two notifications, audit.http.request "
        "and audit.http.response, by the driver in [audit_middleware_notifications] or [oslo_messaging_notifications]. "
        "Unset: none is sent, and nothing is done for them.",
    ),
    cfg.IntOpt("max_age", default=400, min=0, help="Days for which events are kept. 0: for ever."),
]
