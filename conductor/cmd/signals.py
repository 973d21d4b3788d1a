"""Runs a service until the operating system, or the service itself, says stop."""

import signal
import threading


def wait_for_stop(stopped: threading.Event) -> int:
    """Waits for SIGTERM or SIGINT, or until the event is set. Must be called on the main thread.

    :returns: the exit code: 0 after a signal; 1 if nobody asked for the stop, which is a failure to who supervises it.
    """
    signalled = threading.Event()

    def stop(_number: int, _frame: object) -> None:
        signalled.set()
        stopped.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)
    stopped.wait()
    return 0 if signalled.is_set() else 1
