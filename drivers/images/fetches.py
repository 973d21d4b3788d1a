"""Fetches what users name by URL, while neither a worker nor the node's lock waits: the step polls.

Whatever a server does, a fetch ends in time (``ingot.common.fetching``). What is fetched is kept in memory until the
step asks for it again. When the conductor is lost, another one fetches it anew.
"""

import concurrent.futures
import threading
import time
from collections.abc import Callable
from typing import NamedTuple

from oslo_utils import strutils

from ingot.common import errors, fetching, masking
from ingot.common.networks import Networks
from ingot.drivers.interfaces import results
from ingot.drivers.interfaces.task import Task

DENIED = "Its address may not be reached: see [deploy] url_denied_networks and url_allowed_networks."

_PATIENCE = 1.0
"""Seconds that a step waits: most servers answer in that time, and then nothing polls."""

_PAUSE = 2.0
_KEPT = 60.0
"""Seconds that what was fetched is kept for a step that does not ask for it any more."""

_Key = tuple[str, str, str, str]


class _Fetch(NamedTuple):
    content: "concurrent.futures.Future[bytes]"
    until: float  # on the clock of time.monotonic


_guard = threading.Lock()
_fetches: dict[_Key, _Fetch] = {}


def read_networks(task: Task) -> Networks:
    """Return where URLs of users may lead."""
    options = task.conf.deploy
    return Networks(options.url_denied_networks, options.url_allowed_networks)


def fetch(task: Task, field: str, url: str, most: int) -> bytes | results.PollAfter:
    """Return the content of a URL, or when to ask again.

    :param field: what has the URL, for messages.
    :param most: bytes that it may have.
    :raises ImageError: it cannot be had.
    """
    key = (task.node.uuid, str(task.node.run_id), field, url)
    with _guard:
        running = _fetches.get(key) or _start(task, key, most)
    if running is None or not concurrent.futures.wait([running.content], _PATIENCE).done:
        return results.PollAfter(_PAUSE, abortable=True)
    with _guard:
        _fetches.pop(key, None)
    try:
        return running.content.result()
    except fetching.FetchError as exc:
        raise errors.ImageError(f"{field}: {masking.mask_text(url)}: {exc.message}") from None


def _start(task: Task, key: _Key, most: int) -> _Fetch | None:
    """Begin a fetch; None as long as there are as many as there may be, a quarter of the conductor's workers."""
    now = time.monotonic()
    for old in [old for old, one in _fetches.items() if one.content.done() and one.until + _KEPT < now]:
        del _fetches[old]
    if sum(not one.content.done() for one in _fetches.values()) >= max(1, task.conf.conductor.workers_pool_size // 4):
        return None
    url, seconds, networks = key[-1], task.conf.webserver_connection_timeout, read_networks(task)
    verify = _read_verify(task.conf.webserver_verify_ca)
    started = _fetches[key] = _Fetch(concurrent.futures.Future(), now + seconds)
    work = _build_work(started, lambda: fetching.fetch(url, most, seconds, networks, verify))
    # A daemon, as the process must not wait for it when it stops.
    threading.Thread(target=work, name=f"fetch for {task.node.uuid}", daemon=True).start()
    return started


def _build_work(started: _Fetch, get: Callable[[], bytes]) -> Callable[[], None]:
    def work() -> None:
        try:
            started.content.set_result(get())
        except BaseException as exc:  # noqa: BLE001 - it is raised again where the result is used
            started.content.set_exception(exc)

    return work


def _read_verify(value: str) -> bool | str:
    """Return what ``[DEFAULT] webserver_verify_ca`` means: true, false, or the file with authorities."""
    try:
        return bool(strutils.bool_from_string(value, strict=True))
    except ValueError:
        return value
