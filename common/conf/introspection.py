"""Options of the group [inspector] for the inspect interface inspector: where its service is, and as whom it is asked.

They come from a large library, so that a process has them only if that interface is enabled.
"""

from keystoneauth1 import loading
from oslo_config import cfg

OPTIONS: list[cfg.Opt] = [
    *loading.get_auth_common_conf_options(),
    *loading.get_session_conf_options(),
    *loading.get_adapter_conf_options(include_deprecated=False),
]

cfg.set_defaults(OPTIONS, service_type="baremetal-introspection", valid_interfaces=["internal", "public"], timeout=20)
