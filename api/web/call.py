"""What a handler gets and gives: one request without HTTP, one reply, and the operation that binds them to a route."""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Protocol, TypeVar

from oslo_config import cfg
from werkzeug.datastructures import Headers

from ingot.api.auth.access import Access
from ingot.api.web import params, schemas
from ingot.api.web.downloads import Downloads
from ingot.api.web.feed import Feed
from ingot.api.web.preconditions import Preconditions
from ingot.common import context, errors
from ingot.db.engine import Database
from ingot.rpcapi.client import ConductorClient


@dataclasses.dataclass(frozen=True, slots=True)
class Call:
    """A request that has been authenticated, routed, and whose parameters and body were checked.

    :param access: what it may do.
    :param rule: the rule of policy that its route declares; see :mod:`ingot.api.auth.rules`.
    :param minor: the API version it speaks.
    :param feed: the events of the database.
    :param downloads: of images.
    :param headers: those of the request, for the few handlers that look at one.
    :param base: scheme and host for links, without a slash at the end.
    :param path: path of the URL, as the ``next`` link of a list repeats it.
    :param query: parsed parameters that were given.
    :param body: parsed body; None when the operation takes none.
    :param preconditions: what must hold for the object that a writing request names; None for no conditions.
    :param dry_run: whether the request ends where it would be accepted; see :func:`ingot.api.nodes.nodes.accept`.
    """

    conf: cfg.ConfigOpts
    db: Database
    client: ConductorClient
    ctx: context.RequestContext
    access: Access
    rule: str
    feed: Feed
    downloads: Downloads
    headers: Headers
    minor: int
    base: str
    path: str
    query: Mapping[str, Any]
    body: Any = None
    preconditions: Preconditions | None = None
    dry_run: bool = False


class Reply(NamedTuple):
    """An answer.

    :param body: what is sent as JSON; a string is sent as plain text, bytes as a gzip archive, a stream as events while
        they happen, a download as it comes; None sends nothing.
    :param version: that of the object that it shows, for the entity tag.
    """

    body: Any = None
    status: int = 200
    headers: Mapping[str, str] = {}
    version: str | None = None


def created(call: Call, body: dict[str, Any], path: str, version: str | None = None) -> Reply:
    return Reply(body, 201, {"Location": f"{call.base}{path}"}, version)


def accepted(call: Call, path: str) -> Reply:
    """202: the work is in the database; ``path`` is where its progress can be seen."""
    return Reply(None, 202, {"Location": f"{call.base}{path}"})


NO_CONTENT = Reply(None, 204)


_Value = TypeVar("_Value")


def wait_for_lock(attempt: Callable[[], _Value], most: int = 5) -> _Value:
    """Reads, decides and writes again when something else was written between reading and writing.

    A power state that was read from hardware, say, must not make a user's request fail. What the request means is
    decided anew on what is there now, so no update is lost.

    :param attempt: the whole: read, check, compare and set.
    :param most: attempts before the client is told.
    """
    for _again in range(most - 1):
        try:
            return attempt()
        except errors.ChangedMeanwhile:
            continue
    return attempt()


class Body(Protocol):
    """A declared request body."""

    @property
    def schema(self) -> schemas.Schema:
        """What is checked first, and what the API's description says."""

    def check(self, value: Any, minor: int) -> Any:
        """The value in the form the handler works with.

        :raises Invalid: it is not what is declared.
        :raises VersionRefused: it holds something newer than the version of the request.
        """


class Shape(Protocol):
    """What the body of an answer looks like, for the API's description."""

    def schema(self, named: dict[str, Any]) -> dict[str, Any]:
        """Its JSON schema.

        :param named: schemas that others refer to as ``#/components/schemas/<name>``; adds those it needs.
        """


class Plain(NamedTuple):
    """A shape that is a JSON schema of its own."""

    document: dict[str, Any]

    def schema(self, named: dict[str, Any]) -> dict[str, Any]:
        return self.document


class Answer(NamedTuple):
    """What an operation answers when it succeeds.

    :param shows: the body; None: there is none.
    :param also: another status, with an empty body.
    """

    status: int = 200
    shows: Shape | None = None
    media: str = "application/json"
    also: int | None = None


EMPTY_202, EMPTY_204 = Answer(202), Answer(204)


class Operation(NamedTuple):
    """A handler with what it accepts; the rows of the route table hold operations.

    :param query: declared query parameters; any other is refused.
    :param body: declared body; None: a body is ignored.
    :param answer: what it answers; what the API's description says, and tests compare with.
    :param since: minor version that brought it, where it is younger than its route.
    """

    handler: Callable[..., Reply]
    query: Mapping[str, params.Param]
    body: Body | None
    answer: Answer
    since: int = 1


def operation(
    *query: params.Param, answer: Answer, body: Body | None = None, since: int = 1
) -> Callable[[Callable[..., Reply]], Operation]:
    """Declares what a handler accepts."""

    def declare(handler: Callable[..., Reply]) -> Operation:
        return Operation(handler, {param.name: param for param in query}, body, answer, since)

    return declare
