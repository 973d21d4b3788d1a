"""Who asks, and under which request id: carried from the API over the bus into logs and history (all layers)."""

from typing import Any

from oslo_context import context


class RequestContext(context.RequestContext):
    """The request's identity; ``to_dict`` and ``from_dict`` carry it over the bus."""

    def to_dict(self) -> dict[str, Any]:
        """What crosses the bus: who asks, without the token that proved it."""
        return {name: value for name, value in super().to_dict().items() if name not in _STAYS}

    def to_policy_values(self) -> dict[str, Any]:
        """What rules of policy are evaluated with; rules may name the project by its name too."""
        return {**super().to_policy_values(), "project_name": self.project_name}


_STAYS = frozenset(("auth_token",))


def admin() -> RequestContext:
    """The context of work that Ingot does by itself: sweeps, timers, take-over."""
    return RequestContext(is_admin=True, overwrite=False)
