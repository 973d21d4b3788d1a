"""The requester and the request id: carried from the API over the bus into logs and history (all layers)."""

from typing import Self

from oslo_context import context

from ingot.common.json_types import Json, Requester


class RequestContext(context.RequestContext):
    """The request's identity; ``to_dict`` and ``from_dict`` carry it over the bus.

    What a thread logs carries the ids of its current context. ``update_store`` makes a context the current one, where a
    piece of work begins; ``overwrite=False`` makes one on the way that gives its ids to nothing else.
    """

    traceparent: str | None = None
    """The span that what is done for it belongs to; see :mod:`ingot.common.tracing`."""

    catalog: str | None = None
    """Keystone's services as the requester's token has them, as JSON; only the API has it, for its audit events."""

    def to_dict(self) -> Json:
        """Return what crosses the bus: the requester, without the token that proved it."""
        crossing: Json = super().to_dict()
        del crossing["auth_token"]
        if self.traceparent is not None:
            crossing["traceparent"] = self.traceparent
        return crossing

    @classmethod
    def from_dict(cls, values: Json, **kwargs: object) -> Self:
        """Return the context that has crossed the bus."""
        found: Self = super().from_dict(values, **kwargs)
        found.traceparent = values.get("traceparent")
        return found

    def to_policy_values(self) -> Json:
        """Return what rules of policy are evaluated with; rules may name the project by its name too."""
        return {**super().to_policy_values(), "project_name": self.project_name}


def admin() -> RequestContext:
    """Return the context of work that no request asked for: sweeps, timers, take-over."""
    return RequestContext(is_admin=True, overwrite=False)


def current() -> RequestContext:
    """Return the context of what this thread does; a new one where it has none."""
    found = context.get_current()
    return found if isinstance(found, RequestContext) else admin()


def of_work(asked_by: Requester | None) -> RequestContext:
    """Return the context in which accepted work goes on: the ids are the request's, the rights a conductor's own.

    :param asked_by: what the request or power request of a node has kept; releases before 0.3 keep no ids.
    """
    about = asked_by or {}
    own, clients = about.get("request_id"), about.get("global_request_id")
    found = RequestContext(is_admin=True, request_id=own, global_request_id=clients, overwrite=False)
    found.traceparent = about.get("traceparent")
    return found
