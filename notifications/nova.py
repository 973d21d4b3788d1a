"""Notifies Nova that the machine of a server was switched on or off, on a thread of its own.

Nothing that happens to a node waits for Nova. Of a server, only the last state is sent, whichever conductor found it.
An older one would have Nova switch off, minutes later, what runs.
"""

import logging
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import requests
from oslo_config import cfg
from oslo_log import log
from oslo_utils import uuidutils

from ingot.common import errors, fetching, later, metrics, states

if TYPE_CHECKING:
    from keystoneauth1 import adapter, exceptions, loading
else:
    exceptions = later.Module("keystoneauth1.exceptions")
    loading = later.Module("keystoneauth1.loading")

LOG = log.getLogger(__name__)

_GROUP = "nova"
_MICROVERSION = "2.76"
"""The first one with events of this kind."""

MOST_WAITING = 2000
"""Servers whose states wait at most; what comes after them is lost."""

_AT_ONCE = 50
_LONGEST = 60  # seconds that an answer may take where no timeout is configured
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.5, 15.0
_SUMMARY_S = 10.0

PATIENCE_S = 5.0
"""How long the end of a process waits for Nova."""

_TAGS: Mapping[str | None, str] = {states.POWER_ON: "POWER_ON", states.POWER_OFF: "POWER_OFF"}

_TAKEN = frozenset((200, 207))
_FINAL: Mapping[int, str] = {
    400: "it does not understand the event",
    403: "the user that [nova] names may not send events: it needs the role of an administrator",
    404: "there is no Nova at its endpoint, or it knows none of the servers",
    406: f"it does not have microversion {_MICROVERSION}: it must be of the release Train or later",
}
"""Statuses after which nothing would be different the next time."""

_NOT_AUTHENTICATED = 401
_REFUSES = "it takes no token of the user that [nova] names: check auth_type, username and the like there"

_EVENT_REFUSALS: Mapping[object, str] = {
    400: "it does not understand the event",
    404: "it knows no such server, or the user that [nova] names is no administrator",
    422: "the server is on none of its hosts yet",
}

_SENT, _REFUSED, _LOST = map(metrics.POWER_UPDATES.labels, ("sent", "refused", "lost"))


class NovaAway(Exception):
    """Nova did not take events, and may take them later."""


class Update(NamedTuple):
    """A server's power state.

    :param request: id of the request that has changed it, for Nova's log.
    :param until: moment after which it is not sent anymore; of the monotonic clock.
    """

    server: str
    tag: str
    request: str | None
    until: float


ReadStates = Callable[[Collection[str]], Mapping[str, str | None]]
"""Returns the power states of machines, by server, of those that have one."""


