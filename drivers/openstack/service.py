"""A service of OpenStack, as conductors ask it: with openstacksdk, a library of its own.

Everything that is asked ends within ``request_timeout`` of the service's group, and every error says of what it is, in
the service's own words.
"""

import contextlib
import dataclasses
import functools
import importlib.util
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, ClassVar

from oslo_config import cfg
from oslo_log import log
from prometheus_client import Counter

from ingot.common import context, errors, fetching, later
from ingot.common.json_types import Json

if TYPE_CHECKING:
    import openstack.connection as openstack_connection
    import openstack.exceptions as openstack_errors
    from keystoneauth1 import exceptions, loading, plugin, service_token
else:
    exceptions = later.Module("keystoneauth1.exceptions")
    loading = later.Module("keystoneauth1.loading")
    plugin = later.Module("keystoneauth1.plugin")
    service_token = later.Module("keystoneauth1.service_token")
    openstack_connection = later.Module("openstack.connection")
    openstack_errors = later.Module("openstack.exceptions")

LOG = log.getLogger(__name__)

_NOT_AUTHENTICATED, _FAILS = 401, 500
_LONGEST = 1000
"""Characters of a service's words that are passed on: a proxy's may be a page."""

_NO_KEYSTONE = {"X-Auth-Token": "ingot"}
"""Headers for a service without Keystone: any token will do, but Cinder answers nothing without one."""

_SUCCESS, _REFUSAL, _FAILURE = "done", "refused", "failed"


@dataclasses.dataclass(frozen=True)
class Service:
    """
    :param name: as people say it.
    :param group: of options.
    :param kind: its type, in the words of catalogs.
    :param requests: counts what it is asked for, by outcome.
    :param unavailable: the error when it does not answer.
    :param refused: the error when it refuses.
    :param as_service: whether requests carry a service token, too, and so are a service's own.
    """

    name: str
    group: str
    kind: str
    requests: Counter
    unavailable: type[errors.IngotError]
    refused: type[errors.IngotError]
    as_service: bool = False

    def __post_init__(self) -> None:
        for outcome in (_SUCCESS, _REFUSAL, _FAILURE):
            self.requests.labels(outcome)  # counted from zero on

    def check(self, conf: cfg.ConfigOpts, of: str) -> None:
        """Refuse a configuration with which the service cannot be asked.

        :param of: what needs it, for the message.
        :raises ConfigurationError: the library is missing, or the options say neither where it is nor who asks.
        """
        if importlib.util.find_spec("openstack") is None:
            raise errors.ConfigurationError(
                f"{of} needs openstacksdk, which is not installed for this Python: pip install 'ingot[{self.group}]'."
            )
        if self.group not in conf or not (conf[self.group].auth_type or conf[self.group].auth_section):
            raise errors.ConfigurationError(
                f"{of} needs [{self.group}] auth_type with the user that asks {self.name} (none, with "
                f"endpoint_override, for a {self.name} without Keystone)."
            )

    def connect(self, conf: cfg.ConfigOpts) -> "openstack_connection.Connection":
        """Return a connection, which tasks share with its token."""
        login = loading.load_auth_from_conf_options(conf, self.group)
        own = {"auth": login, "session": fetching.open_session()}
        if self.as_service and login is not None and not isinstance(login, plugin.FixedEndpointPlugin):
            own["auth"] = service_token.ServiceTokenAuthWrapper(user_auth=login, service_auth=login)
        session = loading.load_session_from_conf_options(conf, self.group, **own)
        if isinstance(login, plugin.FixedEndpointPlugin):  # the library asks for versions without authentication
            session.additional_headers.update(_NO_KEYSTONE | (login.get_headers(session) or {}))
        return openstack_connection.Connection(session=session, oslo_conf=conf, service_types=[self.kind])

    @contextlib.contextmanager
    def ask(self, conf: cfg.ConfigOpts, what: str) -> Iterator[None]:
        """Ask for one thing in this block.

        :param what: is asked for, with its object.
        :raises IngotError: the service or Keystone does not answer in time, or fails; or it refuses.
        """
        outcome = _FAILURE
        try:
            with fetching.limit(conf[self.group].request_timeout):
                yield
            outcome = _SUCCESS
        except openstack_errors.HttpException as exc:
            words = str(exc.details or exc)[:_LONGEST]
            code = exc.status_code or _FAILS
            if code >= _FAILS:
                raise self.unavailable(what=what, reason=f"HTTP {code}: {words}") from exc
            if code == _NOT_AUTHENTICATED:
                words = f"it takes no token of the user that [{self.group}] names: check auth_type, username and the "
                words += "like there"
            outcome = _REFUSAL
            raise self.refused(what=what, reason=words) from exc
        except (exceptions.ConnectionError, exceptions.DiscoveryFailure, exceptions.HttpServerError) as exc:
            raise self.unavailable(what=what, reason=str(exc).rstrip(".")) from exc
        except (exceptions.ClientException, openstack_errors.SDKException) as exc:
            raise self.refused(what=what, reason=f"check the options of [{self.group}]: {exc}") from exc
        except (ValueError, LookupError, TypeError, AttributeError) as exc:
            LOG.warning("%s: an answer cannot be read", what, exc_info=exc)
            raise self.unavailable(what=what, reason=f"what answers is no {self.name}") from exc
        finally:
            self.requests.labels(outcome).inc()


class Client:
    """A service, for one piece of work. Objects are in the words of its API.

    :cvar service: which one.
    :param connect: returns the shared connection.
    :param ctx: of the request that is worked for; the service's log has its id, too.
    """

    service: ClassVar[Service]

    def __init__(
        self,
        conf: cfg.ConfigOpts,
        connect: "Callable[[], openstack_connection.Connection]",
        ctx: context.RequestContext,
    ) -> None:
        self._conf = conf
        self._connect = connect
        self._context = ctx

    @functools.cached_property
    def _proxy(self) -> Any:
        connection = self._connect().global_request(self._context.global_id)
        return getattr(connection, self.service.kind.replace("-", "_"))

    def _ask(self, what: str) -> contextlib.AbstractContextManager[None]:
        """
        :param what: is asked for, with its name.
        :raises IngotError: the service does not answer in time, or fails; or it refuses. See :class:`Service`.
        """
        return self.service.ask(self._conf, what)


def show(found: Iterable[Any]) -> list[Json]:
    """Return objects of openstacksdk as the service has them.

    :raises ValueError: what was answered is none of its objects.
    """
    shown: list[Json] = [one.to_dict(computed=False, original_names=True) for one in found]
    if not all(one["id"] for one in shown):
        raise ValueError("an object without an id")
    return shown
