"""The list of all option groups: what oslo-config-generator and the loader read."""

from keystoneauth1 import loading
from oslo_config import cfg

from ingot.common.conf import api, conductor, default, deploy

_GLANCE: list[cfg.Opt] = [
    *loading.get_auth_common_conf_options(),
    *loading.get_session_conf_options(),
    *loading.get_adapter_conf_options(include_deprecated=False),
]
"""Where images are asked for, and as whom, as all clients of OpenStack have it.

The timeout, after which Glance counts as away, is shorter than a request waits for a conductor.
"""

cfg.set_defaults(_GLANCE, service_type="image", valid_interfaces=["internal", "public"], timeout=20)

GROUPS: dict[str, list[cfg.Opt]] = {
    "DEFAULT": default.DEFAULT,
    "api": api.API,
    "service_catalog": api.SERVICE_CATALOG,
    "conductor": conductor.CONDUCTOR,
    "deploy": deploy.DEPLOY,
    "agent": deploy.AGENT,
    "inspector": deploy.INSPECTOR,
    "pxe": deploy.PXE,
    "ipmi": deploy.IPMI,
    "glance": _GLANCE,
}


def list_opts() -> list[tuple[str, list[cfg.Opt]]]:
    """Return (group, options) of Ingot's own groups, for the sample: entry point oslo.config.opts.

    To [glance] it adds the options of auth_type = password; the plugin registers its own when it is loaded.
    """
    return sorted({**GROUPS, "glance": [*_GLANCE, *loading.get_auth_plugin_conf_options("password")]}.items())
