"""The list of all option groups: what oslo-config-generator and the loader read."""

from oslo_config import cfg

from ingot.common.conf import api, conductor, default, deploy, inspector

GROUPS: dict[str, list[cfg.Opt]] = {
    **default.OPTIONS,
    **api.OPTIONS,
    **conductor.OPTIONS,
    **deploy.OPTIONS,
    **inspector.OPTIONS,
}


def list_opts() -> list[tuple[str, list[cfg.Opt]]]:
    """Entry point oslo.config.opts: (group, options) of Ingot's own groups."""
    return sorted(GROUPS.items())
