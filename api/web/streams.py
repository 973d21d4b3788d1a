"""Answers that last: streams of events, and downloads of images.

The embedded server sends them without a thread. In a WSGI server of another kind each waits in the thread of its
request.
"""

import asyncio
import collections
import contextlib
import itertools
import threading
import time
from collections.abc import AsyncGenerator, Callable, Generator, Iterable, Iterator
from typing import TYPE_CHECKING, Protocol

import orjson
from oslo_config import cfg
from oslo_log import log
from werkzeug.datastructures import Headers

from ingot.common import errors, later
from ingot.db import events, models
from ingot.db.engine import Database

if TYPE_CHECKING:
    import requests

    from ingot.common import glance
else:
    glance = later.Module("ingot.common.glance")

LOG = log.getLogger(__name__)

_INTERVAL_S = 0.5  # at most between two reads of new events: what nothing announces is found then
_GAP_S = 0.1  # at least between two reads, however much is written; also between two looks at what others have written
_PAGE = 500  # events a statement
_BLOCK = 128 * 1024  # bytes after which a write to a client ends: a client that does not read keeps one in memory
_MOST_BACK_OF_PROJECT = 20 * _PAGE  # how far back its users may begin: most of what they read is not theirs
_LONGEST_S = 3600  # of a stream; a client that comes back is authenticated anew
_RETRY_MS = 2000  # after which a browser comes back

_CHUNK = 256 * 1024  # bytes of an image
_ANSWER_HEADERS = ("Accept-Ranges", "Content-Length", "Content-Range")

View = Callable[[models.Event], models.Event | None]
"""Returns what a stream shows of an event; None: nothing."""

TAKE = "ingot.take"
"""In the environment of a request to the embedded server: what takes a body that lasts off the request's thread."""


ARRIVED = "ingot.arrived"
"""In the same environment: when the request had arrived, before it waited for a thread."""


class Lasting(Protocol):
    """The body of an answer that lasts."""

    def blocks(self) -> AsyncGenerator[bytes, None]:
        """Return its parts, each as soon as there is one, without keeping a thread meanwhile."""

    def close(self) -> None:
        """End it; safe to repeat."""


