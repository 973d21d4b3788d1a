"""Options of the [glance] group: where images are asked for, and as whom, as all clients of OpenStack have them."""

from keystoneauth1 import loading
from oslo_config import cfg

_DEFAULTS = {"service_type": "image", "valid_interfaces": ["internal", "public"], "timeout": 20}
"""The timeout, after which Glance counts as away, is shorter than a request waits for a conductor."""


def _options() -> list[cfg.Opt]:
    found = [
        *loading.get_auth_common_conf_options(),
        *loading.get_session_conf_options(),
        *loading.get_adapter_conf_options(include_deprecated=False),
    ]
    for option in found:
        if option.dest in _DEFAULTS:
            cfg.set_defaults([option], **{option.dest: _DEFAULTS[option.dest]})
    return found


OPTIONS: dict[str, list[cfg.Opt]] = {"glance": _options()}

OF_PASSWORDS: list[cfg.Opt] = loading.get_auth_plugin_conf_options("password")
"""What auth_type = password adds, for the sample: which options there are is the plugin's to say, when it is loaded."""
