"""What a handler gets and returns: a request without HTTP, and a reply."""

import contextlib
import dataclasses
import functools
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, ParamSpec, TypeVar

from oslo_config import cfg
from werkzeug.datastructures import Headers

from ingot.api.auth.access import Access
from ingot.api.auth.sessions import Session, Sessions
from ingot.api.web.audit_trail import Subject
from ingot.api.web.consoles import ConsoleRelays
from ingot.api.web.preconditions import Preconditions
from ingot.api.web.streams import Downloads, Feed
from ingot.common import context, errors
from ingot.common.json_types import Json
from ingot.db.engine import Database
from ingot.notifications.notifier import Notifier
from ingot.rpcapi.client import ConductorClient

_UNKNOWN_ADDRESS = "an unknown address"


@dataclasses.dataclass(frozen=True, slots=True)
class Call:
    """A request that has been authenticated, routed, and whose parameters and body were checked.

    :param access: what it may do.
    :param rule: the rule of policy that its route declares; see :mod:`ingot.api.auth.rules`.
    :param minor: the API version it speaks.
    :param feed: the events of the database.
    :param downloads: of images.
    :param consoles: those that are open in this process.
    :param sessions: of browsers.
    :param session: the one that the request belongs to, if it does.
    :param notifier: tells other services what changes.
    :param headers: those of the request, for the few handlers that need one.
    :param address: network address of the client; empty if it is not known.
    :param base: scheme and host for links, without a slash at the end.
    :param path: path of the URL, as the ``next`` link of a list repeats it.
    :param query: parsed parameters that were given.
    :param body: parsed body, a list for a patch; None when the operation takes none.
    :param preconditions: what must hold for the object that a writing request names; None for no conditions.
    :param subject: what it is about, for the audit trail; None: nothing is recorded of it.
    :param changes: whether the request may change something.
    :param offers_web_socket: whether the connection can become a websocket.
    :param dry_run: whether the request ends where it would be accepted; see :func:`ingot.api.nodes.nodes.accept`.
    """

    conf: cfg.ConfigOpts
    db: Database
    client: ConductorClient
    ctx: context.RequestContext
    access: Access
    rule: str
    feed: Feed
    downloads: Downloads
    consoles: ConsoleRelays
    sessions: Sessions
    session: Session | None
    notifier: Notifier
    subject: Subject | None
    headers: Headers
    minor: int
    address: str
    base: str
    path: str
    query: Mapping[str, Any]
    body: Any = None
    preconditions: Preconditions | None = None
    changes: bool = False
    offers_web_socket: bool = False
    dry_run: bool = False

    def note(self, record: object, anew: bool = False) -> None:
        """Note what the request is about; see :meth:`ingot.api.web.audit_trail.Subject.note`."""
        if self.subject is not None:
            self.subject.note(record, anew)

    @property
    def where(self) -> str:
        """Where the request comes from, for logs."""
        return self.address or _UNKNOWN_ADDRESS


class Reply(NamedTuple):
    """An answer.

    :param body: what is sent as JSON, or as it is where the operation answers something else; a string is sent as plain
        text; None sends nothing.
    :param version: that of the object that it shows, for the entity tag.
    """

    body: object = None
    status: int = 200
    headers: Mapping[str, str] = {}
    version: str | None = None


def created_reply(call: Call, body: Json, path: str, version: str | None = None) -> Reply:
    return Reply(body, 201, {"Location": f"{call.base}{path}"}, version)


def accepted_reply(call: Call, path: str) -> Reply:
    """Return a 202: the work is in the database; ``path`` is where its progress can be seen."""
    return Reply(None, 202, {"Location": f"{call.base}{path}"})


NO_CONTENT = Reply(None, 204)


_Given = ParamSpec("_Given")
_Value = TypeVar("_Value")

_MOST_ATTEMPTS = 5


def repeat_if_changed(attempt: Callable[_Given, _Value]) -> Callable[_Given, _Value]:
    """Read, decide and write again when something else was written between reading and writing.

    A power state that was read from hardware, say, must not make a user's request fail. What the request means is
    decided anew on what is there now, so no update is lost.

    :param attempt: the whole: read, check, compare and set.
    """

    @functools.wraps(attempt)
    def repeat(*args: _Given.args, **named: _Given.kwargs) -> _Value:
        for _again in range(_MOST_ATTEMPTS - 1):
            with contextlib.suppress(errors.ChangedMeanwhile):
                return attempt(*args, **named)
        return attempt(*args, **named)

    return repeat


_FIRST_PAUSE_S = 0.05


class LockWaits:
    """Serves requests again that have met a locked node.

    A request that is refused because of a lock has written nothing, so that the whole handler can run again. Only
    some may wait: threads that wait serve no other requests.
    """

    def __init__(self, conf: cfg.ConfigOpts) -> None:
        self._conf = conf
        self._slots = threading.Semaphore(max(1, conf.api.api_threads // 4))

    def repeat(self, handle: Callable[[], Reply], refusal: errors.NodeLocked) -> Reply:
        """Return what the handler answers when the node is free.

        :raises NodeLocked: it does not get free in time, or as many requests wait as may.
        """
        if not self._conf.api.lock_wait_timeout or not self._slots.acquire(blocking=False):
            raise refusal
        until = time.monotonic() + self._conf.api.lock_wait_timeout
        pause = _FIRST_PAUSE_S
        try:
            while (left := until - time.monotonic()) > pause:
                time.sleep(pause)
                with contextlib.suppress(errors.NodeLocked):
                    return handle()
                pause *= 2
            time.sleep(max(left, 0))
            return handle()
        finally:
            self._slots.release()
