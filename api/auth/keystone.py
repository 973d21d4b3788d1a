"""Authentication by tokens of Keystone, which keystonemiddleware validates; rules of policy say what they allow."""

from collections.abc import Callable, Iterable
from typing import Any, Unpack

from keystoneauth1 import exceptions
from keystonemiddleware import auth_token
from oslo_config import cfg
from oslo_log import log

from ingot.api.auth import access, enforcer, identity
from ingot.common import context, errors

LOG = log.getLogger(__name__)

_ACCEPTED = "ingot.accepted"


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
        self._rules = enforcer.Enforcer(conf)

    def identify(self, environ: identity.Environ, **ids: Unpack[identity.RequestIds]) -> context.RequestContext:
        request = dict(environ)
        answer: dict[str, str] = {}

        def start_response(
            status: str, headers: Iterable[tuple[str, str]], _exc_info: object = None
        ) -> Callable[[bytes], None]:
            answer.update({"status": status, **{name.lower(): value for name, value in headers}})
            return lambda _data: None

        try:
            list(self._middleware(request, start_response))
        except exceptions.ClientException as exc:
            LOG.exception("Keystone cannot validate tokens")
            raise errors.ServiceUnavailable(what="Authentication", reason="the log has the cause") from exc
        if not request.get(_ACCEPTED):
            raise _refused_error(answer)
        # The token itself is needed no more, and must not go anywhere.
        ctx: context.RequestContext = context.RequestContext.from_environ(request, auth_token=None, **ids)
        return ctx

    def access(self, ctx: context.RequestContext) -> access.Access:
        return access.Limited(self._rules, ctx)


def _accept(environ: dict[str, Any], start_response: Callable[..., object]) -> list[bytes]:
    """Note that the middleware let a request through; it has put the user into the environment."""
    environ[_ACCEPTED] = True
    start_response("200 OK", [])
    return []


def _refused_error(answer: dict[str, str]) -> errors.IngotError:
    """Return the error for what the middleware answered itself."""
    if answer["status"].startswith("401"):
        reason = "send a valid token of Keystone in the header X-Auth-Token"
        return identity.Challenged(answer.get("www-authenticate", "Keystone"), reason)
    return errors.ServiceUnavailable(what="Authentication", reason="Keystone does not answer")


def _unusable_error(why: str) -> errors.ConfigurationError:
    return errors.ConfigurationError(
        option="auth_strategy", value="keystone", allowed=f"[keystone_authtoken] cannot be used: {why}."
    )
