"""The requester and the request id: carried from the API over the bus into logs and history (all layers)."""

from oslo_context import context

from ingot.common.json_types import Json


class RequestContext(context.RequestContext):
    """The request's identity; ``to_dict`` and ``from_dict`` carry it over the bus."""

    def to_dict(self) -> Json:
        """Return what crosses the bus: the requester, without the token that proved it."""
        return {name: value for name, value in super().to_dict().items() if name != "auth_token"}

    def to_policy_values(self) -> Json:
        """Return what rules of policy are evaluated with; rules may name the project by its name too."""
        return {**super().to_policy_values(), "project_name": self.project_name}


def admin() -> RequestContext:
    """Return the context of work that no request asked for: sweeps, timers, take-over."""
    return RequestContext(is_admin=True, overwrite=False)
