"""Runs a service until the operating system says stop."""

import signal
import threading


def wait_for_stop() -> None:
    """Returns at SIGTERM or SIGINT. Must be called on the main thread."""
    stopped = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda _number, _frame: stopped.set())
    stopped.wait()