class Feed:
    """The events of a database, for the streams of this process; at most ``[api] max_event_streams`` at once.

    Of these, the users of one project have ``[api] max_event_streams_of_project`` at most.

    One thread reads new events, once for all streams, into a short memory from which they take what is new. A stream
    touches the database only to catch up, page by page, when it comes back after a while or has been too slow. It holds
    no connection meanwhile, and a slow reader blocks no other.

    The thread runs while there are streams. It begins with the first, in the process that serves it, so that a server
    which forks after loading the application is no special case. It reads when this process has committed something
    with events; else it looks, by one small statement, whether another process has.

    :param is_alone: whether other processes write hardly ever, so that the read that comes in any case is enough.
    """

    def __init__(self, conf: cfg.ConfigOpts, db: Database, is_alone: bool) -> None:
        self._pause = _INTERVAL_S if is_alone else _GAP_S
        self._written = threading.Event()
        self._most: int = conf.api.max_event_streams
        self._offline_after = float(conf.conductor.heartbeat_timeout)
        self._db = db
        self.heartbeat = float(conf.api.event_heartbeat_interval)
        self._new_events = threading.Condition()
        self._listeners: set[Callable[[], object]] = set()
        self._recent: collections.deque[models.Event] = collections.deque(maxlen=2 * _PAGE)
        self._latest = 0
        self._streams = 0
        self._most_of_project: int = conf.api.max_event_streams_of_project
        self._of_projects: collections.Counter[str] = collections.Counter()
        self._closed = threading.Event()
        self._thread: threading.Thread | None = None

    def open(self, after: int | None, show: View, project: str | None = None) -> "Stream":
        """Open a new stream; the caller closes it.

        :param after: id of the event after which it begins; None: what happens from now on.
        :param project: whose nodes it shows; None: all.
        :raises ServiceUnavailable: there are as many as there may be, or the database is away.
        """
        self._enter(project)
        try:
            events.collect(self._db, self._offline_after)
            oldest, latest = events.bounds(self._db)
            with self._new_events:
                if self._thread is None:
                    self._recent.clear()
                    self._latest = latest
                    self._thread = threading.Thread(target=self._run, name="events", daemon=True)
                    self._thread.start()
        except BaseException:
            self.leave(project)
            raise
        if project is not None:
            oldest = max(oldest, latest + 1 - _MOST_BACK_OF_PROJECT)
        position = latest if after is None else after
        if oldest - 1 <= position <= latest:
            return Stream(self, f"id: {position}\n: listening\n\n", position, show, project)
        # The client was away for too long, or knows the events of another database.
        gap = orjson.dumps({"after": position, "oldest": oldest, "latest": latest}).decode()
        position = oldest - 1 if position < oldest else latest
        return Stream(self, f"id: {position}\nevent: missed\ndata: {gap}\n\n", position, show, project)

    def _enter(self, project: str | None) -> None:
        with self._new_events:
            own = 0 if project is None else self._of_projects[project]
            reason = None
            if self._streams >= self._most:
                reason = f"this process has {self._streams} already ([api] max_event_streams)"
            elif own and own >= self._most_of_project:
                reason = f"this process has {own} of the project already ([api] max_event_streams_of_project)"
            if reason is not None:
                raise errors.ServiceUnavailable(what="Another stream of events", reason=reason)
            self._streams += 1
            if project is not None:
                self._of_projects[project] += 1

    def leave(self, project: str | None) -> None:
        """Take note that a stream ended."""
        with self._new_events:
            self._streams -= 1
            if project is not None:
                self._of_projects[project] -= 1
                self._of_projects += collections.Counter()  # forgets those that have none
            if not self._streams:
                self._written.set()  # so that the thread ends

    def close(self) -> None:
        """End all streams: the server stops."""
        self._closed.set()
        self._written.set()
        with self._new_events:
            self._announce()

    def _announce(self) -> None:
        self._new_events.notify_all()
        for tell in self._listeners:
            tell()

    @contextlib.contextmanager
    def telling(self, tell: Callable[[], object]) -> Iterator[None]:
        """Call a function whenever there are new events, or there will be no more."""
        with self._new_events:
            self._listeners.add(tell)
        try:
            yield
        finally:
            with self._new_events:
                self._listeners.discard(tell)

    def wait(self, position: int, patience: float) -> None:
        """Wait until there are events after a position, or will be none, or for some seconds."""
        with self._new_events:
            self._new_events.wait_for(lambda: self._closed.is_set() or self._latest > position, patience)

    def read(self, position: int) -> list[models.Event] | None:
        """Return the next events; none if there are none for now.

        :returns: None: there will be none, because the server stops or the database is away.
        """
        with self._new_events:
            if self._closed.is_set():
                return None
            if self._latest <= position:
                return []
            if self._recent and self._recent[0].id <= position + 1:  # ids have no gaps
                start = position + 1 - self._recent[0].id
                return list(itertools.islice(self._recent, start, start + _PAGE))
        try:
            return events.read_page(self._db, position, _PAGE)
        except errors.ServiceUnavailable:
            return None  # the client comes back

    def _run(self) -> None:
        with self._db.listening(self._written.set):
            while self._goes_on():
                try:
                    if self._read_new() < _PAGE:
                        self._closed.wait(_GAP_S)
                        self._await_events()
                    continue
                except errors.ServiceUnavailable:
                    pass  # in the log already
                except Exception:  # the edge of a worker: the next read tries again
                    LOG.exception("Reading new events failed unexpectedly")
                self._closed.wait(_INTERVAL_S)

    def _goes_on(self) -> bool:
        with self._new_events:
            if self._streams and not self._closed.is_set():
                return True
            self._thread = None
            return False

    def _await_events(self) -> None:
        """Wait until this process or another one has written events, or for as long as that may stay unnoticed."""
        until = time.monotonic() + _INTERVAL_S
        while not self._written.wait(self._pause) and time.monotonic() < until:
            if events.has_later(self._db, self._latest):
                return

    def _read_new(self) -> int:
        self._written.clear()
        events.collect_of_conductors(self._db, self._offline_after)
        if not events.has_later(self._db, self._latest):
            return 0
        events.collect_outboxes(self._db)
        new = events.read_page(self._db, self._latest, _PAGE)
        if new:
            with self._new_events:
                self._recent.extend(new)
                self._latest = new[-1].id
                self._announce()
        return len(new)


class Stream(Iterator[bytes]):
    """The body of one answer: blocks of server-sent events, and comments when there are none."""

    def __init__(self, feed: Feed, opening: str, position: int, show: View, project: str | None) -> None:
        self._feed = feed
        self._project = project
        self._waiting = f"retry: {_RETRY_MS}\n{opening}".encode()
        self._position = position
        self._show = show
        now = time.monotonic()
        self._until = now + _LONGEST_S
        self._heartbeat_at = now + feed.heartbeat
        self._open = True

    def __next__(self) -> bytes:
        while not (block := self._read()):
            if block is None:
                raise StopIteration
            self._feed.wait(self._position, self._patience())
        return block

    async def blocks(self) -> AsyncGenerator[bytes, None]:
        """See :meth:`Lasting.blocks`."""
        loop, arrived = asyncio.get_running_loop(), asyncio.Event()
        with self._feed.telling(lambda: loop.call_soon_threadsafe(arrived.set)):
            while (block := await asyncio.to_thread(self._read)) is not None:
                if block:
                    yield block
                    continue
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(arrived.wait(), self._patience())
                arrived.clear()

    def _patience(self) -> float:
        return max(0.0, min(self._heartbeat_at, self._until) - time.monotonic())

    def _read(self) -> bytes | None:
        """Return what can be sent at once; nothing if there is nothing for now, None if the stream ends."""
        now, block = time.monotonic(), self._waiting
        self._waiting = b""
        while not block and now < self._until:
            found = self._feed.read(self._position)
            if found is None:
                return None
            if not found:
                if now < self._heartbeat_at:
                    return b""
                # With the id of the last event read, so that a client with rare events does not begin far back.
                block = f"id: {self._position}\n: heartbeat\n\n".encode()
                break
            block = b"".join(self._take(found))
        self._heartbeat_at = now + self._feed.heartbeat
        return block or None

    def _take(self, found: Iterable[models.Event]) -> Iterator[bytes]:
        """Yield the texts of the next events, as many as one write may have."""
        size = 0
        for event in found:
            if size >= _BLOCK:
                return
            self._position = event.id
            if (shown := self._show(event)) is not None:
                text = _format_event(shown)
                size += len(text)
                yield text

    def close(self) -> None:
        """Free the place of this stream; the server calls it when the answer ends, however it ends."""
        if self._open:
            self._open = False
            self._feed.leave(self._project)


