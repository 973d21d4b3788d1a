"""What may cross the bus and how: the same JSON for every transport, so that nothing works in one and fails in another.

A result travels in an envelope, ``{"result": ...}`` or ``{"error": {"type": ..., "message": ...}}``: an error keeps its
class without the transport knowing any of Ingot's classes.
"""

from collections.abc import Callable
from typing import Any

import orjson
from oslo_log import log

from ingot.common import errors

LOG = log.getLogger(__name__)


def primitive(value: Any) -> Any:
    """``value`` as the other side will see it: dictionaries, lists, strings, numbers, booleans, None.

    :raises TypeError: it holds something that has no JSON form.
    """
    return orjson.loads(orjson.dumps(value, option=orjson.OPT_UTC_Z))


def answer(method: Callable[..., Any], *args: Any, **kwargs: Any) -> dict[str, Any]:
    """Runs a method of the endpoint and packs what came of it. This is the edge of an RPC call: nothing escapes."""
    try:
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
