"""Fetches what users name by URL, while neither a worker nor the node's lock waits: the step polls.

Whatever a server does, a fetch ends in time (``ingot.common.fetching``). What is fetched is kept in memory until the
step asks for it again. When the conductor is lost, another one fetches it anew.
"""

import concurrent.futures
import dataclasses
import threading
import time
import urllib.parse
from collections.abc import Callable
from typing import Any, TypeVar

from ingot.common import errors, fetching, masking
from ingot.common.networks import ANYWHERE, Networks
from ingot.common.waits import Wait
from ingot.drivers.interfaces import results
from ingot.drivers.interfaces.task import Task

DENIED = "Its address may not be reached: see [deploy] url_denied_networks and url_allowed_networks."

_PATIENCE = 1.0
"""Seconds that a step waits: most servers answer in that time, and then nothing polls."""

_POLL = results.PollAfter(2.0, abortable=True, waits_for=Wait.FILE)

_KEPT = 60.0
"""Seconds that what was fetched is kept for a step that does not ask for it any more, and the answer to a probe."""

_PROBE_SECONDS = 10.0
"""Seconds at most that a probe takes: a server that the conductor cannot reach delays each boot by as much."""

_GRACE = 5.0
"""Seconds after which a fetch that should have ended has failed: names are resolved, and files of another host are
read, by calls that nothing ends."""

_Key = tuple[str, str, str, str]
_What = TypeVar("_What")


@dataclasses.dataclass(slots=True)
class _Fetch:
    """What is fetched; times are on the clock of ``time.monotonic``.

    :ivar until: when it should have ended.
    :ivar kept: seconds for which it is kept when it has ended; None: until it would have to end, and a while.
    :ivar ended: when it has ended.
    """

    content: "concurrent.futures.Future[Any]"
    until: float
    kept: float | None = None
    ended: float = 0

    def is_old(self, now: float) -> bool:
        if not self.content.done():
            return False
        return now > (self.until + _KEPT if self.kept is None else self.ended + self.kept)


_guard = threading.Lock()
_fetches: dict[_Key, _Fetch] = {}


def read_networks(task: Task) -> Networks:
    """Return where URLs of users may lead."""
    options = task.conf.deploy
    return Networks(options.url_denied_networks, options.url_allowed_networks)


def check_url(task: Task, key: str, value: object, allowed: str) -> None:
    """Check that a value of ``instance_info`` is an http or https URL that may be used.

    Where a name leads to is checked when it is connected to.

    :raises Invalid: it is not.
    """
    try:
        parts = urllib.parse.urlsplit(str(value))
        is_url = parts.scheme in ("http", "https") and bool(parts.hostname) and "\0" not in str(value)
    except ValueError:
        is_url = False
    if is_url and not read_networks(task).permit(str(parts.hostname)):
        is_url, allowed = False, DENIED
    if not is_url:
        raise errors.Invalid(field=f"instance_info.{key}", value=value, allowed=allowed)


def fetch(task: Task, field: str, url: str, most: int) -> bytes | results.PollAfter:
    """Return the content of a URL, or when to ask again.

    :param field: what has the URL, for messages.
    :param most: bytes that it may have.
    :raises ImageError: it cannot be had.
    """
    key = (task.node.uuid, str(task.node.run_id), field, url)
    seconds, verify = task.conf.webserver_connection_timeout, fetching.read_verify(task.conf)
    networks = read_networks(task)
    try:
        content = _ask(task, key, seconds, lambda: fetching.fetch(url, most, seconds, networks, verify))
        if content is None:
            return _POLL
        _forget(key)
        return content.result()
    except fetching.FetchError as exc:
        raise errors.ImageError(f"{field}: {masking.mask_text(url)}: {exc.message}") from None


def probe(task: Task, url: str, is_own: bool) -> results.PollAfter | None:
    """Find out whether a URL can be fetched from this host; or when to ask again.

    All nodes share an answer for a while, but for the one that there is nothing.

    Only http and https are asked; of other schemes nothing is known, which is no reason to say anything.

    :param is_own: whether the node names it, and not an operator's option, which may lead anywhere.
    :raises NotThere: its server says that there is nothing.
    :raises FetchError: it cannot be had from here.
    """
    if not url.startswith(("http://", "https://")):
        return None
    key = ("every node", "", str(is_own), url)
    seconds = min(_PROBE_SECONDS, task.conf.webserver_connection_timeout)
    networks, verify = read_networks(task) if is_own else ANYWHERE, fetching.read_verify(task.conf)

    def get() -> bytes:
        fetching.probe(url, seconds, networks, verify)
        return b""

    found = _ask(task, key, seconds, get)
    if found is None:
        return _POLL
    try:
        found.result()
    except fetching.NotThere:
        _forget(key)
        raise
    return None


