"""What may cross the bus and how: the same JSON for every transport, so that nothing works in one and fails in another.

A result travels in an envelope, ``{"result": ...}`` or ``{"error": {"type": ..., "message": ...}}``: an error keeps its
class without the transport knowing any of Ingot's classes.
"""

import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import orjson
from oslo_log import log

from ingot.common import context, errors

LOG = log.getLogger(__name__)

SILENCE_S = 15
"""Conductors that work on a call give a sign of life twice in this time: that of one that is dead or frozen ends."""

_LATEST_BEGIN = 0.75
"""The share of a caller's patience within which work must have begun: the rest is for the work itself."""


class Limits(NamedTuple):
    """The patience of whoever calls, in seconds.

    :param silence: for a sign of life from who was asked.
    :param answer: for the answer, even if there are signs of life.
    """

    silence: float = SILENCE_S
    answer: float = 60


def primitive(value: Any) -> Any:
    """``value`` as the other side will see it: dictionaries, lists, strings, numbers, booleans, None.

    :raises TypeError: it holds something that has no JSON form.
    """
    return orjson.loads(orjson.dumps(value, option=orjson.OPT_UTC_Z))


def question(ctx: context.RequestContext, limits: Limits) -> dict[str, Any]:
    """The context of a call as it crosses the bus, with the moments by which it must ``arrive`` and the work ``begin``,
    in seconds since the epoch. After them the caller may be gone: what it was told has failed must not happen then,
    as when a conductor that was frozen is thawed."""
    now = time.time()
    by = {"arrive": now + limits.silence, "begin": now + limits.answer * _LATEST_BEGIN}
    return {**primitive(ctx.to_dict()), "by": by}


def rest(ctx: Mapping[str, Any], what: str) -> float:
    """The seconds that are left for a request to ``arrive`` or its work to ``begin``; less than none if it is late.

    Bells may ring as late as they like, and release 0.1 says nothing about its calls.
    """
    now = time.time()
    left: float = ctx.get("by", {}).get(what, now + Limits().answer * _LATEST_BEGIN) - now
    return left


def refuse_late(ctx: Mapping[str, Any], what: str) -> None:
    """
    :raises ServiceUnavailable: it is too late for a request to ``arrive`` or its work to ``begin``.
    """
    if (left := rest(ctx, what)) < 0:
        late = (
            f"the request came to {what} {-left:.0f} s too late. If that happens often, compare the clocks of the hosts"
        )
        raise errors.ServiceUnavailable(what="This conductor", reason=late)


def answer(ctx: Mapping[str, Any], method: Callable[..., Any], *args: Any, **kwargs: Any) -> dict[str, Any]:
    """Runs a method of the endpoint and packs what came of it. This is the edge of an RPC call: nothing escapes.

    :param ctx: of the request, as it crossed the bus.
    """
    try:
        refuse_late(ctx, "arrive")
        return {"result": primitive(method(*args, **kwargs))}
    except errors.IngotError as exc:
        return {"error": {"type": type(exc).__name__, "message": exc.message}}
    except Exception:
        LOG.exception("RPC method %s failed unexpectedly", method.__qualname__)
        message = "Unexpected error on the conductor; its log has the details."
        return {"error": {"type": "IngotError", "message": message}}


def unpack(envelope: dict[str, Any]) -> Any:
    """The result in an envelope.

    :raises IngotError: the error in it, of the class it had on the other side.
    """
    if "error" in envelope:
        raise errors.by_name(envelope["error"]["type"])(envelope["error"]["message"])
    return envelope["result"]
