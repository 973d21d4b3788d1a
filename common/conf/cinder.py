"""Options of the group [cinder]: where volumes are asked for, and as whom.

They come from a large library, so that a process has them only if some are set, or the storage interface cinder is
enabled.
"""

from keystoneauth1 import loading
from oslo_config import cfg

OPTIONS: list[cfg.Opt] = [
    *loading.get_auth_common_conf_options(),
    *loading.get_session_conf_options(),
    *loading.get_adapter_conf_options(include_deprecated=False),
    cfg.IntOpt(
        "request_timeout",
        default=120,
        min=1,
        help="Seconds within which Cinder has to answer, with Keystone's answer and all retries, for each thing that "
        "is asked for. Cinder answers when its storage has made the connection.",
    ),
    cfg.IntOpt(
        "action_retries",
        default=3,
        min=0,
        help="How often Cinder is asked again to detach the volumes of a machine after it has refused that. While it "
        "does not answer at all, the step is tried again as all steps are.",
    ),
    cfg.IntOpt(
        "action_retry_interval",
        default=5,
        min=0,
        help="Seconds between two such requests.",
    ),
]

cfg.set_defaults(OPTIONS, service_type="block-storage", valid_interfaces=["internal", "public"])
