"""Options of the group [glance]: where images are asked for, and as whom, as all clients of OpenStack have it.

They come from a large library, so that a process has them only if some are set.
"""

from keystoneauth1 import loading
from oslo_config import cfg

OPTIONS: list[cfg.Opt] = [
    *loading.get_auth_common_conf_options(),
    *loading.get_session_conf_options(),
    *loading.get_adapter_conf_options(include_deprecated=False),
]

# The timeout, after which Glance counts as away, is shorter than a request waits for a conductor.
cfg.set_defaults(OPTIONS, service_type="image", valid_interfaces=["internal", "public"], timeout=20)
