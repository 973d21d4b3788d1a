"""Who asks: the strategies of authentication, of which the operator chooses one. Each is a module of its own."""

import importlib.metadata
from collections.abc import Mapping
from typing import Any

from oslo_config import cfg

from ingot.api.auth import access
from ingot.common import context, errors

Environ = Mapping[str, Any]
"""A request in the words of WSGI."""

_GROUP = "ingot.api.authentication"
_EVERYTHING = access.Access()


class Challenged(errors.NotAuthenticated):
    """
    :param challenge: how to authenticate, for the header WWW-Authenticate.
    """

    def __init__(self, challenge: str, reason: str) -> None:
        super().__init__(reason=reason)
        self.challenge = challenge


class Strategy:
    """A way to find out who asks."""

    def identify(self, environ: Environ, **values: Any) -> context.RequestContext:
        """Who sends a request.

        :param values: further values of the context.
        :raises NotAuthenticated: that remains open.
        :raises ServiceUnavailable: it cannot be found out now.
        """
        raise NotImplementedError

    def access(self, ctx: context.RequestContext) -> access.Access:
        """What they may do; everything, unless the strategy knows of roles."""
        return _EVERYTHING


def strategy(conf: cfg.ConfigOpts) -> Strategy | None:
    """What the option auth_strategy names; None for noauth. Only its module is loaded: that of Keystone takes its time.

    :raises ConfigurationError: it cannot be used as it is configured.
    """
    if conf.auth_strategy == "noauth":
        return None
    (found,) = importlib.metadata.entry_points(group=_GROUP, name=conf.auth_strategy)
    made: Strategy = found.load()(conf)
    return made
