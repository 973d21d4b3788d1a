"""Who asks, and under which request id: carried from the API over the bus into logs and history (all layers)."""

from oslo_context import context


class RequestContext(context.RequestContext):
    """The request's identity; ``to_dict`` and ``from_dict`` carry it over the bus."""


def admin() -> RequestContext:
    """The context of work that Ingot does by itself: sweeps, timers, take-over."""
    return RequestContext(is_admin=True, overwrite=False)
