"""Runs a service until the operating system, or the service itself, says stop."""

import gc
import logging
import os
import signal
import threading
from collections.abc import Callable
from typing import NoReturn

from oslo_config import cfg

from ingot.common import systemd

LOG = logging.getLogger(__name__)

_LEAVE_TIME = 10.0
"""Seconds for what an orderly stop does besides waiting: it takes its leave of a database and a broker."""


def end_start() -> None:
    """Have searches for garbage leave out what there is by now: the service itself, which stays as long as it runs.

    They would go through all of it, a hundred thousand objects, several times in a second of long answers.
    """
    gc.collect()
    gc.freeze()


def wait_for_stop(
    stopped: threading.Event,
    conf: cfg.ConfigOpts,
    reload: Callable[[], object] | None = None,
    parts: systemd.Parts | None = None,
) -> int:
    """Wait for SIGTERM or SIGINT, or until the event is set. Must be called on the main thread.

    Meanwhile SIGHUP reads the configuration files again, for the options that may change while a service runs. If
    systemd has started the service, it learns that the service is ready, lives, reads files again, and stops.

    :param reload: reads what else may have changed by then.
    :param parts: what must turn for the service to live.
    :returns: the exit code: 0 after a signal; 1 for a stop without a signal, which is a failure to its supervisor.
    """
    received: list[int] = []

    def stop(number: int, _frame: object) -> None:
        received.append(number)
        # This runs on the main thread, perhaps within its wait for the event, which holds a lock that set() takes.
        threading.Thread(target=stopped.set, name="stop", daemon=True).start()

    def read_again(_number: int, _frame: object) -> None:
        with systemd.announce_reload():
            try:
                conf.mutate_config_files()
            except (cfg.Error, OSError):
                LOG.exception("The configuration could not be read again and stays as it was")
            if reload:
                reload()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)
    signal.signal(signal.SIGHUP, read_again)
    end_start()
    systemd.wait(stopped, parts or {})
    return 0 if received else 1


def limit_stop(seconds: float, code: int) -> None:
    """End the process even if the database or the broker keeps it, because they are away.

    :param seconds: that the stop waits on purpose.
    """

    def give_up() -> None:
        LOG.warning("The stop takes too long; other conductors will notice the missing heartbeat of this one")
        cut_off(code)

    timer = threading.Timer(seconds + _LEAVE_TIME, give_up)
    timer.daemon = True
    timer.start()


def cut_off(code: int) -> NoReturn:
    """End the process at once, whatever its threads are in the middle of. The interpreter would wait for them."""
    logging.shutdown()
    os._exit(code)