class PowerUpdates:
    """The servers whose states wait, and the thread that sends them. It begins with the first one.

    :param read_states: asked when states are sent; of a server that it does not know, what was told counts.
    """

    def __init__(self, conf: cfg.ConfigOpts, read_states: ReadStates = lambda _servers: {}) -> None:
        self._conf = conf
        self._read_states = read_states
        self._has_login = _GROUP in conf and bool(conf.nova.auth_type or conf.nova.auth_section)
        if _GROUP in conf and conf.nova.send_power_notifications and not self._has_login:
            LOG.warning("Nova is not notified of power states: [nova] auth_type is not set.")
        self._waiting: dict[str, Update] = {}
        self._sending: Sequence[Update] = ()
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._closed = False
        self._client: adapter.Adapter | None = None
        self._pause = 0.0
        self._unlogged, self._logged_at = 0, -_SUMMARY_S

    @property
    def is_on(self) -> bool:
        """Whether anything is sent."""
        return self._has_login and bool(self._conf.nova.send_power_notifications)

    def tell(self, server: str | None, power_state: str | None, request: str | None = None) -> None:
        """Have a power state sent soon, in place of what waits of this server.

        It never waits. What is no server of Nova's, or no state that Nova has, is passed over.

        :param server: uuid of the instance.
        """
        tag = _TAGS.get(power_state)
        if not self.is_on or tag is None or not uuidutils.is_uuid_like(server):
            return
        update = Update(str(server), tag, request, time.monotonic() + self._conf.nova.power_notification_deadline)
        with self._changed:
            if self._closed or (update.server not in self._waiting and len(self._waiting) >= MOST_WAITING):
                self._lose([update], f"{len(self._waiting)} wait already, or this process ends")
                return
            self._waiting[update.server] = update
            if self._thread is None:  # after a server may have forked
                self._thread = threading.Thread(target=self._run, name="power-updates", daemon=True)
                self._thread.start()
            self._changed.notify_all()

    def tell_changes(self, before: Mapping[str, Any], after: Mapping[str, Any], request: str | None) -> None:
        """Have the power state of a written node sent, if it has changed or a request for it has ended.

        :param before: the columns of the node.
        """
        if not self.is_on:
            return
        has_ended = before["target_power_state"] and not after["target_power_state"]
        if has_ended or before["power_state"] != after["power_state"]:
            self.tell(after["instance_uuid"], after["power_state"], request)

    def close(self, patience: float = PATIENCE_S) -> None:
        """Send what waits, for so many seconds at most. What is left then is lost, and counted."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join(patience)
        with self._changed:
            left = [*self._sending, *self._waiting.values()]
            self._sending, self._waiting = (), {}
            self._lose(left, "this process ends")

    def _run(self) -> None:
        while updates := self._take():
            try:
                self._send(self._read_again(updates))
                self._pause, self._sending = 0.0, ()
            except (NovaAway, errors.ServiceUnavailable) as exc:
                self._keep(str(exc))
            except Exception as exc:  # the edge of a thread
                LOG.exception("Sending power states to Nova failed unexpectedly")
                self._keep(type(exc).__name__)

    def _take(self) -> list[Update]:
        """Wait for updates, and until Nova may be asked again; return some of one request. None: this process ends.

        Where Nova has just failed that is a single one: it may fail with one of several servers.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._closed, self._pause)
            self._changed.wait_for(lambda: self._waiting or self._closed)
            first = next(iter(self._waiting.values()), None)
            alike = [one for one in self._waiting.values() if first and one.request == first.request]
            del alike[1 if self._pause else _AT_ONCE :]
            for one in alike:
                del self._waiting[one.server]
            self._sending = alike
            return alike

    def _read_again(self, updates: Sequence[Update]) -> Sequence[Update]:
        """Return the updates with the states that machines have by now.

        :raises ServiceUnavailable: the database is away.
        """
        known = self._read_states([one.server for one in updates])
        return [one._replace(tag=_TAGS.get(known.get(one.server), one.tag)) for one in updates]

    def _keep(self, reason: str) -> None:
        """Have what was sent in vain wait again, after all others, unless newer states do; lose what is too old."""
        now = time.monotonic()
        with self._changed:
            self._waiting |= {one.server: one for one in self._sending if one.server not in self._waiting}
            self._sending = ()
            lost = [one for one in self._waiting.values() if self._closed or one.until <= now]
            for one in lost:
                del self._waiting[one.server]
            self._lose(lost, reason)
        level = logging.DEBUG if self._pause else logging.WARNING  # once until Nova takes something
        LOG.log(level, "Nova was not notified of power states, which will be sent again: %s", reason)
        self._pause = min(max(2 * self._pause, _FIRST_PAUSE_S), _LONGEST_PAUSE_S)

    def _lose(self, updates: Sequence[Update], reason: str) -> None:
        """Count what is not sent, and log it; of many at once, one line in ten seconds."""
        if not updates:
            return
        _LOST.inc(len(updates))
        self._unlogged += len(updates)
        if time.monotonic() - self._logged_at >= _SUMMARY_S:
            LOG.error(
                "Power states of %d servers lost: Nova has to read them itself. The last is %s (%s): %s",
                *(self._unlogged, updates[-1].server, updates[-1].tag, reason),
            )
            self._unlogged, self._logged_at = 0, time.monotonic()

    def _send(self, updates: Sequence[Update]) -> None:
        """
        :raises NovaAway: Nova or Keystone does not answer in time, or fails.
        """
        try:
            with fetching.limit(self._conf.nova.timeout or _LONGEST):
                self._read_outcome(updates, self._post(updates))
        except exceptions.ClientException as exc:
            self._client = None  # what it knows of Keystone's catalog may be what is wrong
            raise NovaAway(f"it cannot be asked, check the options of [nova] if it goes on: {exc}") from exc
        except (requests.RequestException, OSError) as exc:
            raise NovaAway(f"its answer did not end: {exc}") from exc

    def _post(self, updates: Sequence[Update]) -> requests.Response:
        events = [{"name": "power-update", "server_uuid": one.server, "tag": one.tag} for one in updates]
        if self._client is None:
            self._client = _connect(self._conf)
        answer: requests.Response = self._client.post(
            "/os-server-external-events",
            json={"events": events},
            microversion=_MICROVERSION,
            global_request_id=updates[0].request,
            raise_exc=False,
        )
        return answer

    def _read_outcome(self, updates: Sequence[Update], answer: requests.Response) -> None:
        if why := _FINAL.get(answer.status_code):
            _REFUSED.inc(len(updates))
            servers = ", ".join(one.server for one in updates[:5])
            LOG.warning("Nova refuses events of %d servers (%s, ...): %s", len(updates), servers, why)
            return
        if answer.status_code not in _TAKEN:
            is_unknown = answer.status_code == _NOT_AUTHENTICATED
            raise NovaAway(_REFUSES if is_unknown else f"it answers HTTP {answer.status_code}")
        try:
            known = {event["server_uuid"]: event["code"] for event in answer.json()["events"]}
            codes = {one: known[one.server] for one in updates}
        except (ValueError, LookupError, TypeError) as exc:
            raise NovaAway(f"what answers at {answer.url} is no Nova") from exc
        for one, code in codes.items():
            if code == requests.codes.ok:
                _SENT.inc()
                LOG.debug("Nova has taken the power state of server %s: %s", one.server, one.tag)
            else:
                _REFUSED.inc()
                LOG.info(
                    "Nova has no use for %s of server %s: %s", one.tag, one.server, _EVENT_REFUSALS.get(code, code)
                )


def _connect(conf: cfg.ConfigOpts) -> "adapter.Adapter":
    login = loading.load_auth_from_conf_options(conf, _GROUP)
    own = {"auth": login, "session": fetching.open_session()}
    session = loading.load_session_from_conf_options(conf, _GROUP, **own)
    return loading.load_adapter_from_conf_options(conf, _GROUP, session=session)
