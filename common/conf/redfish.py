"""Options of [redfish]: how BMCs that speak Redfish are called."""

from oslo_config import cfg

REDFISH: list[cfg.Opt] = [
    cfg.IntOpt(
        "connect_timeout",
        default=10,
        min=1,
        help="Seconds for a connection to a BMC, TLS included.",
    ),
    cfg.IntOpt(
        "read_timeout",
        default=30,
        min=1,
        help="Seconds after which a BMC that does not answer, or stays busy, counts as unreachable. This is for all "
        "that one change or reading needs, however many requests; what needs many, as an inspection, has several times "
        "as long.",
    ),
    cfg.IntOpt(
        "connection_attempts",
        default=5,
        min=1,
        help="How often a request is sent that a BMC answers with an internal error, if it can be repeated. While it "
        "says that it is busy (503), it is asked again until read_timeout is over.",
    ),
    cfg.IntOpt(
        "connection_retry_interval",
        default=4,
        min=1,
        help="Seconds between two attempts at most; the first follows after one. A BMC that says when to come again "
        "(Retry-After) is obeyed.",
    ),
    cfg.IntOpt(
        "connection_cache_size",
        default=10000,
        min=0,
        help="With how many BMCs a session is kept for the next request; with fewer than a conductor has, each reading "
        "of power states opens them anew. Sessions that are not used for five minutes are ended.",
    ),
    cfg.StrOpt(
        "auth_type",
        default="auto",
        choices=["basic", "session", "auto"],
        help="How to log in to BMCs of nodes without driver_info.redfish_auth_type: by HTTP basic authentication, by a "
        "session, or by a session where the BMC has them.",
    ),
    cfg.StrOpt(
        "verify_ca",
        default="True",
        help="What certificates of BMCs are verified with if a node has no driver_info.redfish_verify_ca: True for the "
        "authorities of this host, False for nothing, or the path of a file or directory of certificates.",
    ),
    cfg.StrOpt(
        "tls_minimum_version",
        choices=["1.1", "1.2", "1.3"],
        help="The oldest version of TLS for BMCs of nodes without driver_info.redfish_tls_minimum_version. Unset: what "
        "OpenSSL of this host is configured for.",
    ),
    cfg.StrOpt(
        "tls_ciphers",
        help="Cipher suites of TLS up to 1.2 for BMCs of nodes without driver_info.redfish_tls_ciphers, as OpenSSL "
        "writes them. Unset: what OpenSSL of this host is configured for.",
    ),
    cfg.IntOpt(
        "bios_settings_timeout",
        default=1800,
        min=1,
        help="Seconds within which a machine must have taken over BIOS settings after the reboot for them.",
    ),
    cfg.IntOpt(
        "bmc_restart_timeout",
        default=600,
        min=1,
        help="Seconds within which a BMC must answer again after the step reset_bmc, or an update of its firmware.",
    ),
    cfg.IntOpt(
        "firmware_update_overall_timeout",
        default=7200,
        min=1,
        help="Seconds within which a BMC must have installed an image of firmware, reboot of the machine included.",
    ),
    cfg.IntOpt(
        "raid_config_timeout",
        default=7200,
        min=1,
        help="Seconds within which a controller must have created or deleted an array, reboot of the machine included.",
    ),
    cfg.BoolOpt(
        "enable_verify_bmc_clock",
        default=False,
        help="Compare the clock of the BMC with that of the conductor when a node is managed, and correct it.",
    ),
    cfg.StrOpt(
        "kernel_append_params",
        default="nofb nomodeset vga=normal",
        help="Kernel parameters of machines that boot from virtual media or by HTTP of their firmware. A node's "
        "driver_info.kernel_append_params replaces them; %default% there stands for this value.",
    ),
]