def _format_event(event: models.Event) -> bytes:
    node = {"node_uuid": event.node_uuid, "node_name": event.node_name}
    data = {"id": event.id, "kind": event.kind, "at": event.created_at, **node, **event.data}
    text = orjson.dumps(data, option=orjson.OPT_NAIVE_UTC).decode()
    return f"id: {event.id}\nevent: {event.kind}\ndata: {text}\n\n".encode()


class Downloads:
    """Images of Glance on their way to machines; at most ``[api] max_image_downloads`` at once.

    They are read while they are sent, so that nothing of them lies on any disk.
    """

    def __init__(self, conf: cfg.ConfigOpts) -> None:
        self._conf = conf
        self._slots = threading.Semaphore(conf.api.max_image_downloads)

    def open(self, ident: str, headers: Headers) -> "Download":
        """Start a download; the caller closes it.

        :param headers: of the request; a range is passed on.
        :raises ServiceUnavailable: there are as many as there may be.
        :raises IngotError: Glance does not give the image; see :class:`ingot.common.glance.Image`.
        """
        if not self._slots.acquire(blocking=False):
            reason = "this process has as many already as [api] max_image_downloads allows"
            raise errors.ServiceUnavailable(what="Another download of an image", reason=reason)
        try:
            passed = {"Range": headers["Range"]} if "Range" in headers else {}
            return Download(glance.Image(self._conf, "image", ident).content(passed), self._slots)
        except BaseException:
            self._slots.release()
            raise


class Download:
    """
    :param answer: Glance's.
    :param slots: where one is given back at the end.
    :ivar status: that of the answer.
    :ivar headers: what a client must know of it.
    """

    def __init__(self, answer: "requests.Response", slots: threading.Semaphore) -> None:
        self._answer = answer
        self._slots: threading.Semaphore | None = slots
        self.status = answer.status_code
        self.headers = {name: answer.headers[name] for name in _ANSWER_HEADERS if name in answer.headers}

    def __iter__(self) -> Iterator[bytes]:
        """Return the content. If Glance stops before its end, so does this, and the connection.

        The machine sees by the Content-Length that something is missing.
        """
        yield from self._answer.iter_content(_CHUNK)

    async def blocks(self) -> AsyncGenerator[bytes, None]:
        """See :meth:`Lasting.blocks`: a thread works only while Glance sends."""
        chunks = self._answer.iter_content(_CHUNK)
        while chunk := await asyncio.to_thread(next, chunks, b""):
            yield chunk

    def close(self) -> None:
        """End it; safe to repeat."""
        slots, self._slots = self._slots, None
        self._answer.close()
        if slots:
            slots.release()


class Reading:
    """What is made while it is sent.

    :param chunks: its parts; they may wait for other servers.
    :param turn: held while a part is made, also when its client has gone: those that share one keep a single thread.
    """

    def __init__(self, chunks: Iterator[bytes], turn: asyncio.Lock) -> None:
        self._chunks = chunks
        self._turn = turn

    def __iter__(self) -> Iterator[bytes]:
        return self._chunks

    async def blocks(self) -> AsyncGenerator[bytes, None]:
        """See :meth:`Lasting.blocks`: a thread works only while a part is made."""
        while chunk := await self._make():
            yield chunk

    async def _make(self) -> bytes:
        await self._turn.acquire()
        part = asyncio.ensure_future(asyncio.to_thread(next, self._chunks, b""))
        part.add_done_callback(self._end_turn)
        return await asyncio.shield(part)

    def _end_turn(self, part: "asyncio.Future[bytes]") -> None:
        self._turn.release()
        if not part.cancelled():
            part.exception()  # its client may have gone: then no caller sees it, and that is nothing to log

    def close(self) -> None:
        """End it; safe to repeat. A part that is being made is the last one."""
        chunks, self._chunks = self._chunks, iter(())
        if isinstance(chunks, Generator):
            with contextlib.suppress(ValueError):  # it runs in another thread, and ends when that lets go of it
                chunks.close()
