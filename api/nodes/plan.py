"""The plan of a flow before anybody presses the button: steps in their order, and all that is wrong with them.

Takes what a provision request takes, without its target. Under /ingot/v1, as the timeline, which has the same steps
afterwards.
"""

from typing import Any, NamedTuple

from ingot.api.nodes import nodes, provision
from ingot.api.web import fields, schemas
from ingot.api.web.call import Answer, Call, Plain, Reply, operation
from ingot.api.web.params import Param
from ingot.common import errors, states


class _Asked(NamedTuple):
    """What is asked for with a value of ``flow``.

    :param verb: the verb whose arguments may be in the body.
    :param without: the verb that is meant when the body is empty.
    """

    verb: str
    without: str


_FLOWS: dict[str, _Asked] = {
    "adopt": _Asked("adopt", without="adopt"),
    "clean": _Asked("clean", without="provide"),
    "deploy": _Asked(states.ACTIVE, without=states.ACTIVE),
    "inspect": _Asked("inspect", without="inspect"),
    "rescue": _Asked(states.RESCUE, without=states.RESCUE),
    "service": _Asked("service", without="service"),
    "unrescue": _Asked("unrescue", without="unrescue"),
}


def _flow(name: str, given: str) -> str:
    if given not in _FLOWS:
        raise errors.Invalid(field=name, value=given, allowed=f"Plans are made for: {', '.join(_FLOWS)}.")
    return given


_FLOW = Param("flow", _flow)

_BODY = fields.Body(
    "plan request",
    (
        argument.field
        for argument in provision.ARGUMENTS.values()
        if any(asked.verb in argument.verbs for asked in _FLOWS.values())
    ),
)


_STEP = schemas.complete(
    {
        **dict.fromkeys(("interface", "step", "origin", "runner"), schemas.TEXT),
        **dict.fromkeys(("abortable", "requires_ramdisk", "reboot_requested", "presumed"), schemas.FLAG),
        "priority": {"type": "number"},
        "args": {"type": "object"},
    }
)
_PLAN = Answer(
    shows=Plain(
        schemas.complete(
            {
                "node_uuid": schemas.TEXT,
                "flow": {"enum": list(_FLOWS)},
                "steps": {"type": "array", "items": _STEP},
                "in_band_steps_known": schemas.FLAG,
                "errors": {"type": "array", "items": schemas.TEXT},
            }
        )
    )
)


@operation(_FLOW, answer=_PLAN)
def show(call: Call, node: str) -> Reply:
    """The plan of a request without arguments."""
    return _answer(call, node)


@operation(_FLOW, body=_BODY, answer=_PLAN)
def create(call: Call, node: str) -> Reply:
    """The plan of a request; nothing is created but the answer."""
    return _answer(call, node)


def _answer(call: Call, ident: str) -> Reply:
    if "flow" not in call.query:
        raise errors.Invalid(f"Say what to plan: send flow=, one of {', '.join(_FLOWS)}.")
    flow = call.query["flow"]
    body = call.body or {}
    verb = _FLOWS[flow].verb if body else _FLOWS[flow].without
    arguments = provision.checked_arguments(call, verb, body)
    node = nodes.read(call, ident, "uuid", "driver", "conductor_group")
    request = provision.flow_request(call, node, verb, arguments)
    for name in ("configdrive", "rescue_password"):  # megabytes, or a secret, and no plan depends on it
        request.pop(name, None)
    plan: dict[str, Any] = call.client.call(call.ctx, node, "get_plan", flow=provision.FLOWS[verb], request=request)
    return Reply({"node_uuid": node.uuid, "flow": flow, **plan})
