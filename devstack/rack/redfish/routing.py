"""Resources by their path: what a request means, and the function that answers it."""

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ingot.rack.http_server import Request, Response
from ingot.rack.redfish.messages import RedfishError

if TYPE_CHECKING:
    from ingot.rack.redfish.board import Board
    from ingot.rack.redfish.service import Member, Service

ROOT = "/redfish/v1"
Document = dict[str, Any]


@dataclass
class Call:
    """A request to a resource; ``ids`` are the variable parts of its path."""

    service: "Service"
    request: Request
    ids: dict[str, str] = field(default_factory=dict)

    @property
    def member(self) -> "Member":
        """The machine whose system, manager or chassis the path names.

        :raises RedfishError: the service does not have it.
        """
        kind = next(name for name in ("system", "manager", "chassis") if name in self.ids)
        found = self.service.find(kind, self.ids[kind])
        if found is None:
            raise RedfishError("ResourceMissingAtURI", self.request.path)
        return found

    @property
    def board(self) -> "Board":
        return self.member.board

    @property
    def path(self) -> str:
        return self.request.path.rstrip("/")

    def body(self) -> Document:
        """Return the body. :raises RedfishError: it is not the JSON of an object."""
        try:
            found = json.loads(self.request.body or b"{}")
        except ValueError as error:
            raise RedfishError("MalformedJSON") from error
        if not isinstance(found, dict):
            raise RedfishError("MalformedJSON")
        return found

    def parameters(self, action: str, required: Iterable[str], optional: Iterable[str] = ()) -> Document:
        """Return an action's parameters. :raises RedfishError: one is missing, or unknown."""
        body = self.body()
        for name in required:
            if name not in body:
                raise RedfishError("ActionParameterMissing", action, name, related=(f"#/{name}",))
        for name in body:
            if name not in (*required, *optional) and not name.startswith("@"):
                raise RedfishError("ActionParameterUnknown", action, name, related=(f"#/{name}",))
        return body

    def missing(self) -> RedfishError:
        return RedfishError("ResourceMissingAtURI", self.request.path)


Handler = Callable[[Call], "Document | Response | None"]
"""Answers with a resource, a response, or nothing: the change was made."""


@dataclass(frozen=True)
class Route:
    """What a method does to the resources of one kind; ``path`` is below the root, with ``{names}`` for its ids."""

    method: str
    path: str
    handler: Handler
    root: str = ROOT


class Router:
    """Finds the route of a path in a tree of its segments, whatever the number of routes."""

    def __init__(self, routes: Iterable[Route]) -> None:
        self._tree: dict[str, Any] = {}
        for route in routes:
            branch = self._tree
            for segment in _segments(route.root + route.path):
                branch = branch.setdefault(segment, {})
            branch.setdefault("", {})[route.method] = route.handler

    def find(self, path: str) -> tuple[dict[str, Handler], dict[str, str]] | None:
        """Return the handlers of a path by method, with its ids; None: there is no such resource."""
        branch, ids = self._tree, {}
        for segment in _segments(path):
            if segment in branch:
                branch = branch[segment]
                continue
            name = next((name for name in branch if name.startswith("{")), None)
            if name is None:
                return None
            ids[name.strip("{}")] = segment
            branch = branch[name]
        return (branch[""], ids) if "" in branch else None


def _segments(path: str) -> list[str]:
    return path.strip("/").split("/")


def link(path: str) -> Document:
    return {"@odata.id": path}


def collection(path: str, kind: str, members: Iterable[str]) -> Document:
    """Return a collection of the resources at the paths ``members``."""
    links = [link(member) for member in members]
    return {
        "@odata.id": path,
        "@odata.type": f"#{kind}Collection.{kind}Collection",
        "Name": f"{kind} Collection",
        "Members@odata.count": len(links),
        "Members": links,
    }


def resource(path: str, kind: str, name: str, **properties: Any) -> Document:
    """Return a resource; ``kind`` is its type with the version, such as ``Chassis.v1_23_0.Chassis``."""
    return {
        "@odata.id": path,
        "@odata.type": f"#{kind}",
        "Id": path.rpartition("/")[2],
        "Name": name,
        **properties,
    }


def one_of(body: Document, name: str, values: Iterable[Any]) -> Any:
    """Return a property's value. :raises RedfishError: it cannot have that value."""
    value = body[name]
    if value not in values:
        raise RedfishError("PropertyValueNotInList", value, name, related=(f"#/{name}",))
    return value


def of_type(body: Document, name: str, kind: type | tuple[type, ...]) -> Any:
    """Return a property's value. :raises RedfishError: it has another type."""
    value = body[name]
    if not isinstance(value, kind):
        raise RedfishError("PropertyValueTypeError", value, name, related=(f"#/{name}",))
    return value


def patch(call: Call, writers: dict[str, Callable[[Call, Document, str], None]]) -> None:
    """Change the properties of a body, each by its writer.

    :raises RedfishError: there is no such property, or it cannot be changed; nothing was changed before it was found.
    """
    body = {name: value for name, value in call.body().items() if not name.startswith("@")}
    for name in body:
        if name not in writers:
            raise RedfishError("PropertyUnknown", name, related=(f"#/{name}",))
    for name in body:
        writers[name](call, body, name)
