"""Runs a service until the operating system, or the service itself, says stop."""

import signal
import threading


def wait_for_stop(stopped: threading.Event) -> None:
    """Returns at SIGTERM or SIGINT, or when the event is set. Must be called on the main thread."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda _number, _frame: stopped.set())
    stopped.wait()
