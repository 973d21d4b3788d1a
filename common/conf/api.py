"""Options of the [api] and [service_catalog] groups: where the API listens and how it limits requests."""

from oslo_config import cfg

from ingot.common import networks

API: list[cfg.Opt] = [
    cfg.HostAddressOpt("host_ip", default="0.0.0.0", help="Address that ingot-api listens on."),  # noqa: S104
    cfg.PortOpt("port", default=6385, help="Port that ingot-api listens on."),
    cfg.StrOpt("unix_socket", help="Unix socket to listen on instead of host_ip and port, for a proxy on this host."),
    cfg.StrOpt(
        "unix_socket_mode",
        default="0660",
        regex="(0o?)?[0-7]{3}",
        help="Who may open the unix socket, as an octal number. Its owner and group are those of the process.",
    ),
    cfg.BoolOpt(
        "enable_ssl_api",
        default=False,
        help="Serve HTTPS instead of HTTP, with cert_file and key_file. Leave it off where a proxy before the API does "
        "so; public_endpoint or [oslo_middleware] enable_proxy_headers_parsing then say how clients see the API.",
    ),
    cfg.StrOpt(
        "cert_file",
        deprecated_group="ssl",
        help="Certificate of the API and those that lead to its authority, in PEM. SIGHUP reads this, key_file and "
        "ca_file again.",
    ),
    cfg.StrOpt("key_file", deprecated_group="ssl", help="Private key of the certificate, in PEM, without a password."),
    cfg.StrOpt(
        "ca_file",
        deprecated_group="ssl",
        help="Authorities in PEM: clients must then show a certificate of one of them, booting machines and agents "
        "too. Unset: clients need none.",
    ),
    cfg.StrOpt(
        "server_tls_minimum_version",
        default="1.2",
        choices=["1.2", "1.3"],
        help="Oldest version of TLS that is spoken. Machines that fetch their boot scripts with iPXE need 1.2.",
    ),
    cfg.StrOpt("server_tls_ciphers", help="Ciphers up to TLS 1.2, as OpenSSL writes them. Unset: those of Python."),
    cfg.IntOpt(
        "api_workers",
        default=1,
        min=0,
        help="Processes of ingot-api, which share one address. 0: one for each CPU, but not more than 4. The command "
        "ingot always is one process, and a WSGI server of your own has its own option.",
    ),
    cfg.IntOpt(
        "api_threads",
        default=32,
        min=1,
        help="Threads that answer requests in each process of ingot-api and in ingot. Only a request that has arrived "
        "takes one. A WSGI server of your own has its own option.",
    ),
    cfg.IntOpt(
        "request_timeout",
        default=60,
        min=1,
        help="Seconds within which a request must have arrived, with its body, and within which a client must take "
        "each part of an answer. Then the connection is closed.",
    ),
    cfg.IntOpt("max_header_size", default=64, min=8, help="Most KiB of the URL and the headers of a request."),
    cfg.IntOpt(
        "max_connections_per_address",
        default=128,
        min=1,
        help="Most connections from one address to one process. One more takes the place of the one that has been idle "
        "for longest, or is closed if none is idle. Does not count for [api] trusted_proxies and the unix socket.",
    ),
    cfg.URIOpt(
        "public_endpoint",
        schemes=["http", "https"],
        help="Address under which clients see the API, used in links. Unset, and with [oslo_middleware] "
        "enable_proxy_headers_parsing: scheme and host of each request.",
    ),
    networks.build_option(
        "machine_networks",
        default=[],
        help="Networks, or addresses, of booting machines, their agents, and BMCs that fetch boot media: only there "
        "boot scripts, images, lookups, heartbeats and inventories are served. Empty: everywhere.",
    ),
    cfg.BoolOpt(
        "check_volume_address",
        default=True,
        help="Serve the boot script of a volume, which holds its password, to one network address only: the first that "
        "asks for it after Ingot has booted the machine. Switch it off where machines get another address at each "
        "boot.",
    ),
    networks.build_option(
        "trusted_proxies",
        default=["127.0.0.0/8", "::1/128"],
        help="Networks, or addresses, of the proxies and balancers before the API: only what they say of a client "
        "counts ([oslo_middleware] enable_proxy_headers_parsing). What may open the unix socket of the API is one.",
    ),
    cfg.FloatOpt(
        "lock_wait_timeout",
        default=2,
        min=0,
        help="Seconds that a request waits for a node on which a conductor works before it is refused with 409. Most "
        "of such work, as a change of power, is done in less. A quarter of api_threads may wait. 0: it is refused at "
        "once.",
    ),
    cfg.IntOpt(
        "max_failed_logins",
        default=10,
        min=0,
        help="With http_basic, or in the web console: failed log-ins from one address within a minute, to one process, "
        "after which it has to wait for the end of that minute (429). 0: no limit.",
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
        help="Most clients that follow /ingot/v1/events at once, in one process. They take no threads; a WSGI server "
        "of your own needs as many more. 0: none.",
    ),
    cfg.IntOpt(
        "max_event_streams_of_project",
        default=10,
        min=1,
        help="Most of these clients whose users are of one project and follow the events of its nodes only.",
    ),
    cfg.IntOpt(
        "max_image_downloads",
        default=32,
        min=0,
        help="Most machines that fetch images of Glance through one process at once. They take no threads; a WSGI "
        "server of your own needs as many more. One more machine has to try again, which agents do for about a minute. "
        "0: none.",
    ),
    cfg.IntOpt(
        "event_heartbeat_interval",
        default=15,
        min=1,
        help="Seconds of silence after which a comment is sent on /ingot/v1/events, so that proxies keep the "
        "connection and clients that are gone are noticed.",
    ),
    cfg.IntOpt(
        "max_json_body_size",
        default=1024,
        min=4,
        max=65536,
        help="Largest request body in KiB, but for those that have an option of their own. Ingot 0.2 took it for "
        "bytes.",
    ),
    cfg.IntOpt(
        "max_json_body_size_provision",
        default=65536,
        min=4,
        help="Largest request body in KiB for a node's states/provision, which may hold a config drive.",
    ),
    cfg.IntOpt(
        "max_json_body_size_inspection",
        default=16384,
        min=4,
        help="Largest request body in KiB for the end of an inspection, which may hold the agent's logs.",
    ),
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

OSLO_MIDDLEWARE: list[cfg.Opt] = [
    cfg.BoolOpt(
        "enable_proxy_headers_parsing",
        default=False,
        help="Whether proxies stand before the API, whose headers Forwarded (RFC 7239), or X-Forwarded-For, -Proto, "
        "-Host and -Prefix, say where a request comes from and how clients see the API. Only headers of [api] "
        "trusted_proxies count.",
    )
]

SERVICE_CATALOG: list[cfg.Opt] = [
    cfg.URIOpt(
        "endpoint_override",
        schemes=["http", "https"],
        help="Address of the API as machines on the provisioning network reach it: what boot scripts fetch and agents "
        "call. Unset: [api] public_endpoint, else my_ip and port.",
    )
]
