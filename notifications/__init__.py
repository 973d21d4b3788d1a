"""Versioned notifications, in the form in which Ironic sends them to Ceilometer, Vitrage, Watcher and others.

:mod:`~ingot.notifications.notifier` is what the API and conductors know: when there is something to say.
:mod:`~ingot.notifications.payloads` says what a message holds, :mod:`~ingot.notifications.bus` sends it.
"""
