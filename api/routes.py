"""All routes: which URL, which methods, from which version on. 405 and ``Allow`` come from this table."""

from collections.abc import Mapping
from typing import NamedTuple

from ingot.api import agents, boot, node_states, nodes, ports, provision, root
from ingot.api.call import Operation
from ingot.api.collection import without_ident
from ingot.common import errors

_HIDDEN = {"GET": 404, "*": 404}
"""A resource that is newer than the request's version: as if it were not there."""

_HIDDEN_405 = {"GET": 404, "*": 405}
_HIDDEN_406 = {"GET": 406, "PUT": 405, "DELETE": 404, "*": 406}

_REFUSALS: Mapping[int, type[errors.IngotError]] = {
    404: errors.NotFound,
    405: errors.MethodNotAllowed,
    406: errors.VersionRefused,
}


class Route(NamedTuple):
    """A URL.

    :param operations: by method.
    :param since: minor version that brought it.
    :param below: what older requests get, by method.
    :param public: whether it needs no authentication.
    :param any_version: whether it does not care about the request's version.
    :param text: whether it answers plain text.
    """

    path: str
    operations: Mapping[str, Operation]
    since: int = 1
    below: Mapping[str, int] = _HIDDEN
    public: bool = False
    any_version: bool = False
    text: bool = False

    def too_new(self, method: str) -> errors.IngotError:
        """The error for a request of an older version."""
        refusal = _REFUSALS[self.below.get(method, self.below["*"])]
        return refusal(f"{method} {self.path} needs API version 1.{self.since} or newer.")


ROUTES: tuple[Route, ...] = (
    Route("/", {"GET": root.service}, public=True, any_version=True),
    Route("/v1", {"GET": root.version_1}, public=True),
    Route("/boot/ipxe/<mac>", {"GET": boot.ipxe}, public=True, any_version=True, text=True),
    Route("/v1/lookup", {"GET": agents.lookup}, 22, public=True),
    Route("/v1/heartbeat/<node>", {"POST": agents.heartbeat}, 22, public=True),
    # nodes
    Route(
        "/v1/nodes",
        {"GET": nodes.index, "POST": nodes.create, "PATCH": without_ident, "DELETE": without_ident},
    ),
    Route("/v1/nodes/detail", {"GET": nodes.detail}),
    Route("/v1/nodes/<node>", {"GET": nodes.show, "PATCH": nodes.update, "DELETE": nodes.delete}),
    Route("/v1/nodes/<node>/states", {"GET": node_states.show}),
    Route("/v1/nodes/<node>/states/power", {"PUT": node_states.set_power}),
    Route("/v1/nodes/<node>/states/provision", {"PUT": provision.set_provision}),
    Route("/v1/nodes/<node>/states/raid", {"PUT": node_states.set_raid}, 12, _HIDDEN_406),
    Route(
        "/v1/nodes/<node>/maintenance",
        {"PUT": node_states.set_maintenance, "DELETE": node_states.clear_maintenance},
    ),
    Route("/v1/nodes/<node>/ports", {"GET": ports.of_node}),
    # ports
    Route(
        "/v1/ports",
        {"GET": ports.index, "POST": ports.create, "PATCH": without_ident, "DELETE": without_ident},
    ),
    Route("/v1/ports/detail", {"GET": ports.detail}),
    Route("/v1/ports/<port>", {"GET": ports.show, "PATCH": ports.update, "DELETE": ports.delete}),
)
