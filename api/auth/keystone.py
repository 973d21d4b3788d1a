"""Authentication by tokens of Keystone, which keystonemiddleware validates; rules of policy say what they allow."""

import collections
import hashlib
import logging
from collections.abc import Callable
from typing import Any, Unpack

from keystoneauth1 import exceptions
from keystoneauth1.identity import generic
from keystoneauth1.loading import session as session_loading
from oslo_config import cfg
from oslo_log import log
from werkzeug.wrappers import Response

from ingot.api.auth import access, enforcer, failed_logins, identity, keystone_calls
from ingot.common import context, errors
from ingot.common.json_types import Json

LOG = log.getLogger(__name__)

_ACCEPTED = "ingot.accepted"
_MOST_REVOKED = 1000  # tokens that are remembered
_PATIENCE_S = 30  # for Keystone, where [keystone_authtoken] http_connect_timeout is not set
_DEFAULT_DOMAIN = "default"
_SERVICE_TYPE = "baremetal"

_AWAY = "Keystone does not answer, or refuses Ingot's own user; the log has the cause, and tokens are as good as before"

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
            self._middleware = keystone_calls.Protocol(_accept, settings)
        except (cfg.Error, exceptions.ClientException, ValueError) as exc:
            raise _unusable_error(str(exc)) from exc
        if not (conf.keystone_authtoken.auth_type or conf.keystone_authtoken.auth_section):
            raise _unusable_error("auth_type is not set: Ingot has no user with which to have tokens validated")
        # Without, rules of application credentials could not be compared, and such tokens would be refused.
        conf.set_default("service_type", _SERVICE_TYPE, group="keystone_authtoken")
        self._enforcer = enforcer.Enforcer(conf)
        self._audits = bool(conf.audit.enabled and conf.audit.audit_map_file)
        options = conf.keystone_authtoken
        where = conf[options.auth_section] if options.auth_section else options
        self._url = str(getattr(where, "auth_url", None) or options.www_authenticate_uri)
        self._session = session_loading.Session().load_from_options(
            cert=options.certfile,
            key=options.keyfile,
            cacert=options.cafile,
            insecure=options.insecure,
            timeout=options.http_connect_timeout or _PATIENCE_S,
        )
        self._failed_logins = failed_logins.FailedLogins(conf.api.max_failed_logins)
        self._revoked: collections.OrderedDict[str, None] = collections.OrderedDict()

    def identify(self, environ: identity.Environ, **ids: Unpack[identity.RequestIds]) -> context.RequestContext:
        accepted: dict[str, Any] = {}
        try:
            with self._middleware.calls.limit():
                answer = Response.from_app(self._middleware, {**environ, _ACCEPTED: accepted})
        except exceptions.ClientException as exc:
            LOG.error("Keystone cannot validate tokens: %s", exc)  # noqa: TRY400 - the message is complete
            raise errors.ServiceUnavailable(what="Authentication", reason=_AWAY) from exc
        if answer.status_code == 401:
            if "HTTP_X_AUTH_TOKEN" in environ:
                LOG.warning("Failed log-in with a token from %s", environ.get("REMOTE_ADDR") or "a local client")
            reason = "send a valid token of Keystone in the header X-Auth-Token"
            raise identity.Challenged(answer.headers.get("WWW-Authenticate", "Keystone"), reason)
        if not accepted:
            raise errors.ServiceUnavailable(what="Authentication", reason=_AWAY)
        # The token itself is needed no more, and must not go anywhere.
        ctx: context.RequestContext = context.RequestContext.from_environ(accepted, auth_token=None, **ids)
        if self._audits:
            ctx.catalog = accepted.get("HTTP_X_SERVICE_CATALOG")
        return ctx

    def log_in(self, login: identity.Login, address: str) -> identity.Granted:
        """Get a token for a person, for a project or the whole system: it is what the session keeps."""
        self._failed_logins.check(address)
        try:
            got = _build_plugin(self._url, login).get_access(self._session)
        except exceptions.MissingAuthMethods as exc:
            reason = f"Keystone asks {login.user[:80]!r} for more than a password; use a client that can send it"
            raise identity.Challenged(identity.LOG_IN_CHALLENGE, reason) from exc
        except exceptions.HTTPClientError as exc:
            self._failed_logins.note(address, login.user)
            scope = f"the project {login.project[:80]!r}" if login.project else "the system; name a project if need be"
            reason = f"Keystone refuses the user name or the password, or the user has no role in {scope}"
            raise identity.Challenged(identity.LOG_IN_CHALLENGE, reason) from exc
        except exceptions.ClientException as exc:
            LOG.exception("Keystone cannot check passwords")
            raise errors.ServiceUnavailable(what="Authentication", reason="the log has the cause") from exc
        ctx = context.RequestContext(
            user_id=got.user_id,
            user_name=got.username,
            project_id=got.project_id,
            project_name=got.project_name,
            system_scope="all" if got.system_scoped else None,
            roles=list(got.role_names or ()),
            overwrite=False,
        )
        return identity.Granted(ctx, {"token": got.auth_token}, got.expires.timestamp() if got.expires else None)

    def resume(
        self, kept: Json, environ: identity.Environ, **ids: Unpack[identity.RequestIds]
    ) -> context.RequestContext:
        """Return the context of a request that has the token of its session where the middleware looks for one."""
        if _digest(kept["token"]) in self._revoked:
            raise identity.Challenged(identity.LOG_IN_CHALLENGE, "the user of the session has logged out")
        own = {name: value for name, value in environ.items() if name != "HTTP_X_SERVICE_TOKEN"}
        return self.identify({**own, "HTTP_X_AUTH_TOKEN": kept["token"]}, **ids)

    def log_out(self, kept: Json) -> None:
        """Revoke the token. One that cannot be revoked ends in time.

        The middleware may remember for minutes that it was good; in this process that counts no more.
        """
        self._revoked[_digest(kept["token"])] = None
        if len(self._revoked) > _MOST_REVOKED:
            self._revoked.popitem(last=False)
        base = self._url.rstrip("/").removesuffix("/v3")
        headers = dict.fromkeys(("X-Auth-Token", "X-Subject-Token"), kept["token"])
        try:
            self._session.delete(f"{base}/v3/auth/tokens", headers=headers, authenticated=False)
        except exceptions.ClientException as exc:
            LOG.warning("A token could not be revoked when its user logged out: %s", exc)

    def access(self, ctx: context.RequestContext) -> access.Access:
        return enforcer.Limited(self._enforcer, ctx)


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


def _build_plugin(url: str, login: identity.Login) -> generic.Password:
    """Return what asks Keystone for a token; without names of domains those of the default domain are meant."""
    domain = login.project_domain or login.user_domain
    return generic.Password(
        url,
        username=login.user,
        password=login.password,
        user_domain_name=login.user_domain,
        user_domain_id=None if login.user_domain else _DEFAULT_DOMAIN,
        project_name=login.project,
        project_domain_name=domain if login.project else None,
        project_domain_id=_DEFAULT_DOMAIN if login.project and not domain else None,
        system_scope=None if login.project else "all",
    )


def _accept(environ: dict[str, Any], start_response: Callable[..., object]) -> list[bytes]:
    """Note what the middleware let through: it has put the user into the environment."""
    environ[_ACCEPTED].update(environ)
    start_response("200 OK", [])
    return []


def _unusable_error(why: str) -> errors.ConfigurationError:
    return errors.ConfigurationError(
        option="auth_strategy", value="keystone", allowed=f"[keystone_authtoken] cannot be used: {why}."
    )
