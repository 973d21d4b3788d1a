"""Options of the [console] group: the web console with its sessions, and serial consoles of machines."""

from oslo_config import cfg

CONSOLE: list[cfg.Opt] = [
    cfg.BoolOpt(
        "enabled",
        default=True,
        help="Serve the web console under /console/, and sessions for those who log in there, as auth_strategy says.",
    ),
    cfg.IntOpt(
        "session_lifetime",
        default=28800,
        min=60,
        help="Seconds after which a person has to log in again. With keystone a session ends with its token, if that "
        "is earlier. A shorter lifetime ends sessions that have begun before, too.",
    ),
    cfg.HostAddressOpt(
        "host_ip",
        default="$my_ip",
        sample_default="the value of my_ip",
        help="Address at which a conductor serves consoles to APIs, with TLS. It must be one that all hosts of APIs "
        "reach. 0.0.0.0 or ::: at all addresses of this host; APIs then come to my_ip.",
    ),
    cfg.PortOpt(
        "port",
        default=0,
        help="Port for that, as 8190. With several [conductor] workers, each has a port of its own, counted up from "
        "here. A conductor that cannot have its port does not start. 0: any free one, which the API learns with each "
        "request.",
    ),
    cfg.IntOpt(
        "max_consoles",
        default=200,
        min=1,
        help="Consoles that each process of the API has open at a time, at most. One more is refused with 503.",
    ),
    cfg.IntOpt(
        "scrollback_size",
        default=256,
        min=4,
        max=4096,
        help="KiB that a conductor keeps of what a machine has said since it was switched on last; of more, the oldest "
        "goes. It is kept in memory, while the console is enabled or watched.",
    ),
    cfg.IntOpt(
        "linger_time",
        default=60,
        min=0,
        help="Seconds for which a console that is not enabled stays open after the last reader has left.",
    ),
    cfg.StrOpt(
        "log_directory",
        help="Directory in which a conductor writes what each machine says on its serial console, into the file "
        "UUID.log of its node, while the console is enabled or watched. Each piece is appended anew, so that files can "
        "be rotated at any time. What users type shows only where the machine repeats it. Unset: nothing is written.",
    ),
]