def find_refusal(task: Task, url: str) -> str | results.PollAfter:
    """Return why the API refuses what it is to serve to a machine, empty if it serves it; or when to ask again.

    :raises NotThere: what answers there has nothing of the kind.
    :raises FetchError: it cannot be asked from here.
    """
    key = (task.node.uuid, str(task.node.run_id), "boot medium", url)
    seconds, verify = min(_PROBE_SECONDS, task.conf.webserver_connection_timeout), fetching.read_verify(task.conf)
    found = _ask(task, key, seconds, lambda: fetching.find_refusal(url, seconds, verify).encode())
    if found is None:
        return _POLL
    _forget(key)
    return found.result().decode()


def ask_for_all(
    task: Task, what: str, seconds: float, get: Callable[[], _What], kept: float = 10.0
) -> _What | results.PollAfter:
    """Return what a function returns that no worker should wait for, or when to ask again.

    All nodes share the answer for a while, and that there is none in time. What else the function raises is not shared:
    it may be put right at once.

    :param what: the function finds out, in a few words that no other function has.
    :param get: runs in a thread of its own.
    :param kept: seconds for which an answer is kept.
    :raises FetchError: it does not end in time.
    """
    key = ("every node", "", "found out", what)
    found = _ask(task, key, seconds, get, kept)
    if found is None:
        return _POLL
    error = found.exception()
    if error is not None and (isinstance(error, fetching.NotThere) or not isinstance(error, fetching.FetchError)):
        _forget(key)
    return found.result()


def ask_for_node(task: Task, what: str, seconds: float, get: Callable[[], _What]) -> _What | results.PollAfter:
    """Do the same as :func:`ask_for_all`, for one node, and keep the answer no longer than until it is given."""
    key = (task.node.uuid, str(task.node.run_id), "found out", what)
    found = _ask(task, key, seconds, get)
    if found is None:
        return _POLL
    _forget(key)
    return found.result()


def _ask(
    task: Task, key: _Key, seconds: float, get: Callable[[], _What], kept: float | None = None
) -> "concurrent.futures.Future[_What] | None":
    """Return what was fetched, if it is there by now; it is fetched in the background, once for each key.

    :raises FetchError: it is not there long after it should be.
    """
    with _guard:
        _forget_old()
        running = _fetches.get(key) or _start(task, key, seconds, get)
        if running is not None:
            running.kept = kept
    if running is None:
        return None
    if not concurrent.futures.wait([running.content], _PATIENCE).done:
        if time.monotonic() > running.until + _GRACE:
            raise fetching.FetchError(f"it was not there within {seconds:g} s")
        return None
    return running.content


def _forget(key: _Key) -> None:
    with _guard:
        _fetches.pop(key, None)


def _forget_old() -> None:
    now = time.monotonic()
    for old in [old for old, one in _fetches.items() if one.is_old(now)]:
        del _fetches[old]


def _start(task: Task, key: _Key, seconds: float, get: Callable[[], object]) -> _Fetch | None:
    """Begin a fetch; None as long as there are as many as there may be, a quarter of the conductor's workers."""
    if sum(not one.content.done() for one in _fetches.values()) >= max(1, task.conf.conductor.workers_pool_size // 4):
        return None
    started = _Fetch(concurrent.futures.Future(), time.monotonic() + seconds)

    def work() -> None:
        try:
            found = get()
        except BaseException as exc:  # noqa: BLE001 - it is raised again where the result is used
            started.ended = time.monotonic()
            started.content.set_exception(exc)
        else:
            started.ended = time.monotonic()
            started.content.set_result(found)

    # A daemon, as the process must not wait for it when it stops.
    threading.Thread(target=work, name=f"fetch for {task.node.uuid}", daemon=True).start()
    _fetches[key] = started  # once it runs: one that could not begin would be waited for for ever
    return started
