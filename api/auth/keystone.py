"""Authentication by tokens of Keystone, which keystonemiddleware validates; rules of policy say what they allow."""

import logging
from collections.abc import Callable
from typing import Any, Unpack

from keystoneauth1 import exceptions
from keystonemiddleware import auth_token
from oslo_config import cfg
from oslo_log import log
from werkzeug.wrappers import Response

from ingot.api.auth import access, enforcer, identity
from ingot.common import context, errors

LOG = log.getLogger(__name__)

_ACCEPTED = "ingot.accepted"

_SAID_HERE = frozenset(("Authorization failed for token", "Invalid user token", "Rejecting request"))
"""What the middleware logs of a failed log-in, which is one line, with the address."""

logging.getLogger("keystonemiddleware.auth_token").addFilter(lambda record: record.msg not in _SAID_HERE)


class Keystone(identity.Strategy):
    """Tokens are validated by the middleware, which gets no request of public routes.

    :raises ConfigurationError: [keystone_authtoken] or the policy file cannot be used.
    """

    def __init__(self, conf: cfg.ConfigOpts) -> None:
        # A decision that is delayed would call tokens invalid while Keystone does not answer.
        settings = {"oslo_config_config": conf, "delay_auth_decision": False}
        try:
            self._middleware = auth_token.AuthProtocol(_accept, settings)
        except (cfg.Error, exceptions.ClientException, ValueError) as exc:
            raise _unusable_error(str(exc)) from exc
        if not (conf.keystone_authtoken.auth_type or conf.keystone_authtoken.auth_section):
            raise _unusable_error("auth_type is not set: Ingot has no user with which to have tokens validated")
        self._enforcer = enforcer.Enforcer(conf)

    def identify(self, environ: identity.Environ, **ids: Unpack[identity.RequestIds]) -> context.RequestContext:
        accepted: dict[str, Any] = {}
        try:
            answer = Response.from_app(self._middleware, {**environ, _ACCEPTED: accepted})
        except exceptions.ClientException as exc:
            LOG.exception("Keystone cannot validate tokens")
            raise errors.ServiceUnavailable(what="Authentication", reason="the log has the cause") from exc
        if answer.status_code == 401:
            if "HTTP_X_AUTH_TOKEN" in environ:
                LOG.warning("Failed log-in with a token from %s", environ.get("REMOTE_ADDR") or "a local client")
            reason = "send a valid token of Keystone in the header X-Auth-Token"
            raise identity.Challenged(answer.headers.get("WWW-Authenticate", "Keystone"), reason)
        if not accepted:
            raise errors.ServiceUnavailable(what="Authentication", reason="Keystone does not answer")
        # The token itself is needed no more, and must not go anywhere.
        ctx: context.RequestContext = context.RequestContext.from_environ(accepted, auth_token=None, **ids)
        return ctx

    def access(self, ctx: context.RequestContext) -> access.Access:
        return enforcer.Limited(self._enforcer, ctx)


def _accept(environ: dict[str, Any], start_response: Callable[..., object]) -> list[bytes]:
    """Note what the middleware let through: it has put the user into the environment."""
    environ[_ACCEPTED].update(environ)
    start_response("200 OK", [])
    return []


def _unusable_error(why: str) -> errors.ConfigurationError:
    return errors.ConfigurationError(
        option="auth_strategy", value="keystone", allowed=f"[keystone_authtoken] cannot be used: {why}."
    )
