"""Sends bells beside the requests that ring them: with a broker that is away or silent, sending one takes seconds, and
an API whose threads all wait for that would answer nobody."""

from collections.abc import Callable

import futurist
from futurist import rejection
from oslo_log import log

from ingot.common import errors

LOG = log.getLogger(__name__)

_THREADS = 4
_MOST_WAITING = 1000


class Bells:
    """Threads that send. They begin with the first bell, which may come after a WSGI server has forked."""

    def __init__(self, most_waiting: int = _MOST_WAITING) -> None:
        full = rejection.reject_when_reached(most_waiting)
        self._executor = futurist.ThreadPoolExecutor(max_workers=_THREADS, check_and_reject=full)

    def send(self, bell: Callable[[], None]) -> None:
        """Has a bell sent soon. One that cannot be sent is lost, and what it was rung for is found without it.

        :raises ServiceUnavailable: too many wait already.
        """
        try:
            self._executor.submit(_send, bell)
        except futurist.RejectedSubmission as exc:
            raise errors.ServiceUnavailable(what="The message bus", reason="too many messages wait for it") from exc

    def close(self) -> None:
        """What has not been sent is lost."""
        self._executor.shutdown(wait=False)


def _send(bell: Callable[[], None]) -> None:
    try:
        bell()
    except errors.ServiceUnavailable as exc:
        LOG.warning("A bell was not rung, the sweep will find what it was for: %s", exc.message)
    except Exception:  # the edge of a worker
        LOG.exception("Sending a bell failed unexpectedly")
