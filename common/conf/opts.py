"""The list of all option groups: what oslo-config-generator and the loader read."""

from oslo_config import cfg

from ingot.common.conf import api, conductor, default, deploy, glance, inspector

GROUPS: dict[str, list[cfg.Opt]] = {
    **default.OPTIONS,
    **api.OPTIONS,
    **conductor.OPTIONS,
    **deploy.OPTIONS,
    **glance.OPTIONS,
    **inspector.OPTIONS,
}


def list_opts() -> list[tuple[str, list[cfg.Opt]]]:
    """Return (group, options) of Ingot's own groups and of the usual way to log in: entry point oslo.config.opts."""
    return sorted({**GROUPS, "glance": [*GROUPS["glance"], *glance.OF_PASSWORDS]}.items())
