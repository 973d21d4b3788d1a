"""Further checks of ``GET /healthcheck``: plug-ins of oslo.middleware, loaded where an operator names some."""

import functools
import importlib.metadata
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from oslo_config import cfg

from ingot.common import errors, later
from ingot.common.conf import healthcheck, lending

if TYPE_CHECKING:
    from oslo_middleware.healthcheck import opts
else:
    opts = later.Module("oslo_middleware.healthcheck.opts")

_NAMESPACE = "oslo.middleware.healthcheck"
_EXCLUSIVE = frozenset(("disable_by_file", "enable_by_files"))


def check(conf: cfg.ConfigOpts) -> None:
    """Refuse backends that there are not, and those that contradict each other.

    :raises ConfigurationError: there are such.
    """
    names = conf.healthcheck.backends
    known = sorted(entry.name for entry in importlib.metadata.entry_points(group=_NAMESPACE)) if names else []
    for name in names:
        if name not in known:
            allowed = f"There are: {', '.join(known)}."
            raise errors.ConfigurationError(option="[healthcheck] backends", value=name, allowed=allowed)
    if set(names) >= _EXCLUSIVE:
        allowed = f"Name one of {' and '.join(sorted(_EXCLUSIVE))}, not both."
        raise errors.ConfigurationError(option="[healthcheck] backends", value=", ".join(names), allowed=allowed)


def ask(conf: cfg.ConfigOpts) -> Mapping[str, str | None]:
    """Return by backend why it is against serving requests; None: it is not."""
    names = conf.healthcheck.backends
    if not names:
        return {}
    expected = (*opts.HEALTHCHECK_OPTS, *opts.DISABLE_BY_FILE_OPTS, *opts.DISABLE_BY_FILES_OPTS)
    own = [opt for opt in healthcheck.HEALTHCHECK if opt.dest != "allowed_source_ranges"]
    lent = lending.lend(conf, "healthcheck", own, (*expected, *opts.ENABLE_BY_FILES_OPTS))
    found: dict[str, str | None] = {}
    for name in names:
        result = _load(name)(lent, {}).healthcheck(conf.api.port)
        found[name] = None if result.available else str(result.details or result.reason)
    return found


@functools.cache
def _load(name: str) -> Any:
    """Return a plug-in. To look for one among all packages takes too long for what strangers may ask at any rate."""
    (entry,) = importlib.metadata.entry_points(group=_NAMESPACE, name=name)
    return entry.load()
