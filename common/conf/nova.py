"""Options of the group [nova]: where Nova is, and as whom it is notified of power states.

They come from a large library, so that a process has them only if some are set.
"""

from keystoneauth1 import loading
from oslo_config import cfg

OPTIONS: list[cfg.Opt] = [
    *loading.get_auth_common_conf_options(),
    *loading.get_session_conf_options(),
    *loading.get_adapter_conf_options(include_deprecated=False),
    cfg.BoolOpt(
        "send_power_notifications",
        default=True,
        help="Whether Nova is notified when the machine of a server was switched on or off, by users of Ingot or by "
        "others. Without auth_type it is not: Nova then finds out itself, some minutes later.",
    ),
    cfg.IntOpt(
        "power_notification_deadline",
        default=300,
        min=1,
        help="Seconds for which a power state is sent again while Nova is away or fails. Then it is lost, which is "
        "counted and logged: by default, Nova reads power states itself every 10 minutes.",
    ),
]

cfg.set_defaults(
    OPTIONS,
    service_type="compute",
    valid_interfaces=["internal", "public"],
    min_version="2.1",
    max_version="2.latest",
    timeout=20,
)
