"""Options of the [api] and [service_catalog] groups: where the API listens and how it limits requests."""

from oslo_config import cfg

API: list[cfg.Opt] = [
    cfg.HostAddressOpt("host_ip", default="0.0.0.0", help="Address that ingot-api listens on."),  # noqa: S104
    cfg.PortOpt("port", default=6385, help="Port that ingot-api listens on."),
    cfg.IntOpt(
        "api_workers",
        default=32,
        min=1,
        help="Threads that answer requests in ingot and ingot-api. A WSGI server of your own has its own option.",
    ),
    cfg.URIOpt(
        "public_endpoint",
        schemes=["http", "https"],
        help="Address under which clients see the API, used in links. Unset: scheme and host of each request.",
    ),
    cfg.FloatOpt(
        "lock_wait_timeout",
        default=2,
        min=0,
        help="Seconds that a request waits for a node on which a conductor works before it is refused with 409. Most "
        "of such work, as a change of power, is done in less. A quarter of api_workers may wait. 0: it is refused at "
        "once.",
    ),
    cfg.IntOpt("max_limit", default=1000, min=1, help="Most items in one page of a list."),
    cfg.IntOpt("max_bulk_nodes", default=1000, min=1, help="Most nodes in one request to /ingot/v1/bulk."),
    cfg.IntOpt(
        "bulk_timeout",
        default=60,
        min=1,
        help="Seconds after which a request to /ingot/v1/bulk asks no further node: those left are answered 503.",
    ),
    cfg.IntOpt(
        "max_event_streams",
        default=50,
        min=0,
        help="Most clients that follow /ingot/v1/events at once, in one process; each has a thread beside api_workers. "
        "A WSGI server of your own needs as many more threads. 0: none.",
    ),
    cfg.IntOpt(
        "max_image_downloads",
        default=32,
        min=0,
        help="Most machines that fetch images of Glance through one process at once; each has a thread beside "
        "api_workers. A WSGI server of your own needs as many more threads. One more machine has to try again, which "
        "agents do for about a minute. 0: none.",
    ),
    cfg.IntOpt(
        "event_heartbeat_interval",
        default=15,
        min=1,
        help="Seconds of silence after which a comment is sent on /ingot/v1/events, so that proxies keep the "
        "connection and clients that are gone are noticed.",
    ),
    cfg.IntOpt("max_json_body_size", default=1024 * 1024, min=1024, help="Largest request body in bytes."),
    cfg.IntOpt(
        "max_json_body_depth", default=25, min=2, help="Deepest nesting of lists and objects in a request body."
    ),
    cfg.BoolOpt(
        "project_admin_can_manage_own_nodes",
        default=True,
        help="With keystone: whether administrators of a project may create nodes, which their project then owns, and "
        "delete those.",
    ),
    cfg.BoolOpt(
        "restrict_lookup",
        default=True,
        help="Answer an agent's lookup only while its node is in a state that uses an agent.",
    ),
    cfg.IntOpt(
        "ramdisk_heartbeat_timeout",
        default=300,
        min=1,
        help="Seconds within which an agent must send its next heartbeat; agents send two or three in that time.",
    ),
]

SERVICE_CATALOG: list[cfg.Opt] = [
    cfg.URIOpt(
        "endpoint_override",
        schemes=["http", "https"],
        help="Address of the API as machines on the provisioning network reach it: what boot scripts fetch and agents "
        "call. Unset: [api] public_endpoint, else http://my_ip:port.",
    )
]
